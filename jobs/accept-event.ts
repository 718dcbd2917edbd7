import type { WebhookEvent } from '../schema/webhook.ts';
import type { NewJob, Queues } from '../src/queue/queues.ts';
import type { Pipeline } from './pipeline.ts';
import { warehouseId } from './runs.ts';

/** The queue of accepted events belongs to one warehouse: two of them may share a Redis. */
export const eventQueue = async (warehouse: Pipeline['warehouse']): Promise<string> => `events-${await warehouseId(warehouse)}`;

/** How many accepted events are not settled yet. Rejects with QueueUnavailable like `counts`. */
export async function countEvents({ warehouse, queues }: Pick<Pipeline, 'warehouse' | 'queues'>): Promise<number> {
  const { waiting, active, delayed, failed } = await queues.counts(await eventQueue(warehouse));
  return waiting + active + delayed + failed;
}

/** What the queue keeps of an event until it is worked off. */
export interface EventJob {
  /** Microseconds; no two events share it. */
  receivedAt: number;
  /** The event as JSON: U+0000 in its texts is refused by the embedded store, and as escaped text it is not. */
  event: string;
  /** How often its document was not there yet. */
  misses: number;
}

/** An accepted event is never given up by the queue: whoever works it off decides when it is parked. */
export const EVENT_JOB_OPTIONS = {
  attempts: 1_000_000,
  backoff: { type: 'fixed', delay: 5_000 },
  removeOnComplete: true,
  removeOnFail: false,
} as const;

const MOST_AT_ONCE = 200;

interface Waiting {
  job: NewJob;
  resolve(): void;
  reject(error: unknown): void;
}

/**
 * Puts events into the queue; each call resolves when its event is there for good. One addition at a time, without a timer: what arrives
 * meanwhile goes into the next one together, so that a burst costs a fraction of single additions and a lone event waits for nothing.
 */
export function createAccept(
  { warehouse, queues }: { warehouse: { moments: { next(): number } }; queues: Pick<Queues, 'addAll'> },
  queueName: string,
): (event: WebhookEvent) => Promise<void> {
  let waiting: Waiting[] = [];
  let adding = false;

  async function addWaiting(): Promise<void> {
    adding = true;
    while (waiting.length > 0) {
      const group = waiting.splice(0, MOST_AT_ONCE);
      try {
        await queues.addAll(
          queueName,
          group.map(({ job }) => job),
        );
        for (const { resolve } of group) resolve();
      } catch (error) {
        // Those behind would wait for the same silence, one group after the other, and their senders with them.
        const behind = waiting;
        waiting = [];
        for (const { reject } of [...group, ...behind]) reject(error);
      }
    }
    adding = false;
  }

  return event =>
    new Promise<void>((resolve, reject) => {
      const data: EventJob = { receivedAt: warehouse.moments.next(), event: JSON.stringify(event), misses: 0 };
      waiting.push({ job: { name: 'event', data, opts: EVENT_JOB_OPTIONS }, resolve, reject });
      if (!adding) void addWaiting();
    });
}
