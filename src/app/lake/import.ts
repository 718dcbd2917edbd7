import { existsSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { resources } from '../../../schema/index.ts';
import { UsageError } from '../../base/errors.ts';
import { warehouseIn } from '../../base/warehouse-file.ts';
import { importFile } from '../../warehouse/lake.ts';
import type { AppOptions } from '../app-options.ts';
import { ensureUnowned } from '../ensure-unowned.ts';
import { isErasing } from '../erase/is-erasing.ts';
import { isMoving } from '../move/is-moving.ts';
import { holdLake } from './hold.ts';
import { importedFileIn, noteLake, placeOf, readNoted } from './place.ts';

export interface ImportReport {
  /** The rows of each table. */
  rows: Record<string, number>;
  /** Where the file is now, as a copy of before an upgrade is: nobody needs it any more, and an erasing removes it. */
  file: string;
}

/**
 * Moves the warehouse of a data folder that nobody has open from its file into the lake of the settings, which is empty. Killed at any moment
 * it leaves the file as it was, or the lake whole.
 */
export async function importIntoLake(options: Pick<AppOptions, 'settings' | 'log'>): Promise<ImportReport> {
  const { settings, log } = options;
  const { data } = settings;
  const place = placeOf(settings);
  if (!place) throw new UsageError('RINGNECK_WAREHOUSE names no lake');
  const [path, kept] = [warehouseIn(data), importedFileIn(data)];
  const noted = readNoted(data);
  if (noted && !noted.importing) throw new UsageError(`the warehouse of ${data} lies in a lake already`);
  // Then what lies at the path, if anything, is what keeps others out.
  const isMoved = noted !== undefined && existsSync(kept);
  if (!isMoved) ensureImportable(data, path, kept);
  await ensureUnowned({ data, log });
  const { id } = noted ?? noteLake(data, place, { importing: true });
  const release = await holdLake(options);
  const anchor = join(data, 'lake-import.duckdb');
  try {
    const rows = await importFile(isMoved ? kept : path, { path: anchor, lake: { ...place, owner: id }, resources });
    if (!isMoved) renameSync(path, kept);
    rmSync(`${path}.handover`, { force: true });
    // Which keeps others out of the folder from now on.
    renameSync(anchor, path);
    noteLake(data, place, { id, joined: true });
    return { rows, file: kept };
  } finally {
    for (const left of [anchor, `${anchor}.wal`, `${anchor}.handover`]) rmSync(left, { force: true });
    await release?.();
  }
}

function ensureImportable(data: string, path: string, kept: string): void {
  if (!existsSync(path))
    throw new UsageError(`there is no file ${path} to be imported: with RINGNECK_WAREHOUSE every command begins in the lake at once`);
  if (existsSync(kept)) throw new UsageError(`${kept} is there already: move it away`);
  if (isErasing(data) || isMoving(data)) {
    throw new UsageError('somebody is being erased or moved: ringneck status without RINGNECK_WAREHOUSE finishes it');
  }
}
