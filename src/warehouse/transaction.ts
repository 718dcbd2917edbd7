import type { DuckDBConnection } from '@duckdb/node-api';
import type { Operation } from '../../schema/webhook.ts';
import type { Column, Mapping } from './mapping.ts';
import type { ParsedDocument, RejectedDocument, Value } from './parse-document.ts';

/** The answer to one request for documents of one account, parsed. */
export interface DocumentPage {
  userId: string;
  mapping: Mapping;
  requestedAt: number;
  documents: readonly ParsedDocument[];
  /** Documents of an answer that came before, byte for byte: they are not parsed again. */
  known?: readonly KnownDocument[] | undefined;
  rejected: readonly RejectedDocument[];
  /** Documents that the answer says are gone. */
  removed: readonly string[];
  /** The days from which they are absent: what lies under another day by now is not gone. Undefined where each is known to be. */
  absentFrom?: { from: string; to: string } | undefined;
  /** What was asked for, in microseconds; undefined where it was no range. */
  range?: MomentRange | undefined;
  completes?: CompletedReading | undefined;
}

/** What tells a document's content from any other. */
export type KnownDocument = Pick<ParsedDocument, 'id' | 'hash'>;

export interface MomentRange {
  startAt: number;
  endAt: number;
}

/** Stored with its last answer: what was rejected before, and did not come again, is not there any more. */
export interface CompletedReading {
  /** When its first request was sent. */
  since: number;
  /** The days whose documents the service would have sent; undefined where documents belong to no day. */
  days?: { from: string; to: string } | undefined;
}

/** What storing an answer changed in the warehouse. */
export interface DocumentChange {
  id: string;
  command: Operation;
}

export interface WriteResult {
  stored: number;
  unchanged: number;
  /** Answers to requests older than what is stored. */
  outdated: number;
  rejected: number;
  /** Rejected, and of no day that is known. */
  undated: number;
  removed: number;
  samples: number;
  /** Each document that became another one, or was not there before, or went away. */
  changes: DocumentChange[];
  /** The documents that came, but for those that were rejected. */
  came: KnownDocument[];
  /** Known documents that are stored otherwise by now: to be stored from the answer itself. */
  differing: number;
}

export const nothingWritten = (): WriteResult => ({
  stored: 0,
  unchanged: 0,
  outdated: 0,
  rejected: 0,
  undated: 0,
  removed: 0,
  samples: 0,
  changes: [],
  came: [],
  differing: 0,
});

/** What a store function needs of the writer. */
export interface Transaction {
  connection: DuckDBConnection;
  nextSk(): number;
  /** The columns of a table in the order in which they lie in the file. */
  columnsOf(table: string): readonly Column[];
  /** When the content of this document was last confirmed, where an older answer may still arrive. */
  confirmedAt(table: string, userId: string, id: string): number | undefined;
  /** To be remembered once the transaction is committed. */
  confirm(table: string, userId: string, id: string, moment: number): void;
  /** Rows of the ledger as they were before the transaction, kept until one touches the table. */
  readKept(table: string, sql: string): Promise<readonly Value[][]>;
}
