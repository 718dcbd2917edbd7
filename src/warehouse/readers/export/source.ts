import type { DuckDBConnection } from '@duckdb/node-api';
import type { Resource } from '../../../../schema/resource.ts';
import { mapAll } from '../../mapping.ts';
import { oneOf, orNull, text } from '../../rows.ts';
import { qualified } from '../../sql.ts';
import { readRows, select } from '../../store/database.ts';
import { duckdb } from '../../store/duckdb.ts';
import { Memory } from '../../store/memory.ts';
import { listTables } from '../../tables.ts';
import { openReader } from '../open-reader.ts';

/** A table or view of the file, as its own catalogue tells. */
export interface ExportTable {
  /** As unqualified statements name it: `sleep`, `sync.windows`. */
  name: string;
  kind: 'table' | 'view';
  comment: string | null;
  columns: readonly ExportColumn[];
  /** The column with the day of its rows. */
  day: string | null;
}

export interface ExportColumn {
  name: string;
  type: string;
  comment: string | null;
}

/** One state of a warehouse or a snapshot: what is published meanwhile is not seen. */
export interface ExportSource {
  readonly connection: DuckDBConnection;
  readonly memory: Memory;
  readonly duckdbVersion: string;
  /** All that can be asked for, by name. */
  readonly tables: ReadonlyMap<string, ExportTable>;
  /** Those of the declarations, in the order of the specification: documents, series, heart rate. */
  readonly usual: readonly ExportTable[];
  /** Stops the statement under way, which then throws. */
  interrupt(): void;
  close(): void;
}

/** Enough for almost all. DuckDB sorts wide rows in memory, twice their size: those are tried again with more. */
const LIMITS = { bytes: 128_000_000, threads: 2 };

/**
 * Runs one statement over a table or view, again with more memory where it had too little. A view is computed by one thread: with several
 * the order in which a mean adds its numbers, and so its last digit, differs from time to time.
 */
export async function runOver<T>(
  { connection, memory }: Pick<ExportSource, 'connection' | 'memory'>,
  { name, kind }: ExportTable,
  work: () => Promise<T>,
): Promise<T> {
  await connection.run(`SET threads = ${kind === 'view' ? 1 : LIMITS.threads}`);
  return memory.enough(connection, `exporting ${name}`, work);
}

/** The only folders whose files are written or read. */
interface ExportFolders {
  out: string;
  /** Where DuckDB puts what does not fit into its memory; removed again. */
  spill: string;
}

/**
 * Opens a file to copy from it, as a reader in a process that does not own it. Unlike an analyst's reader it may write files, into `out`
 * alone: the statements are ours, but a view of the file is of whoever made it, and could read any file of the user into the copy.
 * @throws TryLaterError naming the process that holds the file, after waiting for it
 */
export async function openExportSource(path: string, resources: readonly Resource[], { out, spill }: ExportFolders): Promise<ExportSource> {
  const reader = await openReader({ path, memoryLimit: `${LIMITS.bytes}B`, threads: LIMITS.threads, spill, out });
  const { connection } = reader;
  try {
    const tables = await readCatalogue(connection, resources);
    const usual = listTables(mapAll(resources)).flatMap(({ name }) => (name.includes('.') ? [] : (tables.get(name) ?? [])));
    return {
      connection,
      memory: new Memory(LIMITS),
      duckdbVersion: duckdb.version(),
      tables,
      usual,
      interrupt: () => connection.interrupt(),
      close: () => reader.close(),
    };
  } catch (error) {
    reader.close();
    throw error;
  }
}

async function readCatalogue(connection: DuckDBConnection, resources: readonly Resource[]): Promise<Map<string, ExportTable>> {
  const here = 'NOT internal AND database_name = current_database()';
  const relations = await select(
    connection,
    { schema: text, bare: text, kind: oneOf(['table', 'view']), comment: orNull(text) },
    `SELECT schema_name, table_name, 'table', comment FROM duckdb_tables() WHERE ${here}
     UNION ALL SELECT schema_name, view_name, 'view', comment FROM duckdb_views() WHERE ${here} ORDER BY ALL`,
  );
  const columns = await select(
    connection,
    { schema: text, table: text, name: text, type: text, comment: orNull(text) },
    `SELECT schema_name, table_name, column_name, data_type, comment FROM duckdb_columns() WHERE ${here} ORDER BY column_index`,
  );
  return new Map(
    relations.map(({ schema, bare, kind, comment }) => {
      const name = schema === 'main' ? bare : `${schema}.${bare}`;
      const own = columns.filter(column => column.schema === schema && column.table === bare);
      const dayField = resources.find(resource => resource.name === name)?.dayField ?? 'day';
      const day = own.find(column => column.name === dayField && column.type === 'DATE')?.name ?? null;
      return [name, { name, kind, comment, columns: own.map(({ name, type, comment }) => ({ name, type, comment })), day }];
    }),
  );
}

/** The people that the file knows: accounts, and whoever has documents. */
export async function readUsers({ connection, tables, usual }: ExportSource): Promise<string[]> {
  const withUsers = [...usual.filter(({ columns }) => !columns.some(({ name }) => name === 'ts')), tables.get('sync.accounts')];
  const queries = withUsers.flatMap(table => (table ? [`SELECT user_id FROM ${qualified(table.name)}`] : []));
  if (!queries.length) return [];
  const rows = await readRows(connection, `SELECT DISTINCT user_id FROM (${queries.join(' UNION ALL ')}) ORDER BY user_id`);
  return rows.map(([name]) => String(name));
}
