import type { DuckDBConnection } from '@duckdb/node-api';
import { heartRate } from '../../schema/heart-rate.ts';
import { findInstant } from '../../schema/instant.ts';
import { RowAppender } from './append.ts';
import { readRows } from './database.ts';
import type { LedgerEntry } from './literals.ts';
import type { Drift, RejectedDocument } from './parse-document.ts';
import type { Counts, Transaction } from './store-documents.ts';
import { appending, noCounts } from './store-documents.ts';
import { quoteText } from './tables.ts';

export interface HeartRateRow {
  micros: number;
  offset: number;
  bpm: number;
  source: string;
}

/** All rows that the service has of one account from `from` (included) to `to` (excluded), in microseconds. */
export interface HeartRateRange {
  userId: string;
  from: number;
  to: number;
  requestedAt: number;
  rows: readonly HeartRateRow[];
}

const SOURCES = heartRate.row.shape.source;
const KNOWN = new Set(['timestamp', 'timestamp_unix', 'bpm', 'source']);

/**
 * Reads heart-rate rows tolerantly (2.14). Identity is timestamp and source, the last of one answer wins. A row without a usable
 * timestamp, bpm or source is rejected.
 */
export function parseHeartRate(
  raws: readonly unknown[],
  documented: readonly string[],
): { rows: HeartRateRow[]; rejected: RejectedDocument[]; drift: Drift[] } {
  const rows = new Map<string, HeartRateRow>();
  const rejected: RejectedDocument[] = [];
  const drift: Drift[] = [];
  for (const raw of raws) {
    const row = (typeof raw === 'object' && raw !== null ? raw : {}) as Record<string, unknown>;
    const instant = typeof row.timestamp === 'string' ? findInstant(row.timestamp) : undefined;
    const problem = !instant
      ? 'timestamp is missing or no date-time with offset'
      : !Number.isSafeInteger(row.bpm)
        ? 'bpm is missing or no whole number'
        : typeof row.source !== 'string' || !SOURCES.safeParse(row.source).success
          ? 'source is missing or no text'
          : undefined;
    if (problem || !instant) {
      rejected.push({ id: typeof row.timestamp === 'string' ? row.timestamp : '', reason: problem!, text: JSON.stringify(raw) ?? 'null' });
      continue;
    }
    const { bpm, source } = row as { bpm: number; source: string };
    if (!documented.includes(source)) drift.push({ path: 'source', kind: 'unknown value' });
    if (row.timestamp_unix === undefined || row.timestamp_unix === null) drift.push({ path: 'timestamp_unix', kind: 'missing' });
    else if (row.timestamp_unix !== Math.floor(instant.micros / 1000)) drift.push({ path: 'timestamp_unix', kind: 'disagreement' });
    for (const key in row) if (!KNOWN.has(key)) drift.push({ path: key, kind: 'unknown field' });
    rows.set(`${instant.micros} ${source}`, { micros: instant.micros, offset: instant.offset, bpm, source });
  }
  return { rows: [...rows.values()].sort(compareRows), rejected, drift };
}

function compareRows(a: HeartRateRow, b: HeartRateRow): number {
  return a.micros - b.micros || (a.source < b.source ? -1 : a.source > b.source ? 1 : 0);
}

/**
 * Replaces the stored rows of a range inside the caller's transaction; where they are equal nothing is written.
 * @param segments the parts of the range that no newer answer has settled
 */
export async function storeHeartRate(
  transaction: Transaction,
  range: HeartRateRange,
  segments: readonly (readonly [number, number])[],
): Promise<Counts> {
  const counts = noCounts();
  for (const [from, to] of segments) {
    const rows = range.rows.filter(({ micros }) => micros >= from && micros < to);
    const where = `user_id = ${quoteText(range.userId)} AND ts >= make_timestamp(${from}::BIGINT) AND ts < make_timestamp(${to}::BIGINT)`;
    const stored = await readStored(transaction.connection, where);
    if (equal(stored, rows)) {
      counts.unchanged += rows.length;
      continue;
    }
    if (stored.length) await transaction.connection.run(`DELETE FROM heart_rate WHERE ${where}`);
    counts.stored += rows.length;
    counts.samples += rows.length;
    counts.removed += Math.max(0, stored.length - rows.length);
    if (rows.length) await append(transaction, range, rows);
  }
  counts.outdated = range.rows.length - counts.stored - counts.unchanged;
  return counts;
}

/** The ledger entries for rows that were rejected, and for earlier ones of the range that were not rejected again. */
export async function rejectedHeartRate(
  connection: DuckDBConnection,
  { userId, requestedAt, rejected }: HeartRateRange & { rejected: readonly RejectedDocument[] },
  segments: readonly (readonly [number, number])[],
): Promise<LedgerEntry[]> {
  const key = (id: string) => ({ user_id: userId, collection: heartRate.name, id });
  const known = await readRows(
    connection,
    `SELECT id FROM sync.rejected WHERE collection = '${heartRate.name}' AND user_id = ${quoteText(userId)}`,
  );
  const settled = known.flatMap(([id]) => {
    const micros = findInstant(id as string)?.micros;
    const inside = micros !== undefined && segments.some(([from, to]) => micros >= from && micros < to);
    return inside ? [{ table: 'sync.rejected', key: key(id as string) }] : [];
  });
  return [
    ...settled,
    ...rejected.map(({ id, reason, text }) => ({
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
async function readStored(connection: DuckDBConnection, where: string): Promise<HeartRateRow[]> {
  const reader = await connection.runAndReadAll(
    `SELECT epoch_us(ts)::DOUBLE, utc_offset::DOUBLE, bpm::DOUBLE, source FROM heart_rate WHERE ${where}`,
  );
  const rows = reader.getRows() as [number, number, number, string][];
  return rows.map(([micros, offset, bpm, source]) => ({ micros, offset, bpm, source })).sort(compareRows);
}

function equal(a: readonly HeartRateRow[], b: readonly HeartRateRow[]): boolean {
  return (
    a.length === b.length &&
    a.every((row, i) => {
      const other = b[i]!;
      return row.micros === other.micros && row.bpm === other.bpm && row.offset === other.offset && row.source === other.source;
    })
  );
}
