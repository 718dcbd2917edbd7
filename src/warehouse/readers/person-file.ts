import type { Resource } from '../../../schema/resource.ts';
import { RingneckError, UsageError } from '../../base/errors.ts';
import { mapAll } from '../mapping.ts';
import { hasRows, number, orNull, type Readable, readRows, readValue, text } from '../rows.ts';
import { publishedTables, schemaName, writeSnapshot } from '../snapshot/publish.ts';
import { quoteText } from '../sql.ts';
import { Memory } from '../store/memory.ts';
import type { Table } from '../tables.ts';
import { openReader, type Reader } from './open-reader.ts';

interface PersonFileParts {
  /** A snapshot, or a warehouse that nobody owns. */
  source: string;
  userId: string;
  /** In a folder of its own, in which DuckDB may write whatever it likes. */
  folder: string;
  path: string;
  resources: readonly Resource[];
  /** Milliseconds: of which moment a warehouse is. A snapshot says so itself. */
  at: number;
  /** Throws when there is no room on the disk. */
  beforeTable: () => void;
  signal: AbortSignal;
}

const LIMITS = { bytes: 128_000_000, threads: 2 };
/** As statements call the file that is copied. */
const SOURCE = 'source';

/**
 * Writes a snapshot in which there is nothing of anybody else: of each table the rows of one person, with all views and macros.
 * @throws UsageError where there is no account of this name; TryLaterError naming the process that holds the source
 */
export async function writePersonFile(parts: PersonFileParts): Promise<void> {
  const { source, userId, folder, path, at, beforeTable, signal } = parts;
  const mappings = mapAll(parts.resources);
  const memoryLimit = `${LIMITS.bytes}B`;
  const reader = await openReader({
    path: source,
    as: SOURCE,
    memoryLimit,
    threads: LIMITS.threads,
    spill: `${path}.tmp`,
    out: folder,
  });
  try {
    const { connection } = reader;
    await ensureColumns(reader, source, publishedTables(mappings));
    if (!(await hasRows(reader, `SELECT 1 FROM sync.accounts WHERE user_id = ${quoteText(userId)} LIMIT 1`))) {
      throw new UsageError(`no account ${JSON.stringify(userId)} is known here: ringneck account list shows those there are`);
    }
    const memory = new Memory(LIMITS);
    const taken = await findTaken(reader);
    await memory.enough(connection, 'the file of a person', () =>
      writeSnapshot({
        connection,
        memory,
        mappings,
        path,
        mode: 0o600,
        takenAt: taken ?? at * 1000,
        warehouse: taken === undefined ? undefined : 'SELECT warehouse FROM source.sync.snapshot',
        rowsOf: table => rowsOfPerson(table, userId),
        beforeTable,
        signal,
      }),
    );
  } finally {
    reader.close();
  }
}

/** The service's own id of the person of such a file; null where nobody knows it. */
export async function readServiceUserId(path: string): Promise<string | null> {
  const reader = await openReader({ path, memoryLimit: '64MB' });
  try {
    return (await readValue(reader, orNull(text), 'SELECT service_user_id FROM sync.accounts')) ?? null;
  } finally {
    reader.close();
  }
}

/**
 * What of a table is the person's. A table that says of no row whose it is, and is not known to be of nobody, stays empty.
 */
function rowsOfPerson({ name, columns }: Table, userId: string): string {
  const place = `${SOURCE}.${schemaName(name)}`;
  const theirs = `user_id = ${quoteText(userId)}`;
  if (columns.some(column => column.name === 'user_id')) return `SELECT * FROM ${place} WHERE ${theirs}`;
  if (name === 'sync.runs') {
    // What was asked for names others.
    return `SELECT * REPLACE (NULL AS request) FROM ${place} WHERE run_id IN (SELECT run_id FROM ${SOURCE}.sync.windows WHERE ${theirs})`;
  }
  return `SELECT * FROM ${place} WHERE ${name === 'sync.routes'}`;
}

/** Microseconds; undefined of a warehouse. */
async function findTaken(reader: Readable): Promise<number | undefined> {
  const isSnapshot = await hasRows(
    reader,
    `SELECT 1 FROM duckdb_tables() WHERE database_name = ${quoteText(SOURCE)} AND schema_name = 'sync' AND table_name = 'snapshot'`,
  );
  return isSnapshot ? readValue(reader, number, 'SELECT taken_at FROM sync.snapshot') : undefined;
}

/** @throws RingneckError where another version has made it */
async function ensureColumns(reader: Reader, source: string, tables: readonly Table[]): Promise<void> {
  const there = await readRows(
    reader,
    { table: text, column: text },
    `SELECT CASE schema_name WHEN 'main' THEN table_name ELSE schema_name || '.' || table_name END, column_name
     FROM duckdb_columns() WHERE database_name = ${quoteText(SOURCE)}`,
  );
  const known = new Set(there.map(({ table, column }) => `${table}.${column}`));
  const missing = tables.flatMap(({ name, columns }) => columns.map(column => `${name}.${column.name}`)).find(one => !known.has(one));
  if (missing === undefined) return;
  throw new RingneckError(
    `${source} was made by another version of Ringneck, or is no warehouse (it has no ${missing}): ringneck snapshot publishes a new one`,
  );
}
