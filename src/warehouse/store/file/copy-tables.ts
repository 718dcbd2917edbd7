import type { DuckDBConnection } from '@duckdb/node-api';
import { kindOf, messageOf, RingneckError } from '../../../base/errors.ts';
import { flag, json, text } from '../../rows.ts';
import { compareCounts } from '../../snapshot/refresh.ts';
import { quoteName, quoteText } from '../../sql.ts';
import { SORTED_BY } from '../../tables.ts';
import { readRows, select } from '../database.ts';
import { isOutOfMemory, type Memory } from '../memory.ts';
import type { CopyOptions, Upkeep } from '../store.ts';

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

/** Names of columns in DuckDB are the same in capitals. */
export const has = ({ columns }: Pick<Present, 'columns'>, name: string) => columns.some(column => column.toLowerCase() === name);

/** The tables of an attached file, whose like are in another one already. */
export async function listPresent(connection: DuckDBConnection, from: string, to: string): Promise<Present[]> {
  const rows = await select(
    connection,
    { schema: text, name: text, column: text, mayBeGenerated: flag },
    `SELECT t.schema_name, t.table_name, c.column_name, c.column_default IS NOT NULL
     FROM duckdb_tables() t JOIN duckdb_columns() c USING (table_oid, database_oid)
     WHERE t.database_name = ${quoteText(from)} AND NOT t.internal ORDER BY t.table_oid, c.column_index`,
  );
  const keys = await select(
    connection,
    { schema: text, name: text, key: json<Present['ownKeys'][number]>() },
    `SELECT schema_name, table_name, to_json([constraint_column_names, referenced_column_names])::VARCHAR
     FROM duckdb_constraints() WHERE database_name = ${quoteText(from)} AND constraint_type = 'FOREIGN KEY'
       AND lower(referenced_table) = lower(table_name)`,
  );
  const present = new Map<string, { name: string; place: string; columns: string[]; ownKeys: Present['ownKeys'] }>();
  for (const { schema, name, column, mayBeGenerated } of rows) {
    const place = `${quoteName(schema)}.${quoteName(name)}`;
    const ownKeys = keys.filter(of => of.schema === schema && of.name === name).map(({ key }) => key);
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

/** DuckDB plans a longer list of values ever more slowly. */
export const ROWS_AT_ONCE = 500;

/**
 * Copies a table from one attached file to another, in the transaction under way, sorted by user and time: rows of one series compress well.
 * @param signal ends the work between two statements
 * @throws RingneckError naming the table, or what DuckDB says when it lacks memory
 */
export async function copyTable(connection: DuckDBConnection, table: Present, copying: Copying, signal?: AbortSignal): Promise<void> {
  const run = async (sql: string) => {
    signal?.throwIfAborted();
    await connection.run(sql);
  };
  const names = namesOf(table);
  const insert = (rows: string) => run(`INSERT INTO ${quoteName(copying.to)}.${table.place} (${names}) ${rows}`);
  try {
    if (!table.ownKeys.length) return await insert(selectSorted(table, copying));
    const number = await numberRows(connection, table, copying, run);
    const insertWhere = (where: string) => insert(`SELECT ${names} FROM temp.numbered WHERE ${where} ORDER BY ${number}`);
    // DuckDB refuses those among them that name a row that is not copied.
    await insertWhere(`${number} NOT IN (SELECT naming FROM temp.pairs)`);
    for (const round of await listRounds(connection)) {
      for (let i = 0; i < round.length; i += ROWS_AT_ONCE) await insertWhere(`${number} IN (${round.slice(i, i + ROWS_AT_ONCE)})`);
    }
    await run('DROP TABLE temp.numbered; DROP TABLE temp.pairs');
  } catch (error) {
    if (isOutOfMemory(error)) throw error;
    // Of a table of others: DuckDB's sentence quotes what is in it, and this one is logged.
    throw new RingneckError(`the table ${shownName(table)} cannot be copied (${kindOf(error)})`, 1, { cause: error });
  }
}

function selectSorted(table: Present, { from, selected = namesOf(table), where = 'true' }: Copying): string {
  const order = has(table, 'user_id') ? SORTED_BY.filter(column => has(table, column)) : [];
  return `SELECT ${selected} FROM ${quoteName(from)}.${table.place}
    WHERE ${where} ${order.length ? `ORDER BY ${order.map(quoteName).join(', ')}` : ''}`;
}

/**
 * Lays the rows aside with a number each, and which of them names which other one.
 * @returns the column of the number; not `rowid`, for a table may have one of its own
 */
async function numberRows(
  connection: DuckDBConnection,
  table: Present,
  copying: Copying,
  run: (sql: string) => Promise<void>,
): Promise<string> {
  let number = 'row_number';
  while (has(table, number)) number += '_';
  await run(
    `CREATE OR REPLACE TEMP TABLE numbered AS SELECT (row_number() OVER ())::INTEGER AS ${number}, * FROM (${selectSorted(table, copying)})`,
  );
  const texts = await readRows(
    connection,
    `SELECT lower(column_name) FROM duckdb_columns() WHERE database_name = 'temp' AND table_name = 'numbered' AND data_type = 'VARCHAR'`,
  );
  const isText = (name: string) => texts.some(([text]) => text === name.toLowerCase());
  // A key takes no notice of how its column is collated.
  const keyOf = (row: string, name: string) => (isText(name) ? `encode(${row}.${quoteName(name)})` : `${row}.${quoteName(name)}`);
  const pairs = table.ownKeys.map(([columns, named]) => {
    const same = columns.map((column, i) => `${keyOf('other', named[i] ?? column)} = ${keyOf('one', column)}`);
    return `SELECT one.${number} AS naming, other.${number} AS named FROM temp.numbered AS one JOIN temp.numbered AS other ON ${same.join(' AND ')}`;
  });
  await run(`CREATE OR REPLACE TEMP TABLE pairs AS ${pairs.join(' UNION ALL ')}`);
  return number;
}

/**
 * The rows that name others, each in a later round than those: DuckDB cannot write a row in one statement with one that it names. Counted
 * here, for a statement each round would make a long chain cost the square of its length.
 */
async function listRounds(connection: DuckDBConnection): Promise<number[][]> {
  const waitsFor = new Map<number, number>();
  const namedBy = new Map<number, number[]>();
  for await (const pairs of (await connection.stream('SELECT naming, named FROM temp.pairs')).yieldRows()) {
    for (const [row, named] of pairs.map(pair => pair.map(Number))) {
      if (row === undefined || named === undefined) continue;
      waitsFor.set(row, (waitsFor.get(row) ?? 0) + 1);
      const naming = namedBy.get(named);
      if (naming) naming.push(row);
      else namedBy.set(named, [row]);
    }
  }
  const rounds: number[][] = [];
  let written = [...namedBy.keys()].filter(row => !waitsFor.has(row));
  while (written.length) {
    const ready: number[] = [];
    for (const row of written.flatMap(named => namedBy.get(named) ?? [])) {
      const left = (waitsFor.get(row) ?? 0) - 1;
      waitsFor.set(row, left);
      if (left === 0) ready.push(row);
    }
    rounds.push(ready.sort((a, b) => a - b));
    written = ready;
  }
  return rounds;
}

/**
 * Copies all that an attached file holds into another one, which is empty: tables, views, macros, indexes and comments, those of others too.
 * What is committed meanwhile is not in it.
 * @param parts.beforeTable throws when there is no room on the disk
 * @param inspect looks at the copy while the state that it was made of is still the one that is read
 */
export async function copyDatabase(
  parts: Pick<Upkeep, 'connection' | 'beforeTable' | 'signal'> & Pick<CopyOptions, 'atBeginning'> & { memory: Memory },
  { from, to }: Pick<Copying, 'from' | 'to'>,
  inspect?: (tables: readonly Present[]) => Promise<void>,
): Promise<Present[]> {
  const { connection, memory, signal, beforeTable, atBeginning } = parts;
  signal.throwIfAborted();
  await connection.run(`COPY FROM DATABASE ${quoteName(from)} TO ${quoteName(to)} (SCHEMA)`);
  const tables = await listPresent(connection, from, to);
  // One transaction reads one state, however long the copy takes.
  await memory.transaction(connection, async () => {
    await atBeginning?.(() => beginReading(connection, from));
    for (const table of tables) {
      beforeTable();
      await copyTable(connection, table, { from, to }, signal);
    }
    await inspect?.(tables);
  });
  return tables;
}

/** A transaction sees of an attached file what was committed when it reads there first. */
async function beginReading(connection: DuckDBConnection, from: string): Promise<void> {
  await connection.run(`SELECT count(*) FROM ${quoteName(from)}.sync.meta`);
}

/** @throws RingneckError where a table of the attached `snapshot` has not as many rows as that of another file */
export async function ensureWhole(connection: DuckDBConnection, source: string, tables: readonly Present[]): Promise<void> {
  const { differing } = await compareCounts(connection, quoteName(source), tables);
  if (differing.length) throw new RingneckError(`not copied whole: ${differing.join(', ')}; nothing was replaced`);
}

/** As statements name it that say no schema. */
export const shownName = ({ name }: Pick<Present, 'name'>): string => name.replace(/^main\./, '');

export const namesOf = ({ columns }: Pick<Present, 'columns'>): string => columns.map(quoteName).join(', ');
