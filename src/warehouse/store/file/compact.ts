import { chmodSync, rmSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import type { DuckDBConnection } from '@duckdb/node-api';
import { TryLaterError } from '../../../base/errors.ts';
import type { Mapping } from '../../mapping.ts';
import { run } from '../../snapshot/publish.ts';
import { dropLists, refreshDocuments, refreshHeartRate } from '../../snapshot/refresh.ts';
import { literal, qualified, quoteName, quoteText } from '../../sql.ts';
import { matchKeys } from '../../write/ledger-statements.ts';
import { readRows } from '../database.ts';
import type { Memory } from '../memory.ts';
import type { Upkeep } from '../store.ts';
import { NotOpenedAgain } from '../store.ts';
import { copyDatabase, ensureWhole, namesOf, type Present } from './copy-tables.ts';
import { waitForHolder } from './open-file.ts';
import { NotDurable, putInPlace } from './put-in-place.ts';

interface CompactParts extends Upkeep {
  memory: Memory;
  mappings: readonly Mapping[];
  /** The file of the warehouse itself, which is the database in use: no link. */
  path: string;
}

/** What a new file is attached as. */
const COPY = 'snapshot';
/** Writers wait for the last commits to be brought over once those before them took no longer than this, */
const QUICK_MS = 150;
/** which takes some steps: each has less to bring over than the one before. */
const STEPS = 5;
/** How often, and how far apart, it is tried to find nobody reading, and not much being stored. */
const ATTEMPTS = 60;
const ATTEMPTS_APART_MS = 1_000;
/** DuckDB plans a longer list of values ever more slowly. */
const KEYS_AT_ONCE = 500;

/** A reader may find the file free while it changes places, and is waited for: to give up is to end the process. */
const HOLDER_PATIENCE_MS = 60_000;

/**
 * Replaces the file of an open warehouse by a sorted copy of all that it holds, with what is committed meanwhile. Nobody waits while it is
 * copied; writers and readers wait while the last commits are brought over and the two files change places, a tenth of a second. Killed at
 * any moment it leaves the old file or the new one, whole.
 * @throws NotOpenedAgain where only a new process can go on
 */
export async function compact(parts: CompactParts): Promise<void> {
  const { connection, path, signal } = parts;
  const [[name] = []] = await readRows(connection, 'SELECT current_database()');
  const interrupt = () => connection.interrupt();
  const goOn = () => signal.removeEventListener('abort', interrupt);
  signal.addEventListener('abort', interrupt);
  removeTemporary(path);
  try {
    await copyAndReplace(parts, String(name), goOn);
  } catch (error) {
    if (error instanceof NotOpenedAgain) throw error;
    const detach = () => connection.run(`DETACH DATABASE IF EXISTS ${COPY}`);
    // An interruption that came when nothing ran stops the next statement, which may be the first of them.
    await detach()
      .catch(detach)
      .catch(() => undefined);
    removeTemporary(path);
    throw signal.aborted ? signal.reason : error;
  } finally {
    goOn();
  }
}

/** @param goOn called when it can no longer be taken back: from there on nothing interrupts it */
async function copyAndReplace(parts: CompactParts, source: string, goOn: () => void): Promise<void> {
  const { connection, path, signal, beforeTable, takeCommitted, alone } = parts;
  const temporary = temporaryOf(path);
  await run(connection, signal, `ATTACH ${quoteText(temporary)} AS ${COPY}`);
  chmodSync(temporary, 0o600);
  takeCommitted();
  const tables = await copyDatabase(parts, { from: source, to: COPY });
  await checkpointOf(parts, COPY);
  for (let attempt = 1; ; attempt++) {
    try {
      await approach(parts, source);
      // Two waits for those who write, each shorter than one would be. A checkpoint that finds the disk full ends the process.
      beforeTable();
      await alone(() => checkpointOf(parts, source));
      await approach(parts, source);
      beforeTable();
      return await alone(() => changePlaces(parts, source, tables, goOn));
    } catch (error) {
      if (!(error instanceof TryLaterError) || attempt === ATTEMPTS) throw error;
    }
    await setTimeout(ATTEMPTS_APART_MS, undefined, { signal });
  }
}

/** Until what was committed meanwhile is quickly brought over. */
async function approach(parts: CompactParts, source: string): Promise<void> {
  for (let step = 1; (await catchUp(parts, source)) > QUICK_MS; step++) {
    if (step === STEPS) throw new TryLaterError('too much is being stored');
  }
}

async function changePlaces(parts: CompactParts, source: string, tables: readonly Present[], goOn: () => void): Promise<void> {
  const { connection, path, signal } = parts;
  await catchUp(parts, source);
  // What was missed would be lost with the old file.
  await ensureWhole(connection, source, tables);
  await checkpointOf(parts, source);
  signal.throwIfAborted();
  try {
    putInPlace(temporaryOf(path), path);
  } catch (error) {
    // What is stored from here on would be in the file that was replaced.
    throw error instanceof NotDurable ? new NotOpenedAgain(error.message, { cause: error }) : error;
  }
  goOn();
  await openAgain(connection, source, path);
}

const temporaryOf = (path: string) => `${path}.new`;

/** What a process that was killed has left beside its warehouse, which must be open. */
export function removeTemporary(path: string): void {
  for (const leftover of [temporaryOf(path), `${temporaryOf(path)}.wal`]) rmSync(leftover, { force: true });
}

async function checkpointOf({ connection, memory, signal }: CompactParts, database: string): Promise<void> {
  signal.throwIfAborted();
  await memory.runWithMost(connection, `CHECKPOINT ${quoteName(database)}`);
}

/**
 * Makes the copy what the warehouse is by now wherever something was committed.
 * @returns how long it took: milliseconds
 */
async function catchUp(parts: CompactParts, source: string): Promise<number> {
  const { connection, memory, mappings } = parts;
  const committed = parts.takeCommitted();
  if (committed.isEmpty) return 0;
  const start = performance.now();
  const { dirty, ledger, wholly } = committed;
  const bringOver = async () => {
    for (const mapping of mappings) {
      const users = dirty.tables.get(mapping.table);
      if (users) await refreshDocuments(parts, quoteName(source), mapping, users);
    }
    await refreshHeartRate(parts, quoteName(source), dirty.heartRate);
    for (const [table, keys] of ledger) {
      if (!wholly.has(table)) await replaceRows(parts, source, table, [...keys.values()]);
    }
    for (const table of wholly) await replaceRows(parts, source, table, [{}]);
    await dropLists(connection);
  };
  await memory.transaction(connection, bringOver);
  await checkpointOf(parts, COPY);
  return performance.now() - start;
}

/** @param keys of the rows that are to be as in the warehouse; an empty one stands for all */
async function replaceRows(
  { connection, columnsOf, signal }: CompactParts,
  source: string,
  table: string,
  keys: readonly Parameters<typeof matchKeys>[0][number][],
): Promise<void> {
  const columns = columnsOf(table);
  const names = namesOf({ columns: columns.map(({ name }) => name) });
  const typeOf = (name: string) => columns.find(column => column.name === name)!.type;
  for (let i = 0; i < keys.length; i += KEYS_AT_ONCE) {
    for (const { list, condition } of matchKeys(keys.slice(i, i + KEYS_AT_ONCE), (name, value) => literal(value, typeOf(name)))) {
      const where = condition || 'true';
      await run(connection, signal, `DELETE FROM ${COPY}.${qualified(table)} ${list ? `USING ${list}` : ''} WHERE ${where}`);
      await run(
        connection,
        signal,
        `INSERT INTO ${COPY}.${qualified(table)} (${names})
         SELECT ${names} FROM ${quoteName(source)}.${qualified(table)} ${list ? `, ${list}` : ''} WHERE ${where}`,
      );
    }
  }
}

/** The name stays, by which all connections find their tables; only who detaches a database may not be using it. */
async function openAgain(connection: DuckDBConnection, source: string, path: string): Promise<void> {
  try {
    await connection.run(`ATTACH ':memory:' AS aside; USE aside`);
    // The old one first: what it does with a log of its name is done while nobody can have one for the new file.
    await connection.run(`DETACH ${quoteName(source)}`);
    await connection.run(`DETACH ${COPY}`);
    await waitForHolder(path, () => connection.run(`ATTACH ${quoteText(path)} AS ${quoteName(source)}`), HOLDER_PATIENCE_MS);
    await connection.run(`USE ${quoteName(source)}; DETACH aside`);
  } catch (error) {
    throw new NotOpenedAgain('the compacted file could not be opened', { cause: error });
  }
}
