import { setTimeout as sleep } from 'node:timers/promises';
import type { WebhookEvent } from '../../schema/webhook.ts';
import { messageOf } from '../base/errors.ts';
import type { Announce } from './change.ts';
import type { Timers } from './timers.ts';

interface Kept {
  eventId: string;
  event: WebhookEvent;
}

/** Events between their being kept and their being told of. */
export interface Outbox {
  events(): Kept[];
  add(events: readonly Kept[]): void;
  /** Tells of what is there, in the background; what cannot be told stays and is tried again. */
  tell(): void;
  /** Waits for what is being told, but not for long: what is not told of by then is told of by the next outbox. */
  close(): Promise<void>;
}

const AT_ONCE = 200;
const AGAIN_MS = 5_000;
const CLOSE_PATIENCE_MS = 5_000;

/** An outbox; `save` keeps it, and is called when it has become shorter. */
export function createOutbox({
  events: kept,
  announce,
  timers,
  log,
  save,
}: {
  events: readonly Kept[];
  announce: Announce;
  timers: Timers;
  log: { warn(facts: object, message: string): void } | undefined;
  save: () => void;
}): Outbox {
  let events = [...kept];
  let isTelling = false;
  let telling = Promise.resolve();
  let again: unknown;
  let closed = false;
  let abandoned = false;

  async function tellAll(): Promise<void> {
    isTelling = true;
    try {
      while (events.length > 0 && !closed) {
        const some = events.slice(0, AT_ONCE);
        await announce(some);
        // By now another process may have the file.
        if (abandoned) return;
        events = events.slice(some.length);
        save();
      }
    } catch (error) {
      log?.warn({ reason: messageOf(error), events: events.length }, 'events cannot be queued; they are kept and tried again');
      if (!closed) again = timers.set(tell, AGAIN_MS);
    } finally {
      // In the same turn as the last look: what is added after it is told of by the next call.
      isTelling = false;
    }
  }

  function tell(): void {
    if (isTelling || closed) return;
    timers.clear(again);
    telling = tellAll();
  }

  return {
    events: () => events,
    add: more => {
      events = [...events, ...more];
    },
    tell,
    async close() {
      closed = true;
      timers.clear(again);
      await Promise.race([telling, sleep(CLOSE_PATIENCE_MS, undefined, { ref: false })]);
      abandoned = true;
    },
  };
}
