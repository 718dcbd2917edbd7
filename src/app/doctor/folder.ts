import { closeSync, constants, existsSync, fsyncSync, openSync, rmSync, statfsSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { findAccess } from '../../base/access.ts';
import { diskReserveBytes } from '../../base/disk.ts';
import { messageOf } from '../../base/errors.ts';
import { listDamaged } from '../../base/journal.ts';
import { type CheckResult, fail, ok, warn } from './check-result.ts';

/** Whether the data folder can be used, and whether others can write or look into it. */
export function checkFolder(path: string): CheckResult[] {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (!stats) return [warn('folder', `${path} does not exist yet`, 'the first account makes it: is RINGNECK_DATA what you meant?')];
  if (!stats.isDirectory()) return [fail('folder', `${path} is not a folder`, 'set RINGNECK_DATA to a folder')];
  const access = findAccess(path).map(({ can, message, fix }) => (can === 'write' ? fail : warn)('folder', message, fix));
  return [writable('folder', path), ...access];
}

/** Whether events can be accepted, and whether all that were could be read again. */
export function checkInbox(data: string): CheckResult[] {
  const inbox = join(data, 'inbox');
  if (!existsSync(inbox)) return [];
  const isWritable = writable('inbox', inbox);
  if (isWritable.state === 'fail') return [isWritable];
  const damaged = listDamaged(inbox).map(name =>
    warn(
      'inbox',
      `${join(inbox, name)} holds lines that cannot be read: events in them may have been acknowledged, and are lost`,
      `${READ_AGAIN}, then remove the file`,
    ),
  );
  return [isWritable, ...damaged];
}

const READ_AGAIN = 'read the days again to which they may belong (ringneck nightly, or ringneck backfill --refresh --from DAY)';

/** What the owner of the inbox could not read: the files may still be in use. */
export function checkUnreadable(lines: number): CheckResult[] {
  if (!lines) return [];
  const message = `${lines} lines of the inbox cannot be read: events in them may have been acknowledged, and are lost`;
  return [warn('inbox', message, READ_AGAIN)];
}

/** Asked of the file system itself: modes do not tell of one that is mounted read-only. */
function writable(check: string, path: string): CheckResult {
  const trial = join(path, `.doctor-${process.pid}`);
  try {
    const file = openSync(trial, constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY, 0o600);
    try {
      // A disk that is full may still take a name.
      writeSync(file, Buffer.alloc(4096));
      fsyncSync(file);
    } finally {
      closeSync(file);
      rmSync(trial);
    }
    return ok(check, `${path} is writable`);
  } catch (error) {
    return fail(
      check,
      `${path} cannot be written to: ${messageOf(error)}`,
      'give the folder to the user that runs ringneck, or mount it writable',
    );
  }
}

/** How much is free where the data folder is, or will be, or the folder of a lake's files. */
export function checkDisk(path: string, isOfLake = false): CheckResult[] {
  const { bavail, blocks, bsize } = statfsSync(path);
  if (blocks === 0) return [ok('disk', 'this file system does not tell how much is free')];
  const free = bavail * bsize;
  const said = `${megabytes(free)} free${isOfLake ? ` in ${path}` : ''}`;
  const room = isOfLake ? 'make room there' : 'make room, or move RINGNECK_DATA to a larger disk';
  if (free < diskReserveBytes) return [fail('disk', `${said}: nothing is written below ${megabytes(diskReserveBytes)}`, room)];
  if (free < 4 * diskReserveBytes) return [warn('disk', said, room)];
  return [ok('disk', said)];
}

const megabytes = (bytes: number) => `${Math.floor(bytes / (1024 * 1024)).toLocaleString('en-US')} MB`;
