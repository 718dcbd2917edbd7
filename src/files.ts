import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { messageOf, RingneckError } from './errors.ts';

/** Makes a folder that only its owner may enter; one that exists is left as it is. */
export function ensureFolder(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new RingneckError(`cannot make the folder ${path}: ${messageOf(error)}`, 1, { cause: error });
  }
}

/** Replaces a file so that a reader, or a crash at any moment, meets the old content or the new, never a part. */
export function writeFileAtomically(path: string, content: string | Uint8Array, mode = 0o600): void {
  const temporary = `${path}.${process.pid}.new`;
  try {
    const file = openSync(temporary, 'w', mode);
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
  // The rename itself is durable only once its folder is; Windows cannot open folders.
  if (process.platform !== 'win32') {
    const folder = openSync(dirname(path), 'r');
    try {
      fsyncSync(folder);
    } finally {
      closeSync(folder);
    }
  }
}
