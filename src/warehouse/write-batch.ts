import type { RejectedDocument } from './parse-document.ts';
import type { LedgerEntry } from './sql.ts';
import type { HeartRateRange } from './store-heart-rate.ts';
import type { DocumentPage, WriteResult } from './transaction.ts';
import type { HeartRateWithdrawal } from './withdraw-heart-rate.ts';

/** A parsed change: all of it is committed in one transaction, or none. */
export interface WriteBatch {
  page?: DocumentPage;
  heartRate?: HeartRateRange & { rejected: readonly RejectedDocument[] };
  /** Heart rate that was not the person's, of these ranges. */
  withdrawal?: HeartRateWithdrawal;
  ledger?: Ledger;
  /** Throws where it must not be stored any more: asked as its group begins to be committed. */
  guard?: (() => void) | undefined;
  samples: number;
}

/** Entries to be committed with a change; as a function, of what storing it did. It may be called again when the transaction is. */
export type Ledger = readonly LedgerEntry[] | ((counts: WriteResult) => readonly LedgerEntry[]);
