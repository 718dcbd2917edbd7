import type { DuckDBConnection } from '@duckdb/node-api';
import { messageOf } from '../errors.ts';
import { readRows } from './database.ts';
import { quoteName, quoteText } from './tables.ts';

/** A table as the file has it, of ours or not. */
export interface Present {
  /** With its schema, to be shown. */
  name: string;
  /** The same for a statement: others' names may have dots. */
  place: string;
  /** Those that can be written to: a generated one comes by itself. */
  columns: readonly string[];
}

const SORTED_BY = ['user_id', 'day', 'ts', 'start_at', 'started_at'];

/** Names of columns in DuckDB are the same in capitals. */
export const has = ({ columns }: Pick<Present, 'columns'>, name: string) => columns.some(column => column.toLowerCase() === name);

/** The tables of an attached file, whose like are in another one already. */
export async function listPresent(connection: DuckDBConnection, from: string, to: string): Promise<Present[]> {
  const rows = (await readRows(
    connection,
    `SELECT t.schema_name, t.table_name, c.column_name, c.column_default IS NOT NULL
     FROM duckdb_tables() t JOIN duckdb_columns() c USING (table_oid, database_oid)
     WHERE t.database_name = ${quoteText(from)} AND NOT t.internal ORDER BY t.table_oid, c.column_index`,
  )) as [string, string, string, boolean][];
  const present = new Map<string, { name: string; place: string; columns: string[] }>();
  for (const [schema, name, column, mayBeGenerated] of rows) {
    const place = `${quoteName(schema)}.${quoteName(name)}`;
    const table = present.get(place) ?? { name: `${schema}.${name}`, place, columns: [] };
    present.set(place, table);
    if (!mayBeGenerated || !(await isGenerated(connection, `${quoteName(to)}.${place}`, column))) table.columns.push(column);
  }
  return [...present.values()];
}

/** DuckDB lists the expression of a generated column as a default one: only the refusal of a statement tells them apart. */
async function isGenerated(connection: DuckDBConnection, table: string, column: string): Promise<boolean> {
  try {
    const statement = await connection.prepare(`INSERT INTO ${table} (${quoteName(column)}) VALUES (NULL)`);
    statement.destroySync();
    return false;
  } catch (error) {
    if (/generated column/i.test(messageOf(error))) return true;
    throw error;
  }
}

/** The statement that copies a table from one attached file to another, sorted by user and time: rows of one series compress well. */
export function copySorted(
  table: Present,
  { from, to, selected = namesOf(table), where = 'true' }: { from: string; to: string; selected?: string; where?: string },
): string {
  const order = has(table, 'user_id') ? SORTED_BY.filter(column => has(table, column)) : [];
  return `INSERT INTO ${quoteName(to)}.${table.place} (${namesOf(table)})
    SELECT ${selected} FROM ${quoteName(from)}.${table.place}
    WHERE ${where} ${order.length ? `ORDER BY ${order.map(quoteName).join(', ')}` : ''}`;
}

export const namesOf = ({ columns }: Pick<Present, 'columns'>): string => columns.map(quoteName).join(', ');
