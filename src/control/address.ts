import { createHash } from 'node:crypto';
import { chmodSync, mkdtempSync, readlinkSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { ensureFolder } from '../files.ts';

/** The longest path that a socket may have everywhere is 103 bytes (macOS; Linux 107); this leaves room for the place where it is made. */
const LONGEST_PATH = 100;
const TEMPORARY_NAME = 'ringneck-door-';

const doorPath = (folder: string) => join(resolve(folder), 'control.sock');
const isTooLong = (path: string) => Buffer.byteLength(path) > LONGEST_PATH;

// Windows has no sockets in folders, but pipes with names of their own.
const pipeName = (folder: string) =>
  `\\\\.\\pipe\\ringneck-${createHash('sha256').update(resolve(folder).toLowerCase()).digest('hex').slice(0, 32)}`;

/** Where to connect to reach the owner of a data folder; undefined when there is surely nobody. */
export function findAddress(folder: string): string | undefined {
  if (process.platform === 'win32') return pipeName(folder);
  const path = doorPath(folder);
  return isTooLong(path) ? findLink(path) : path;
}

/** Where the owner listens: first at `listenAt`; `publish` then puts the socket where others look, in place of a dead owner's. */
export interface Address {
  listenAt: string;
  publish(): void;
  remove(): void;
}

/** Prepares the owner's place. Until it is published the socket lies in a folder that nobody else may enter, so it never is open to others. */
export function ensureAddress(folder: string): Address {
  if (process.platform === 'win32') return { listenAt: pipeName(folder), publish() {}, remove() {} };
  ensureFolder(folder);
  const path = doorPath(folder);
  const tooLong = isTooLong(path);
  removeFormer(path);
  const place = mkdtempSync(tooLong ? join(tmpdir(), TEMPORARY_NAME) : join(folder, '.door-'));
  const listenAt = join(place, 's');
  return {
    listenAt,
    publish() {
      chmodSync(listenAt, 0o600);
      if (tooLong) {
        // A link in the data folder and not a name to be guessed: the temporary folder is everybody's, and not the same for all (TMPDIR).
        symlinkSync(listenAt, path);
        return;
      }
      renameSync(listenAt, path);
      rmSync(place, { recursive: true });
    },
    remove() {
      rmSync(path, { force: true });
      rmSync(place, { recursive: true, force: true });
    },
  };
}

/** What a dead owner left; its temporary folder too, when it is one of ours. */
function removeFormer(path: string): void {
  const place = dirname(findLink(path) ?? '');
  if (place.startsWith(join(tmpdir(), TEMPORARY_NAME))) rmSync(place, { recursive: true, force: true });
  rmSync(path, { force: true });
}

function findLink(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}
