import { existsSync, realpathSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { resources } from '../../schema/index.ts';
import type { Settings } from '../base/config.ts';
import { diskReserveBytes, ensureDiskReserve } from '../base/disk.ts';
import { messageOf, RingneckError } from '../base/errors.ts';
import { removeFile } from '../base/files.ts';
import { warehouseIn } from '../base/warehouse-file.ts';
import { Warehouse } from '../warehouse/warehouse.ts';
import type { AppOptions } from './app-options.ts';
import { ensureDisks, lakeOf } from './lake/place.ts';
import { ensureOurs, ensurePlace, ensureUnshared } from './snapshot/place.ts';

/** A folder that this process owns and has closed, so that its warehouse can be replaced by a new file. */
export type FolderOptions = Pick<AppOptions, 'settings' | 'log' | 'now' | 'ofErased'>;

/** Opens the warehouse for as long as the work takes. */
export async function withWarehouse<T>({ settings, now }: FolderOptions, work: (warehouse: Warehouse) => Promise<T>): Promise<T> {
  const warehouse = await Warehouse.open({
    path: warehouseIn(settings.data),
    ...lakeOf(settings),
    resources,
    ...(now ? { now } : {}),
    beforeGroup: () => ensureDisks(settings),
  });
  try {
    return await work(warehouse);
  } finally {
    await warehouse.close();
  }
}

/**
 * The new file is at most as large as the old one, and so is the snapshot, which comes after it.
 * @throws RingneckError naming what is needed
 */
export function ensureRoom(path: string): void {
  const real = realpathSync(path);
  ensureDiskReserve(dirname(real), diskReserveBytes + statSync(real).size);
}

/** @throws RingneckError where the queues are in a Redis that gives no answer */
export async function ensureQueueAnswers({ queueUrl }: Pick<Settings, 'queueUrl'>): Promise<void> {
  if (!queueUrl) return;
  const { checkRedis } = await import('../queue/check-redis.ts');
  await checkRedis(queueUrl, REDIS_MS);
}

const REDIS_MS = 5_000;

/** A file that has what is to be kept no longer, and can neither be written nor removed. */
export class InTheWay extends RingneckError {}

/**
 * Where the snapshot cannot be made anew it goes: what readers have must not show what is no longer so.
 * @throws InTheWay where it cannot be removed either
 */
export async function replaceSnapshot({ settings, log }: FolderOptions, warehouse: Warehouse): Promise<string | null> {
  const { snapshot, snapshotMode } = settings;
  if (!existsSync(snapshot)) return null;
  try {
    ensurePlace(snapshot, warehouse.path);
    await ensureOurs(snapshot, warehouse.path);
  } catch (error) {
    log.warn({ reason: messageOf(error) }, 'what lies where the snapshot is put was left as it is');
    return null;
  }
  // Where it is a link the file that it leads to has the person.
  const real = realpathSync(snapshot);
  try {
    ensureUnshared(snapshot);
    ensureDiskReserve(dirname(real), diskReserveBytes + statSync(warehouse.path).size);
    await warehouse.snapshot(real, snapshotMode);
    return snapshot;
  } catch (error) {
    for (const file of [real, `${real}.wal`, snapshot]) removeOrTell(file, error);
    log.warn({ reason: messageOf(error) }, 'the snapshot could not be rebuilt and was removed: ringneck snapshot publishes a new one');
    return null;
  }
}

function removeOrTell(file: string, unwritten: unknown): void {
  try {
    removeFile(file);
  } catch (error) {
    throw new InTheWay(
      `${file} shows what is no longer so, and can neither be made anew (${messageOf(unwritten)}) nor removed (${messageOf(error)}): ` +
        'have its folder writable again, or remove it',
      1,
      { cause: error },
    );
  }
}
