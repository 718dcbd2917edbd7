import { listFinished } from '../../ledger/events.ts';
import type { Pipeline } from '../pipeline.ts';
import { collectQueue, scheduleQueue } from '../runs/runs.ts';
import { type EventJob, eventQueue, isOfInbox, personOf } from './accept-event.ts';

type Parts = Pick<Pipeline, 'warehouse' | 'queues'>;

/** An accepted event, whatever version accepted it. */
export type HeldEvent = Pick<EventJob, 'receivedAt' | 'event'>;

const WAITING = ['waiting', 'prioritized', 'active', 'delayed', 'failed'] as const;

/** Every queue that belongs to one warehouse. */
async function queuesOf(warehouse: Pipeline['warehouse']): Promise<string[]> {
  return Promise.all([collectQueue(warehouse), scheduleQueue(warehouse), eventQueue(warehouse)]);
}

/** The accepted events that are in the queue alone, as versions without an inbox left them; all else that the queues hold comes anew. */
export async function readEvents({ warehouse, queues }: Parts): Promise<HeldEvent[]> {
  const jobs = await queues.queue(await eventQueue(warehouse)).getJobs([...WAITING]);
  return jobs.filter(job => job !== undefined && !isOfInbox(job.id)).map(job => job.data as EventJob);
}

/** Puts events into the inbox, but those that have their outcome. */
export async function keepEvents({ warehouse, inbox }: Pick<Pipeline, 'warehouse' | 'inbox'>, events: readonly HeldEvent[]): Promise<void> {
  if (!events.length) return;
  const finished = new Set(await listFinished(warehouse));
  const open = events.filter(({ receivedAt }) => !finished.has(receivedAt));
  await Promise.all(open.map(({ receivedAt, event }) => inbox.append(String(receivedAt), event)));
}

/**
 * Removes the events about the person of these ids from the inbox, to the last byte.
 * @returns how many there were
 */
export async function forgetEvents({ inbox }: Pick<Pipeline, 'inbox'>, serviceUserIds: readonly string[]): Promise<number> {
  const before = inbox.size;
  await inbox.rewrite((_, event) => !serviceUserIds.includes(personOf(event)));
  return before - inbox.size;
}

/** Removes everything that the queues of this warehouse hold. Nobody may work on them. */
export async function emptyQueues({ warehouse, queues }: Parts): Promise<void> {
  for (const name of await queuesOf(warehouse)) await queues.empty(name);
}
