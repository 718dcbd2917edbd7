import { existsSync, readFileSync, rmSync } from 'node:fs';
import { realPath, writeFileAtomically } from '../../base/files.ts';
import { type Publication, stampOf } from './publisher.ts';

const fileOf = (warehouse: string) => `${warehouse}.published`;

/**
 * What the last process left, of a warehouse that nobody has changed since; it is believed once. To be called before the file is opened,
 * which may change it.
 */
export function takePublication(warehouse: string): Publication | undefined {
  const file = fileOf(warehouse);
  if (!existsSync(file)) return undefined;
  try {
    const { stamp, publication } = JSON.parse(readFileSync(file, 'utf8')) as { stamp: string; publication: Publication };
    // What was committed by a process that was killed is in the log alone.
    return stamp === stampOf(warehouse) && !existsSync(`${realPath(warehouse)}.wal`) ? publication : undefined;
  } catch {
    return undefined;
  } finally {
    rmSync(file, { force: true });
  }
}

/** To be called once the file is closed: any change of it, by whomever, makes this void. Without it the next process compares everything. */
export function leavePublication(warehouse: string, publication: Publication): void {
  try {
    writeFileAtomically(fileOf(warehouse), JSON.stringify({ stamp: stampOf(warehouse), publication }));
  } catch {}
}
