import { createHash, randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  createReadStream,
  existsSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { messageOf, RingneckError } from './errors.ts';

/** Makes a folder, and those above it, that only its owner may enter; one that exists is left as it is. */
export function ensureFolder(path: string): void {
  try {
    makeFolder(path);
  } catch (error) {
    throw new RingneckError(`cannot make the folder ${path}: ${messageOf(error)}`, 1, { cause: error });
  }
}

const isFolder = (path: string) => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

/** The folder itself, or the next one above it that there is. */
export function existingFolder(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : existingFolder(dirname(path));
}

/** One by one: Node's own `recursive` never ends below a folder that takes no others, as /proc. */
function makeFolder(path: string): void {
  if (isFolder(path)) return;
  const parent = dirname(path);
  if (parent !== path && !existsSync(parent)) makeFolder(parent);
  try {
    mkdirSync(path, { mode: 0o700 });
    // What is made durable in it is, once the folder is.
    syncFolder(parent);
  } catch (error) {
    // Another process may have been quicker.
    if (isFolder(path)) return;
    throw isMissing(error) ? new Error(`${parent} takes no folders: name another place`, { cause: error }) : error;
  }
}

/** What a path leads to, also where that is yet to be made: DuckDB would keep the log of a new file beside the link, and never find it again. */
export function realPath(path: string): string {
  let at = path;
  for (let links = 0; links < MOST_LINKS; links++) {
    if (existsSync(at)) return realpathSync(at);
    if (!lstatSync(at, { throwIfNoEntry: false })?.isSymbolicLink()) return join(realpathSync(dirname(at)), basename(at));
    at = resolve(dirname(at), readlinkSync(at));
  }
  throw new RingneckError(`${path} is a link that leads in a circle: remove it`);
}

/** As many as Linux follows. */
const MOST_LINKS = 40;

const isMissing = (error: unknown) => error instanceof Error && 'code' in error && error.code === 'ENOENT';

/** What comes of a file that may have gone meanwhile; undefined where it has. */
export function unlessMissing<T>(act: () => T): T | undefined {
  try {
    return act();
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/**
 * What a file holds, and what it is; nothing of what is no regular file. Both of one file: who may write in its folder could put another in
 * its place between looking and reading.
 */
export function readWithStats(path: string): { bytes: Buffer; stats: Stats } {
  // A pipe would be waited for.
  const file = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const stats = fstatSync(file);
    return { stats, bytes: stats.isFile() ? readFileSync(file) : Buffer.alloc(0) };
  } finally {
    closeSync(file);
  }
}

/** Removes a file, or a link itself, where there is one. Where that fails it says why; `rmSync` tells what it tried after that. */
export function removeFile(path: string): void {
  // On a disk that is read-only what is not there cannot be removed either.
  if (lstatSync(path, { throwIfNoEntry: false })) unlinkSync(path);
}

/** Replaces a file so that a reader, or a crash at any moment, meets the old content or the new, never a part. */
export function writeFileAtomically(path: string, content: string | Uint8Array, mode = 0o600): void {
  // Nobody else who may write in the folder knows the name, nor has us write to where their link leads.
  const temporary = `${path}.${process.pid}.${randomBytes(8).toString('hex')}.new`;
  try {
    const file = openSync(temporary, 'wx', mode);
    try {
      const bytes = typeof content === 'string' ? Buffer.from(content) : content;
      for (let written = 0; written < bytes.length; ) written += writeSync(file, bytes, written);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
  syncFolder(dirname(path));
}

/** A rename is durable only once its folder is; Windows cannot open folders. */
export function syncFolder(path: string): void {
  if (process.platform === 'win32') return;
  const folder = openSync(path, 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

/** SHA-256 of a file, in hexadecimal. */
export async function hashFile(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}
