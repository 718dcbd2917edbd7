import { type Readable, readValue, text } from '../warehouse/rows.ts';
import { textList } from '../warehouse/sql.ts';

/** An account that is none of these, or one of them that was removed, as a phrase. */
export const findOtherAccount = (warehouse: Readable, names: readonly string[]): Promise<string | undefined> =>
  readValue(
    warehouse,
    text,
    `SELECT CASE WHEN user_id NOT IN (${textList(names)}) THEN 'the account ' || user_id ELSE 'the removal of ' || user_id END
     FROM sync.accounts WHERE user_id NOT IN (${textList(names)}) OR state = 'removed' ORDER BY 1 LIMIT 1`,
  );
