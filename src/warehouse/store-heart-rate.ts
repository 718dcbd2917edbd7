import type { DuckDBConnection } from '@duckdb/node-api';
import { heartRate } from '../../schema/heart-rate.ts';
import { findInstant } from '../../schema/instant.ts';
import { RowAppender } from './append.ts';
import { readRows } from './database.ts';
import type { LedgerEntry } from './literals.ts';
import type { Drift, RejectedDocument } from './parse-document.ts';
import { driftPath, findExactInstant, jsonText, storable } from './parse-document.ts';
import type { Counts, Transaction } from './store-documents.ts';
import { appending, noCounts } from './store-documents.ts';
import { quoteText } from './tables.ts';

export interface HeartRateRow {
  micros: number;
  offset: number;
  bpm: number;
  source: string;
  drift?: readonly Drift[];
}

/** All rows that the service has of one account from `from` (included) to `to` (excluded), in microseconds. */
export interface HeartRateRange {
  userId: string;
  from: number;
  to: number;
  requestedAt: number;
  rows: readonly HeartRateRow[];
}

const KNOWN = new Set(['timestamp', 'timestamp_unix', 'bpm', 'source']);

/**
 * Reads heart-rate rows tolerantly (2.14). Identity is timestamp and source, the last of one answer wins. A row without a usable
 * timestamp, bpm or source is rejected.
 */
export function parseHeartRate(
  raws: readonly unknown[],
  documented: readonly string[],
): { rows: HeartRateRow[]; rejected: RejectedDocument[] } {
  const rows = new Map<string, HeartRateRow>();
  const rejected: RejectedDocument[] = [];
  for (const raw of raws) {
    const row = (typeof raw === 'object' && raw !== null ? raw : {}) as Record<string, unknown>;
    const instant = typeof row.timestamp === 'string' ? findExactInstant(row.timestamp) : undefined;
    const problem = !instant
      ? 'timestamp is missing or no date-time with offset'
      : !Number.isSafeInteger(row.bpm)
        ? 'bpm is missing or no whole number'
        : typeof row.source !== 'string' || !storable(row.source)
          ? 'source is missing or no text'
          : undefined;
    if (problem || !instant) {
      const id = typeof row.timestamp === 'string' && storable(row.timestamp) ? row.timestamp : '';
      rejected.push({ id, reason: problem!, text: jsonText(raw) });
      continue;
    }
    const { bpm, source } = row as { bpm: number; source: string };
    const drift: Drift[] = [];
    if (!documented.includes(source)) drift.push({ path: 'source', kind: 'unknown value' });
    if (row.timestamp_unix === undefined || row.timestamp_unix === null) drift.push({ path: 'timestamp_unix', kind: 'missing' });
    else if (row.timestamp_unix !== Math.floor(instant.micros / 1000)) drift.push({ path: 'timestamp_unix', kind: 'disagreement' });
    for (const key of Object.keys(row)) if (!KNOWN.has(key)) drift.push({ path: driftPath([key]), kind: 'unknown field' });
    rows.set(`${instant.micros} ${source}`, {
      micros: instant.micros,
      offset: instant.offset,
      bpm,
      source,
      ...(drift.length ? { drift } : undefined),
    });
  }
  return { rows: [...rows.values()].sort(compareRows), rejected };
}

function compareRows(a: HeartRateRow, b: HeartRateRow): number {
  return a.micros - b.micros || (a.source < b.source ? -1 : a.source > b.source ? 1 : 0);
}

/**
 * Makes the stored rows of a range those of the answer, inside the caller's transaction. Rows that are equal already, and rows that a
 * newer request brought, are not touched.
 * @param segments the parts of the range that no newer answer has settled
 * @returns also the drift of what was stored
 */
export async function storeHeartRate(
  transaction: Transaction,
  range: HeartRateRange,
  segments: readonly (readonly [number, number])[],
): Promise<{ counts: Counts; drift: Drift[] }> {
  const counts = noCounts();
  const drift: Drift[] = [];
  for (const [from, to] of segments) {
    const where = `user_id = ${quoteText(range.userId)} AND ts >= make_timestamp(${from}::BIGINT) AND ts < make_timestamp(${to}::BIGINT)`;
    const all = await readStored(transaction.connection, where);
    const newer = new Set(all.filter(({ fetchedAt }) => fetchedAt > range.requestedAt).map(identity));
    const stored = byMoment(all.filter(({ fetchedAt }) => fetchedAt <= range.requestedAt));
    const arrived = byMoment(range.rows.filter(row => row.micros >= from && row.micros < to && !newer.has(identity(row))));

    const leaving: number[] = [];
    for (const [micros, rows] of stored) {
      const others = arrived.get(micros) ?? [];
      if (equal(rows, others)) {
        arrived.delete(micros);
        counts.unchanged += rows.length;
        continue;
      }
      leaving.push(micros);
      const kept = new Set(others.map(identity));
      counts.removed += rows.filter(row => !kept.has(identity(row))).length;
    }
    if (leaving.length) await deleteMoments(transaction.connection, where, range.requestedAt, leaving, leaving.length === stored.size);

    const rows = [...arrived.values()].flat();
    counts.stored += rows.length;
    counts.samples += rows.length;
    if (rows.length) await append(transaction, range, rows);
    for (const row of rows) if (row.drift) drift.push(...row.drift);
  }
  counts.outdated = range.rows.length - counts.stored - counts.unchanged;
  return { counts, drift };
}

const identity = ({ micros, source }: HeartRateRow) => `${micros} ${source}`;

function byMoment<T extends HeartRateRow>(rows: readonly T[]): Map<number, T[]> {
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
  moments: readonly number[],
  whole: boolean,
): Promise<void> {
  const listed = whole ? '' : `AND epoch_us(ts) IN (${moments.join(', ')})`;
  await connection.run(`DELETE FROM heart_rate WHERE ${where} AND fetched_at <= make_timestamp(${requestedAt}::BIGINT) ${listed}`);
}

/** The ledger entries for rows that were rejected, and for earlier ones of the range that were not rejected again. */
export async function rejectedHeartRate(
  connection: DuckDBConnection,
  { userId, from, to, requestedAt, rejected }: HeartRateRange & { rejected: readonly RejectedDocument[] },
  segments: readonly (readonly [number, number])[],
): Promise<LedgerEntry[]> {
  const key = (id: string) => ({ user_id: userId, collection: heartRate.name, id });
  const rows = await readRows(
    connection,
    `SELECT id, fetched_at FROM sync.rejected WHERE collection = '${heartRate.name}' AND user_id = ${quoteText(userId)}`,
  );
  const known = new Map(rows.map(([id, fetchedAt]) => [id as string, fetchedAt as number]));
  const outdated = (id: string) => {
    const micros = findInstant(id)?.micros;
    const asked = micros !== undefined && micros >= from && micros < to;
    return (known.get(id) ?? 0) > requestedAt || (asked && !segments.some(([start, end]) => micros >= start && micros < end));
  };
  const settled = [...known.keys()].filter(id => {
    const micros = findInstant(id)?.micros;
    return micros !== undefined && micros >= from && micros < to && !outdated(id);
  });
  return [
    ...settled.map(id => ({ table: 'sync.rejected', key: key(id) })),
    ...rejected
      .filter(({ id }) => !outdated(id))
      .map(({ id, reason, text }) => ({
        table: 'sync.rejected',
        key: key(id),
        row: { reason, document: text, fetched_at: requestedAt },
      })),
  ];
}

async function append(transaction: Transaction, { userId, requestedAt }: HeartRateRange, rows: readonly HeartRateRow[]): Promise<void> {
  const columns = transaction.columnsOf('heart_rate');
  const appender = new RowAppender(await transaction.connection.createAppender('heart_rate'), columns);
  const values = rows.map(({ micros, offset, bpm, source }) => {
    const row: Record<string, string | number> = { user_id: userId, ts: micros, utc_offset: offset, bpm, source, fetched_at: requestedAt };
    return columns.map(({ name }) => row[name]!);
  });
  await appending(appender, () => appender.append(values));
}

/** As doubles, which are exact here and cheap to read: a week has thousands of rows. */
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
