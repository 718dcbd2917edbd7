import { renameSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { RingneckError } from '../errors.ts';
import { syncFolder } from '../files.ts';

/**
 * Puts a new file in the place of a database, both attached and brought to the disk by a checkpoint. Never opened and closed by other means
 * before they are detached: that would drop DuckDB's lock.
 * @throws RingneckError where one of them has a log; then nothing was replaced
 */
export function putInPlace(temporary: string, path: string): void {
  for (const log of [`${temporary}.wal`, `${path}.wal`]) refuseContent(log);
  renameSync(temporary, path);
  syncFolder(dirname(path));
}

/** An old log beside the new file would bring back what it holds, or keep the file from being opened. */
function refuseContent(log: string): void {
  const size = statSync(log, { throwIfNoEntry: false })?.size ?? 0;
  if (size > 0) throw new RingneckError(`${log} is not empty after a checkpoint: nothing was replaced, try again`);
  rmSync(log, { force: true });
}
