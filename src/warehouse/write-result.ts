import type { Operation } from '../../schema/webhook.ts';
import type { ParsedDocument } from './documents/parse-document.ts';

/** What tells a document's content from any other. */
export type KnownDocument = Pick<ParsedDocument, 'id' | 'hash'>;

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
