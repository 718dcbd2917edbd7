import { addDays, dayOfMicros, findDayNumber, MICROS_PER_DAY } from '../../../schema/instant.ts';
import type { Resource } from '../../../schema/resource.ts';
import { dataTypeOf, type Operation } from '../../../schema/webhook.ts';
import { messageOf } from '../../base/errors.ts';
import { listArrivals } from '../../ledger/events.ts';
import { readFact } from '../../ledger/meta.ts';
import { announcedEntry, listUnjudged, missedEntry } from '../../ledger/missed-changes.ts';
import { keyOf, readSubscriptions, type SubscriptionRow } from '../../ledger/subscriptions.ts';
import { listReadingsBefore } from '../../ledger/window-rows.ts';
import type { LedgerEntry } from '../../warehouse/sql.ts';
import { readDays } from '../../warehouse/stored-documents.ts';
import type { Warehouse } from '../../warehouse/warehouse.ts';
import type { DocumentChange } from '../../warehouse/write-result.ts';
import type { MissingDocument } from '../deletions/deletions.ts';
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
  removed: readonly MissingDocument[];
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
  const { dataType } = resource;
  if (dataType === undefined) return [];
  const active = activeSince(await readSubscriptions(warehouse));
  const sinceOf = (operation: Operation) => active.get(keyOf({ eventType: operation, dataType }));
  // Of several changes of one document within one reading the first is the one that no event announced.
  const first = new Map<string, DocumentChange>();
  for (const change of changes) if (!first.has(change.id)) first.set(change.id, change);
  const declaredAt = Number((await readFact(warehouse, 'declared_at')) ?? 0);
  const announced = [...first.values()].filter(({ command }) => sinceOf(command) !== undefined);
  if (!announced.length) return [];

  const days = new Map(removed.map(({ id, day }) => [id, day]));
  if (resource.dated) {
    const ids = announced.map(({ id }) => id);
    for (const [id, day] of await readDays(warehouse, resource, userId, ids)) days.set(id, day);
  }
  const reads = await listReadingsBefore(warehouse, { userId, collection: resource.name, before: foundAt });
  const readBefore = (day: string | null | undefined) => {
    if (!resource.dated) return reads.find(({ startAt }) => startAt === null)?.requestedAt;
    const start = (findDayNumber(day ?? '') ?? Number.NaN) * MICROS_PER_DAY;
    const isOf = ({ startAt, endAt }: (typeof reads)[number]) => Number(startAt) <= start && Number(endAt) >= start + MICROS_PER_DAY;
    return reads.find(isOf)?.requestedAt;
  };
  return announced.flatMap(({ id, command }) => {
    const day = days.get(id);
    const before = readBefore(day);
    if (before === undefined || before < declaredAt || before < (sinceOf(command) ?? 0) || isGrowing(resource, day, serviceNowMs))
      return [];
    const change = { userId, collection: resource.name, id, eventType: command, foundAt, readBefore: before, notedAt: nowMs * 1000 };
    return [missedEntry(change, null)];
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

export interface JudgeOptions {
  /** Whether events are awaited at all; without them nothing can be missed. */
  webhooks: boolean;
  onMissed?: ((missed: MissedEvents) => void) | undefined;
}

/** Makes what judges missed events again and again: where it cannot, the log is told and it is done the next time. */
export function createJudge(pipeline: Pipeline, options: JudgeOptions): () => Promise<void> {
  let begun = false;
  return async () => {
    try {
      // What an earlier process accepted came in time, but is in the ledger only when it is worked off: the next time is early enough.
      const accepted = begun ? 0 : pipeline.inbox.size;
      begun = true;
      if (!accepted) await judgeMissedEvents(pipeline, options);
    } catch (error) {
      pipeline.log.warn({ reason: messageOf(error) }, 'missed events were not judged: the next time they are');
    }
  };
}

/**
 * Judges the changes that were found at least 70 minutes ago. An event for the document, of whatever operation, that came since the reading
 * before tells that it was announced: we were told to look. Says once what was missed.
 */
export async function judgeMissedEvents(
  { warehouse, collections, now, log }: Pick<Pipeline, 'warehouse' | 'collections' | 'now' | 'log'>,
  { webhooks, onMissed }: JudgeOptions,
): Promise<void> {
  const nowMicros = now() * 1000;
  const noted = await listUnjudged(warehouse);
  const changes = noted.filter(({ notedAt }) => !webhooks || notedAt <= nowMicros - PATIENCE_MICROS);
  const ahead = webhooks ? noted.filter(({ notedAt }) => notedAt > nowMicros + TOLERATED_MICROS) : [];
  await warehouse.record(ahead.map(change => missedEntry({ ...change, notedAt: nowMicros }, null)));
  if (!changes.length) return;
  const active = activeSince(await readSubscriptions(warehouse));
  const arrivals = await readArrivals(
    warehouse,
    changes.map(({ id }) => id),
  );
  const counts = new Map<string, MissedEvents>();
  const entries = changes.map(change => {
    const { userId, collection, id, eventType, readBefore, notedAt } = change;
    const dataType = collections.find(({ name }) => name === collection)?.dataType;
    const since = dataType === undefined ? undefined : active.get(keyOf({ eventType, dataType }));
    const subscribed = since !== undefined && since <= readBefore;
    const came =
      arrivals.get(`${dataType}\n${id}`)?.some(({ at, byClock }) => at > readBefore && byClock <= notedAt + PATIENCE_MICROS) ?? false;
    if (!webhooks || !subscribed || came) return announcedEntry(change);
    const name = `${userId}\n${collection}`;
    counts.set(name, { user: userId, collection, count: (counts.get(name)?.count ?? 0) + 1 });
    return missedEntry(change, nowMicros);
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
  const arrivals = new Map<string, Arrival[]>();
  for (const { dataType, id, ...arrival } of await listArrivals(warehouse, ids)) {
    const key = `${dataTypeOf(dataType)}\n${id}`;
    const list = arrivals.get(key);
    if (list) list.push(arrival);
    else arrivals.set(key, [arrival]);
  }
  return arrivals;
}
