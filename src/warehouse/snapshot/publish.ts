import { chmodSync, existsSync, renameSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { DuckDBConnection } from '@duckdb/node-api';
import { RingneckError } from '../../base/errors.ts';
import { ensureFolder, syncFolder } from '../../base/files.ts';
import type { Mapping } from '../mapping.ts';
import { createViews } from '../schema/views.ts';
import { qualified, quoteName, quoteText } from '../sql.ts';
import { readRows } from '../store/database.ts';
import type { Memory } from '../store/memory.ts';
import type { Table } from '../tables.ts';
import { commentOn, createTable, listTables, SORTED_BY } from '../tables.ts';
import { ABOUT, isPublished, selectId, snapshotDeclarations, writeAbout } from './metadata.ts';

/** What a snapshot is made with. */
export interface SnapshotParts {
  /** Its own, beside the writer's; the warehouse is the database in use. */
  connection: DuckDBConnection;
  memory: Memory;
  mappings: readonly Mapping[];
  path: string;
  mode: number;
  /** Microseconds: a moment before which everything is committed. */
  takenAt: number;
  /** Selects the rows of a table that are copied; without it all. */
  rowsOf?: (table: Table) => string;
  /** Selects the identifier of the warehouse; without it what is copied is a warehouse itself. */
  warehouse?: string | undefined;
  /** Throws when there is no room on the disk. */
  beforeTable: () => void;
  /** Ends the work, which throws its reason; what was published stays. */
  signal: AbortSignal;
}

/**
 * Writes a copy of the warehouse for readers, sorted by user and time, with its views, and publishes it by rename: whoever has the old
 * one open keeps it whole.
 * @param inspect looks at the finished copy, attached as `snapshot`, before it is published
 */
export async function writeSnapshot(parts: SnapshotParts, inspect?: () => Promise<void>): Promise<void> {
  const { connection, memory, mappings, takenAt, beforeTable } = parts;
  await publishing(parts, async source => {
    // One transaction reads one state of the whole warehouse, however long the copy takes.
    const copy = async () => {
      await connection.run('CREATE SCHEMA snapshot.sync');
      for (const table of publishedTables(mappings)) {
        beforeTable();
        await copySorted(parts, source, table);
      }
      await createWithComments(connection, ABOUT);
      await writeAbout(connection, mappings, parts.warehouse ?? selectId(source), {
        takenAt,
        sortedAt: takenAt,
        changedRows: 0,
        declarations: snapshotDeclarations(mappings),
      });
      await connection.run('USE snapshot');
      await createViews(connection).finally(() => connection.run(`USE ${source}`));
    };
    await memory.transaction(connection, copy);
    await inspect?.();
  });
}

/** What is in a snapshot; of documents that could not be stored only that they came. */
export const publishedTables = (mappings: readonly Mapping[]): Table[] =>
  listTables(mappings)
    .filter(({ name }) => isPublished(name))
    .map(table =>
      table.name === 'sync.rejected' ? { ...table, columns: table.columns.filter(({ name }) => name !== 'document') } : table,
    );

/**
 * Has `work` fill a new file, attached as `snapshot`, and publishes it; what `begin` puts there first may be a copy of the last one.
 * After an error or an interruption nothing is left of it, and the last one stays.
 */
export async function publishing(
  { connection, memory, path, mode, signal }: Pick<SnapshotParts, 'connection' | 'memory' | 'path' | 'mode' | 'signal'>,
  work: (source: string) => Promise<void>,
  begin: (temporary: string) => Promise<void> = async () => undefined,
): Promise<void> {
  ensureFolder(dirname(path));
  const temporary = `${path}.new`;
  const removeTemporary = () => {
    for (const leftover of [temporary, `${temporary}.wal`]) rmSync(leftover, { force: true });
  };
  removeTemporary();
  const [[source] = []] = await readRows(connection, 'SELECT current_database()');
  const interrupt = () => connection.interrupt();
  signal.addEventListener('abort', interrupt);
  try {
    await begin(temporary);
    await run(connection, signal, `ATTACH ${quoteText(temporary)} AS snapshot (READ_WRITE)`);
    chmodSync(temporary, 0o600);
    await work(quoteName(String(source)));
    signal.throwIfAborted();
    await memory.runWithMost(connection, 'CHECKPOINT snapshot');
    await connection.run('DETACH snapshot');
    await flush(temporary);
    if (existsSync(`${temporary}.wal`)) throw new RingneckError(`${temporary} was not written completely: somebody else made its log`);
    signal.throwIfAborted();
    chmodSync(temporary, mode);
    // Of somebody who opened the last one for writing: beside another file DuckDB would refuse both.
    rmSync(`${path}.wal`, { force: true });
    renameSync(temporary, path);
  } catch (error) {
    await connection.run(`USE ${quoteName(String(source))}`).catch(() => undefined);
    const detach = () => connection.run('DETACH DATABASE IF EXISTS snapshot');
    // An interruption that came when nothing ran stops the next statement, which may be the first of them.
    await detach()
      .catch(detach)
      .catch(() => undefined);
    // It may be what fills the disk.
    removeTemporary();
    // What an interruption makes fail is a consequence.
    throw signal.aborted ? signal.reason : error;
  } finally {
    signal.removeEventListener('abort', interrupt);
  }
  syncFolder(dirname(path));
}

/** One statement; between two of them an interruption would meet nothing that it could end. */
export async function run(connection: DuckDBConnection, signal: AbortSignal, sql: string): Promise<number> {
  signal.throwIfAborted();
  return Number((await connection.run(sql)).rowsChanged);
}

/** Content must be on the disk before its name is, or a power loss could publish an empty file. Not `fsyncSync`: it may take a second. */
async function flush(path: string): Promise<void> {
  const file = await open(path, 'r+');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Makes a table in the attached `snapshot` and fills it, sorted by user and time. */
export async function copySorted(
  { connection, signal, rowsOf }: Pick<SnapshotParts, 'connection' | 'signal' | 'rowsOf'>,
  source: string,
  table: Table,
): Promise<void> {
  await createWithComments(connection, table);
  const names = table.columns.map(({ name }) => quoteName(name));
  const order = SORTED_BY.filter(name => table.columns.some(column => column.name === name));
  await run(
    connection,
    signal,
    `INSERT INTO snapshot.${schemaName(table.name)} (${names.join(', ')})
     SELECT ${names.join(', ')} FROM ${rowsOf ? `(${rowsOf(table)})` : `${source}.${schemaName(table.name)}`}
     ${order.length ? `ORDER BY ${order.join(', ')}` : ''}`,
  );
}

async function createWithComments(connection: DuckDBConnection, table: Table): Promise<void> {
  const named = { ...table, name: `snapshot.${table.name.includes('.') ? table.name : `main.${table.name}`}` };
  const [create] = createTable(named);
  await connection.run([create!, ...commentOn(named)].join(';\n'));
}

/** The name of a table with its schema, which an attached file needs spelled out. */
export const schemaName = (name: string): string => qualified(name.includes('.') ? name : `main.${name}`);
