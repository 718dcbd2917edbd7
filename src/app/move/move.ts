import { realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import { z } from 'zod';
import { removeCommonFile, writeCommonFile } from '../../base/common-files.ts';
import { ensureDiskReserve } from '../../base/disk.ts';
import { messageOf, RingneckError, TryLaterError } from '../../base/errors.ts';
import { openJsonFile } from '../../base/json-file.ts';
import { openMirrorTokens } from '../../base/secrets/mirror-tokens.ts';
import { Secrets } from '../../base/secrets/secrets.ts';
import { warehouseIn } from '../../base/warehouse-file.ts';
import { accountExists } from '../../ledger/accounts.ts';
import { Warehouse } from '../../warehouse/warehouse.ts';
import { renameInConsoleSessions } from '../console-sessions.ts';
import { connectControl } from '../control/connect-control.ts';
import { emptyQueue } from '../erase/queue.ts';
import { ensureDisks, lakeOf } from '../lake/place.ts';
import { removePersonFiles } from '../person-files/folder.ts';
import { ensureRoom, type FolderOptions, InTheWay, replaceSnapshot, withWarehouse } from '../rewriting.ts';
import { ensureFree, ensureNamed } from './ensure-free.ts';
import { isMoving, movePath, tellClosed } from './is-moving.ts';

const moving = z.strictObject({ format: z.literal(1), from: z.string(), to: z.string() });

export type Renaming = Omit<z.infer<typeof moving>, 'format'>;

export interface MoveReport {
  user_id: string;
  /** What the account was called. */
  before: string;
  /** How many rows are its, by table. */
  moved: Record<string, number>;
  /** The snapshot that was made anew; null where there was none of ours, or where it could not be made. */
  snapshot: string | null;
  /** Why a snapshot that still has the former name is there; null where there is none. */
  left: string | null;
}

/**
 * Gives an account of a folder that this process owns and has closed another name. Where it fails before the new file is in its place all is
 * as before; killed at any moment, it is finished when the folder is opened next.
 */
export async function moveAccount(options: FolderOptions, { from, to }: Renaming): Promise<MoveReport> {
  const { data } = options.settings;
  try {
    await withWarehouse(options, warehouse => begin(options, warehouse, { from, to }));
    return await move(options, { from, to });
  } catch (error) {
    if (!isMoving(data)) throw error;
    const exitCode = error instanceof RingneckError ? error.exitCode : 1;
    throw new RingneckError(`${messageOf(error)}. The move is begun: the next command that opens the folder finishes it`, exitCode, {
      cause: error,
    });
  }
}

/** From here on whoever opens the folder moves the account, and whatever is kept by the new name is of this move. */
async function begin(options: FolderOptions, warehouse: Warehouse, { from, to }: Renaming): Promise<void> {
  const { data, secretKey: key } = options.settings;
  const secrets = new Secrets({ folder: data, key });
  // Somebody may have been erased, or added by the other name, before the folder was closed.
  await ensureNamed(warehouse, from);
  await ensureFree({ warehouse, secrets, mirrorTokens: openMirrorTokens(data) }, to);
  secrets.leaveToNext(to);
  // What waits names accounts; it comes anew, events from the inbox and windows from the ledger.
  await emptyQueue(options, warehouse);
  try {
    writeCommonFile(data, 'moving.json', `${JSON.stringify({ format: 1, from, to })}\n`);
  } catch (error) {
    // It may lie there, though the disk did not confirm it.
    removeCommonFile(data, 'moving.json');
    throw error;
  }
}

/** Finishes what a process that was killed had begun (see isMoving). */
export async function finishMove(options: FolderOptions): Promise<void> {
  const { data } = options.settings;
  const control = await connectControl(data);
  if (control && control.pid !== process.pid) throw new TryLaterError(tellClosed('moved in', data));
  const found = openJsonFile(movePath(data), moving).read();
  if (!found) return;
  const { from, to } = found;
  try {
    await move(options, { from, to });
    options.log.warn({ from, to }, 'the move of an account, which was interrupted, is finished');
  } catch (error) {
    const left = isMoving(data) ? 'the next command tries again' : 'ringneck account list shows which name it has now';
    throw new RingneckError(
      `the move of ${from} to ${to}, which was interrupted, cannot be finished (${left}): ${messageOf(error)}`,
      error instanceof RingneckError ? error.exitCode : 1,
      { cause: error },
    );
  }
}

async function move(options: FolderOptions, { from, to }: Renaming): Promise<MoveReport> {
  const { data, secretKey: key } = options.settings;
  const secrets = new Secrets({ folder: data, key });
  const hasOldName = () => withWarehouse(options, warehouse => accountExists(warehouse, from));
  let moved: Record<string, number> = {};
  try {
    const place = { path: warehouseIn(data), ...lakeOf(options.settings) };
    // Once the rows have moved nothing needs the key any more. What a lake has of before may still lie there.
    const isOld = await hasOldName();
    if (isOld) secrets.copy(from, to);
    if (place.lake) ensureDisks(options.settings);
    if (isOld || place.lake) moved = await rename(place, { from, to });
  } catch (error) {
    // Where not even that can be done the note stays, and the next who opens the folder goes on.
    await hasOldName().then(
      isOld => isOld && takeBack(data, secrets, { from, to }),
      () => undefined,
    );
    throw error;
  }
  secrets.forget(from);
  openMirrorTokens(data).rename(from, to);
  const instead = renameInConsoleSessions(data, from, to);
  if (instead) options.log.warn(instead);
  const published = await withWarehouse(options, warehouse => replaceOrLeave(options, warehouse));
  removePersonFiles(data);
  removeCommonFile(data, 'moving.json');
  return { user_id: to, before: from, moved, ...published };
}

/** A snapshot of before has nobody who is to be forgotten: it is in nobody's way. */
async function replaceOrLeave(options: FolderOptions, warehouse: Warehouse): Promise<Pick<MoveReport, 'snapshot' | 'left'>> {
  try {
    return { snapshot: await replaceSnapshot(options, warehouse), left: null };
  } catch (error) {
    if (!(error instanceof InTheWay)) throw error;
    const left = `${error.message}. Then ringneck snapshot publishes a new one`;
    options.log.warn({ reason: left }, 'the account has its new name, and the snapshot still has the former one');
    return { snapshot: null, left };
  }
}

function rename(place: Parameters<typeof Warehouse.rename>[0], renaming: Renaming): Promise<Record<string, number>> {
  const { path } = place;
  ensureRoom(path);
  return Warehouse.rename(place, renaming, () => ensureDiskReserve(dirname(realpathSync(path))));
}

function takeBack(data: string, secrets: Secrets, { from, to }: Renaming): void {
  secrets.removeCopy(from, to);
  removeCommonFile(data, 'moving.json');
}
