import { rmSync } from 'node:fs';
import type { DuckDBInstance } from '@duckdb/node-api';
import { TryLaterError } from '../../../base/errors.ts';
import { openWaiting } from '../../store/file/open-file.ts';

/**
 * Keeps other processes from what `path` stands for, until what is returned is called. It is DuckDB's lock on a file: the operating system
 * takes it back when its holder ends, however it ends, and the refusal names the holder.
 * @param patienceMs how long another holder is waited for
 * @throws TryLaterError naming the process that holds it
 */
export async function lockFile(path: string, patienceMs = 0): Promise<() => void> {
  const open = () => openWaiting(path, { memory_limit: '32MB', threads: '1' }, patienceMs);
  let instance: DuckDBInstance;
  try {
    instance = await open();
  } catch (error) {
    if (error instanceof TryLaterError) throw error;
    // Nobody holds it; a process that was killed may have left half of it.
    rmSync(path, { force: true });
    instance = await open();
  }
  return () => {
    // Before the lock goes: whoever takes it next makes a file of their own.
    rmSync(path, { force: true });
    instance.closeSync();
  };
}
