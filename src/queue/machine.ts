import { closeSync, openSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../errors.ts';

const CODES = new Set(['ENOSPC', 'EDQUOT', 'EMFILE', 'ENFILE', 'ENOMEM', 'EACCES', 'EPERM', 'EROFS', 'EIO', 'EBUSY']);
/** Of PostgreSQL: class 53 (disk full, out of memory), insufficient privilege, an error of the device. */
const STATES = /^(53...|42501|58030)$/;

/** Whether an error comes from the machine (memory, disk, limits, permissions), so that it says nothing of the file. */
export function isOfMachine(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return CODES.has(code) || STATES.test(code) || /out of memory|could not allocate memory/i.test(messageOf(error));
}

/** Whether something lies at this path. One that may not be looked at is not taken for missing: it throws. */
export function isThere(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}

/** Throws for what below this path may not be read and written. */
export function ensureAccessible(path: string): void {
  if (statSync(path).isDirectory()) for (const name of readdirSync(path)) ensureAccessible(join(path, name));
  else closeSync(openSync(path, 'r+'));
}
