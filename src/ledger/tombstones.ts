import { hasRows, number, type Readable, readRow } from '../warehouse/rows.ts';
import { qualified, quoteText } from '../warehouse/sql.ts';

/** Whether a document is stored, or was and is known to be gone. */
export function wasEverStored(warehouse: Readable, collection: string, userId: string, id: string): Promise<boolean> {
  const where = `user_id = ${quoteText(userId)} AND id = ${quoteText(id)}`;
  return hasRows(
    warehouse,
    `SELECT 1 FROM ${qualified(collection)} WHERE ${where}
     UNION ALL SELECT 1 FROM sync.tombstones WHERE collection = ${quoteText(collection)} AND ${where}`,
  );
}

/** How many rows documents of an identifier have in their table, whoever they are of, and how many tombstones. */
export const countRows = (warehouse: Readable, collection: string, id: string) =>
  readRow(
    warehouse,
    { rows: number, tombstones: number },
    `SELECT (SELECT count(*) FROM ${qualified(collection)} WHERE id = ${quoteText(id)}),
            (SELECT count(*) FROM sync.tombstones WHERE id = ${quoteText(id)})`,
  );
