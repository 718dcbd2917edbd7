import { messageOf } from '../../src/errors.ts';
import { EVENT_JOB_OPTIONS, type EventJob, eventQueue } from '../accept-event.ts';
import type { Pipeline } from '../pipeline.ts';

/**
 * Enqueues again the events that were parked before their account became what it is now: active, with a new token or after a pause; and
 * those whose person nobody knew and is now an account's. Each gets a new outcome in its row of the ledger, so that it is taken up once.
 * What cannot be enqueued now is so the next time.
 */
export async function takeUpEvents(pipeline: Pick<Pipeline, 'warehouse' | 'queues' | 'log'>): Promise<void> {
  try {
    await enqueueAgain(pipeline);
  } catch (error) {
    pipeline.log.warn({ reason: messageOf(error) }, 'events that waited could not be taken up: the next night or start does it');
  }
}

async function enqueueAgain({ warehouse, queues, log }: Pick<Pipeline, 'warehouse' | 'queues' | 'log'>): Promise<void> {
  const rows = await warehouse.read(
    `SELECT received_at, coalesce(event_time, received_at), event_type, data_type, object_id, service_user_id FROM sync.events e
     WHERE (outcome = 'parked' AND committed_at < (SELECT max(since) FROM sync.accounts a WHERE state = 'active' AND a.user_id = e.user_id))
        OR (outcome = 'unknown_user' AND service_user_id IN (SELECT service_user_id FROM sync.accounts WHERE state = 'active'))
     ORDER BY received_at`,
  );
  if (!rows.length) return;
  const jobs = rows.map(([receivedAt, eventTime, event_type, data_type, object_id, user_id]) => {
    const event = { event_type, data_type, object_id, event_time: new Date((eventTime as number) / 1000).toISOString(), user_id };
    const data: EventJob = { receivedAt: receivedAt as number, event: JSON.stringify(event), misses: 0 };
    return { name: 'event', data, opts: { ...EVENT_JOB_OPTIONS, jobId: `again-${receivedAt}` } };
  });
  await queues.addAll(await eventQueue(warehouse), jobs);
  log.info({ events: rows.length }, 'events that waited for their accounts are fetched again');
}
