import type { DuckDBConnection } from '@duckdb/node-api';
import { formatInstant } from '../../../schema/instant.ts';
import type { WireDocument } from '../../../schema/resource.ts';
import { RingneckError } from '../../base/errors.ts';
import { type List, type Mapping, partsOf } from '../mapping.ts';
import { number, orNull, text } from '../rows.ts';
import type { Value } from '../sql.ts';
import { qualified, quoteName, quoteText, textList } from '../sql.ts';
import { readRows, select } from '../store/database.ts';
import { composeDocument } from './compose-document.ts';

export interface StoredDocument {
  userId: string;
  sk: number;
  fetchedAt: number;
  contentHash: string;
  document: WireDocument;
}

/** What stands before the mapped columns in the rows read here. */
const BOOKKEPT = ['user_id', 'sk', 'fetched_at', 'content_hash', 'extra'];

interface ReadRow {
  userId: string;
  sk: number;
  fetchedAt: number;
  contentHash: string;
  extra: string | null;
  /** In the order of `Mapping.columns`. */
  values: readonly Value[];
}

function toRow([userId = null, sk = null, fetchedAt = null, contentHash = null, extra = null, ...values]: readonly Value[]): ReadRow {
  return {
    userId: text(userId),
    sk: number(sk),
    fetchedAt: number(fetchedAt),
    contentHash: text(contentHash),
    extra: orNull(text)(extra),
    values,
  };
}

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
  const names = [...BOOKKEPT, ...mapping.columns.map(({ name }) => name)].map(quoteName).join(', ');
  const rows = (await readRows(connection, `SELECT ${names} FROM ${qualified(mapping.table)} WHERE ${where}`)).map(toRow);
  if (!rows.length) return [];
  const { dayAt } = mapping;
  const items = await Promise.all(mapping.series.map(({ table }) => readItems(connection, table, rows, dayAt)));
  const lists = await Promise.all(mapping.lists.map(list => readObjects(connection, list, rows, dayAt)));
  // A version that was replaced between the two reads has lost its samples: then both are read again.
  const parts = [...items, ...lists];
  const torn = rows.some(({ sk, values }) =>
    partsOf(mapping).some(({ count }, p) => (values[count] ?? 0) !== (parts[p]?.get(sk)?.length ?? 0)),
  );
  if (torn) {
    if (attempts > 1) return readDocuments(connection, mapping, where, attempts - 1);
    throw new RingneckError(`the samples or objects of a document in ${mapping.table} are not as many as it says`);
  }
  return rows.map(({ values, extra, ...row }) => ({
    ...row,
    document: composeDocument(
      mapping,
      { values, items: items.map(bySk => bySk.get(row.sk)), lists: lists.map(bySk => bySk.get(row.sk)) },
      extra,
    ),
  }));
}

/**
 * Which rows of a part belong to these documents.
 * @param dayAt the place of the day among the values; below 0 where there is none
 */
function conditionOf(rows: readonly ReadRow[], dayAt: number): string {
  const users = textList(new Set(rows.map(({ userId }) => userId)));
  const days = dayAt < 0 ? '' : `AND day IN (${textList(new Set(rows.map(({ values }) => text(values[dayAt] ?? null))))})`;
  return `user_id IN (${users}) ${days} AND sk IN (${rows.map(({ sk }) => sk).join(', ')})`;
}

async function readItems(
  connection: DuckDBConnection,
  table: string,
  rows: readonly ReadRow[],
  dayAt: number,
): Promise<Map<number, Float64Array>> {
  const result = await connection.runAndReadAll(
    `SELECT sk::DOUBLE, coalesce(value, 'nan'::DOUBLE) FROM ${qualified(table)}
     WHERE ${conditionOf(rows, dayAt)} ORDER BY sk, ts`,
  );
  const collected = new Map<number, number[]>();
  for (const [sk, value] of result.getRows()) {
    const list = collected.get(Number(sk)) ?? [];
    collected.set(Number(sk), list);
    list.push(Number(value));
  }
  return new Map([...collected].map(([sk, list]) => [sk, Float64Array.from(list)]));
}

async function readObjects(
  connection: DuckDBConnection,
  { table, columns }: List,
  rows: readonly ReadRow[],
  dayAt: number,
): Promise<Map<number, Value[][]>> {
  const names = ['sk', ...columns.map(({ name }) => name)].map(quoteName).join(', ');
  const sql = `SELECT ${names} FROM ${qualified(table)} WHERE ${conditionOf(rows, dayAt)} ORDER BY sk, position`;
  const collected = new Map<number, Value[][]>();
  for (const [sk = null, ...values] of await readRows(connection, sql)) {
    const objects = collected.get(number(sk)) ?? [];
    collected.set(number(sk), objects);
    objects.push(values);
  }
  return collected;
}

const MEASURED = { micros: number, offset: number, bpm: number, source: text };

/** Heart-rate rows as on the wire: `from` included, `to` excluded, in microseconds; ascending by (timestamp, source), after `after`. */
export async function readHeartRate(
  connection: DuckDBConnection,
  userId: string,
  query: { from: number; to: number; after?: { micros: number; source: string }; limit: number },
): Promise<WireDocument[]> {
  const { from, to, after, limit } = query;
  const start = after ? `make_timestamp(${after.micros}::BIGINT)` : undefined;
  const beyond = after ? `AND ts >= ${start} AND (ts > ${start} OR source > ${quoteText(after.source)})` : '';
  const rows = await select(
    connection,
    MEASURED,
    `SELECT ts, utc_offset, bpm, source FROM heart_rate WHERE user_id = ${quoteText(userId)}
     AND ts >= make_timestamp(${from}::BIGINT) AND ts < make_timestamp(${to}::BIGINT) ${beyond} ORDER BY ts, source LIMIT ${limit}`,
  );
  return rows.map(({ micros, offset, bpm, source }) => ({
    timestamp: formatInstant({ micros, offset }),
    timestamp_unix: Math.floor(micros / 1000),
    bpm,
    source,
  }));
}
