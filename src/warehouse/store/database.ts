import { chmodSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { isMainThread } from 'node:worker_threads';
import type { DuckDBConnection, DuckDBInstance, DuckDBValue } from '@duckdb/node-api';
import { messageOf, RingneckError, TryLaterError } from '../../base/errors.ts';
import { realPath } from '../../base/files.ts';
import type { Value } from '../sql.ts';
import { duckdb } from './duckdb.ts';
import { Memory, STORING_BYTES } from './memory.ts';

/**
 * Paths open in this process. DuckDB's lock holds between processes only: a second instance of one file in one process is allowed
 * and loses rows.
 */
const open = new Set<string>();

/** How long a reader's short hold of the file is waited out. */
const LOCK_PATIENCE_MS = 10_000;

/** Of a log after which DuckDB makes a checkpoint by itself. */
export const NEVER_BYTES = 1024 ** 4;

export interface Database {
  instance: DuckDBInstance;
  connect(): Promise<DuckDBConnection>;
  memory: Memory;
  close(): void;
}

/**
 * Opens a warehouse file as its only owner.
 * @throws TryLaterError naming the process that holds the file, after waiting for it
 */
export async function openDatabase(
  path: string,
  options: { memoryBytes?: number; threads?: number; patienceMs?: number } = {},
): Promise<Database> {
  const real = realPath(path);
  refuseOpen(path);
  open.add(real);
  try {
    const { memoryBytes = STORING_BYTES, threads = 2, patienceMs } = options;
    // DuckDB makes its files, its log and what it spills as the umask lets it; these hold health data.
    if (isMainThread) process.umask(process.umask() | 0o077);
    // No checkpoint of what a killed process has left in the log before it can have its memory.
    const instance = await openWaiting(
      real,
      {
        memory_limit: `${memoryBytes}B`,
        threads: String(threads),
        wal_autocheckpoint: `${NEVER_BYTES}B`,
        preserve_insertion_order: 'true',
      },
      patienceMs,
    );
    // One that was made by other means.
    chmodSync(path, 0o600);
    const connections: DuckDBConnection[] = [];
    let closed = false;
    return {
      instance,
      memory: new Memory({ bytes: memoryBytes, threads }),
      async connect() {
        const connection = await instance.connect();
        connections.push(connection);
        return connection;
      },
      close() {
        if (closed) return;
        closed = true;
        for (const connection of connections) connection.closeSync();
        instance.closeSync();
        open.delete(real);
      },
    };
  } catch (error) {
    open.delete(real);
    throw error;
  }
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

export function firstLine(error: unknown): string {
  return messageOf(error).split('\n', 1)[0]!;
}

/** What kind of error it is, for the log: DuckDB's further words may quote what is in rows. */
export function kindOf(error: unknown): string {
  const said = /^[A-Za-z ]+ Error(?=:)/.exec(messageOf(error))?.[0];
  if (said || !(error instanceof Error)) return said ?? 'Error';
  return 'code' in error ? String(error.code) : error.name;
}

/** After such an error DuckDB refuses every further statement: only a new process can go on. */
export function isFatal(error: unknown): boolean {
  return /^(FATAL|INTERNAL) Error|database has been invalidated/i.test(messageOf(error));
}

/**
 * Runs `work` in one transaction. `work` may be repeated and does all its reads inside. Rollback is in `finally`: a COMMIT after a
 * failed statement reports success and stores nothing.
 */
export async function withTransaction<T>(
  connection: DuckDBConnection,
  work: () => Promise<T>,
  commit: () => Promise<unknown> = () => connection.run('COMMIT'),
): Promise<T> {
  let committed = false;
  try {
    await connection.run('BEGIN TRANSACTION');
    const result = await work();
    await commit();
    committed = true;
    return result;
  } finally {
    // A failed COMMIT has ended the transaction already, and a fatal error the database: the first error is the one to report. A failed
    // BEGIN may have left one open, or met one: without a rollback no other could ever begin.
    if (!committed) await connection.run('ROLLBACK').catch(() => undefined);
  }
}

/** A value as the mapping knows it: whole numbers as numbers, instants as microseconds, days as text. */
export function plainValue(value: DuckDBValue): Value {
  if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value;
  if (typeof value === 'bigint') return Number(value);
  if (value instanceof duckdb.DuckDBTimestampValue) return Number(value.micros);
  if (value instanceof duckdb.DuckDBDateValue) return value.toString();
  throw new TypeError(`no plain value for ${value?.constructor?.name}`);
}

/** Rows of a query that is known to be small, as plain values. */
export async function readRows(connection: DuckDBConnection, sql: string): Promise<Value[][]> {
  const reader = await connection.runAndReadAll(sql);
  return reader.getRows().map(row => row.map(plainValue));
}
