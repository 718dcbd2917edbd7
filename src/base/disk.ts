import { statfsSync } from 'node:fs';
import { messageOf, RingneckError } from './errors.ts';

/** What stays free: enough for DuckDB to write its checkpoint and close the file in good order. */
export const diskReserveBytes = 512 * 1024 * 1024;

/** It passes when somebody makes room. */
export class DiskFull extends RingneckError {}

/** Whether an error says that the disk has no room, in our words or in those of whoever writes. */
export function isDiskFull(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    if (at instanceof DiskFull || /ENOSPC|EDQUOT|no space left on device|disk quota exceeded/i.test(at.message)) return true;
  }
  return false;
}

/** Throws DiskFull while less than the reserve is free at the path, which must exist. Cheap: about a microsecond on a local disk. */
export function ensureDiskReserve(path: string, reserveBytes = diskReserveBytes, measure = freeBytes): void {
  const free = measure(path);
  if (free === undefined || free >= reserveBytes) return;
  throw new DiskFull(
    `The disk of ${path} is almost full: ${megabytes(free)} free, and ${megabytes(reserveBytes)} are kept in reserve. ` +
      'Make room (or use a larger disk): what waits goes on, and what ended continues where it was when it is started again.',
  );
}

/** Bytes that we may still write at this path; undefined where the file system does not tell. */
function freeBytes(path: string): number | undefined {
  try {
    const { bavail, blocks, bsize } = statfsSync(path);
    // Some network and user-space file systems report a size of nothing at all.
    return blocks === 0 ? undefined : bavail * bsize;
  } catch (error) {
    throw new RingneckError(`The free space of ${path} cannot be read: ${messageOf(error)}.`, 1, { cause: error });
  }
}

const megabytes = (bytes: number) => `${Math.floor(bytes / (1024 * 1024)).toLocaleString('en-US')} MB`;
