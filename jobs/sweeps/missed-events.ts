import { dailyActivity } from '../../schema/daily-activity.ts';
import { addDays, dayOfMicros, findDayNumber, MICROS_PER_DAY } from '../../schema/instant.ts';
import type { Resource } from '../../schema/resource.ts';
import { dataTypeOf, type Operation } from '../../schema/webhook.ts';
import { messageOf } from '../../src/errors.ts';
import type { LedgerEntry } from '../../src/warehouse/literals.ts';
import { textList } from '../../src/warehouse/literals.ts';
import type { DocumentChange } from '../../src/warehouse/store-documents.ts';
import { qualified, quoteText } from '../../src/warehouse/tables.ts';
import type { Warehouse } from '../../src/warehouse/warehouse.ts';
import type { Pipeline } from '../pipeline.ts';
import { keyOf, readSubscriptions, type SubscriptionRow } from '../subscriptions/subscription-rows.ts';
import type { StoredDocument } from './removals.ts';

/** A service sends an event again for about an hour (6.1): what has not come by then does not come. */
const PATIENCE_MICROS = 70 * 60 * 1_000_000;

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
  { warehouse, log, serviceClock }: Pick<Pipeline, 'warehouse' | 'log' | 'serviceClock'>,
  found: FoundChanges,
): Promise<void> {
  try {
    await warehouse.record(await listUnannounced(warehouse, found, serviceClock.now()));
  } catch (error) {
    log.warn({ account: found.userId, collection: found.resource.name, reason: messageOf(error) }, 'changes without events not noted');
  }
}

async function listUnannounced(
  warehouse: Warehouse,
  { resource, userId, foundAt, changes, removed }: FoundChanges,
  serviceNowMs: number,
): Promise<LedgerEntry[]> {
  const active = activeSince(await readSubscriptions(warehouse));
  const sinceOf = (operation: Operation) => active.get(keyOf({ eventType: operation, dataType: resource.dataType }));
  // Of several changes of one document within one reading the first is the one that no event announced.
  const first = new Map<string, DocumentChange>();
  for (const change of changes) if (!first.has(change.id)) first.set(change.id, change);
  const [declared] = await warehouse.read(`SELECT value FROM sync.meta WHERE key = 'declared_at'`);
  const declaredAt = Number(declared?.[0] ?? 0);
  const announced = [...first.values()].filter(({ operation }) => sinceOf(operation) !== undefined);
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
  return announced.flatMap(({ id, operation }) => {
    const day = days.get(id);
    const before = readBefore(day);
    if (before === undefined || before < declaredAt || before < sinceOf(operation)! || isGrowing(resource, day, serviceNowMs)) return [];
    const key = { user_id: userId, collection: resource.name, id, event_type: operation, found_at: foundAt };
    return [{ table: 'sync.missed_events', key, row: { read_before_at: before, missed_at: null } }];
  });
}

const activeSince = (rows: ReadonlyMap<string, SubscriptionRow>) =>
  new Map(
    [...rows.values()]
      .filter(({ state }) => state === 'active')
      .map(row => [keyOf({ ...row, dataType: dataTypeOf(row.dataType) }), row.since]),
  );

/**
 * An activity grows until 4 a.m. of the next day where its person is (2.5), which in the last of all zones is 4 p.m. UTC of that day: each
 * reading finds it changed, and not each growth is an event.
 */
function isGrowing({ name }: Resource, day: string | null | undefined, nowMs: number): boolean {
  return name === dailyActivity.name && (!day || day >= addDays(dayOfMicros(nowMs * 1000), -1));
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
    `SELECT user_id, collection, id, event_type, found_at, read_before_at FROM sync.missed_events
     WHERE missed_at IS NULL ${webhooks ? `AND found_at <= make_timestamp(${nowMicros - PATIENCE_MICROS}::BIGINT)` : ''}`,
  );
  if (!rows.length) return;
  const changes = rows.map(([userId, collection, id, eventType, foundAt, readBefore]) => ({
    key: { user_id: userId as string, collection: collection as string, id: id as string, event_type: eventType as Operation },
    foundAt: foundAt as number,
    readBefore: readBefore as number,
  }));
  const active = activeSince(await readSubscriptions(warehouse));
  const arrivals = await readArrivals(
    warehouse,
    changes.map(({ key }) => key.id),
  );
  const counts = new Map<string, MissedEvents>();
  const entries = changes.map(({ key, foundAt, readBefore }): LedgerEntry => {
    const dataType = collections.find(({ name }) => name === key.collection)?.dataType;
    const since = dataType === undefined ? undefined : active.get(keyOf({ eventType: key.event_type, dataType }));
    const subscribed = since !== undefined && since <= readBefore;
    const came = arrivals.get(`${dataType}\n${key.id}`)?.some(at => at > readBefore && at <= foundAt + PATIENCE_MICROS) ?? false;
    const place = { table: 'sync.missed_events', key: { ...key, found_at: foundAt } };
    if (!webhooks || !subscribed || came) return place;
    const name = `${key.user_id}\n${key.collection}`;
    counts.set(name, { user: key.user_id, collection: key.collection, count: (counts.get(name)?.count ?? 0) + 1 });
    return { ...place, row: { read_before_at: readBefore, missed_at: nowMicros } };
  });
  await warehouse.record(entries);
  if (!counts.size) return;
  const missed: Record<string, number> = {};
  for (const { collection, count } of counts.values()) missed[collection] = (missed[collection] ?? 0) + count;
  log.warn({ missed }, 'changes were found that no event had announced');
  for (const one of counts.values()) onMissed?.(one);
}

/** When events came for these documents, by kind of data and identifier. */
async function readArrivals(warehouse: Warehouse, ids: readonly string[]): Promise<Map<string, number[]>> {
  const rows = await warehouse.read(
    `SELECT data_type, object_id, received_at FROM sync.events WHERE object_id IN (${textList(new Set(ids))})`,
  );
  const arrivals = new Map<string, number[]>();
  for (const [dataType, id, receivedAt] of rows) {
    const key = `${dataTypeOf(dataType as string)}\n${id}`;
    const list = arrivals.get(key);
    if (list) list.push(receivedAt as number);
    else arrivals.set(key, [receivedAt as number]);
  }
  return arrivals;
}
