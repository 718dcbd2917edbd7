import { chmodSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { PGlite } from '@electric-sql/pglite';
import { runMigrations } from 'bullmq';
import { DiskFull, ensureDiskReserve } from '../base/disk.ts';
import { messageOf, RingneckError } from '../base/errors.ts';
import { ensureFolder } from '../base/files.ts';
import type { Log } from '../base/log.ts';
import { ensureAccessible, isEnvironmentError, isThere } from './environment-errors.ts';
import { send } from './session.ts';
import { readSnapshot } from './snapshot.ts';
import { startPostgres } from './start-postgres.ts';
import { unpack } from './tar.ts';
import { tables, vacuum } from './vacuum.ts';

// A job that was active when the process ended is nobody's now: there is one process for a folder. BullMQ's own stalled check, which
// runs when a worker starts, takes up what is marked and expired, and counts it; otherwise it would take a minute.
const orphans = `
  UPDATE job SET stalled_marked = true, locked_until_ms = 0 WHERE state = 'active';
  DELETE FROM meta WHERE field = 'stalled-check'`;

/** Two files of PostgreSQL's log, and what they tell of. */
const ROOM_BYTES = 48 * 1024 * 1024;

/**
 * PostgreSQL ends its process where its log finds no room, and PGlite, whose process is this one, never comes back from that.
 * @throws DiskFull
 */
export const ensureQueueRoom = (folder: string): void => ensureDiskReserve(folder, ROOM_BYTES);

export function hasQueueRoom(folder: string): boolean {
  try {
    ensureQueueRoom(folder);
    return true;
  } catch (error) {
    if (error instanceof DiskFull) return false;
    throw error;
  }
}

/**
 * Opens the database of the embedded queue in its folder, made when missing. One that is broken, after a power loss say, is kept aside and
 * made anew: what is to be done is known from elsewhere.
 * PGlite has no lock on its folder: the caller owns it already (the warehouse's lock is taken first).
 * @throws RingneckError where the machine does not let a database be opened, which says nothing of this one
 */
export async function openDatabase(folder: string, log: Log): Promise<PGlite> {
  ensureFolder(folder);
  try {
    ensureQueueRoom(folder);
    return await openOrReplace(join(folder, 'database'), log);
  } catch (error) {
    throw new RingneckError(
      `the queue in ${folder} cannot be opened: ${messageOf(error)}; what it holds is kept: look at the disk, the memory, the limit of open ` +
        'files and who owns the folder, then start again',
      1,
      { cause: error },
    );
  }
}

async function openOrReplace(path: string, log: Log): Promise<PGlite> {
  const fresh = `${path}.new`;
  if (!isThere(path)) await createDatabase(fresh, () => renameSync(fresh, path));
  try {
    return await openExisting(path);
  } catch (error) {
    if (isEnvironmentError(error)) throw error;
  }
  ensureAccessible(path);
  // PGlite has one sentence for a lack of memory, of open files and for a broken file: a new database tells them apart.
  await createDatabase(fresh, async () => (await openExisting(fresh)).close());
  // What was lacking may be there again.
  const second = await openExisting(path).catch((error: unknown) => ({ error }));
  if (!('error' in second) || isEnvironmentError(second.error)) rmSync(fresh, { recursive: true, force: true });
  if (!('error' in second)) return second;
  if (isEnvironmentError(second.error)) throw second.error;
  const aside = `${path}.broken-${new Date().toISOString().replaceAll(':', '-')}`;
  renameSync(path, aside);
  renameSync(fresh, path);
  log.warn(
    { reason: messageOf(second.error), aside },
    'the queue is broken, is kept aside and starts empty: what is to be done is enqueued again',
  );
  return openExisting(path);
}

/** Makes a complete database and has it used: a process killed before leaves nothing that looks like one in use, an error nothing at all. */
async function createDatabase(path: string, use: () => unknown): Promise<void> {
  rmSync(path, { recursive: true, force: true });
  try {
    mkdirSync(path, { mode: 0o700 });
    unpack(gunzipSync(await readSnapshot()), path);
    await use();
  } catch (error) {
    rmSync(path, { recursive: true, force: true });
    throw error;
  }
}

async function openExisting(dataDir: string): Promise<PGlite> {
  // Without this PGlite would take what is left of a database for an empty folder, and make a new one inside.
  if (!isThere(join(dataDir, 'PG_VERSION'))) throw new Error(`${dataDir} holds no database`);
  const database = await startPostgres({ dataDir });
  try {
    await runMigrations({ query: (text, parameters) => send(database, text, parameters) });
    // Without fsync an index may have lost touch with its table. The tables hold only what is to be done: 90 ms.
    for (const table of tables) await send(database, `REINDEX TABLE ${table}`);
    for (const statement of vacuum) await send(database, statement);
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
