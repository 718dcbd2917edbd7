import { addDays, dayOfMicros, findDayNumber, MICROS_PER_DAY } from '../../../schema/instant.ts';
import type { Resource } from '../../../schema/resource.ts';
import { dataTypeOf, type Operation } from '../../../schema/webhook.ts';
import { messageOf } from '../../base/errors.ts';
import { keyOf, readSubscriptions, type SubscriptionRow } from '../../ledger/subscriptions.ts';
import type { LedgerEntry } from '../../warehouse/sql.ts';
import { textList } from '../../warehouse/sql.ts';
import { qualified, quoteText } from '../../warehouse/tables.ts';
import type { DocumentChange } from '../../warehouse/transaction.ts';
import type { Warehouse } from '../../warehouse/warehouse.ts';
import type { StoredDocument } from '../deletions/deletions.ts';
import { ARRIVED_AT } from '../events/event-outcome.ts';
import type { Pipeline } from '../pipeline.ts';
import { bothNows } from '../runs/backfill.ts';

/** A service sends an event again for about an hour (6.1): what has not come by then does not come. */
const PATIENCE_MICROS = 70 * 60 * 1_000_000;
/** Ahead of our clock by more than this is what was noted by a clock that was wrong. */
const TOLERATED_MICROS = 60_000_000;

export interface FoundChanges {
  resource: Resource;
  userId: string;
  /** A moment before the reading that found them began. */
  foundAt: number;
  changes: readonly DocumentChange[];
  /** The documents among them that are gone, with their days. */
  removed: readonly StoredDocument[];
}

/**
 * Notes changes that a sweep found and that an event should announce, to be judged when none can come any more. Not those of a first
 * reading, nor of a kind whose subscription did not exist when their day was read before, nor of a day that an earlier version of this
 * program read otherwise. What cannot be noted is only not counted.
 */
export async function noteUnannounced(
  { warehouse, log, now, serviceClock }: Pick<Pipeline, 'warehouse' | 'log' | 'now' | 'serviceClock'>,
  found: FoundChanges,
): Promise<void> {
  try {
    await warehouse.record(await listUnannounced(warehouse, found, { nowMs: now(), serviceNowMs: bothNows(serviceClock)[0] }));
  } catch (error) {
    log.warn({ account: found.userId, collection: found.resource.name, reason: messageOf(error) }, 'changes without events not noted');
  }
}

async function listUnannounced(
  warehouse: Warehouse,
  { resource, userId, foundAt, changes, removed }: FoundChanges,
  { nowMs, serviceNowMs }: { nowMs: number; serviceNowMs: number },
): Promise<LedgerEntry[]> {
  const active = activeSince(await readSubscriptions(warehouse));
  const sinceOf = (operation: Operation) => active.get(keyOf({ eventType: operation, dataType: resource.dataType }));
  // Of several changes of one document within one reading the first is the one that no event announced.
  const first = new Map<string, DocumentChange>();
  for (const change of changes) if (!first.has(change.id)) first.set(change.id, change);
  const [declared] = await warehouse.read(`SELECT value FROM sync.meta WHERE key = 'declared_at'`);
  const declaredAt = Number(declared?.[0] ?? 0);
  const announced = [...first.values()].filter(({ command }) => sinceOf(command) !== undefined);
  if (!announced.length) return [];

  const where = `user_id = ${quoteText(userId)}`;
  const days = new Map(removed.map(({ id, day }) => [id, day]));
  if (resource.dated) {
    const ids = textList(announced.map(({ id }) => id));
    const rows = await warehouse.read(`SELECT id, day::VARCHAR FROM ${qualified(resource.name)} WHERE ${where} AND id IN (${ids})`);
    for (const [id, day] of rows) days.set(id as string, day as string);
  }
  const reads = await warehouse.read(
    `SELECT start_at, end_at, requested_at FROM sync.windows
     WHERE ${where} AND collection = ${quoteText(resource.name)} AND outcome = 'complete' AND requested_at < make_timestamp(${foundAt}::BIGINT)
     ORDER BY requested_at DESC`,
  );
  const readBefore = (day: string | null | undefined) => {
    if (!resource.dated) return reads.find(([startAt]) => startAt === null)?.[2] as number | undefined;
    const start = (findDayNumber(day ?? '') ?? Number.NaN) * MICROS_PER_DAY;
    const read = reads.find(([startAt, endAt]) => (startAt as number) <= start && (endAt as number) >= start + MICROS_PER_DAY);
    return read?.[2] as number | undefined;
  };
  return announced.flatMap(({ id, command }) => {
    const day = days.get(id);
    const before = readBefore(day);
    if (before === undefined || before < declaredAt || before < sinceOf(command)! || isGrowing(resource, day, serviceNowMs)) return [];
    const key = { user_id: userId, collection: resource.name, id, event_type: command, found_at: foundAt };
    return [{ table: 'sync.missed_events', key, row: { read_before_at: before, missed_at: null, noted_at: nowMs * 1000 } }];
  });
}

const activeSince = (rows: ReadonlyMap<string, SubscriptionRow>) =>
  new Map(
    [...rows.values()]
      .filter(({ state }) => state === 'active')
      .map(row => [keyOf({ ...row, dataType: dataTypeOf(row.dataType) }), row.since]),
  );

/**
 * What grows until 4 a.m. of the next day where its person is (2.5), which in the last of all zones is 4 p.m. UTC of that day: each
 * reading finds it changed.
 */
function isGrowing({ grows }: Resource, day: string | null | undefined, nowMs: number): boolean {
  return grows === true && (!day || day >= addDays(dayOfMicros(nowMs * 1000), -1));
}

/** Events of one kind of document that an account never got. */
export interface MissedEvents {
  user: string;
  collection: string;
  count: number;
}

/**
 * Judges the changes that were found at least 70 minutes ago. An event for the document, of whatever operation, that came since the reading
 * before tells that it was announced: we were told to look. Says once what was missed.
 * @param options.webhooks whether events are awaited at all; without them nothing can be missed
 */
export async function judgeMissedEvents(
  { warehouse, collections, now, log }: Pick<Pipeline, 'warehouse' | 'collections' | 'now' | 'log'>,
  { webhooks, onMissed }: { webhooks: boolean; onMissed?: ((missed: MissedEvents) => void) | undefined },
): Promise<void> {
  const nowMicros = now() * 1000;
  const rows = await warehouse.read(
    `SELECT user_id, collection, id, event_type, found_at, read_before_at, coalesce(noted_at, found_at) FROM sync.missed_events
     WHERE missed_at IS NULL`,
  );
  const noted = rows.map(([userId, collection, id, eventType, foundAt, readBefore, notedAt]) => ({
    key: { user_id: userId as string, collection: collection as string, id: id as string, event_type: eventType as Operation },
    foundAt: foundAt as number,
    readBefore: readBefore as number,
    notedAt: notedAt as number,
  }));
  const changes = noted.filter(({ notedAt }) => !webhooks || notedAt <= nowMicros - PATIENCE_MICROS);
  const ahead = webhooks ? noted.filter(({ notedAt }) => notedAt > nowMicros + TOLERATED_MICROS) : [];
  const anew = ahead.map(
    ({ key, foundAt, readBefore }): LedgerEntry => ({
      table: 'sync.missed_events',
      key: { ...key, found_at: foundAt },
      row: { read_before_at: readBefore, missed_at: null, noted_at: nowMicros },
    }),
  );
  await warehouse.record(anew);
  if (!changes.length) return;
  const active = activeSince(await readSubscriptions(warehouse));
  const arrivals = await readArrivals(
    warehouse,
    changes.map(({ key }) => key.id),
  );
  const counts = new Map<string, MissedEvents>();
  const entries = changes.map(({ key, foundAt, readBefore, notedAt }): LedgerEntry => {
    const dataType = collections.find(({ name }) => name === key.collection)?.dataType;
    const since = dataType === undefined ? undefined : active.get(keyOf({ eventType: key.event_type, dataType }));
    const subscribed = since !== undefined && since <= readBefore;
    const came =
      arrivals.get(`${dataType}\n${key.id}`)?.some(({ at, byClock }) => at > readBefore && byClock <= notedAt + PATIENCE_MICROS) ?? false;
    const place = { table: 'sync.missed_events', key: { ...key, found_at: foundAt } };
    if (!webhooks || !subscribed || came) return place;
    const name = `${key.user_id}\n${key.collection}`;
    counts.set(name, { user: key.user_id, collection: key.collection, count: (counts.get(name)?.count ?? 0) + 1 });
    return { ...place, row: { read_before_at: readBefore, missed_at: nowMicros, noted_at: notedAt } };
  });
  await warehouse.record(entries);
  if (!counts.size) return;
  const missed: Record<string, number> = {};
  for (const { collection, count } of counts.values()) missed[collection] = (missed[collection] ?? 0) + count;
  log.warn({ missed }, 'changes were found that no event had announced');
  for (const one of counts.values()) onMissed?.(one);
}

/** An event's place in the order, and when it came by our clock. */
interface Arrival {
  at: number;
  byClock: number;
}

/** When events came for these documents, by kind of data and identifier. */
async function readArrivals(warehouse: Warehouse, ids: readonly string[]): Promise<Map<string, Arrival[]>> {
  const rows = await warehouse.read(
    `SELECT data_type, object_id, received_at, ${ARRIVED_AT} FROM sync.events WHERE object_id IN (${textList(new Set(ids))})`,
  );
  const arrivals = new Map<string, Arrival[]>();
  for (const [dataType, id, receivedAt, byClock] of rows) {
    const arrival = { at: receivedAt as number, byClock: byClock as number };
    const key = `${dataTypeOf(dataType as string)}\n${id}`;
    const list = arrivals.get(key);
    if (list) list.push(arrival);
    else arrivals.set(key, [arrival]);
  }
  return arrivals;
}
