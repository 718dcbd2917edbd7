import { chmodSync, realpathSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { isMainThread } from 'node:worker_threads';
import type { DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { TryLaterError } from '../../../base/errors.ts';
import { ensureFolder, realPath } from '../../../base/files.ts';
import type { Mapping } from '../../mapping.ts';
import { qualified } from '../../sql.ts';
import { readRows } from '../database.ts';
import { Memory, STORING_BYTES, STORING_THREADS } from '../memory.ts';
import type { CopyOptions, Store, Upkeep } from '../store.ts';
import type { AppendTarget, TableAppender } from '../table-appender.ts';
import { Checkpoints, NEVER_BYTES } from './checkpoints.ts';
import { compact, removeTemporary } from './compact.ts';
import { isCompactionDue } from './due.ts';
import { claimFile, openWaiting } from './open-file.ts';
import { mendTornBlock } from './torn-block.ts';
import { writeCopy } from './write-copy.ts';

export interface FileOptions {
  /** It and its folder are made when missing. */
  path: string;
  memoryBytes?: number;
  threads?: number;
  /** How long another holder of the file is waited for. */
  patienceMs?: number;
  /** Told of a block that a killed process had left half written, and that was mended. */
  onMended?: (message: string) => void;
}

/** Blocks of metadata that are mended at one opening: more than a checkpoint writes at a time. */
const MOST_MENDED = 64;

/**
 * Opens a file, mended where that helps; else its first error is thrown. What was mended stays so: another process may have opened the
 * file since.
 */
async function openMended(path: string, open: () => Promise<DuckDBInstance>, onMended: (message: string) => void): Promise<DuckDBInstance> {
  let first: unknown;
  for (let mended = 0; ; mended++) {
    try {
      return await open();
    } catch (error) {
      first ??= error;
      const done = mended < MOST_MENDED ? mendTornBlock(path, error) : undefined;
      if (done === undefined) throw error instanceof TryLaterError ? error : first;
      onMended(done);
    }
  }
}

/** A warehouse that is one file with one owner, this process. */
export class FileStore implements Store {
  readonly memory: Memory;
  readonly commentsOnAll = true;
  /** One of 750,000 takes seconds. A backfill costs more CPU for as long as events arrive. */
  readonly samplesBesideLive = 40_000;
  readonly isDue = isCompactionDue;
  readonly #path: string;
  readonly #mappings: readonly Mapping[];
  readonly #instance: DuckDBInstance;
  readonly #release: () => void;
  /** Its own, for what is no part of a transaction. */
  readonly #connection: DuckDBConnection;
  readonly #connections: DuckDBConnection[] = [];
  readonly #checkpoints: Checkpoints;
  #newestSk: number | undefined;
  #isClosed = false;

  private constructor(opened: {
    path: string;
    mappings: readonly Mapping[];
    instance: DuckDBInstance;
    connection: DuckDBConnection;
    memory: Memory;
    release: () => void;
  }) {
    const { connection, memory } = opened;
    this.memory = memory;
    this.#path = opened.path;
    this.#mappings = opened.mappings;
    this.#instance = opened.instance;
    this.#release = opened.release;
    this.#connection = connection;
    const log = `${realPath(opened.path)}.wal`;
    this.#checkpoints = new Checkpoints({ connection, memory, logSize: () => statSync(log, { throwIfNoEntry: false })?.size ?? 0 });
  }

  /** @throws TryLaterError naming the process that holds the file, after waiting for it */
  static async open(
    { path, memoryBytes = STORING_BYTES, threads = STORING_THREADS, patienceMs, onMended = () => {} }: FileOptions,
    mappings: readonly Mapping[],
  ): Promise<FileStore> {
    ensureFolder(dirname(path));
    const release = claimFile(path);
    let instance: DuckDBInstance | undefined;
    try {
      // DuckDB makes its files, its log and what it spills as the umask lets it; these hold health data.
      if (isMainThread) process.umask(process.umask() | 0o077);
      // No checkpoint of what a killed process has left in the log before it can have its memory.
      const config = {
        memory_limit: `${memoryBytes}B`,
        threads: String(threads),
        wal_autocheckpoint: `${NEVER_BYTES}B`,
        preserve_insertion_order: 'true',
      };
      instance = await openMended(realPath(path), () => openWaiting(realPath(path), config, patienceMs), onMended);
      // One that was made by other means.
      chmodSync(path, 0o600);
      removeTemporary(realPath(path));
      const memory = new Memory({ bytes: memoryBytes, threads });
      return new FileStore({ path, mappings, instance, connection: await instance.connect(), memory, release });
    } catch (error) {
      instance?.closeSync();
      release();
      throw error;
    }
  }

  async connect(): Promise<DuckDBConnection> {
    const connection = await this.#instance.connect();
    this.#connections.push(connection);
    return connection;
  }

  transaction<T>(connection: DuckDBConnection, work: () => Promise<T>): Promise<T> {
    return this.memory.transaction(connection, work);
  }

  async openAppender(connection: DuckDBConnection, { table }: Pick<AppendTarget, 'table'>): Promise<TableAppender> {
    return { appender: await connection.createAppender(table) };
  }

  async takeSks(count: number): Promise<number> {
    const newest = this.#newestSk ?? (await this.#readNewestSk());
    this.#newestSk = newest + count;
    return newest + 1;
  }

  /** Of what is committed: in the transaction under way the newest versions may have left. */
  async #readNewestSk(): Promise<number> {
    const tables = this.#mappings.map(({ table }) => `SELECT max(sk) AS sk FROM ${qualified(table)}`);
    const [[sk] = []] = await readRows(this.#connection, `SELECT max(sk) FROM (${tables.join(' UNION ALL ')})`);
    return Number(sk ?? 0);
  }

  afterGroup(isLive: boolean): Promise<void> {
    return this.#checkpoints.afterGroup(isLive);
  }

  async size(): Promise<{ bytes: number }> {
    return { bytes: statSync(this.#path).size };
  }

  maintain(upkeep: Upkeep): Promise<void> {
    return compact({ ...upkeep, memory: this.memory, mappings: this.#mappings, path: realpathSync(this.#path) });
  }

  copy(path: string, parts: CopyOptions): Promise<void> {
    return writeCopy({ ...parts, memory: this.memory, path });
  }

  /** What cannot be brought into the file stays in its log. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#checkpoints.emptyLog().catch(() => undefined);
    for (const connection of [this.#connection, ...this.#connections]) connection.closeSync();
    this.#instance.closeSync();
    this.#release();
  }
}
