import { messageOf } from '../../base/errors.ts';
import type { Pipeline } from '../pipeline.ts';

/**
 * Puts the events into the inbox again that were parked before their account became what it is now: active, with a new token or after a
 * pause; and those whose person nobody knew and is now an account's. What fills the queue finds them there, and bounds how many of them
 * are in it. Each gets a new outcome in its row of the ledger, so that it is taken up once. Those that have none when the process ends
 * leave the inbox with it, for the ledger has the earlier one, and are taken up at the next start.
 * @returns false where that could not be done now: `takeUpOwed` does it
 */
export async function takeUpEvents(pipeline: Pick<Pipeline, 'warehouse' | 'inbox' | 'log'>): Promise<boolean> {
  const { warehouse, log } = pipeline;
  try {
    await acceptAgain(pipeline);
    owed.delete(warehouse);
    return true;
  } catch (error) {
    if (!owed.has(warehouse)) {
      log.warn({ reason: messageOf(error) }, 'events that waited for their accounts could not be taken up: tried again each minute');
    }
    owed.add(warehouse);
    return false;
  }
}

/** Where it could not be done when it was its time. */
const owed = new WeakSet<Pipeline['warehouse']>();

/** Does what `takeUpEvents` could not do before. */
export async function takeUpOwed(pipeline: Pick<Pipeline, 'warehouse' | 'inbox' | 'log'>): Promise<void> {
  if (owed.has(pipeline.warehouse)) await takeUpEvents(pipeline);
}

async function acceptAgain({ warehouse, inbox, log }: Pick<Pipeline, 'warehouse' | 'inbox' | 'log'>): Promise<void> {
  const rows = await warehouse.read(
    `SELECT received_at, coalesce(event_time, received_at), event_type, data_type, object_id, service_user_id FROM sync.events e
     -- What an earlier version noted does not tell by which since.
     WHERE (outcome = 'parked' AND coalesce(account_since, committed_at) < (SELECT max(since) FROM sync.accounts a WHERE state = 'active' AND a.user_id = e.user_id))
        OR (outcome = 'unknown_user' AND service_user_id IN (SELECT service_user_id FROM sync.accounts WHERE state = 'active'))
     ORDER BY received_at`,
  );
  const events = rows
    .map(([receivedAt, eventTime, event_type, data_type, object_id, user_id]) => ({
      key: String(receivedAt),
      event: { event_type, data_type, object_id, event_time: new Date((eventTime as number) / 1000).toISOString(), user_id },
    }))
    .filter(({ key }) => !inbox.has(key));
  if (!events.length) return;
  await Promise.all(events.map(({ key, event }) => inbox.append(key, JSON.stringify(event))));
  log.info({ events: events.length }, 'events that waited for their accounts are fetched again');
}
