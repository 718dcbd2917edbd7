import type { WebhookEvent } from '../../../schema/webhook.ts';
import { type Inbox, Journal } from '../../base/journal.ts';
import type { Log } from '../../base/log.ts';
import { listFinished } from '../../ledger/events.ts';
import { type FillPace, QueueFilling } from '../../queue/fill-queue.ts';
import type { NewJob, Queue, Queues } from '../../queue/queues.ts';
import type { Warehouse } from '../../warehouse/warehouse.ts';
import { warehouseId } from '../runs/runs.ts';

/** The queue of accepted events belongs to one warehouse: two of them may share a Redis. */
export const eventQueue = async (warehouse: Warehouse): Promise<string> => `events-${await warehouseId(warehouse)}`;

/** What the queue keeps of an event until it is worked off. */
export interface EventJob {
  /** Microseconds; no two events share it. */
  receivedAt: number;
  /** The event as JSON: U+0000 in its texts is refused by the embedded store, and as escaped text it is not. */
  event: string;
  /** How often its document was not there yet. */
  misses: number;
}

/** What the queue keeps of events that came at once: the inbox has them. */
export interface EventsJob {
  /** Their keys in the inbox. */
  keys: string[];
}

/** An accepted event is never given up by the queue: whoever works it off decides when it is parked. */
export const EVENT_JOB_OPTIONS = {
  attempts: 1_000_000,
  backoff: { type: 'fixed', delay: 5_000 },
  removeOnComplete: true,
  removeOnFail: false,
} as const;

/** Few enough for a queue inside of this process to be read in a moment, whatever waits in the inbox. */
const MOST_IN_QUEUE = 2_000;

/** Three times as many as are worked on at a time: who finds no place costs the queue more than who is worked on. */
const MOST_OF_ONE = 48;

const OF_INBOX = 'inbox-';

/** By this the queue knows an event again that is enqueued twice. */
export const jobIdOf = (receivedAt: number | string): string => `${OF_INBOX}${receivedAt}`;

/** Whether an event was in the inbox when it was enqueued; those that an earlier version accepted or took up again were not. */
export const isOfInbox = (jobId: string | undefined): boolean => jobId?.startsWith(OF_INBOX) === true;

/**
 * Opens the accepted events that have no outcome yet. Each is in here from before its 2xx until the ledger has its outcome: what the ledger
 * has already is left out.
 */
export async function openInbox(folder: string, warehouse: Pick<Warehouse, 'read'>, log: Log): Promise<Inbox> {
  const onDamaged = (file: string, lines: number) =>
    log.error(
      { file, lines },
      'events of the inbox cannot be read: they may have been acknowledged, and are lost. ringneck doctor says more',
    );
  return leaveOutFinished(new Journal(folder, { onDamaged }), warehouse);
}

/** Finishes what the ledger has the outcome of. */
export async function leaveOutFinished<T extends Inbox>(inbox: T, warehouse: Pick<Warehouse, 'read'>): Promise<T> {
  const [first] = inbox.keys();
  if (first === undefined) return inbox;
  const oldest = inbox.keys().reduce((least, key) => Math.min(least, Number(key)), Number(first));
  for (const receivedAt of await listFinished(warehouse, oldest)) inbox.finish(String(receivedAt));
  return inbox;
}

/**
 * Puts events into the inbox; each call resolves when its event is there for good.
 * @param isForgotten of whom no byte is to be kept: their events are accepted, and that is all
 * @param onAccepted is told of each by its key
 */
export function createAccept(
  {
    warehouse,
    inbox,
    isForgotten,
  }: { warehouse: { clock: { next(): number } }; inbox: Inbox; isForgotten?: (serviceUserId: string) => Promise<boolean> },
  onAccepted: (key: string) => void = () => {},
): (event: WebhookEvent) => Promise<void> {
  const next = numberEvents({ warehouse, inbox });
  return async event => {
    if (await isForgotten?.(event.user_id)) return;
    const key = String(next());
    await inbox.append(key, JSON.stringify(event));
    onAccepted(key);
  };
}

/** Gives numbers to events: younger than all that wait, also after the clock was set back. */
export function numberEvents({ warehouse, inbox }: { warehouse: { clock: { next(): number } }; inbox: Inbox }): () => number {
  let last = inbox.keys().reduce((newest, key) => Math.max(newest, Number(key)), 0);
  return () => {
    last = Math.max(warehouse.clock.next(), last + 1);
    return last;
  };
}

/**
 * Keeps the first events of the inbox in the queue, whatever becomes of it, and puts the next into it as those have their outcome.
 * @param held by which job the queue holds what it holds already
 */
export function enqueueEvents(
  { inbox, queues, log }: { inbox: Inbox; queues: Pick<Queues, 'addAll' | 'forget' | 'ids' | 'promote'>; log: Log },
  queue: string,
  held: ReadonlyMap<string, string> = new Map(),
  pace: FillPace = {},
): QueueFilling {
  const bound = { most: MOST_IN_QUEUE, mostOfOne: MOST_OF_ONE, ownerOf: personOf };
  return new QueueFilling({ ...pace, journal: inbox, queues, queue, idOf: jobIdOf, jobOf, togetherOf, held, bound, log });
}

/** Of whom an accepted event tells, by the service's id. */
export function personOf(text: string): string {
  const event: WebhookEvent = JSON.parse(text);
  return event.user_id;
}

/** By which job the queue holds each event that it knows from the inbox. */
export async function findHeld(queue: Queue, ids: Iterable<string>): Promise<Map<string, string>> {
  const held = new Map<string, string>();
  for (const id of ids) {
    if (!isOfInbox(id)) continue;
    const alone = /^\d+$/.exec(id.slice(OF_INBOX.length));
    const job = alone ? undefined : await queue.getJob(id);
    // A job of several that one of them has left for one of its own does not hold that one.
    const keys = alone ? [alone[0]] : keysOf(job?.data);
    for (const key of keys) if (alone || !held.has(key)) held.set(key, id);
  }
  return held;
}

/** The keys of a job of several. */
const keysOf = (data: unknown): string[] =>
  typeof data === 'object' && data !== null && 'keys' in data && Array.isArray(data.keys) ? data.keys.map(String) : [];

const jobOf = (key: string, event: string): NewJob => eventJob({ receivedAt: Number(key), event, misses: 0 });

/** A job for one event alone. */
export function eventJob(data: EventJob, delayMs = 0): NewJob {
  const delay = delayMs ? { delay: Math.ceil(delayMs) } : {};
  return { name: 'event', data, opts: { ...EVENT_JOB_OPTIONS, ...delay, jobId: jobIdOf(data.receivedAt) } };
}

function togetherOf(keys: readonly string[]) {
  const data: EventsJob = { keys: [...keys] };
  // Events between the two may be of other jobs: who has come between and makes them another number makes another job.
  return { name: 'events', data, opts: { ...EVENT_JOB_OPTIONS, jobId: `${OF_INBOX}${keys[0]}-${keys.at(-1)}-${keys.length}` } };
}
