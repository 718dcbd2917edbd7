import type { DuckDBConnection } from '@duckdb/node-api';
import { findInstant, MICROS_PER_DAY } from '../../../schema/instant.ts';
import { heartRate } from '../../../schema/resources/heart-rate.ts';
import type { Drift, RejectedDocument } from '../documents/parse-document.ts';
import type { Found, HeartRateRange, Missing } from '../heart-rate-answer.ts';
import { compareRows, identity } from '../heart-rate-answer.ts';
import type { Row } from '../rows.ts';
import { flag, number, orNull, text } from '../rows.ts';
import type { LedgerEntry } from '../sql.ts';
import { quoteText } from '../sql.ts';
import { readRows, select } from '../store/database.ts';
import { appendTo, MomentAppender } from '../write/append.ts';
import type { Transaction } from '../write/write-batch.ts';
import type { WriteResult } from '../write-result.ts';
import { nothingWritten } from '../write-result.ts';
import { type HeartRateRow, HeartRateRows } from './heart-rate-rows.ts';

/** How many rows there are of each UTC day of a range, from its first to its last. */
export function countByDay(rows: HeartRateRows, { from, to }: { from: number; to: number }): number[] {
  const first = Math.floor(from / MICROS_PER_DAY);
  const counts = new Array<number>(Math.ceil(to / MICROS_PER_DAY) - first).fill(0);
  for (const micros of rows.within(from, to).columns.micros) counts[Math.floor(micros / MICROS_PER_DAY) - first]!++;
  return counts;
}

const WEEK = 7 * MICROS_PER_DAY;

/**
 * Counts what an answer would take away: a moment of which there is another row lacks none. Those that a newer request brought stay.
 * @returns the counts of each week from the range's first day on
 */
export async function countMissing(connection: DuckDBConnection, range: HeartRateRange): Promise<{ weeks: Missing[]; found: Found }> {
  const { userId, from, to, requestedAt } = range;
  const where = whereRange(userId, from, to);
  const rows = range.rows.within(from, to);
  const found = await findStored(connection, where, rows, requestedAt);
  if (found !== 'others') return { weeks: [{ missing: 0, stored: found === 'none' ? 0 : rows.length }], found };
  const stored = await readRows(
    connection,
    `SELECT epoch_us(ts)::DOUBLE, count(*) FROM heart_rate WHERE ${where}
     AND fetched_at <= make_timestamp(${range.requestedAt}::BIGINT) GROUP BY ts`,
  );
  const arrived = stored.length ? byMoment(range.rows) : new Map<number, HeartRateRow[]>();
  const weeks = Array.from({ length: Math.ceil((range.to - range.from) / WEEK) }, () => ({ missing: 0, stored: 0 }));
  for (const [micros, count] of stored as [number, number][]) {
    const counts = weeks[Math.floor((micros - range.from) / WEEK)]!;
    counts.stored += count;
    counts.missing += Math.max(0, count - (arrived.get(micros)?.length ?? 0));
  }
  return { weeks, found };
}

/** Whether all that is stored of a range are so many rows, none of them by a request after this one. */
export async function holdsJust(
  connection: DuckDBConnection,
  { userId, from, to }: Pick<HeartRateRange, 'userId' | 'from' | 'to'>,
  stored: { rows: number; requestedAt: number },
): Promise<boolean> {
  const where = whereRange(userId, from, to);
  const [found] = await select(
    connection,
    { rows: number, newest: orNull(number) },
    `SELECT count(*), max(fetched_at) FROM heart_rate WHERE ${where}`,
  );
  return found?.rows === stored.rows && found.newest !== null && found.newest <= stored.requestedAt;
}

const whereRange = (userId: string, from: number, to: number) =>
  `user_id = ${quoteText(userId)} AND ts >= make_timestamp(${from}::BIGINT) AND ts < make_timestamp(${to}::BIGINT)`;

/**
 * A row that an untrusted answer has nearer than this to those that are stored may be one of them, of another moment: rows of one series
 * are 5 minutes apart.
 */
const APART = 5 * 60_000_000;

/** The rows of an untrusted answer that are new, whatever became of the stored ones. */
async function findNew(connection: DuckDBConnection, { userId, from, to, rows }: HeartRateRange): Promise<HeartRateRows> {
  const [bounds] = await select(
    connection,
    { first: orNull(number), last: orNull(number) },
    `SELECT min(ts), max(ts) FROM heart_rate WHERE ${whereRange(userId, from, to)}`,
  );
  const { first = null, last = null } = bounds ?? {};
  if (first === null || last === null) return rows;
  return HeartRateRows.of([...rows].filter(({ micros }) => micros <= first - APART || micros >= last + APART));
}

/**
 * Makes the stored rows of a range those of the answer, inside the caller's transaction. Rows that are equal already, and rows that a
 * newer request brought, are not touched.
 * @param segments the parts of the range that no newer answer has settled
 * @param compared what is known to be found of the whole range, which is one segment
 * @returns also the drift of what was stored
 */
export async function storeHeartRate(
  transaction: Transaction,
  range: HeartRateRange,
  segments: readonly (readonly [number, number])[],
  compared?: Found,
): Promise<{ counts: WriteResult; drift: Drift[] }> {
  const counts = nothingWritten();
  const drift: Drift[] = [];
  const rows = range.isSuspicious ? await findNew(transaction.connection, range) : range.rows;
  for (const [from, to] of segments) {
    const where = whereRange(range.userId, from, to);
    const within = rows.within(from, to);
    if (range.isSuspicious) {
      await add(transaction, range, within, counts, drift);
      continue;
    }
    const found = compared ?? (await findStored(transaction.connection, where, within, range.requestedAt));
    if (found === 'none') await add(transaction, range, within, counts, drift);
    if (found === 'these') counts.unchanged += within.length;
    if (found !== 'others') continue;
    const all = await readStored(transaction.connection, where);
    const newer = new Set(all.filter(({ fetchedAt }) => fetchedAt > range.requestedAt).map(identity));
    const stored = byMoment(all.filter(({ fetchedAt }) => fetchedAt <= range.requestedAt));
    const arrived = byMoment([...within].filter(row => !newer.has(identity(row))));

    const leaving: number[] = [];
    for (const [micros, rows] of stored) {
      const others = arrived.get(micros) ?? [];
      if (equal(rows, others)) {
        arrived.delete(micros);
        counts.unchanged += rows.length;
        continue;
      }
      leaving.push(micros);
      counts.removed += Math.max(0, rows.length - others.length);
    }
    if (leaving.length) await deleteMoments(transaction.connection, where, range.requestedAt, leaving, leaving.length === stored.size);

    await add(transaction, range, HeartRateRows.of([...arrived.values()].flat()), counts, drift);
  }
  counts.outdated = range.rows.length - counts.stored - counts.unchanged;
  return { counts, drift };
}

function byMoment<T extends HeartRateRow>(rows: Iterable<T>): Map<number, T[]> {
  const groups = new Map<number, T[]>();
  for (const row of rows) {
    const group = groups.get(row.micros);
    if (group) group.push(row);
    else groups.set(row.micros, [row]);
  }
  return groups;
}

async function deleteMoments(
  connection: DuckDBConnection,
  where: string,
  requestedAt: number,
  clock: readonly number[],
  whole: boolean,
): Promise<void> {
  const listed = whole ? '' : `AND epoch_us(ts) IN (${clock.join(', ')})`;
  await connection.run(`DELETE FROM heart_rate WHERE ${where} AND fetched_at <= make_timestamp(${requestedAt}::BIGINT) ${listed}`);
}

/** Of one account; a service whose every row is bad would have them fill the disk. What is not kept is counted with its window. */
const MOST_REJECTED = 1_000;

/**
 * The ledger entries for rows that were rejected, and for earlier ones of the range that were not rejected again.
 * @returns also how many rows there are whose day the ledger does not tell
 */
export async function rejectedHeartRate(
  transaction: Transaction,
  { userId, from, to, requestedAt, rejected }: Omit<HeartRateRange, 'rows'> & { rejected: readonly RejectedDocument[] },
  segments: readonly (readonly [number, number])[],
): Promise<{ ledger: LedgerEntry[]; undated: number }> {
  const key = (id: string) => ({ user_id: userId, collection: heartRate.name, id });
  const rows = await readRejected(transaction, userId, from, to);
  const known = new Map(rows.map(({ id, fetchedAt }) => [id, fetchedAt]));
  const within = new Set(rows.flatMap(({ id, isWithin }) => (isWithin ? [id] : [])));
  const isAsked = (micros: number) => micros >= from && micros < to;
  const outdated = (id: string) => {
    const micros = findInstant(id)?.micros;
    // What has no moment is settled by an answer to all of the range only.
    const isSettled =
      micros === undefined ? !segments.length : isAsked(micros) && !segments.some(([start, end]) => micros >= start && micros < end);
    return (known.get(id) ?? 0) > requestedAt || isSettled;
  };
  const settled = [...known.keys()].filter(id => {
    const micros = findInstant(id)?.micros;
    return (micros === undefined ? within.has(id) : isAsked(micros)) && !outdated(id);
  });
  const current = rejected.filter(({ id }) => !outdated(id));
  const staying = new Set(known.keys());
  for (const id of settled) staying.delete(id);
  for (const { id } of current) if (known.has(id)) staying.add(id);
  const room = MOST_REJECTED - staying.size;
  let added = 0;
  const kept = current.filter(({ id }) => staying.has(id) || added++ < room);
  const untold = new Set([...rejected.filter(({ day }) => day === null), ...current]);
  for (const row of kept) if (row.day !== null) untold.delete(row);
  return {
    ledger: [
      ...settled.map(id => ({ table: 'sync.rejected', key: key(id) })),
      ...kept.map(({ id, reason, text, day }) => ({
        table: 'sync.rejected',
        key: key(id),
        row: { reason, document: text, fetched_at: requestedAt, day, start_at: from, end_at: to },
      })),
    ],
    undated: untold.size,
  };
}

const REFUSED = { id: text, fetchedAt: number, isWithin: orNull(flag) };

/** Those of an account that were refused before, and whether their window lies in the range: for nearly everybody none. */
async function readRejected(
  { connection, readKept }: Transaction,
  userId: string,
  from: number,
  to: number,
): Promise<Row<typeof REFUSED>[]> {
  const of = `FROM sync.rejected WHERE collection = '${heartRate.name}'`;
  const users = await readKept('sync.rejected', `SELECT DISTINCT user_id ${of}`);
  if (!users.some(([user]) => user === userId)) return [];
  return select(
    connection,
    REFUSED,
    `SELECT id, fetched_at, start_at >= make_timestamp(${from}::BIGINT) AND end_at <= make_timestamp(${to}::BIGINT)
     ${of} AND user_id = ${quoteText(userId)}`,
  );
}

async function add(
  transaction: Transaction,
  { userId, requestedAt }: HeartRateRange,
  rows: HeartRateRows,
  counts: WriteResult,
  drift: Drift[],
): Promise<void> {
  if (!rows.length) return;
  counts.stored += rows.length;
  counts.samples += rows.length;
  for (const seen of rows.drift()) drift.push(seen);
  await appendTo(transaction, { table: 'heart_rate', count: rows.length }, MomentAppender, appender =>
    appender.append({ userId, fetchedAt: requestedAt, rows }),
  );
}

/** Of more sources the query that compares would be long, and nobody has as many. */
const MOST_SOURCES = 16;

/**
 * Whether no row is stored, just these are and none of them by a newer request, or others: read by columns, which takes a tenth of the
 * time that reading rows does.
 */
async function findStored(connection: DuckDBConnection, where: string, rows: HeartRateRows, requestedAt: number): Promise<Found> {
  const sources = rows.names.slice(0, MOST_SOURCES);
  const own = rows.columns;
  const number = `CASE source ${sources.map((source, i) => `WHEN ${quoteText(source)} THEN ${i}`).join(' ')} ELSE -1 END`;
  const columns = ['epoch_us(ts)', 'utc_offset', 'bpm', sources.length ? number : '-1', 'epoch_us(fetched_at)'];
  const selected = columns.map(column => `(${column})::DOUBLE`).join(', ');
  const result = await connection.run(`SELECT ${selected} FROM heart_rate WHERE ${where} ORDER BY ts, source`);
  if (!result.rowCount) return 'none';
  if (result.rowCount !== rows.length) return 'others';
  let at = 0;
  for (const chunk of await result.fetchAllChunks()) {
    const [micros, offset, bpm, source, fetchedAt] = columns.map((_, column) => chunk.getColumnVector(column));
    for (let i = 0; i < chunk.rowCount; i++, at++) {
      const isSame =
        micros!.getItem(i) === own.micros[at] &&
        bpm!.getItem(i) === own.bpm[at] &&
        source!.getItem(i) === own.sources[at] &&
        offset!.getItem(i) === own.offsets[at] &&
        (fetchedAt!.getItem(i) as number) <= requestedAt;
      if (!isSame) return 'others';
    }
  }
  return 'these';
}

/** As doubles, which are exact here and cheap to read: a window has tens of thousands of rows. */
async function readStored(connection: DuckDBConnection, where: string): Promise<(HeartRateRow & { fetchedAt: number })[]> {
  const reader = await connection.runAndReadAll(
    `SELECT epoch_us(ts)::DOUBLE, utc_offset::DOUBLE, bpm::DOUBLE, source, epoch_us(fetched_at)::DOUBLE FROM heart_rate WHERE ${where}`,
  );
  const rows = reader.getRows() as [number, number, number, string, number][];
  return rows.map(([micros, offset, bpm, source, fetchedAt]) => ({ micros, offset, bpm, source, fetchedAt })).sort(compareRows);
}

/** Both in the order of their sources. */
function equal(a: readonly HeartRateRow[], b: readonly HeartRateRow[]): boolean {
  return (
    a.length === b.length &&
    a.every(({ bpm, offset, source }, i) => bpm === b[i]!.bpm && offset === b[i]!.offset && source === b[i]!.source)
  );
}
