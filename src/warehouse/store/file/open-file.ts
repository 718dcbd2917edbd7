import { setTimeout } from 'node:timers/promises';
import type { DuckDBInstance } from '@duckdb/node-api';
import { messageOf, RingneckError, TryLaterError } from '../../../base/errors.ts';
import { realPath } from '../../../base/files.ts';
import { firstLine } from '../database.ts';
import { duckdb } from '../duckdb.ts';

/**
 * Paths open in this process. DuckDB's lock holds between processes only: a second instance of one file in one process is allowed
 * and loses rows.
 */
const open = new Set<string>();

/** How long a reader's short hold of the file is waited out. */
const LOCK_PATIENCE_MS = 10_000;

/**
 * Keeps the file from being opened again in this process until what is returned is called.
 * @throws TryLaterError when it is open already
 */
export function claimFile(path: string): () => void {
  refuseOpen(path);
  const real = realPath(path);
  open.add(real);
  return () => void open.delete(real);
}

/** @throws TryLaterError when the file is open in this process already */
export function refuseOpen(path: string): void {
  if (open.has(realPath(path))) throw new TryLaterError(`${path} is already open in this process`);
}

/**
 * Opens a file, waiting while another process holds it.
 * @throws TryLaterError naming that process
 */
export function openWaiting(path: string, config: Record<string, string>, patienceMs = LOCK_PATIENCE_MS): Promise<DuckDBInstance> {
  return waitForHolder(path, () => duckdb.DuckDBInstance.create(path, { autoinstall_known_extensions: 'false', ...config }), patienceMs);
}

/** Opens a file in some way, as often as it takes while another process holds it. */
export async function waitForHolder<T>(path: string, open: () => Promise<T>, patienceMs = LOCK_PATIENCE_MS): Promise<T> {
  const until = Date.now() + patienceMs;
  for (;;) {
    try {
      return await open();
    } catch (error) {
      const holder = lockHolder(error);
      if (!holder) throw new RingneckError(`cannot open ${path}: ${firstLine(error)}`, 1, { cause: error });
      if (Date.now() >= until) {
        throw new TryLaterError(`${path} is held by ${holder}; stop it, or try again later`, { cause: error });
      }
      await setTimeout(100);
    }
  }
}

/** DuckDB names the holder of its lock in the message, on Linux and macOS with its PID. */
function lockHolder(error: unknown): string | undefined {
  const message = messageOf(error);
  if (!/could not set lock|conflicting lock|being used by another process/i.test(message)) return undefined;
  const pid = /\(PID (\d+)\)/.exec(message)?.[1];
  return pid ? `another process (PID ${pid})` : 'another process';
}
