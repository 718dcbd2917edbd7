import { type Column, hasRows, json, number, orNull, type Readable, type Row, readRows, readValue, text } from './rows.ts';
import { type LedgerEntry, textList } from './sql.ts';

/** A value of a column of the study’s own. */
export type FreeValue = string | number | boolean;

type Free = Readonly<Record<string, FreeValue>>;

const orNone =
  (column: Column<Free>): Column<Free> =>
  value =>
    value === null ? {} : column(value);

const PARTICIPANT = {
  user_id: text,
  group_name: orNull(text),
  enrolled_from: orNull(text),
  enrolled_until: orNull(text),
  birth_year: orNull(number),
  max_heart_rate: orNull(number),
  extra: orNone(json<Free>()),
};

/** A row of `participants`; days as text, `extra` by the names of the columns. */
export type Participant = Readonly<Row<typeof PARTICIPANT>>;

/** What a study may know of anybody. */
export type Facts = Omit<Participant, 'user_id' | 'extra'>;

/** The participants by name. */
export const listParticipants = (warehouse: Readable): Promise<Participant[]> =>
  readRows(
    warehouse,
    PARTICIPANT,
    `SELECT user_id, group_name, enrolled_from, enrolled_until, birth_year, max_heart_rate, extra::VARCHAR
     FROM participants ORDER BY user_id`,
  );

/** A participant who is none of these, as a phrase. The file may be of a version that had no such table. */
export async function findOtherParticipant(warehouse: Readable, names: readonly string[]): Promise<string | undefined> {
  const isThere = await hasRows(warehouse, `SELECT 1 FROM duckdb_tables() WHERE schema_name = 'main' AND table_name = 'participants'`);
  if (!isThere) return undefined;
  const others = `SELECT user_id FROM participants WHERE user_id NOT IN (${textList(names)})`;
  return readValue(warehouse, text, `SELECT 'the participant ' || min(user_id) FROM (${others}) HAVING count(*) > 0`);
}

/** Their row, with the columns of the study's own in the order of their names: the same facts give the same row. */
export function participantEntry({ user_id, extra, ...facts }: Participant): LedgerEntry {
  const free = Object.entries(extra).sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    table: 'participants',
    key: { user_id },
    row: { ...facts, extra: free.length ? JSON.stringify(Object.fromEntries(free)) : null },
  };
}

/** What takes a participant out of the study's list. */
export const noParticipantEntry = (userId: string): LedgerEntry => ({ table: 'participants', key: { user_id: userId } });
