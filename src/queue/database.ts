import { chmodSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { PGlite } from '@electric-sql/pglite';
import { runMigrations } from 'bullmq';
import { messageOf } from '../errors.ts';
import { ensureFolder } from '../files.ts';
import type { Log } from '../log.ts';
import { send } from './session.ts';
import { readSnapshot, startParams } from './snapshot.ts';
import { unpack } from './tar.ts';
import { tables, tidy } from './tidy.ts';

// A job that was active when the process ended is nobody's now: there is one process for a folder. BullMQ's own stalled check, which
// runs when a worker starts, takes up what is marked and expired, and counts it; otherwise it would take a minute.
const orphans = `
  UPDATE job SET stalled_marked = true, locked_until_ms = 0 WHERE state = 'active';
  DELETE FROM meta WHERE field = 'stalled-check'`;

/**
 * Opens the database of the embedded queue in its folder, made when missing. One that does not open, after a power loss say, is moved
 * aside and made anew: the queue is a list of things to do which the ledger can write again.
 * PGlite has no lock on its folder: the caller owns it already (the warehouse's lock is taken first).
 */
export async function openDatabase(folder: string, log: Log): Promise<PGlite> {
  ensureFolder(folder);
  const path = join(folder, 'database');
  if (!existsSync(path)) await createDatabase(path);
  try {
    return await openExisting(path);
  } catch (error) {
    const aside = `${path}.broken`;
    rmSync(aside, { recursive: true, force: true });
    renameSync(path, aside);
    log.warn(
      { reason: messageOf(error), aside },
      'the queue could not be opened and starts empty; what is planned and not done is enqueued again',
    );
    await createDatabase(path);
    return openExisting(path);
  }
}

/** Renamed into place when complete: a process killed meanwhile leaves nothing that looks like a database. */
async function createDatabase(path: string): Promise<void> {
  const unfinished = `${path}.new`;
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { mode: 0o700 });
  unpack(gunzipSync(await readSnapshot()), unfinished);
  renameSync(unfinished, path);
}

async function openExisting(dataDir: string): Promise<PGlite> {
  // Without this PGlite would take what is left of a database for an empty folder, and make a new one inside.
  if (!existsSync(join(dataDir, 'PG_VERSION'))) throw new Error(`${dataDir} holds no database`);
  const database = await PGlite.create({ dataDir, startParams });
  try {
    await runMigrations({ query: (text, parameters) => send(database, text, parameters) });
    // Without fsync an index may have lost touch with its table. The tables hold only what is to be done: 90 ms.
    for (const table of tables) await send(database, `REINDEX TABLE ${table}`);
    for (const statement of tidy) await send(database, statement);
    await send(database, orphans);
    await send(database, 'LISTEN bullmq_jobs; LISTEN bullmq_events');
    hideCaches(dataDir);
    return database;
  } catch (error) {
    await database.close().catch(() => undefined);
    throw error;
  }
}

/** PostgreSQL writes these files when it starts, and only these as the umask says rather than for the owner alone. */
function hideCaches(dataDir: string): void {
  const folders = ['global', ...readdirSync(join(dataDir, 'base')).map(name => join('base', name))];
  for (const file of folders.map(name => join(dataDir, name, 'pg_internal.init'))) if (existsSync(file)) chmodSync(file, 0o600);
}
