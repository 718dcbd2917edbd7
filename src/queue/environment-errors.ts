import { closeSync, openSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DiskFull } from '../base/disk.ts';
import { messageOf } from '../base/errors.ts';
import { TimeoutError } from '../base/timeout.ts';
import { QueueUnavailable } from './queues.ts';

const CODES = new Set(['ENOSPC', 'EDQUOT', 'EMFILE', 'ENFILE', 'ENOMEM', 'EACCES', 'EPERM', 'EROFS', 'EIO', 'EBUSY']);
/** Of PostgreSQL: class 53 (disk full, out of memory), insufficient privilege, an error of the device. */
const STATES = /^(53...|42501|58030)$/;

/** Whether an error comes from the machine (memory, disk, limits, permissions), so that it says nothing of the file. */
export function isEnvironmentError(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return (
    error instanceof DiskFull || CODES.has(code) || STATES.test(code) || /out of memory|could not allocate memory/i.test(messageOf(error))
  );
}

/** What a Redis answers while it cannot take, or cannot yet take, what it is given; BullMQ puts words of its own around it. */
const REFUSALS = /\b(OOM|MISCONF|READONLY|LOADING|NOREPLICAS|CLUSTERDOWN|MASTERDOWN|TRYAGAIN)\b/;
const CONNECTIONS =
  /ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|Connection is closed|operation was aborted|Stream isn't writeable/;

/** The first word of a Redis that refuses: its memory or disk is full, it is still loading, or it is not the one that writes. */
export const refusalOfRedis = (error: unknown): string | undefined => REFUSALS.exec(messageOf(error))?.[1];

/** Redis coming and going. */
export const isConnectionError = (error: unknown): boolean => CONNECTIONS.test(messageOf(error));

/**
 * Whether an error of the queue comes from the machine that it is on, and so passes without our doing: a Redis that is away, loads, fails
 * over or is full, a disk that is. Whoever meets one waits, says so once, and goes on; nothing of what was to be done is given up.
 */
export function isPassing(error: unknown): boolean {
  return isRedisError(error) || causesOf(error).some(isEnvironmentError);
}

/** The same of a Redis alone. */
export function isRedisError(error: unknown): boolean {
  return causesOf(error).some(
    at => at instanceof QueueUnavailable || at instanceof TimeoutError || isConnectionError(at) || refusalOfRedis(at) !== undefined,
  );
}

function causesOf(error: unknown): Error[] {
  return error instanceof Error ? [error, ...causesOf(error.cause)] : [];
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
