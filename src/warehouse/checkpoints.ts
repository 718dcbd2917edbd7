import type { DuckDBConnection } from '@duckdb/node-api';

/**
 * DuckDB decides by the tables that a commit touches, more than by what it wrote, and would checkpoint after nearly every small commit
 * over many tables: 60 ms instead of 4. While live work comes we say when, by the size of the log.
 */
const CHECKPOINT_BYTES = { bulk: 16 * 1024 * 1024, live: 64 * 1024 * 1024 };
const NEVER_BYTES = 1024 ** 4;

export interface CheckpointOptions {
  connection: DuckDBConnection;
  /** Lets DuckDB have more memory until what it resolves to is called. */
  raiseMemory(): Promise<() => Promise<void>>;
  /** Bytes of the write-ahead log. */
  logSize(): number;
}

/** Who decides on checkpoints: DuckDB, or, while live work comes, we; then they are rare, and DuckDB needs more memory from one to the next. */
export class Checkpoints {
  readonly #options: CheckpointOptions;
  /** While they are ours: gives back the memory. */
  #lowerMemory: (() => Promise<void>) | undefined;

  constructor(options: CheckpointOptions) {
    this.#options = options;
  }

  /** Between two groups: settles who decides, and makes a checkpoint when it is ours and due. */
  async afterGroup(isLive: boolean): Promise<void> {
    const { connection, logSize, raiseMemory } = this.#options;
    try {
      if (isLive && !this.#lowerMemory) {
        await connection.run(`SET wal_autocheckpoint = '${NEVER_BYTES}B'`);
        this.#lowerMemory = await raiseMemory();
      } else if (!isLive && this.#lowerMemory) {
        await connection.run(`SET wal_autocheckpoint = '${CHECKPOINT_BYTES.bulk}B'`);
        await this.#lowerMemory();
        this.#lowerMemory = undefined;
      }
      if (this.#lowerMemory && logSize() > CHECKPOINT_BYTES.live) await connection.run('CHECKPOINT');
    } catch {
      // A checkpoint gives way to another transaction and comes after the next group; what else is wrong, that one meets and tells.
    }
  }
}
