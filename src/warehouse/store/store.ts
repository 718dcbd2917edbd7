import type { DuckDBConnection } from '@duckdb/node-api';
import type { Column } from '../mapping.ts';
import type { Committed } from '../write/committed.ts';
import type { KnownVersions } from './known-versions.ts';
import type { Memory } from './memory.ts';
import type { AppendTarget, TableAppender } from './table-appender.ts';

/** What a warehouse lies in. All else is the same SQL over its connections. */
export interface Store {
  /** What its DuckDB may have. */
  readonly memory: Memory;
  /** Whether columns of views and macros take comments. */
  readonly commentsOnAll: boolean;
  /** Of one that others can write to unseen: the commit that it was found at, and the last one. */
  readonly commits?: { found: number; last: number };
  /** The newest commit there is, whoever made it; of one that others can write to unseen. */
  newest?(): Promise<number>;
  /** Of a bulk group while live work comes, which waits for it. */
  readonly samplesBesideLive: number;
  /** Of one that is dear to read. */
  readonly versions?: KnownVersions;
  /** A connection that finds the tables of the warehouse by their names. */
  connect(): Promise<DuckDBConnection>;
  /** Does work in one transaction. It may be repeated, and does all its reads inside. */
  transaction<T>(connection: DuckDBConnection, work: () => Promise<T>): Promise<T>;
  /** Of a transaction. Appending runs on the JavaScript thread, which must wait for no other machine. */
  openAppender(connection: DuckDBConnection, target: AppendTarget): Promise<TableAppender>;
  /** Takes so many numbers of versions that nobody else has, and gives the first of them. One call after the other. */
  takeSks(count: number): Promise<number>;
  /** Before a group of writes, which is somebody’s who waits (`isLive`), or bulk; never throws. */
  beforeGroup?(isLive: boolean): Promise<void>;
  /** Between two groups of writes; never throws. */
  afterGroup(isLive: boolean): Promise<void>;
  /** What it takes, and how often it was written to where that tells when upkeep is due. */
  size(): Promise<Omit<Size, 'rows'>>;
  /** Whether upkeep is worth its work. */
  isDue(size: Size, last: Compacted | undefined, nowMicros: number): boolean;
  /**
   * Puts in order what many writes have left.
   * @throws NotOpenedAgain where only a new process can go on
   */
  maintain(upkeep: Upkeep): Promise<void>;
  /**
   * Writes all that is committed into a new file, that of others too. Nobody waits meanwhile; after an error or an interruption nothing is left of it.
   * @param path of a file that is replaced, if there is one, when the new one is whole
   */
  copy(path: string, parts: CopyOptions): Promise<void>;
  /** Of an error that is about what it lies in, one that says so in a sentence; any other as it is. */
  explain?(error: unknown): unknown;
  close(): Promise<void>;
}

/** What a store was at some moment. */
export interface Size {
  bytes: number;
  /** Of all tables of ours. */
  rows: number;
  commits?: number;
}

export interface Compacted extends Size {
  /** Microseconds. */
  at: number;
}

/** What a copy is made with. */
export interface CopyOptions extends Pick<Upkeep, 'connection' | 'beforeTable' | 'signal'> {
  /** Has `begin` fix which state is copied: what is committed before is in it, what comes later is not. May be called again. */
  atBeginning?: ((begin: () => Promise<void>) => Promise<void>) | undefined;
}

/** What the owner gives for that. */
export interface Upkeep {
  /** Nobody else's meanwhile. */
  connection: DuckDBConnection;
  columnsOf(table: string): readonly Column[];
  /** Throws when there is no room on the disk. */
  beforeTable: () => void;
  /** Ends the work, which throws its reason, until it can no longer be taken back. */
  signal: AbortSignal;
  /** What was committed since the last time it was asked; first before anything is read. */
  takeCommitted(): Committed;
  /** Does work while nobody else reads or writes. */
  alone<T>(work: () => Promise<T>): Promise<T>;
  /** Does work while nobody else writes. */
  betweenGroups<T>(work: () => Promise<T>): Promise<T>;
}

export class NotOpenedAgain extends Error {}
