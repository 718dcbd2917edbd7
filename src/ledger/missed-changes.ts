import { OPERATIONS, type Operation } from '../../schema/webhook.ts';
import { number, oneOf, type Readable, type Row, readRows, text } from '../warehouse/rows.ts';
import type { LedgerEntry } from '../warehouse/sql.ts';

const FOUND = {
  userId: text,
  collection: text,
  id: text,
  eventType: oneOf(OPERATIONS),
  foundAt: number,
  readBefore: number,
  notedAt: number,
};

/** A change that a sweep found and that an event should announce; moments in microseconds. */
export type FoundChange = Row<typeof FOUND>;

/** Those of which it is not told yet whether their event was missed. */
export const listUnjudged = (warehouse: Readable): Promise<FoundChange[]> =>
  readRows(
    warehouse,
    FOUND,
    `SELECT user_id, collection, id, event_type, found_at, read_before_at, coalesce(noted_at, found_at) FROM sync.missed_events
     WHERE missed_at IS NULL`,
  );

interface ChangeKey {
  userId: string;
  collection: string;
  id: string;
  eventType: Operation;
  foundAt: number;
}

/** What takes a change away that was announced. */
export const announcedEntry = ({ userId, collection, id, eventType, foundAt }: ChangeKey): LedgerEntry => ({
  table: 'sync.missed_events',
  key: { user_id: userId, collection, id, event_type: eventType, found_at: foundAt },
});

/**
 * The row of a change.
 * @param missedAt when it was given up; null while its event may still come
 */
export const missedEntry = (change: FoundChange, missedAt: number | null): LedgerEntry => ({
  ...announcedEntry(change),
  row: { read_before_at: change.readBefore, missed_at: missedAt, noted_at: change.notedAt },
});
