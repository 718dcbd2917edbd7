import { messageOf } from '../../base/errors.ts';
import { listTakenUp } from '../../ledger/events.ts';
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
  const events = (await listTakenUp(warehouse))
    .map(({ receivedAt, eventTime, eventType, dataType, objectId, serviceUserId }) => ({
      key: String(receivedAt),
      event: {
        event_type: eventType,
        data_type: dataType,
        object_id: objectId,
        event_time: new Date(eventTime / 1000).toISOString(),
        user_id: serviceUserId,
      },
    }))
    .filter(({ key }) => !inbox.has(key));
  if (!events.length) return;
  await Promise.all(events.map(({ key, event }) => inbox.append(key, JSON.stringify(event))));
  log.info({ events: events.length }, 'events that waited for their accounts are fetched again');
}
