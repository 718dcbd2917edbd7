import type { DuckDBConnection } from '@duckdb/node-api';
import type { MomentRange } from '../../../schema/instant.ts';
import type { ParsedDocument, RejectedDocument } from '../documents/parse-document.ts';
import type { HeartRateWithdrawal } from '../heart-rate/withdraw-heart-rate.ts';
import type { HeartRateRange } from '../heart-rate-answer.ts';
import type { Column, Mapping } from '../mapping.ts';
import type { LedgerEntry, Value } from '../sql.ts';
import type { KnownVersions } from '../store/known-versions.ts';
import type { TableAppender } from '../store/table-appender.ts';
import type { KnownDocument, WriteResult } from '../write-result.ts';

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
  /** Documents that the answer lacks, and that a later one must lack too before they are removed; when it was seen, in microseconds. */
  missing?: { ids: readonly string[]; seenAt: number } | undefined;
  /** The days from which they are absent: what lies under another day by now is not gone. Undefined where each is known to be. */
  absentFrom?: { from: string; to: string } | undefined;
  /** What was asked for; undefined where it was no range. */
  range?: MomentRange | undefined;
  completes?: CompletedReading | undefined;
}

/** Stored with its last answer: what was rejected before, and did not come again, is not there any more. */
export interface CompletedReading {
  /** When its first request was sent. */
  since: number;
  /** The days whose documents the service would have sent; undefined where documents belong to no day. */
  days?: { from: string; to: string } | undefined;
}

/** A parsed change: all of it is committed in one transaction, or none. */
export interface WriteBatch {
  page?: DocumentPage;
  heartRate?: HeartRateRange & { rejected: readonly RejectedDocument[] };
  /** Heart rate that was not the person's, of these ranges. */
  withdrawal?: HeartRateWithdrawal;
  ledger?: Ledger;
  /** Throws where it must not be stored any more: asked as its group begins to be committed. */
  guard?: (() => void) | undefined;
  /** It is small, and is not to wait for room: it is stored out of what is kept free on the disk. */
  usesReserve?: boolean;
  samples: number;
}

/** Entries to be committed with a change; as a function, of what storing it did. It may be called again when the transaction is. */
export type Ledger = readonly LedgerEntry[] | ((counts: WriteResult) => readonly LedgerEntry[]);

/** What an answer has settled of a document: that it is as it is stored, or gone. */
export interface Confirmed {
  /** When its request was sent. */
  moment: number;
  /** It is absent from these days: an older answer may bring it under another. */
  absentFrom?: DocumentPage['absentFrom'];
}

/** What a store function needs of the writer. */
export interface Transaction {
  connection: DuckDBConnection;
  /** What is known without reading; told of every document that is changed. */
  versions?: KnownVersions | undefined;
  /** As `Store.takeSks`. */
  takeSks(count: number): Promise<number>;
  /** As `Store.openAppender`. */
  openAppender(table: string, columns: readonly Column[], rows: number): Promise<TableAppender>;
  /** The columns of a table in the order in which they lie in the file. */
  columnsOf(table: string): readonly Column[];
  /** What was confirmed of this document, where an older answer may still arrive. */
  findConfirmed(table: string, userId: string, id: string): readonly Confirmed[];
  /** To be remembered once the transaction is committed. */
  confirm(table: string, userId: string, id: string, confirmed: Confirmed): void;
  /** No answer to a request that was sent before this moment can still arrive. */
  oldestAnswer(): number;
  /** Rows of the ledger as they were before the transaction, kept until one touches the table. */
  readKept(table: string, sql: string): Promise<readonly Value[][]>;
}
