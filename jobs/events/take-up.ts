import { messageOf } from '../../src/errors.ts';
import { EVENT_JOB_OPTIONS, type EventJob, eventQueue } from '../accept-event.ts';
import type { Pipeline } from '../pipeline.ts';

/**
 * Enqueues again the events that were parked before their account became what it is now: active, with a new token or after a pause. Each
 * gets a new outcome in its row of the ledger, so that it is taken up once. What cannot be enqueued now is so the next time.
 */
export async function takeUpParked(pipeline: Pick<Pipeline, 'warehouse' | 'queues' | 'log'>): Promise<void> {
  try {
    await enqueueParked(pipeline);
  } catch (error) {
    pipeline.log.warn({ reason: messageOf(error) }, 'parked events could not be taken up: the next night or start does it');
  }
}

async function enqueueParked({ warehouse, queues, log }: Pick<Pipeline, 'warehouse' | 'queues' | 'log'>): Promise<void> {
  const rows = await warehouse.read(
    `SELECT e.received_at, coalesce(e.event_time, e.received_at), e.event_type, e.data_type, e.object_id, e.service_user_id
     FROM sync.events e JOIN sync.accounts a USING (user_id)
     WHERE e.outcome = 'parked' AND a.state = 'active' AND e.committed_at < a.since ORDER BY e.received_at`,
  );
  if (!rows.length) return;
  const jobs = rows.map(([receivedAt, eventTime, event_type, data_type, object_id, user_id]) => {
    const event = { event_type, data_type, object_id, event_time: new Date((eventTime as number) / 1000).toISOString(), user_id };
    const data: EventJob = { receivedAt: receivedAt as number, event: JSON.stringify(event), misses: 0 };
    return { name: 'event', data, opts: { ...EVENT_JOB_OPTIONS, jobId: `again-${receivedAt}` } };
  });
  await queues.addAll(await eventQueue(warehouse), jobs);
  log.info({ events: rows.length }, 'events of accounts that are active again are fetched again');
}
