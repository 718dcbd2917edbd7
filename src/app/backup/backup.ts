import { randomBytes } from 'node:crypto';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
} from 'node:fs';
import { basename, dirname, join, sep } from 'node:path';
import { diskReserveBytes, ensureDiskReserve } from '../../base/disk.ts';
import { messageOf, RingneckError, UsageError } from '../../base/errors.ts';
import { ensureFolder, existingFolder, hashFile, realPath, syncFolder, writeFileAtomically } from '../../base/files.ts';
import { isRunning } from '../../base/is-running.ts';
import { version } from '../../base/version.ts';
import { WAREHOUSE } from '../../base/warehouse-file.ts';
import { changeAccounts } from '../../ledger/accounts.ts';
import { warehouseId } from '../../sync/runs/runs.ts';
import { FORMAT } from '../../warehouse/format.ts';
import type { App } from '../app.ts';
import { BACKUP_FORMAT, INBOX, KEY, MANIFEST, type Manifest, SEALED, writeManifest } from './manifest.ts';

export interface BackupReport extends Pick<Manifest, 'made_at' | 'key' | 'events'> {
  path: string;
  /** Of the warehouse. */
  id: string;
  bytes: number;
  /** Files of the inbox with lines that cannot be read: those lines are not in it. */
  unreadable: string[];
}

/** So long a half of another name is left alone. */
const ALONE_FOR_MS = 24 * 60 * 60_000;

/** Being written by this process. */
const underWay = new Set<string>();

/**
 * Copies what a data folder cannot make again, while its owner goes on, into a folder that appears when it is whole. Nothing that was
 * acknowledged or stored before it began is missing: an event leaves the inbox when the warehouse has it, so the inbox is read first.
 * @param input.folder does not exist, or is empty
 * @throws UsageError where it is neither, or lies in the data folder
 */
export async function writeBackup(app: App, input: { folder: string; withoutKey: boolean }, signal: AbortSignal): Promise<BackupReport> {
  ensurePlace(input.folder, app.settings.data);
  ensureFolder(dirname(input.folder));
  const path = realPath(input.folder);
  removeHalves(app, path);
  const half = `${path}.${process.pid}.${randomBytes(4).toString('hex')}.new`;
  underWay.add(half);
  try {
    mkdirSync(half, { mode: 0o700 });
    const { unreadable, manifest } = await fill(app, half, input.withoutKey, signal);
    writeFileAtomically(join(half, MANIFEST), writeManifest(manifest));
    // Whoever closes the folder to erase somebody from it must not find them in a backup that comes later.
    signal.throwIfAborted();
    if (existsSync(path)) rmdirSync(path);
    renameSync(half, path);
    syncFolder(dirname(path));
    const { made_at, key, events, warehouse, files } = manifest;
    return { path, made_at, id: warehouse.id, key, events, bytes: files.reduce((sum, { bytes }) => sum + bytes, 0), unreadable };
  } catch (error) {
    rmSync(half, { recursive: true, force: true });
    // What it meets in a folder that is being closed is no word to who asked.
    signal.throwIfAborted();
    throw error;
  } finally {
    underWay.delete(half);
  }
}

async function fill(
  app: App,
  half: string,
  withoutKey: boolean,
  signal: AbortSignal,
): Promise<Pick<BackupReport, 'unreadable'> & { manifest: Manifest }> {
  const { settings, warehouse, now, serviceClock } = app;
  const at = now();
  const made_at = new Date(at).toISOString();
  const service_at = new Date(at + (serviceClock.aheadMs ?? 0)).toISOString();
  const id = await warehouseId(warehouse);
  const inbox = await app.inbox();
  const events = inbox.copyTo(join(half, INBOX));
  const unreadable = inbox.damagedFiles();
  const ensureRoom = (bytes = 0) => ensureDiskReserve(half, diskReserveBytes + bytes);
  // A sorted copy is at most as large.
  ensureRoom(statSync(warehouse.path).size);
  let key: Manifest['key'] = 'none';
  // Accounts and their tokens are of one moment, and nobody who comes or goes waits for the rest of the copy.
  const atBeginning = (begin: () => Promise<void>) =>
    changeAccounts(warehouse, async () => {
      await begin();
      key = copySecrets(settings, half, withoutKey);
    });
  const { duckdb } = await warehouse.backup(join(half, WAREHOUSE), { beforeTable: ensureRoom, atBeginning }, signal);
  const files: Manifest['files'] = [];
  for (const path of listFiles(half)) {
    files.push({ path, bytes: statSync(join(half, path)).size, sha256: await hashFile(join(half, path)) });
  }
  const manifest: Manifest = {
    format: BACKUP_FORMAT,
    made_at,
    service_at,
    ringneck: version,
    duckdb,
    warehouse: { id, format: FORMAT },
    key,
    events,
    files,
  };
  return { unreadable, manifest };
}

/** Tokens and key in one go: whoever changes them does so in this process. */
function copySecrets({ data, secretKey }: App['settings'], half: string, withoutKey: boolean): Manifest['key'] {
  const copy = (name: string) => writeFileAtomically(join(half, name), readSealed(join(data, name)));
  for (const name of SEALED) if (existsSync(join(data, name))) copy(name);
  if (secretKey !== undefined) return 'environment';
  if (!existsSync(join(data, KEY))) return 'none';
  if (withoutKey) return 'left_out';
  copy(KEY);
  return 'included';
}

function readSealed(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    const without = basename(path) === KEY ? ', or give --without-key and keep the key elsewhere' : '';
    const fix = `make it readable for the user who runs ringneck, or put it back from a copy${without}`;
    throw new RingneckError(`${path} cannot be read (${messageOf(error)}): ${fix}.`, 1, { cause: error });
  }
}

const listFiles = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => (entry.parentPath === folder ? entry.name : `${basename(entry.parentPath)}/${entry.name}`))
    .sort();

/** What is there stays, and what is inside of the data folder is no backup of it. */
function ensurePlace(folder: string, data: string): void {
  if (!existsSync(folder) && lstatSync(folder, { throwIfNoEntry: false })) {
    throw new UsageError(`${folder} is a link to a place that does not exist: name the place itself`);
  }
  const there = existingFolder(folder);
  const [above, real] = [realpathSync(there), realpathSync(data)];
  if (above === real || above.startsWith(`${real}${sep}`)) {
    throw new UsageError(`${folder} lies in the data folder: name a folder elsewhere, best on another disk`);
  }
  if (there !== folder) return;
  if (!statSync(folder).isDirectory() || readdirSync(folder).length) {
    throw new UsageError(`${folder} is there and not empty: name a folder that does not exist yet`);
  }
  if (statSync(above).dev !== statSync(dirname(above)).dev) {
    throw new UsageError(`${folder} is where a disk begins, and is not replaced: name a folder in it, as ${join(folder, 'ringneck')}`);
  }
}

/**
 * What killed backups have left, key and tokens with it: each night's has another name. One of another name is left alone for a day: it may be that
 * of another machine, whose processes are not seen here.
 */
function removeHalves({ log }: Pick<App, 'log'>, path: string): void {
  for (const name of readdirSync(dirname(path))) {
    const [, of, pid] = /^(.+)\.(\d+)\.[0-9a-f]{8}\.new$/.exec(name) ?? [];
    const half = join(dirname(path), name);
    if (pid === undefined || underWay.has(half) || (Number(pid) !== process.pid && isRunning(Number(pid)))) continue;
    try {
      if (of === basename(path) || isLeft(half)) rmSync(half, { recursive: true, force: true });
    } catch (error) {
      log.warn({ path: half, reason: messageOf(error) }, 'what a killed backup has left, which may hold the key, cannot be removed');
    }
  }
}

/** Whether it is a half, and unchanged for a day. */
function isLeft(folder: string): boolean {
  try {
    const names = readdirSync(folder);
    const paths = [folder, ...listFiles(folder).map(name => join(folder, name))];
    const changedAt = Math.max(...paths.map(path => lstatSync(path).mtimeMs));
    // Some file systems know no times, and say 0.
    return names.length > 0 && names.every(isOfHalf) && changedAt > 0 && Date.now() - changedAt > ALONE_FOR_MS;
  } catch {
    // It is no folder, or somebody else is removing it.
    return false;
  }
}

const isOfHalf = (name: string) => [MANIFEST, WAREHOUSE, KEY, ...SEALED, INBOX].some(part => name.startsWith(part));
