import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, fsyncSync, linkSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf, RingneckError, UsageError } from '../errors.ts';
import { ensureFolder, realPath, writeFileAtomically } from '../files.ts';

export const secretKeyPath = (folder: string) => join(folder, 'secret.key');

/** The key text: the given one (RINGNECK_SECRET_KEY), or that of `<data>/secret.key`; undefined when there is neither. @throws RingneckError where it cannot be read */
export function findSecretKey(folder: string, given: string | undefined): string | undefined {
  if (given !== undefined) return given;
  const path = secretKeyPath(folder);
  if (!existsSync(path)) return undefined;
  const text = readKey(path).trim();
  if (text.length < 16)
    throw new UsageError(`${path} is damaged (fewer than 16 characters): restore it from a copy, or set RINGNECK_SECRET_KEY.`);
  return text;
}

function readKey(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const fix = 'make it readable for the user who runs ringneck, or restore it from a copy';
    throw new RingneckError(`${path} cannot be read (${messageOf(error)}): ${fix}.`, 1, { cause: error });
  }
}

/** Whether a text has the form of those that we make: 32 random bytes. */
export const isRandom = (text: string): boolean => /^[\w-]{43}$/.test(text);

export const newSecretKey = (): string => randomBytes(32).toString('base64url');

/** Like `findSecretKey`, but makes the file when there is no key. Two processes that start together get the same one. */
export function ensureSecretKey(folder: string, given: string | undefined): string {
  const found = findSecretKey(folder, given);
  if (found !== undefined) return found;
  ensureFolder(folder);
  const path = secretKeyPath(folder);
  const temporary = `${path}.${process.pid}.${randomBytes(4).toString('hex')}.new`;
  try {
    writeDurably(temporary, `${newSecretKey()}\n`);
    // A link appears whole or not at all, and unlike a rename never replaces the key that another process has just put there.
    linkSync(temporary, path);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : undefined;
    // exFAT and some network file systems have no links.
    if (code !== undefined && noLinks.includes(code)) writeDurably(path, readFileSync(temporary, 'utf8'));
    else if (code !== 'EEXIST') throw error;
  } finally {
    rmSync(temporary, { force: true });
  }
  return ensureSecretKey(folder, given);
}

/** Puts another key in the place of the one in `<data>/secret.key`, which is gone then. */
export function replaceSecretKey(folder: string, text: string): void {
  writeFileAtomically(realPath(secretKeyPath(folder)), `${text}\n`);
}

const noLinks = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'];

function writeDurably(path: string, content: string): void {
  const file = openSync(path, 'wx', 0o600);
  try {
    writeSync(file, content);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
