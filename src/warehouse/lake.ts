import type { Resource } from '../../schema/resource.ts';
import type { MadeLake } from './store/lake/init.ts';
import type { LakeOptions } from './store/lake/lake-store.ts';
import type { LakePlace } from './store/lake/open-lake.ts';

export type { MadeLake } from './store/lake/init.ts';
export type { LakeOptions } from './store/lake/lake-store.ts';
export type { LakePlace } from './store/lake/open-lake.ts';

/**
 * Makes a lake: its database and two roles in Postgres where they are missing, then the lake in it. May be repeated; what is there stays.
 * @param maker a user of Postgres who may make databases and roles; without one the database and the user of the address are there
 * @throws RingneckError, one sentence, where that cannot be done
 */
export async function initLake(place: LakePlace, maker?: string): Promise<MadeLake> {
  const { initLake } = await import('./store/lake/init.ts');
  return initLake(place, maker);
}

/**
 * Copies a warehouse's file, which nobody may have open, into a lake that is empty, and compares both by hashes of every row. May be repeated.
 * @param options.path of a file that keeps others out meanwhile
 * @returns the rows of each table
 * @throws RingneckError where the lake has other rows, or another version made the file; then nothing has changed
 */
export async function importFile(
  file: string,
  options: { path: string; lake: LakeOptions; resources: readonly Resource[] },
): Promise<Record<string, number>> {
  const { importFile } = await import('./store/lake/import.ts');
  return importFile(file, options);
}
