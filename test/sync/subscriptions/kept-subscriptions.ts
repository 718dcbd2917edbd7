import { onTestFinished } from 'vitest';
import { silentLog } from '../../../src/base/log.ts';
import { SubscriptionClient } from '../../../src/client/subscriptions.ts';
import { SubscriptionManager, type SubscriptionManagerOptions } from '../../../src/sync/subscriptions/subscription-manager.ts';
import type { Warehouse } from '../../../src/warehouse/warehouse.ts';
import { CLIENT, type SubscriptionService, startSubscriptionService } from '../../support/literal-subscriptions.ts';
import { newPath, openWarehouse, rows } from '../../support/warehouse.ts';

export const CALLBACK = 'https://example.org/webhook?key=not-for-logs-key';
/** As our table has it: the first 8 of `printf %s '?key=not-for-logs-key' | sha256sum`. */
export const CONCEALED = 'https://example.org/webhook?29264238';
export const START = Date.parse('2025-06-01T00:00:00Z');
export const SIX = ['create sleep', 'update sleep', 'delete sleep', 'create session', 'update session', 'delete session'];

export const clock = { ms: START };
/** Of the test that runs. */
export let warehouse: Warehouse;

/** Before each test: sets the clock back and opens a new warehouse. */
export async function startAfresh(folder: string): Promise<void> {
  clock.ms = START;
  const opened = await openWarehouse(newPath(folder), { now: () => clock.ms });
  onTestFinished(() => opened.close());
  warehouse = opened;
}

/** A service, and a manager of our subscriptions there whose timer is run by hand. */
export async function set(options: Partial<SubscriptionManagerOptions> = {}, service?: SubscriptionService) {
  const at = service ?? (await startSubscriptionService());
  const timers: { run: () => void; ms: number; cleared: boolean }[] = [];
  const manager = await SubscriptionManager.open({
    client: new SubscriptionClient({ baseUrl: at.url, callbackUrl: CALLBACK, ...CLIENT }),
    warehouse,
    callbackUrl: CALLBACK,
    dataTypes: ['sleep', 'session'],
    now: () => clock.ms,
    log: silentLog,
    setTimer: (run, ms) => {
      const timer = { run, ms, cleared: false };
      timers.push(timer);
      return () => {
        timer.cleared = true;
      };
    },
    ...options,
  });
  onTestFinished(async () => {
    await manager.close();
    await at.close();
  });
  /** The next round, as its timer begins it; done when it has set the next timer. */
  const nextRound = async () => {
    const before = timers.length;
    timers.at(-1)!.run();
    while (timers.length === before) await new Promise(resolve => setImmediate(resolve));
  };
  const start = async () => {
    manager.start();
    while (!timers.length) await new Promise(resolve => setImmediate(resolve));
  };
  return { service: at, manager, timers, nextRound, start };
}

/** What the service has. */
export const told = ({ subscriptions }: SubscriptionService) => subscriptions.map(one => `${one.event_type} ${one.data_type}`).toSorted();
/** How many of ours are in each state. */
export const states = async () =>
  (await rows(warehouse, `SELECT state, count(*) AS n FROM sync.subscriptions GROUP BY 1 ORDER BY 1`)) as { state: string; n: number }[];
export const rowOf = async (event: string, data: string) => {
  const columns = 'id, callback_url, state, reason, since, renewed_at, expiration_time';
  const found = await rows(warehouse, `SELECT ${columns} FROM sync.subscriptions WHERE event_type = '${event}' AND data_type = '${data}'`);
  return found[0] as Record<string, string | null> | undefined;
};
/** What was asked of the service, with ID for an id. */
export const methods = ({ asked }: SubscriptionService, from = 0) =>
  asked
    .slice(from)
    .map(({ method, path }) => `${method} ${path.replace('/v2/webhook/subscription', '').replace(/[0-9a-f-]{36}/, 'ID')}`.trim());
