import type { WebhookEvent } from '../schema/webhook.ts';
import type { Queues } from '../src/queue/queues.ts';
import { EVENT_JOB_OPTIONS, eventQueue } from './accept-event.ts';
import type { Pipeline } from './pipeline.ts';
import { collectQueue, scheduleQueue } from './runs.ts';

type Parts = Pick<Pipeline, 'warehouse' | 'queues'>;

/** What the queue holds of an event, whatever version accepted it. */
export interface HeldEvent {
  /** The event as JSON. */
  event: string;
}

const WAITING = ['waiting', 'prioritized', 'active', 'delayed', 'failed'] as const;

/** Every queue that belongs to one warehouse. */
export async function queuesOf(warehouse: Pipeline['warehouse']): Promise<string[]> {
  return Promise.all([collectQueue(warehouse), scheduleQueue(warehouse), eventQueue(warehouse)]);
}

/** The accepted events that are not settled yet; all that the queues hold besides can be planned again. */
export async function readEvents({ warehouse, queues }: Parts): Promise<HeldEvent[]> {
  const jobs = await queues.queue(await eventQueue(warehouse)).getJobs([...WAITING]);
  return jobs.filter(job => job !== undefined).map(job => job.data as HeldEvent);
}

/** Whether an event is about the person of one of these ids. */
export const isAbout = ({ event }: HeldEvent, serviceUserIds: readonly string[]): boolean =>
  serviceUserIds.includes((JSON.parse(event) as WebhookEvent).user_id);

/** Removes everything that the queues of this warehouse hold. Nobody may work on them. */
export async function emptyQueues({ warehouse, queues }: Parts): Promise<void> {
  for (const name of await queuesOf(warehouse)) await queues.queue(name).obliterate({ force: true });
}

/** Puts events back as they were accepted. One that is there already does no harm: it is worked off twice. */
export async function putEvents(
  { warehouse, queues }: { warehouse: Pipeline['warehouse']; queues: Queues },
  events: readonly HeldEvent[],
): Promise<void> {
  const jobs = events.map(data => ({ name: 'event', data, opts: EVENT_JOB_OPTIONS }));
  await queues.addAll(await eventQueue(warehouse), jobs);
}
