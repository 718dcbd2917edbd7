import { number, oneOf, orNull, type Readable, type Row, readRow, readRows, readValues, text } from '../warehouse/rows.ts';
import { textList } from '../warehouse/sql.ts';

export const EVENT_OUTCOMES = ['stored', 'unchanged', 'removed', 'parked', 'unknown_user', 'unknown_type'] as const;

export type EventOutcome = (typeof EVENT_OUTCOMES)[number];

/**
 * When an event came, by our clock. Its place in the order may be ahead of that where the clock once was, but nothing comes after it was
 * settled.
 */
const ARRIVED_AT = 'least(received_at, coalesce(settled_at, received_at))';

const at = (micros: number) => `make_timestamp(${micros}::BIGINT)`;

/** The events that have their outcome, by when they were received, in microseconds. */
export const listFinished = (warehouse: Readable, sinceMicros?: number): Promise<number[]> =>
  readValues(
    warehouse,
    number,
    `SELECT received_at FROM sync.events${sinceMicros === undefined ? '' : ` WHERE received_at >= ${at(sinceMicros)}`}`,
  );

const PERSON = { serviceUserId: text, events: number, lastAt: number };

/** Persons of whom events wait and who are no account's, the latest first. */
export const listUnknownPersons = (warehouse: Readable): Promise<Row<typeof PERSON>[]> =>
  readRows(
    warehouse,
    PERSON,
    `SELECT service_user_id, count(*), max(${ARRIVED_AT}) FROM sync.events e
     WHERE outcome = 'unknown_user' AND NOT EXISTS (FROM sync.accounts a WHERE a.service_user_id = e.service_user_id)
     GROUP BY 1 ORDER BY 3 DESC, 1`,
  );

const WAITING = { receivedAt: number, eventTime: number, eventType: text, dataType: text, objectId: text, serviceUserId: text };

/** The events that waited for their account and can be worked on now that it is active, in their order. */
export const listTakenUp = (warehouse: Readable): Promise<Row<typeof WAITING>[]> =>
  readRows(
    warehouse,
    WAITING,
    `SELECT received_at, coalesce(event_time, received_at), event_type, data_type, object_id, service_user_id FROM sync.events e
     -- What an earlier version noted does not tell by which since.
     WHERE (outcome = 'parked' AND coalesce(account_since, committed_at) < (SELECT max(since) FROM sync.accounts a WHERE state = 'active' AND a.user_id = e.user_id))
        OR (outcome = 'unknown_user' AND service_user_id IN (SELECT service_user_id FROM sync.accounts WHERE state = 'active'))
     ORDER BY received_at`,
  );

/** How many events came of each outcome; those ahead of the end were told by a clock that was wrong. */
export async function countOutcomes(warehouse: Readable, from: number, to: number): Promise<Record<string, number>> {
  const rows = await readRows(
    warehouse,
    { outcome: oneOf(EVENT_OUTCOMES), count: number },
    `SELECT outcome, count(*) FROM sync.events WHERE ${ARRIVED_AT} BETWEEN ${at(from)} AND ${at(to)} GROUP BY 1 ORDER BY 1`,
  );
  return Object.fromEntries(rows.map(({ outcome, count }) => [outcome, count]));
}

/** When the last event came until `to`, and how many changes were given up between the moments without one. */
export const readLastEvent = (warehouse: Readable, from: number, to: number) =>
  readRow(
    warehouse,
    { lastAt: orNull(number), missed: number },
    `SELECT (SELECT max(${ARRIVED_AT}) FROM sync.events WHERE ${ARRIVED_AT} <= ${at(to)}),
            (SELECT count(*) FROM sync.missed_events WHERE missed_at BETWEEN ${at(from)} AND ${at(to)})`,
  );

const ARRIVAL = { dataType: text, id: text, at: number, byClock: number };

/** When events came for documents: their place in the order, and the time by our clock. */
export const listArrivals = (warehouse: Readable, ids: readonly string[]): Promise<Row<typeof ARRIVAL>[]> =>
  readRows(
    warehouse,
    ARRIVAL,
    `SELECT data_type, object_id, received_at, ${ARRIVED_AT} FROM sync.events WHERE object_id IN (${textList(new Set(ids))})`,
  );
