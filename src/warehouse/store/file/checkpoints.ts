import type { DuckDBConnection } from '@duckdb/node-api';
import type { Memory } from '../memory.ts';

/**
 * DuckDB decides by the tables that a commit touches, more than by what it wrote, and would checkpoint after nearly every small commit
 * over many tables: 60 ms instead of 4. While live work comes we say when, by the size of the log.
 */
const CHECKPOINT_BYTES = { bulk: 16 * 1024 * 1024, live: 64 * 1024 * 1024 };

/** Of a log after which DuckDB makes a checkpoint by itself. */
export const NEVER_BYTES = 1024 ** 4;

interface CheckpointOptions {
  connection: DuckDBConnection;
  memory: Memory;
  /** Bytes of the write-ahead log. */
  logSize(): number;
}

/** Who decides on checkpoints: DuckDB, or, while live work comes, we; then they are rare, and DuckDB needs more memory from one to the next. */
export class Checkpoints {
  readonly #options: CheckpointOptions;
  /** As the file is opened. */
  #areOurs = true;
  /** While live work comes: gives back the memory. */
  #lowerMemory: (() => Promise<void>) | undefined;

  constructor(options: CheckpointOptions) {
    this.#options = options;
  }

  /** Brings all that is in the log into the file. */
  async emptyLog(): Promise<void> {
    const { connection, memory, logSize } = this.#options;
    if (logSize() > 0) await memory.runWithMost(connection, 'CHECKPOINT');
  }

  /** Between two groups: settles who decides, and makes a checkpoint when it is ours and due. */
  async afterGroup(isLive: boolean): Promise<void> {
    const { connection, logSize, memory } = this.#options;
    try {
      if (memory.texts.isWorthAsking) await memory.texts.ask(connection);
      if (this.#areOurs !== isLive) {
        await connection.run(`SET wal_autocheckpoint = '${isLive ? NEVER_BYTES : CHECKPOINT_BYTES.bulk}B'`);
        this.#areOurs = isLive;
      }
      if (isLive) this.#lowerMemory ??= await memory.raise(connection);
      else {
        // With less memory a checkpoint of all that came meanwhile may fail, and DuckDB serve nothing more.
        if (this.#lowerMemory) await this.emptyLog();
        await this.#lowerMemory?.();
        this.#lowerMemory = undefined;
        await memory.trim(connection);
      }
      if (isLive && logSize() > CHECKPOINT_BYTES.live) await memory.runWithMost(connection, 'CHECKPOINT');
    } catch {
      // A checkpoint gives way to another transaction and comes after the next group; what else is wrong, that one meets and tells.
    }
  }
}
