import { number, orNull, type Readable, type Row, readRows, text } from '../warehouse/rows.ts';
import { type LedgerEntry, quoteText } from '../warehouse/sql.ts';

const CONSENT = {
  userId: text,
  at: number,
  /** Null: the service has not said what was allowed. */
  scopes: orNull(text),
  textHash: orNull(text),
  language: text,
  withdrawnAt: orNull(number),
};

/** What somebody agreed to. Moments are microseconds. */
export type Consent = Readonly<Row<typeof CONSENT>>;

/** Those of an account that nobody has withdrawn. */
export const listHolding = (warehouse: Readable, userId: string): Promise<Consent[]> =>
  readRows(
    warehouse,
    CONSENT,
    `SELECT user_id, "at", scopes, text_hash, language, withdrawn_at FROM sync.consents
     WHERE user_id = ${quoteText(userId)} AND withdrawn_at IS NULL ORDER BY "at"`,
  );

export const consentEntry = ({ userId, at, scopes, textHash, language, withdrawnAt }: Consent): LedgerEntry => ({
  table: 'sync.consents',
  key: { user_id: userId, at },
  row: { scopes, text_hash: textHash, language, withdrawn_at: withdrawnAt },
});
