import { resources } from '../../schema/index.ts';
import type { Log } from '../base/log.ts';
import type { ServiceState } from '../service/state.ts';
import type { Announce } from '../simulator/change.ts';
import { createControl } from '../simulator/control-route.ts';
import { openControlSecret } from '../simulator/control-secret.ts';
import { withEventFaults } from '../simulator/event-faults.ts';
import type { FaultSwitches } from '../simulator/faults.ts';
import { Timeline } from '../simulator/timeline.ts';
import type { Edit } from '../simulator/users/edits.ts';
import { listening } from './listen.ts';

/** The life of the service's people, as its faults let it be seen; without a speed it goes by the calendar, or stands still after a last day. */
export function openLife(options: {
  folder: string;
  seed: number;
  people: number;
  from: string;
  to: string | undefined;
  state: ServiceState;
  speed: number | undefined;
  faults: FaultSwitches;
  deliveryDelay: number;
  announce: Announce;
  log: Log;
}): Timeline {
  const { folder, seed, from, to, faults, log } = options;
  return new Timeline({
    folder,
    seed,
    count: options.people,
    from,
    ...(to === undefined ? {} : { to }),
    // Whatever wrote the state's log of edits wrote edits.
    edits: options.state.edits as readonly Edit[],
    speed: options.speed ?? (to === undefined ? 1 : 0),
    resources,
    announce: withEventFaults(options.announce, faults, seed),
    lagMs() {
      const unreadable = faults.get('unreadable');
      return unreadable === undefined ? 0 : (options.deliveryDelay + (faults.get('delay') ?? 0) + unreadable) * 1000;
    },
    log,
  });
}

/** The control route, on this machine only. `secret` is null when it was told before. */
export async function openControl(options: {
  folder: string;
  port: number;
  newSecret: boolean;
  life: Timeline;
  faults: FaultSwitches;
  state: ServiceState;
  subscriptions: () => number;
}): Promise<{ url: string; secret: string | null; close(): Promise<void> }> {
  const { secret, isIt } = openControlSecret(options.folder, options.newSecret);
  const { life: timeline, faults, state, subscriptions } = options;
  const control = createControl({ timeline, faults, isSecret: isIt, setTokenState: state.setTokenState, subscriptions });
  const address = { host: '127.0.0.1', port: options.port };
  const url = await listening(address, '--control-port', control.listen(address));
  return { url: `${url}/control`, secret, close: () => control.close() };
}
