import { existsSync, lstatSync, readdirSync, renameSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** The database of the queue, one half made, one kept aside when it was broken (see database.ts), one half removed. */
const OURS = /^database(\.new|\.broken-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z|\.removed)?$/;

/** What the embedded queue has made in its folder. Where that is a link the rest belongs to others. */
export const databasesIn = (folder: string): string[] => readdirSync(folder).flatMap(name => (OURS.test(name) ? [join(folder, name)] : []));

/** Removes the closed database of the embedded queue and those kept aside; the folder too, where nothing else is in it and it is no link. */
export function removeDatabase(folder: string): void {
  const database = join(folder, 'database');
  const removed = `${database}.removed`;
  rmSync(removed, { recursive: true, force: true });
  // Its name first: half a database is a broken one.
  if (existsSync(database)) renameSync(database, removed);
  for (const path of databasesIn(folder)) rmSync(path, { recursive: true, force: true });
  if (!lstatSync(folder).isSymbolicLink() && readdirSync(folder).length === 0) rmdirSync(folder);
}
