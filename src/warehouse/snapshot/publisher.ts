import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import type { DuckDBConnection } from '@duckdb/node-api';
import { TryLaterError } from '../../base/errors.ts';
import { Mutex } from '../../base/mutex.ts';
import type { Mapping } from '../mapping.ts';
import { NeedsRebuild } from '../needs-rebuild.ts';
import type { RequestClock } from '../request-clock.ts';
import { LARGE_BYTES, LARGE_THREADS, LacksMemory } from '../store/memory.ts';
import type { Store } from '../store/store.ts';
import { DirtySet } from '../write/dirty-set.ts';
import type { WriteBatch } from '../write/write-batch.ts';
import type { WriteResult } from '../write-result.ts';
import { type Contents, describeContents } from './manifest.ts';
import { type SnapshotParts, writeSnapshot } from './publish.ts';
import { refreshSnapshot } from './refresh.ts';

/** Microseconds. */
const ONE_TICK = 1000;

export interface SnapshotFacts {
  /** Everything that was committed before is in it: microseconds. */
  takenAt: number;
}

/** What a process that ends leaves to the next one, which compares only where it has changed something itself. */
export interface Publication {
  /** The file by the hash of its path, which may hold the name of a person. */
  file: string;
  /** Of what the file was when it was published. */
  stamp: string;
}

interface CopiesParts {
  store: Pick<Store, 'connect' | 'memory' | 'explain'>;
  mappings: readonly Mapping[];
  clock: RequestClock;
  /** Throws when there is no room on the disk. */
  beforeTable: () => void;
  /** The copy that holds all of the warehouse as it was opened, where the last process left one. */
  published: Publication | undefined;
  /** Whether others commit what is not noted here. */
  isOfOthers: boolean;
}

/** The copies of a warehouse for readers, made one after the other, and what has changed since the last one. */
export class SnapshotCopies {
  readonly #parts: CopiesParts;
  readonly #turns = new Mutex();
  #isClosed = false;
  #takenAt = 0;
  #connection: Promise<DuckDBConnection> | undefined;
  /** The one that was published last, as the file was then. */
  #published: Publication | undefined;
  /** Where commits have changed something since. */
  #dirty = new DirtySet();
  /** Given to the writer: committed, perhaps, and not noted yet. */
  readonly #underWay = new Set<WriteBatch>();

  constructor(parts: CopiesParts) {
    this.#parts = parts;
    this.#published = parts.published;
  }

  /** The copy that holds all documents and samples that are committed; undefined where there is none. */
  get publication(): Publication | undefined {
    return this.#dirty.isEmpty && !this.#underWay.size ? this.#published : undefined;
  }

  /** Notes where a change that is given to the writer may change something. */
  async noting(change: WriteBatch, write: () => Promise<WriteResult>): Promise<WriteResult> {
    this.#underWay.add(change);
    let counts: WriteResult | undefined;
    try {
      counts = await write();
      return counts;
    } finally {
      this.#dirty.add(change, counts);
      this.#underWay.delete(change);
    }
  }

  publish(path: string, mode: number, signal: AbortSignal): Promise<SnapshotFacts> {
    return this.#inTurn('the snapshot', path, mode, signal, async parts => {
      await this.#tracking(path, () => writeSnapshot(parts));
      return { takenAt: parts.takenAt };
    });
  }

  refresh(path: string, mode: number, signal: AbortSignal): Promise<SnapshotFacts> {
    const refreshed = this.#inTurn('the snapshot', path, mode, signal, async parts => {
      const known = this.#published?.file === hashOf(path) ? this.#published : undefined;
      if (known && known.stamp !== stampOf(path)) throw new NeedsRebuild('somebody else has changed it');
      await this.#tracking(path, dirty => refreshSnapshot(parts, known && !this.#parts.isOfOthers ? dirty : undefined));
      return { takenAt: parts.takenAt };
    });
    return refreshed.catch((error: unknown) => {
      throw error instanceof LacksMemory ? new NeedsRebuild(error.message, { cause: error }) : error;
    });
  }

  keep(path: string, mode: number, signal: AbortSignal): Promise<SnapshotFacts & { contents: Contents }> {
    return this.#inTurn('the dated snapshot', path, mode, signal, async parts => {
      let contents: Contents | undefined;
      await writeSnapshot(parts, async () => {
        contents = await describeContents(parts.connection, parts.mappings);
      });
      return { takenAt: parts.takenAt, contents: contents! };
    });
  }

  /**
   * Does something else with the connection of the copies while none is made.
   * @param what it is for
   */
  use<T>(what: string, work: (connection: DuckDBConnection) => Promise<T>): Promise<T> {
    return this.#next(what, work);
  }

  /** Waits for the one under way, and makes no more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#turns.drain();
  }

  #inTurn<T>(what: string, path: string, mode: number, signal: AbortSignal, work: (parts: SnapshotParts) => Promise<T>): Promise<T> {
    const { store, mappings, clock, beforeTable } = this.#parts;
    const { memory } = store;
    return this.#next(what, connection =>
      work({ connection, memory, mappings, path, mode, takenAt: this.#takeMoment(clock), beforeTable, signal }),
    );
  }

  #next<T>(what: string, work: (connection: DuckDBConnection) => Promise<T>): Promise<T> {
    const { store } = this.#parts;
    return this.#turns.run(async () => {
      if (this.#isClosed) throw new TryLaterError('the warehouse is closed');
      this.#connection ??= store.connect();
      const connection = await this.#connection;
      const limits = { bytes: LARGE_BYTES, threads: LARGE_THREADS };
      return store.memory
        .enough(connection, what, () => work(connection), limits)
        .catch(error => {
          throw store.explain?.(error) ?? error;
        });
    });
  }

  /** The time of day, but two that are taken within a tick of the clock are told apart. */
  #takeMoment(clock: RequestClock): number {
    const wall = clock.wall();
    const isSameTick = wall <= this.#takenAt && this.#takenAt - wall < ONE_TICK;
    this.#takenAt = isSameTick ? this.#takenAt + 1 : wall;
    return this.#takenAt;
  }

  /**
   * What is committed from now on is noted for the next time; a failure leaves what was noted before noted.
   * @param work is given where to look for whatever is committed at the moment it asks
   */
  async #tracking(path: string, work: (dirty: () => DirtySet) => Promise<unknown>): Promise<void> {
    const before = this.#dirty;
    this.#dirty = new DirtySet();
    const everywhere = () => {
      const all = new DirtySet();
      for (const part of [before, this.#dirty]) all.absorb(part);
      for (const change of this.#underWay) all.add(change, undefined);
      return all;
    };
    try {
      await work(everywhere);
      this.#published = { file: hashOf(path), stamp: stampOf(path) };
    } catch (error) {
      this.#dirty.absorb(before);
      throw error;
    }
  }
}

const hashOf = (path: string) => createHash('sha256').update(path).digest('base64url');

/** Another one after any change of a file by somebody else. */
export function stampOf(path: string): string {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stats ? `${stats.ino} ${stats.size} ${stats.mtimeNs}` : '';
}
