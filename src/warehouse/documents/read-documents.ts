import type { DuckDBConnection } from '@duckdb/node-api';
import { formatInstant } from '../../../schema/instant.ts';
import type { WireDocument } from '../../../schema/resource.ts';
import { RingneckError } from '../../base/errors.ts';
import type { Mapping } from '../mapping.ts';
import type { Value } from '../sql.ts';
import { qualified, quoteName, quoteText, textList } from '../sql.ts';
import { plainValue, readRows } from '../store/database.ts';
import { composeDocument } from './compose-document.ts';

export interface StoredDocument {
  userId: string;
  sk: number;
  fetchedAt: number;
  contentHash: string;
  document: WireDocument;
}

/** Where the mapped columns begin in the rows read here. */
const VALUES = 5;

/**
 * Reads stored documents as the wire documents they came from.
 * @param where a condition over the document table, with what follows it (ORDER BY, LIMIT)
 */
export async function readDocuments(
  connection: DuckDBConnection,
  mapping: Mapping,
  where: string,
  attempts = 5,
): Promise<StoredDocument[]> {
  const names = mapping.columns.map(({ name }) => quoteName(name)).join(', ');
  const rows = await readRows(
    connection,
    `SELECT user_id, sk, fetched_at, content_hash, extra, ${names} FROM ${qualified(mapping.table)} WHERE ${where}`,
  );
  if (!rows.length) return [];
  const dayColumn = mapping.columns.findIndex(({ name }) => name === 'day');
  const items = await Promise.all(
    mapping.series.map(({ table }) => readItems(connection, table, rows, dayColumn < 0 ? undefined : VALUES + dayColumn)),
  );
  // A version that was replaced between the two reads has lost its samples: then both are read again.
  const torn = rows.some(row =>
    mapping.series.some(({ column }, s) => (row[VALUES + column + 3] ?? 0) !== (items[s]!.get(row[1] as number)?.length ?? 0)),
  );
  if (torn) {
    if (attempts > 1) return readDocuments(connection, mapping, where, attempts - 1);
    throw new RingneckError(`the samples of a document in ${mapping.table} are not as many as it says`);
  }
  return rows.map(([userId, sk, fetchedAt, contentHash, extra, ...values]) => ({
    userId: userId as string,
    sk: sk as number,
    fetchedAt: fetchedAt as number,
    contentHash: contentHash as string,
    document: composeDocument(
      mapping,
      values,
      items.map(bySk => bySk.get(sk as number)),
      extra as string | null,
    ),
  }));
}

async function readItems(
  connection: DuckDBConnection,
  table: string,
  rows: readonly (readonly Value[])[],
  dayIndex: number | undefined,
): Promise<Map<number, Float64Array>> {
  const users = textList(new Set(rows.map(row => row[0] as string)));
  const days = dayIndex === undefined ? '' : `AND day IN (${textList(new Set(rows.map(row => row[dayIndex] as string)))})`;
  const result = await connection.runAndReadAll(
    `SELECT sk::DOUBLE, coalesce(value, 'nan'::DOUBLE) FROM ${qualified(table)}
     WHERE user_id IN (${users}) ${days} AND sk IN (${rows.map(row => row[1]).join(', ')}) ORDER BY sk, ts`,
  );
  const collected = new Map<number, number[]>();
  for (const [sk, value] of result.getRows() as [number, number][]) {
    const list = collected.get(sk);
    if (list) list.push(value);
    else collected.set(sk, [value]);
  }
  return new Map([...collected].map(([sk, list]) => [sk, Float64Array.from(list)]));
}

/** Heart-rate rows as on the wire: `from` included, `to` excluded, in microseconds; ascending by (timestamp, source), after `after`. */
export async function readHeartRate(
  connection: DuckDBConnection,
  userId: string,
  query: { from: number; to: number; after?: { micros: number; source: string }; limit: number },
): Promise<WireDocument[]> {
  const { from, to, after, limit } = query;
  const start = after ? `make_timestamp(${after.micros}::BIGINT)` : undefined;
  const beyond = after ? `AND ts >= ${start} AND (ts > ${start} OR source > ${quoteText(after.source)})` : '';
  const result = await connection.runAndReadAll(
    `SELECT ts, utc_offset, bpm, source FROM heart_rate WHERE user_id = ${quoteText(userId)}
     AND ts >= make_timestamp(${from}::BIGINT) AND ts < make_timestamp(${to}::BIGINT) ${beyond} ORDER BY ts, source LIMIT ${limit}`,
  );
  return result.getRows().map(row => {
    const [micros, offset, bpm, source] = row.map(plainValue) as [number, number, number, string];
    return { timestamp: formatInstant({ micros, offset }), timestamp_unix: Math.floor(micros / 1000), bpm, source };
  });
}
