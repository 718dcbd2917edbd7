import { BloomFilter, MOST_KEYS } from './bloom-filter.ts';

/** The stored version of a document. */
export interface Version {
  sk: number;
  day: string | null;
  /** Microseconds. */
  fetchedAt: number;
  hash: string;
}

/** Gives the keys of all stored documents, from a state that is no older than its beginning, until the signal ends it. */
export interface KeySource {
  /** About how many there are. */
  count(): Promise<number>;
  read(add: (key: string) => void, signal: AbortSignal): Promise<void>;
}

const MOST_VERSIONS = 50_000;
/** Learning the keys of a small store costs so much, and as much again for each so many. */
const LEARNING_MS = 500;
const KEYS_AS_MUCH = 250_000;

export const versionKey = (table: string, userId: string, id: string) => `${table}\n${userId}\n${id}`;

/**
 * What a store that is dear to read holds of documents, as far as it is known without reading: the version of each that was stored lately, and of every
 * other whether there can be one. It is of one commit, and of the next where that was told here from its beginning to its end; after any other commit
 * nothing is known.
 */
export class KnownVersions {
  readonly #source: KeySource;
  readonly #versions = new Map<string, Version>();
  /** What the transaction under way makes of them. */
  #changes: Map<string, Version | undefined> | undefined;
  #commit: number | undefined;
  #keys: BloomFilter | undefined;
  /** Keys on their way: those read so far, and all that were stored meanwhile. */
  #arriving: { keys: BloomFilter; ending: AbortController } | undefined;
  #learning: Promise<void> | undefined;
  /** What reading has cost since something was known last, and after how much all keys are learnt. */
  #spentMs = 0;
  #dueMs: number;
  #isClosed = false;
  readonly #learningMs: number;

  constructor(source: KeySource, learningMs = LEARNING_MS) {
    this.#source = source;
    this.#learningMs = learningMs;
    this.#dueMs = learningMs;
  }

  /** A transaction begins over the state that this commit has left, or is repeated. */
  begin(commit: number): void {
    if (commit !== this.#commit) this.#forget();
    this.#commit = commit;
    this.#changes = undefined;
  }

  /** The transaction under way tells of all documents that it changes: without that nothing is known after it. */
  follow(): void {
    this.#changes = new Map();
  }

  /** @returns undefined where it has to be read */
  find(key: string): Version | 'none' | undefined {
    const version = this.#versions.get(key);
    if (version) return version;
    return this.#keys && !this.#keys.mayHave(key) ? 'none' : undefined;
  }

  /** The transaction stores this version; undefined: it removes what is stored. */
  change(key: string, version: Version | undefined): void {
    this.#changes?.set(key, version);
    if (!version) return;
    // Before the commit: that it says of what is not stored that it may be does no harm.
    this.#keys?.add(key);
    this.#arriving?.keys.add(key);
  }

  noteRead(ms: number): void {
    this.#spentMs += ms;
  }

  /** @param commit the last one of this process; undefined where the transaction has not come to a commit, or it is not known as which */
  end(commit: number | undefined): void {
    const changes = this.#changes;
    this.#changes = undefined;
    if (!changes || this.#commit === undefined || commit !== this.#commit + 1) return;
    for (const [key, version] of changes) {
      this.#versions.delete(key);
      if (version) this.#versions.set(key, version);
    }
    this.#dropOldest();
    this.#commit = commit;
    if (this.#keys?.isFull) this.#forgetKeys();
    if (!this.#keys && !this.#learning && this.#spentMs >= this.#dueMs) this.#learning = this.#learn();
  }

  /** Resolves when nothing is read for it any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#arriving?.ending.abort();
    await this.#learning;
  }

  async #learn(): Promise<void> {
    try {
      const count = await this.#source.count();
      this.#dueMs = count > MOST_KEYS / 2 ? Number.POSITIVE_INFINITY : this.#learningMs * (1 + count / KEYS_AS_MUCH);
      if (this.#isClosed || this.#spentMs < this.#dueMs) return;
      const arriving = { keys: new BloomFilter(2 * count), ending: new AbortController() };
      this.#arriving = arriving;
      // A transaction under way may commit after its table is read.
      for (const key of this.#changes?.keys() ?? []) arriving.keys.add(key);
      await this.#source.read(key => arriving.keys.add(key), arriving.ending.signal);
      if (!arriving.ending.signal.aborted) this.#keys = arriving.keys;
    } catch {
      // What cannot be read now is read where it is needed, and says why.
      this.#dueMs *= 2;
    } finally {
      this.#arriving = undefined;
      this.#learning = undefined;
    }
  }

  #dropOldest(): void {
    for (const key of this.#versions.keys()) {
      if (this.#versions.size <= MOST_VERSIONS) break;
      this.#versions.delete(key);
    }
  }

  #forget(): void {
    this.#versions.clear();
    this.#forgetKeys();
    this.#arriving?.ending.abort();
  }

  #forgetKeys(): void {
    this.#keys = undefined;
    this.#spentMs = 0;
  }
}
