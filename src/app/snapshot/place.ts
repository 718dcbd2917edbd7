import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { findSnapshotAccess } from '../../base/access.ts';
import { TryLaterError, UsageError } from '../../base/errors.ts';
import { readSnapshotFile } from '../../warehouse/readers/snapshot-file.ts';

/**
 * What is published replaces what is there: that must not be the warehouse, by whatever name, nor what is no database.
 * @throws UsageError
 */
export function ensurePlace(path: string, warehouse: string): void {
  const there = statSync(path, { throwIfNoEntry: false });
  if (!there) return;
  if (there.isDirectory()) throw new UsageError(`RINGNECK_SNAPSHOT is a folder, ${path}: name a file in it`);
  const { ino, dev } = statSync(warehouse);
  // Before the file is read: to close any handle on the warehouse would give up DuckDB's lock on it.
  if (there.ino === ino && there.dev === dev) throw new UsageError(`RINGNECK_SNAPSHOT is the warehouse itself, ${path}: name another file`);
  if (!there.isFile() || (there.size > 0 && !isDuckDB(path))) throw notOurs(path);
}

/**
 * Nor must others be able to put something there: what they make beside it while it is written is theirs to read.
 * @throws UsageError
 */
export function ensureUnshared(path: string, name?: string): void {
  const access = findSnapshotAccess(path, name);
  if (access) throw new UsageError(`${access.message}: ${access.fix}`);
}

/**
 * Nor somebody else's database. One that cannot be opened is replaced in the data folder only, where it is a snapshot that was damaged, or
 * that somebody has open for writing.
 * @throws UsageError; TryLaterError where another process has it open for writing
 */
export async function ensureOurs(path: string, warehouse: string): Promise<void> {
  if (!statSync(path, { throwIfNoEntry: false })?.size) return;
  const said = await readSnapshotFile(path).catch(error => {
    if (dirname(path) === dirname(warehouse)) return null;
    if (error instanceof TryLaterError) throw error;
    throw new UsageError(`RINGNECK_SNAPSHOT is a file that cannot be opened, ${path}: ${ELSEWHERE}`, { cause: error });
  });
  if (said === undefined) throw notOurs(path);
}

const ELSEWHERE = 'move it away or name another file';

const notOurs = (path: string) => new UsageError(`RINGNECK_SNAPSHOT is a file that is no snapshot, ${path}: ${ELSEWHERE}`);

function isDuckDB(path: string): boolean {
  const head = Buffer.alloc(12);
  const file = openSync(path, 'r');
  try {
    readSync(file, head);
  } finally {
    closeSync(file);
  }
  return head.toString('latin1', 8) === 'DUCK';
}
