import { chownSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { messageOf, RingneckError } from '../../../base/errors.ts';
import { syncFolder } from '../../../base/files.ts';

/** The new file is in its place, but whether it stays there after a loss of power is not known. */
export class NotDurable extends RingneckError {}

/**
 * Puts a new file in the place of a database, both attached and brought to the disk by a checkpoint. Never opened and closed by other means
 * before they are detached: that would drop DuckDB's lock.
 * @throws NotDurable where the new file has replaced the old one, which nobody may write to any more
 * @throws RingneckError where one of them has a log; then nothing was replaced
 */
export function putInPlace(temporary: string, path: string): void {
  for (const log of [`${temporary}.wal`, `${path}.wal`]) refuseContent(log);
  const [old, made] = [statSync(path), statSync(temporary)];
  // Only root makes a file beside somebody else's: it must stay theirs.
  if (made.uid !== old.uid) chownSync(temporary, old.uid, old.gid);
  renameSync(temporary, path);
  try {
    syncFolder(dirname(path));
  } catch (error) {
    throw new NotDurable(`${path} was replaced, and the disk did not confirm it: ${messageOf(error)}`, 1, { cause: error });
  }
}

/** An old log beside the new file would bring back what it holds, or keep the file from being opened. */
function refuseContent(log: string): void {
  const size = statSync(log, { throwIfNoEntry: false })?.size ?? 0;
  if (size > 0) throw new RingneckError(`${log} is not empty after a checkpoint: nothing was replaced, try again`);
  rmSync(log, { force: true });
}
