import { totalmem } from 'node:os';
import type { DuckDBConnection } from '@duckdb/node-api';
import { messageOf, RingneckError } from '../../base/errors.ts';
import { Mutex } from '../../base/mutex.ts';
import { withTransaction } from './database.ts';
import { RowTexts } from './row-texts.ts';

/** DuckDB fills what it may have with blocks that it wrote and nobody will read soon. Storing needs little. */
export const STORING_BYTES = 80_000_000;

/**
 * Sorting whole tables needs more: 96 MB were too little for 50 million rows. So does live work: until a checkpoint each column of each table
 * that was written to holds a block, 150 MB in all, and with less DuckDB compresses them into a file and back at each commit.
 */
export const LARGE_BYTES = 256_000_000;

/**
 * Whoever waits for a statement works on it too. While another thread does the only task of one, as of a commit, the first asks for another
 * task without a pause, which took an eighth of the CPU of a backfill: a second thread is for sorting whole tables.
 */
export const STORING_THREADS = 1;
export const LARGE_THREADS = 2;

/** What lacked memory is tried again with so many times as much, until it has the most. */
const STEP = 4;

/** What DuckDB may have. */
export interface Limits {
  bytes: number;
  threads: number;
}

/** Somebody who does not say it takes any number of threads. */
type Wanted = Pick<Limits, 'bytes'> & Partial<Limits>;

/** Work that failed with the most memory that there is. */
export class LacksMemory extends RingneckError {}

export const isOutOfMemory = (error: unknown): boolean => /^Out of Memory Error/i.test(messageOf(error));

/** What one DuckDB may have: little, until somebody needs more. Those who do are counted: the last one gives it back. */
export class Memory {
  readonly texts = new RowTexts();
  readonly #usual: Limits;
  readonly #wanted = new Set<Wanted>();
  /** As they were set last: others may have set the threads since. */
  #threads: number;
  /** Whether a limit was told since work was done that may have freed some. */
  #isTrimmed = false;
  readonly #turns = new Mutex();

  readonly #areThreadsFixed: boolean;

  /** @param options.areThreadsFixed whatever is asked for, threads stay as many as usual */
  constructor(usual: Limits, { areThreadsFixed = false } = {}) {
    this.#usual = usual;
    this.#threads = usual.threads;
    this.#areThreadsFixed = areThreadsFixed;
  }

  /** Until what this resolves to is called DuckDB may have so much memory, and so many threads unless others want fewer. */
  async raise(connection: DuckDBConnection, { bytes = LARGE_BYTES, threads }: Partial<Limits> = {}): Promise<() => Promise<void>> {
    const wanted: Wanted = threads === undefined ? { bytes } : { bytes, threads };
    this.#wanted.add(wanted);
    await this.#apply(connection).catch(error => {
      this.#wanted.delete(wanted);
      throw error;
    });
    return async () => {
      this.#wanted.delete(wanted);
      // Refused while that much is in use: then the higher limit stays until the next commit.
      await this.#apply(connection).catch(() => undefined);
    };
  }

  /** Has DuckDB give back to the system what it has freed: it does so when it is told a limit, if only the one that it has. */
  async trim(connection: DuckDBConnection): Promise<void> {
    if (!this.#isTrimmed) await this.#apply(connection);
  }

  /**
   * Does a statement that makes a checkpoint, or may make one; a commit alone reads the other rows of 2,048 again too. A checkpoint holds
   * all long texts of 2,048 rows of a table at once, however large. One that lacks memory leaves a database that serves nothing more, and
   * after the next start it comes again: it may at once have the most that texts can ask for. No more than that: DuckDB fills what it has
   * with blocks of which it has no need.
   */
  async runWithMost(connection: DuckDBConnection, statement: string): Promise<void> {
    const { bytes: ofTexts = Number.POSITIVE_INFINITY } = this.texts;
    // Short ones have room in what DuckDB has anyhow.
    const bytes = ofTexts > this.#usual.bytes / 2 ? Math.min(this.#usual.bytes + ofTexts, mostBytes()) : this.#usual.bytes;
    const lower = bytes > this.#usual.bytes ? await this.raise(connection, { bytes }) : undefined;
    this.#isTrimmed = false;
    await connection.run(statement).finally(lower);
  }

  /** Does work in one transaction, whose end may have the most. It may be repeated, and does all its reads inside. */
  transaction<T>(connection: DuckDBConnection, work: () => Promise<T>): Promise<T> {
    this.#isTrimmed = false;
    return withTransaction(connection, work, () => this.runWithMost(connection, 'COMMIT'));
  }

  /**
   * Does work with the memory that is enough for nearly all; where it lacks memory all the same, again with more and more of it, and by one
   * thread, for each holds rows of its own.
   * @param work may be repeated; what it throws is DuckDB's own error where it lacked memory
   * @param what it is for: `a snapshot`
   * @throws LacksMemory where the most is not enough
   */
  async enough<T>(connection: DuckDBConnection, what: string, work: () => Promise<T>, first = this.#usual): Promise<T> {
    let { bytes, threads } = first;
    for (;;) {
      const isUsual = bytes === this.#usual.bytes && threads === this.#usual.threads;
      const lower = isUsual ? undefined : await this.raise(connection, { bytes, threads });
      try {
        return await work();
      } catch (error) {
        if (!isOutOfMemory(error)) throw error;
        const most = mostBytes();
        if (bytes >= most && threads === 1) throw lacksMemory(what, most, error);
        bytes = Math.min(bytes * STEP, most);
        threads = 1;
      } finally {
        await lower?.();
      }
    }
  }

  #apply(connection: DuckDBConnection): Promise<void> {
    return this.#turns.run(async () => {
      const wanted = [...this.#wanted];
      await connection.run(`SET memory_limit = '${Math.max(this.#usual.bytes, ...wanted.map(({ bytes }) => bytes))}B'`);
      this.#isTrimmed = true;
      if (this.#areThreadsFixed) return;
      const counts = wanted.flatMap(limits => limits.threads ?? []);
      const threads = counts.length ? Math.min(...counts) : this.#usual.threads;
      if (threads === this.#threads) return;
      await connection.run(`SET threads = ${threads}`);
      this.#threads = threads;
    });
  }
}

/** What the machine has, or a container of it may have. */
const availableBytes = () => Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);

/** Never less than the larger memory. */
const mostBytes = () => Math.max(Math.floor(0.8 * availableBytes()), LARGE_BYTES);

function lacksMemory(what: string, most: number, cause: unknown): LacksMemory {
  const [may, has] = [most, availableBytes()].map(bytes => `${(bytes / 1e9).toFixed(1)} GB`);
  const message = `${what} needs more memory than the ${may} it may take here: this machine, or its container, has ${has}; give it more`;
  return new LacksMemory(message, 1, { cause });
}
