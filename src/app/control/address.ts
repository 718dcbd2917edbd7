import { createHash } from 'node:crypto';
import {
  chmodSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  type Stats,
  symlinkSync,
  unlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { RingneckError } from '../../base/errors.ts';
import { ensureFolder } from '../../base/files.ts';
import { findIdentity } from './identity.ts';

/** The longest path that a socket may have everywhere is 103 bytes (macOS; Linux 107); this leaves room for the place where it is made. */
const LONGEST_PATH = 100;
const SOCKET = 's';

const socketPath = (folder: string) => join(resolve(folder), 'control.sock');
const isTooLong = (path: string) => Buffer.byteLength(path) > LONGEST_PATH;

/** What the names of a folder's places in the temporary folder begin with: those of its copy begin otherwise. */
const placePrefix = (folder: string) => `ringneck-control-${shortHash(findIdentity(folder) ?? '')}-`;

const shortHash = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 12);

// Windows has no sockets in folders, but pipes with names of their own.
const pipeName = (folder: string) =>
  `\\\\.\\pipe\\ringneck-${createHash('sha256').update(resolve(folder).toLowerCase()).digest('hex').slice(0, 32)}`;

/** Where to connect to reach the owner of a data folder; undefined when there is surely nobody. */
export function findAddress(folder: string): string | undefined {
  if (process.platform === 'win32') return pipeName(folder);
  const path = socketPath(folder);
  if (isTooLong(path)) return findLink(folder);
  // A link here was made by nobody of us, and may lead to anybody.
  return find(path)?.isSymbolicLink() ? undefined : path;
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
  const path = socketPath(folder);
  const tooLong = isTooLong(path);
  removeFormer(folder);
  const [parent, prefix] = tooLong ? [tmpdir(), placePrefix(folder)] : [folder, '.control-'];
  removeUnpublished(parent, prefix);
  const place = mkdtempSync(join(parent, prefix));
  const listenAt = join(place, SOCKET);
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
      removePlace(place);
    },
    remove() {
      removeSocket(path);
      removePlace(place);
    },
  };
}

/** What a dead owner left; its place in the temporary folder too. */
function removeFormer(folder: string): void {
  const path = socketPath(folder);
  const former = findLink(folder);
  if (former !== undefined) removePlace(dirname(former));
  removeSocket(path);
}

/** Places of owners that were killed before others could see their control socket. */
function removeUnpublished(parent: string, prefix: string): void {
  for (const name of readdirSync(parent)) if (name.startsWith(prefix) && name.length === prefix.length + 6) removePlace(join(parent, name));
}

/** A socket or link: a control socket can have been nothing else. */
function removeSocket(path: string): void {
  const found = find(path);
  if (found === undefined) return;
  if (!found.isSocket() && !found.isSymbolicLink()) throw new RingneckError(`${path} is no socket: move it away.`);
  unlinkSync(path);
}

/** Takes the socket out of a place that we made, and then the place; whatever else somebody put into it stays. */
function removePlace(place: string): void {
  if (!isOurs(find(place))) return;
  const socket = join(place, SOCKET);
  if (find(socket)?.isSocket()) unlinkSync(socket);
  try {
    rmdirSync(place);
  } catch {
    // It is not empty.
  }
}

/** The socket that the control socket's link leads to, where that is in a place that this user made for this folder. */
function findLink(folder: string): string | undefined {
  const target = readLink(socketPath(folder));
  if (target === undefined || basename(target) !== SOCKET) return undefined;
  const place = dirname(target);
  return basename(place).startsWith(placePrefix(folder)) && isOurs(find(place)) ? target : undefined;
}

/** A real folder of this user's, which nobody else may enter. */
function isOurs(found: Stats | undefined): boolean {
  return found?.isDirectory() === true && found.uid === process.getuid?.() && (found.mode & 0o077) === 0;
}

function find(path: string): Stats | undefined {
  try {
    return lstatSync(path);
  } catch {
    return undefined;
  }
}

function readLink(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}
