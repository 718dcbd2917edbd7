import type { DuckDBConnection } from '@duckdb/node-api';
import { RingneckError } from '../../base/errors.ts';
import { FORMAT, isOfNewer } from '../format.ts';
import type { Column } from '../mapping.ts';
import { orNull, text } from '../rows.ts';
import { qualified, quoteName } from '../sql.ts';
import { readRows, select } from '../store/database.ts';
import type { Store } from '../store/store.ts';
import type { Table } from '../tables.ts';
import { commentOn, createTable } from '../tables.ts';

interface Present {
  columns: { name: string; type: string; comment: string | null }[];
  comment: string | null;
}

/**
 * Makes the tables that are missing and adds the columns that are missing; comments are brought up to date. Tables and views of
 * others are left alone.
 * @param beforeUpgrade called before the first change of a file that an earlier program could not open afterwards; with its format, null where it notes none
 * @returns the columns of each table in the order in which they lie in the file
 * @throws RingneckError when a table of ours differs in any other way, naming every difference
 */
export async function ensureTables(
  store: Pick<Store, 'transaction'>,
  connection: DuckDBConnection,
  tables: readonly Table[],
  beforeUpgrade: (format: number | null) => Promise<void>,
): Promise<Map<string, Column[]>> {
  const present = await readPresent(connection);
  const format = await readFormat(connection, present);
  if (format !== null && format > FORMAT) throw isOfNewer(format);
  const problems = [...(await findStrangers(connection, tables)), ...tables.flatMap(table => differences(table, present.get(table.name)))];
  if (problems.length) {
    const undo = 'ename or undo them, or use another data folder';
    const cure = tables.some(table => hasNewer(table, present.get(table.name)))
      ? `A newer Ringneck may have made what is in sync.*: update Ringneck; if none did, r${undo}`
      : `R${undo}`;
    throw new RingneckError(`the warehouse has tables that Ringneck did not make so: ${problems.join('; ')}. ${cure}`);
  }
  const isOlder = format !== null && format < FORMAT;
  const statements = tables.flatMap(table => listMissing(table, present.get(table.name)));
  if (isOlder) statements.push(`UPDATE sync.meta SET value = '${FORMAT}' WHERE key = 'format'`);
  if (isOlder || tables.some(table => missingColumns(table, present.get(table.name)).length)) await beforeUpgrade(format);
  // Together: a commit for each table takes longer than all the rest of a start.
  if (statements.length) {
    await store.transaction(connection, async () => {
      await connection.run('CREATE SCHEMA IF NOT EXISTS sync');
      for (const statement of statements) await connection.run(statement);
    });
  }
  const now = statements.length ? await readPresent(connection) : present;
  return new Map(tables.map(table => [table.name, inOrderOf(now.get(table.name), table.columns)]));
}

const inOrderOf = (present: Present | undefined, columns: readonly Column[]): Column[] =>
  present?.columns.flatMap(({ name }) => columns.find(column => column.name === name) ?? []) ?? [];

/** Null where none is noted: in a new file, for one. */
async function readFormat(connection: DuckDBConnection, present: ReadonlyMap<string, Present>): Promise<number | null> {
  const columns = present.get('sync.meta')?.columns.map(({ name }) => name) ?? [];
  if (!columns.includes('key') || !columns.includes('value')) return null;
  const [row] = await readRows(connection, `SELECT value FROM sync.meta WHERE key = 'format'`);
  return row === undefined ? null : Number(row[0]);
}

async function readPresent(connection: DuckDBConnection): Promise<Map<string, Present>> {
  const rows = await select(
    connection,
    { schema: text, table: text, about: orNull(text), name: text, type: text, comment: orNull(text) },
    `SELECT t.schema_name, t.table_name, t.comment, c.column_name, c.data_type, c.comment
     FROM duckdb_tables() t JOIN duckdb_columns() c USING (table_oid, database_oid)
     WHERE t.database_name = current_database() AND NOT t.internal ORDER BY c.column_index`,
  );
  const present = new Map<string, Present>();
  for (const { schema, table, about, ...column } of rows) {
    const key = nameOf(schema, table);
    const entry = present.get(key) ?? { columns: [], comment: about };
    entry.columns.push(column);
    present.set(key, entry);
  }
  return present;
}

/** DuckDB's names are the same in either case. */
const nameOf = (schema: string, table: string) => (schema === 'main' ? table : `${schema}.${table}`).toLowerCase();

/** A view under a name of ours, or a key, index or default on a table of ours. */
async function findStrangers(connection: DuckDBConnection, tables: readonly Table[]): Promise<string[]> {
  const ours = new Set(tables.map(({ name }) => name));
  const found = await select(
    connection,
    { schema: text, name: text, what: text },
    `SELECT schema_name, view_name, 'a view has the name ' FROM duckdb_views() WHERE NOT internal AND database_name = current_database()
     UNION ALL SELECT schema_name, table_name, 'an index lies on ' FROM duckdb_indexes() WHERE database_name = current_database()
     UNION ALL SELECT schema_name, table_name, 'a constraint lies on ' FROM duckdb_constraints() WHERE database_name = current_database()
     UNION ALL SELECT schema_name, table_name, 'a default lies on ' FROM duckdb_columns()
       WHERE NOT internal AND database_name = current_database() AND column_default <> 'NULL'`,
  );
  return found.flatMap(({ schema, name, what }) => {
    const key = nameOf(schema, name);
    return ours.has(key) ? [`${what}${key}`] : [];
  });
}

function differences(table: Table, present: Present | undefined): string[] {
  if (!present) return [];
  return present.columns.flatMap(({ name, type }) => {
    const expected = table.columns.find(column => column.name === name);
    if (!expected) return [`${table.name}.${name} is no column of ours`];
    return expected.type === type ? [] : [`${table.name}.${name} is ${type}, not ${expected.type}`];
  });
}

/** Whether a table of the ledger has columns that only a later program may know. */
const hasNewer = ({ name, columns }: Table, present: Present | undefined) =>
  name.startsWith('sync.') && present?.columns.some(has => !columns.some(column => column.name === has.name));

/** The statements that make a table what it should be. */
function listMissing(table: Table, present: Present | undefined): string[] {
  if (!present) return [createTable(table).join(';\n')];
  const added = missingColumns(table, present).map(
    ({ name, type }) => `ALTER TABLE ${qualified(table.name)} ADD COLUMN ${quoteName(name)} ${type}`,
  );
  const current = new Map(present.columns.map(({ name, comment }) => [name, comment]));
  const stale = present.comment !== table.comment || table.columns.some(({ name, comment }) => current.get(name) !== comment);
  return stale ? [...added, commentOn(table).join(';\n')] : added;
}

/** Of a table that is there. */
const missingColumns = (table: Table, present: Present | undefined): Column[] =>
  present ? table.columns.filter(({ name }) => !present.columns.some(column => column.name === name)) : [];
