import { chmodSync, closeSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import type { DuckDBConnection } from '@duckdb/node-api';
import { ensureFolder } from '../files.ts';
import { withTransaction } from './database.ts';
import type { Table } from './tables.ts';
import { commentOn, createTable, qualified, quoteName, quoteText } from './tables.ts';

/** Of our own ledger, what analysts need. */
export const PUBLISHED: ReadonlySet<string> = new Set([
  'sync.runs',
  'sync.windows',
  'sync.events',
  'sync.missed_events',
  'sync.accounts',
  'sync.drift',
]);

/**
 * Writes a copy of the warehouse for readers, sorted by user and time, and publishes it by rename: whoever has the old one open
 * keeps it whole. Without tokens (they are never in the warehouse), rejected documents and internals.
 * @param connection its own, beside the writer's
 * @param beforeTable throws when there is no room on the disk
 */
export async function writeSnapshot(
  connection: DuckDBConnection,
  tables: readonly Table[],
  path: string,
  mode: number,
  beforeTable: () => void = () => undefined,
): Promise<void> {
  ensureFolder(dirname(path));
  const temporary = `${path}.new`;
  const removeTemporary = () => {
    for (const leftover of [temporary, `${temporary}.wal`]) rmSync(leftover, { force: true });
  };
  removeTemporary();
  const [source] = (await connection.runAndReadAll('SELECT current_database()')).getRows()[0] as [string];
  await connection.run(`ATTACH ${quoteText(temporary)} AS snapshot`);
  try {
    chmodSync(temporary, 0o600);
    // One transaction reads one state of the whole warehouse, however long the copy takes.
    await withTransaction(connection, async () => {
      await connection.run('CREATE SCHEMA snapshot.sync');
      for (const table of tables) {
        if (table.name.startsWith('sync.') && !PUBLISHED.has(table.name)) continue;
        beforeTable();
        await copyTable(connection, source, table);
      }
    });
  } catch (error) {
    // What was copied so far may be what fills the disk.
    await connection.run('DETACH snapshot').catch(() => undefined);
    removeTemporary();
    throw error;
  }
  await connection.run('DETACH snapshot');
  // Its content must be on the disk before its name is, or a power loss could publish an empty file.
  const file = openSync(temporary, 'r+');
  fsyncSync(file);
  closeSync(file);
  chmodSync(temporary, mode);
  // Of somebody who opened the last one for writing: beside another file DuckDB would refuse both.
  rmSync(`${path}.wal`, { force: true });
  renameSync(temporary, path);
}

async function copyTable(connection: DuckDBConnection, source: string, table: Table): Promise<void> {
  const [create] = createTable({ ...table, name: `snapshot.${schemaName(table.name)}` });
  await connection.run(create!);
  const names = table.columns.map(({ name }) => quoteName(name));
  const order = ['user_id', 'day', 'ts', 'start_at', 'started_at'].filter(name => table.columns.some(column => column.name === name));
  await connection.run(
    `INSERT INTO snapshot.${qualified(schemaName(table.name))} (${names.join(', ')})
     SELECT ${names.join(', ')} FROM ${quoteName(source)}.${qualified(schemaName(table.name))}
     ${order.length ? `ORDER BY ${order.join(', ')}` : ''}`,
  );
  for (const statement of commentOn({ ...table, name: `snapshot.${schemaName(table.name)}` })) await connection.run(statement);
}

/** An attached file needs the schema spelled out. */
function schemaName(name: string): string {
  return name.includes('.') ? name : `main.${name}`;
}
