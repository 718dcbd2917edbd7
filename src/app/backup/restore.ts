import { createHash } from 'node:crypto';
import {
  createReadStream,
  createWriteStream,
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
} from 'node:fs';
import { basename, dirname, join, sep } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { resources } from '../../../schema/index.ts';
import type { Settings } from '../../base/config.ts';
import { diskReserveBytes, ensureDiskReserve } from '../../base/disk.ts';
import { messageOf, RingneckError, TryLaterError, UsageError } from '../../base/errors.ts';
import { ensureFolder, existingFolder, realPath, removeFile, syncFolder, writeFileAtomically } from '../../base/files.ts';
import { findSecretKey } from '../../base/secrets/secret-key.ts';
import { type LeftToOriginal, Secrets } from '../../base/secrets/secrets.ts';
import { WAREHOUSE, warehouseIn } from '../../base/warehouse-file.ts';
import { lockFolder } from '../../service/lock.ts';
import { renewWarehouseId } from '../../sync/runs/runs.ts';
import { Warehouse } from '../../warehouse/warehouse.ts';
import { removeConsoleSessions } from '../console-sessions.ts';
import { connectControl } from '../control/connect-control.ts';
import { asidePath, markerPath } from '../erase/is-erasing.ts';
import { movePath } from '../move/is-moving.ts';
import { personFilesIn, removePersonFiles } from '../person-files/folder.ts';
import { ensureOurs } from '../snapshot/place.ts';
import { INBOX, KEY, type Manifest, readManifest, SEALED } from './manifest.ts';
import { readyIn, restoringIn } from './restoring.ts';

interface RestoreInput {
  folder: string;
  /** The original lives on: this one gets an id, and sign-ins, of its own. */
  asCopy: boolean;
}

export interface RestoreReport extends Pick<Manifest, 'made_at' | 'ringneck' | 'events'>, LeftToOriginal {
  data: string;
  /** What time it was at the service when the backup was made. */
  service_at: string;
  /** Of the warehouse; `before`: of the one that was backed up, null where it is the same. */
  id: string;
  before: string | null;
  /** Who has signed in, and may have to do it again. */
  signed_in: string[];
  /** Why no token can be opened; null where they can, or where there are none. */
  tokens_closed: string | null;
  /** What readers had of the warehouse that lay here before, and has gone with it. */
  removed: string[];
  /** What of that is still there, or may be, and what to do. */
  left: string[];
}

/** In the order in which they take their places: with the last one there is a warehouse. */
const PARTS = [KEY, ...SEALED, INBOX, WAREHOUSE];

/**
 * Makes a data folder of a backup. Nothing of it is in its place before all of it was checked; killed at any moment, the same command goes on,
 * and no other one works in the folder until it has.
 * @throws UsageError where the folder holds anything that would be replaced
 * @throws RingneckError naming what is wrong with the backup
 */
export async function restoreBackup(
  settings: Pick<Settings, 'data' | 'secretKey' | 'snapshot'>,
  input: RestoreInput,
  signal: AbortSignal,
): Promise<RestoreReport> {
  const { data } = settings;
  const manifest = readManifest(input.folder);
  const owner = await connectControl(data);
  if (owner) throw new TryLaterError(`${data} is owned by a running ringneck (PID ${owner.pid}): name another folder by RINGNECK_DATA`);
  const staging = restoringIn(data);
  if (!existsSync(readyIn(data))) ensureFree(data, manifest, input.folder);
  ensureFolder(data);
  const release = lockFolder(staging, 'ringneck restore');
  try {
    if (!existsSync(readyIn(data))) ensureFree(data, manifest, input.folder);
    const report = findReady(data, manifest, input) ?? (await stage(settings, manifest, input, signal));
    const former = await removeFormer(settings);
    moveAll(data);
    return { ...report, tokens_closed: whyClosed(settings), ...former };
  } catch (error) {
    if (!existsSync(readyIn(data))) rmSync(staging, { recursive: true, force: true });
    else release();
    throw error;
  }
}

/** @throws UsageError naming what would be replaced, or worked off, or done to an end, although it is of another warehouse */
function ensureFree(data: string, { files }: Manifest, folder: string): void {
  const begun = [movePath(data), markerPath(data), asidePath(data)].map(path => basename(path));
  const found = [...PARTS, `${WAREHOUSE}.wal`, 'queue', ...begun].filter(name => name !== KEY && isThere(join(data, name)));
  if (found.length) {
    const what = found.includes(WAREHOUSE) ? 'holds a warehouse already' : `holds ${found.join(', ')} already`;
    throw new UsageError(`${data} ${what}: move the folder away, or name another one by RINGNECK_DATA`);
  }
  const path = join(data, KEY);
  if (!files.some(file => file.path === KEY) || !existsSync(path)) return;
  if (!isSameFile(path, join(folder, KEY))) throw new UsageError(`${path} is another key than that of the backup: move it away`);
}

/** Anything but an empty folder. */
function isThere(path: string): boolean {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  return stats !== undefined && !(stats.isDirectory() && !readdirSync(path).length);
}

const isSameFile = (one: string, other: string) => existsSync(other) && readFileSync(one).equals(readFileSync(other));

type Staged = Omit<RestoreReport, 'tokens_closed' | 'removed' | 'left'>;

/** What a process that was killed had made ready. */
function findReady(data: string, manifest: Manifest, { asCopy }: RestoreInput): Staged | undefined {
  const path = readyIn(data);
  if (!existsSync(path)) return undefined;
  const ready: Staged = JSON.parse(readFileSync(path, 'utf8'));
  const isSame =
    ready.made_at === manifest.made_at && (ready.before ?? ready.id) === manifest.warehouse.id && (ready.before !== null) === asCopy;
  if (isSame) return ready;
  throw new UsageError(
    `a restore of the backup of ${ready.made_at}${ready.before === null ? '' : ' with --as-copy'} was interrupted here: run that one again first`,
  );
}

/** Lays all that is to be restored beside its place, checked and changed as it will be. */
async function stage(
  { data, secretKey }: Pick<Settings, 'data' | 'secretKey'>,
  manifest: Manifest,
  { folder, asCopy }: RestoreInput,
  signal: AbortSignal,
): Promise<Staged> {
  const staging = restoringIn(data);
  for (const name of readdirSync(staging)) if (!name.startsWith('lock.')) rmSync(join(staging, name), { recursive: true, force: true });
  const { made_at, service_at = made_at, ringneck, events, warehouse, files } = manifest;
  ensureDiskReserve(existingFolder(data), diskReserveBytes + files.reduce((sum, { bytes }) => sum + bytes, 0));
  await copyFiles(folder, staging, files, signal);
  // One that was left out of the backup may lie in its place already, and nobody but us looks into the folder.
  const key = findSecretKey(staging, secretKey) ?? findSecretKey(data, undefined);
  const secrets = new Secrets({ folder: staging, key });
  const signed_in = secrets.names().filter(name => secrets.hasSignIn(name));
  const parted = asCopy ? await part(data, secrets, signed_in, key) : { id: warehouse.id, sign_in_again: [], dropped: [] };
  const staged: Staged = { data, made_at, service_at, ringneck, events, before: asCopy ? warehouse.id : null, signed_in, ...parted };
  writeFileAtomically(readyIn(data), JSON.stringify(staged));
  return staged;
}

/** Gives what is restored an id of its own, and leaves the renewing of sign-ins to the original. */
async function part(
  data: string,
  secrets: Secrets,
  signedIn: readonly string[],
  key: string | undefined,
): Promise<Pick<Staged, 'id'> & LeftToOriginal> {
  if (signedIn.length && key === undefined) {
    throw new UsageError(
      `the sign-ins of ${signedIn.join(', ')} cannot be left to the original without their key: set RINGNECK_SECRET_KEY to it, or put ${join(data, KEY)} there first`,
    );
  }
  const left = secrets.forgetRenewals();
  const path = warehouseIn(restoringIn(data));
  const warehouse = await Warehouse.open({ path, resources, beforeGroup: () => ensureDiskReserve(data) });
  try {
    return { id: await renewWarehouseId(warehouse), ...left };
  } finally {
    await warehouse.close();
  }
}

/** @throws RingneckError naming all that is not as it was written */
async function copyFiles(folder: string, staging: string, files: Manifest['files'], signal: AbortSignal): Promise<void> {
  const wrong: string[] = [];
  for (const { path, bytes, sha256 } of files) {
    signal.throwIfAborted();
    const from = join(folder, path);
    const stats = statSync(from, { throwIfNoEntry: false });
    if (!stats?.isFile()) wrong.push(`${path} is missing`);
    else if (stats.size !== bytes) wrong.push(`${path} has ${stats.size} bytes, and had ${bytes}`);
    else if ((await copyFile(from, join(staging, path), signal)) !== sha256) wrong.push(`${path} has changed: another SHA-256`);
  }
  if (wrong.length) throw new RingneckError(`${folder} is damaged: ${wrong.join('; ')}. Nothing was restored`);
}

/** @returns SHA-256 of what was copied, which is on the disk then */
async function copyFile(from: string, to: string, signal: AbortSignal): Promise<string> {
  ensureFolder(dirname(to));
  const hash = createHash('sha256');
  async function* hashed(source: AsyncIterable<Buffer>) {
    for await (const chunk of source) {
      hash.update(chunk);
      yield chunk;
    }
  }
  try {
    await pipeline(createReadStream(from), hashed, createWriteStream(to, { flags: 'wx', mode: 0o600, flush: true }), { signal });
  } catch (error) {
    signal.throwIfAborted();
    throw new RingneckError(`${from} cannot be copied: ${messageOf(error)}. Nothing was restored`, 1, { cause: error });
  }
  return hash.digest('hex');
}

/** What readers have of a warehouse that lay here before names accounts of it: a name may be somebody else's in the backup. Dated snapshots stay. */
async function removeFormer({ data, snapshot }: Pick<Settings, 'data' | 'snapshot'>): Promise<Pick<RestoreReport, 'removed' | 'left'>> {
  const instead = removeConsoleSessions(data);
  const removed: string[] = [];
  const left = instead ? [instead] : [];
  const removeOrName = async (path: string, remove: () => void | Promise<void>) => {
    if (!lstatSync(path, { throwIfNoEntry: false })) return;
    try {
      await remove();
      removed.push(path);
    } catch (error) {
      left.push(`${path} is still there (${messageOf(error)}), and may show who was here before: ${PUBLISH}`);
    }
  };
  await removeOrName(personFilesIn(data), () => removePersonFiles(data));
  // Elsewhere it may be that of another folder, which is at work.
  if (snapshot.startsWith(`${data}${sep}`)) await removeOrName(snapshot, () => removeSnapshot(snapshot, warehouseIn(data)));
  else if (existsSync(snapshot)) left.push(`${snapshot} (RINGNECK_SNAPSHOT) may show who was here before: ${PUBLISH}`);
  return { removed, left };
}

const PUBLISH = 'ringneck snapshot publishes what was restored';

async function removeSnapshot(snapshot: string, warehouse: string): Promise<void> {
  await ensureOurs(snapshot, warehouse);
  const real = realPath(snapshot);
  if (real === realPath(warehouse)) throw new UsageError('it is the warehouse itself');
  for (const path of new Set([`${snapshot}.wal`, `${real}.wal`, real, snapshot])) removeFile(path);
}

/** Puts all into its place that is not there yet. */
function moveAll(data: string): void {
  const staging = restoringIn(data);
  syncFolder(staging);
  const left = PARTS.filter(name => existsSync(join(staging, name)));
  for (const name of left) {
    const path = join(data, name);
    if (!isThere(path) || (name === KEY && isSameFile(path, join(staging, name)))) continue;
    throw new UsageError(`${path} was put there while the restore was interrupted: move it away, and run this again`);
  }
  for (const name of left) {
    const path = join(data, name);
    if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory()) rmdirSync(path);
    renameSync(join(staging, name), path);
    // The one that is last on the disk is the last in its place, also after a loss of power.
    syncFolder(data);
  }
  rmSync(readyIn(data));
  rmSync(staging, { recursive: true, force: true });
  syncFolder(data);
}

/** Asked of one token: all have one key. */
function whyClosed({ data, secretKey }: Pick<Settings, 'data' | 'secretKey'>): string | null {
  const secrets = new Secrets({ folder: data, key: secretKey });
  try {
    for (const name of secrets.names().slice(0, 1)) secrets.listOfAny(name);
    return null;
  } catch (error) {
    if (error instanceof RingneckError) return error.message;
    throw error;
  }
}
