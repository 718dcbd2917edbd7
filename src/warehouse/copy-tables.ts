import type { DuckDBConnection } from '@duckdb/node-api';
import { messageOf, RingneckError } from '../errors.ts';
import { kindOf, readRows } from './database.ts';
import { quoteName, quoteText } from './tables.ts';

/** A table as the file has it, of ours or not. */
export interface Present {
  /** With its schema, to be shown. */
  name: string;
  /** The same for a statement: others' names may have dots. */
  place: string;
  /** Those that can be written to: a generated one comes by itself. */
  columns: readonly string[];
  /** The keys by which its rows name others of the same table: their columns, and those that they name. */
  ownKeys: readonly (readonly [columns: string[], named: string[]])[];
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
  const keys = (await readRows(
    connection,
    `SELECT schema_name, table_name, to_json([constraint_column_names, referenced_column_names])::VARCHAR
     FROM duckdb_constraints() WHERE database_name = ${quoteText(from)} AND constraint_type = 'FOREIGN KEY'
       AND lower(referenced_table) = lower(table_name)`,
  )) as [string, string, string][];
  const present = new Map<string, { name: string; place: string; columns: string[]; ownKeys: Present['ownKeys'] }>();
  for (const [schema, name, column, mayBeGenerated] of rows) {
    const place = `${quoteName(schema)}.${quoteName(name)}`;
    const ofTable = keys.filter(([inSchema, of]) => inSchema === schema && of === name);
    const ownKeys = ofTable.map(([, , key]) => JSON.parse(key) as Present['ownKeys'][number]);
    const table = present.get(place) ?? { name: `${schema}.${name}`, place, columns: [], ownKeys };
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

interface Copying {
  /** Two attached files. */
  from: string;
  to: string;
  /** What is written in the place of the columns. */
  selected?: string;
  /** Which rows. */
  where?: string;
}

/**
 * Copies a table from one attached file to another, in the transaction under way, sorted by user and time: rows of one series compress well.
 * @param run runs one statement and tells how many rows it wrote
 * @throws RingneckError naming the table
 */
export async function copyTable(table: Present, copying: Copying, run: (sql: string) => Promise<number>): Promise<void> {
  try {
    if (table.ownKeys.length) await copyInRounds(table, copying, run);
    else await run(copySorted(table, copying));
  } catch (error) {
    // Of a table of others: DuckDB's sentence quotes what is in it, and this one is logged.
    throw new RingneckError(`the table ${shownName(table)} cannot be copied (${kindOf(error)})`, 1, { cause: error });
  }
}

/** A statement cannot write a row together with one that it names: each round writes those that name none but written ones. */
async function copyInRounds(table: Present, copying: Copying, run: (sql: string) => Promise<number>): Promise<void> {
  const { where = 'true' } = copying;
  const source = `${quoteName(copying.from)}.${table.place}`;
  const ready = table.ownKeys.map(([columns, of]) => {
    const none = columns.map(column => `child.${quoteName(column)} IS NULL`);
    const same = columns.map((column, i) => `parent.${quoteName(of[i]!)} = child.${quoteName(column)}`);
    const named = `SELECT 1 FROM ${source} AS parent JOIN temp.copied ON copied.row_id = parent.rowid WHERE ${same.join(' AND ')}`;
    return `(${none.join(' OR ')} OR EXISTS (${named}))`;
  });
  const left = 'rowid NOT IN (SELECT row_id FROM temp.copied)';
  await run('CREATE OR REPLACE TEMP TABLE copied (row_id BIGINT, round INTEGER)');
  const begin = (round: number) =>
    run(`INSERT INTO temp.copied SELECT rowid, ${round} FROM ${source} AS child WHERE (${where}) AND ${left} AND ${ready.join(' AND ')}`);
  for (let round = 1; (await begin(round)) > 0; round++) {
    const chosen = `(${where}) AND rowid IN (SELECT row_id FROM temp.copied WHERE round = ${round})`;
    await run(copySorted(table, { ...copying, where: chosen }));
  }
  // Those that name a row that is not copied, if any: DuckDB says so.
  await run(copySorted(table, { ...copying, where: `(${where}) AND ${left}` }));
  await run('DROP TABLE temp.copied');
}

function copySorted(table: Present, { from, to, selected = namesOf(table), where = 'true' }: Copying): string {
  const order = has(table, 'user_id') ? SORTED_BY.filter(column => has(table, column)) : [];
  return `INSERT INTO ${quoteName(to)}.${table.place} (${namesOf(table)})
    SELECT ${selected} FROM ${quoteName(from)}.${table.place}
    WHERE ${where} ${order.length ? `ORDER BY ${order.map(quoteName).join(', ')}` : ''}`;
}

/** As statements name it that say no schema. */
export const shownName = ({ name }: Pick<Present, 'name'>): string => name.replace(/^main\./, '');

export const namesOf = ({ columns }: Pick<Present, 'columns'>): string => columns.map(quoteName).join(', ');
