import type { Resource } from '../../schema/resource.ts';
import { heartRate } from '../../schema/resources/heart-rate.ts';
import { flag, hasRows, number, orNull, type Readable, type Row, readRow, readRows, readValue, readValues, text } from './rows.ts';
import { qualified, quoteName, quoteText, textList } from './sql.ts';
import type { Warehouse } from './warehouse.ts';

/** Days, both included; without them all that is stored is meant. */
interface Days {
  from: string;
  to: string;
}

/** Whose documents are meant. */
type Kind = Pick<Resource, 'name' | 'dayField'>;

const of = (userId: string) => `user_id = ${quoteText(userId)}`;

const within = ({ dayField }: Kind, { from, to }: Days) =>
  `${quoteName(dayField)} BETWEEN DATE ${quoteText(from)} AND DATE ${quoteText(to)}`;

const ofDays = (kind: Kind, userId: string, days: Days | undefined) => (days ? `${of(userId)} AND ${within(kind, days)}` : of(userId));

/** @param newestDay the expression that gives it, as a text */
export const readNewestDays = (warehouse: Readable, table: string, newestDay: string) =>
  readRows(warehouse, { userId: text, day: text }, `SELECT user_id, ${newestDay} FROM ${qualified(table)} GROUP BY user_id`);

/** The day of a document; undefined where it is not stored. */
export const findDay = (warehouse: Readable, { name, dayField }: Kind, userId: string, id: string): Promise<string | undefined> =>
  readValue(
    warehouse,
    text,
    `SELECT ${quoteName(dayField)}::VARCHAR FROM ${qualified(name)} WHERE ${of(userId)} AND id = ${quoteText(id)}`,
  );

/** The days of documents by their identifiers. */
export async function readDays(
  warehouse: Readable,
  { name, dayField }: Kind,
  userId: string,
  ids: readonly string[],
): Promise<Map<string, string>> {
  const sql = `SELECT id, ${quoteName(dayField)}::VARCHAR FROM ${qualified(name)} WHERE ${of(userId)} AND id IN (${textList(ids)})`;
  return new Map((await readRows(warehouse, { id: text, day: text }, sql)).map(({ id, day }) => [id, day]));
}

/** Whether other documents than this one are stored. */
export const hasOthers = (warehouse: Readable, kind: Kind, userId: string, id: string, days: Days | undefined): Promise<boolean> =>
  hasRows(warehouse, `SELECT 1 FROM ${qualified(kind.name)} WHERE ${ofDays(kind, userId, days)} AND id <> ${quoteText(id)} LIMIT 1`);

/** What documents name, once each. */
export const readNames = (warehouse: Readable, table: string, field: string, userId: string): Promise<string[]> =>
  readValues(
    warehouse,
    text,
    `SELECT DISTINCT ${quoteName(field)} FROM ${qualified(table)} WHERE ${of(userId)} AND ${quoteName(field)} IS NOT NULL ORDER BY 1`,
  );

const HASHED = { id: text, hash: text, isWithin: flag };

/** What is stored, with whether it is of the inner days. */
export const readHashes = (
  warehouse: Readable,
  kind: Kind,
  userId: string,
  { days, within: inner }: { days: Days | undefined; within: Days | undefined },
): Promise<Row<typeof HASHED>[]> =>
  readRows(
    warehouse,
    HASHED,
    `SELECT id, content_hash, ${inner ? within(kind, inner) : 'true'}
     FROM ${qualified(kind.name)} WHERE ${ofDays(kind, userId, days)}`,
  );

const DATED = { id: text, day: orNull(text), isBefore: flag };

/** What is stored in the order of the identifiers, with whether it was fetched before a moment; without days where the kind has none. */
export const readFetched = (
  warehouse: Readable,
  kind: Kind,
  userId: string,
  { days, before }: { days: Days | undefined; before: number },
): Promise<Row<typeof DATED>[]> =>
  readRows(
    warehouse,
    DATED,
    `SELECT id, ${days ? `${quoteName(kind.dayField)}::VARCHAR` : 'NULL'}, fetched_at < make_timestamp(${before}::BIGINT) FROM ${qualified(kind.name)}
     WHERE ${ofDays(kind, userId, days)} ORDER BY 1`,
  );

/**
 * How many rows are stored.
 * @param column the one whose value lies in the spans, in microseconds; undefined counts all
 */
export async function countStored(
  warehouse: Readable,
  table: string,
  userId: string,
  { column, spans }: { column: string | undefined; spans: readonly { startAt: number | null; endAt: number | null }[] },
): Promise<number> {
  const within = column
    ? spans.map(
        ({ startAt, endAt }) =>
          `AND ${quoteName(column)} >= make_timestamp(${startAt}::BIGINT) AND ${quoteName(column)} < make_timestamp(${endAt}::BIGINT)`,
      )
    : [''];
  if (!within.length) return 0;
  const counts = within.map(span => `SELECT count(*) AS n FROM ${qualified(table)} WHERE ${of(userId)} ${span}`);
  return (await readRow(warehouse, { count: number }, `SELECT sum(n)::BIGINT FROM (${counts.join(' UNION ALL ')})`)).count;
}

/** Whether any document or heart rate of an account is stored. */
export async function holdsDataOf(warehouse: Pick<Warehouse, 'mappings' | 'read'>, userId: string): Promise<boolean> {
  const tables = [heartRate.name, ...warehouse.mappings.map(({ table }) => table)];
  const found = tables.map(table => `EXISTS (FROM ${qualified(table)} WHERE user_id = ${quoteText(userId)})`);
  const [row] = await warehouse.read(`SELECT ${found.join(' OR ')}`);
  return row?.[0] === true;
}
