import { type Readable, readRows, text } from '../warehouse/rows.ts';
import { quoteName, quoteText, textList } from '../warehouse/sql.ts';
import type { Span } from './runs.ts';

/** What has not ended in a year is taken for forgotten. */
const LONGEST_DAYS = 366;

interface Lasting {
  name: string;
  dayColumn: string | undefined;
  /** The column that is null while a document goes on; undefined where none does for long. */
  endColumn?: string | undefined;
}

/**
 * The days before those of a night on which something began that had not ended when it was read last. What began before anything was read, as
 * an event may tell, is left out: its day, read alone, would make a hole of all days between.
 */
export async function findUnended(
  warehouse: Readable,
  { users, collections, from }: { users: readonly string[]; collections: readonly string[]; from: string },
  known: readonly Lasting[],
): Promise<Span[]> {
  const spans: Span[] = [];
  if (!users.length) return spans;
  for (const { name, dayColumn, endColumn } of known) {
    if (!collections.includes(name) || dayColumn === undefined || endColumn === undefined) continue;
    const day = quoteName(dayColumn);
    const rows = await readRows(
      warehouse,
      { userId: text, day: text },
      `SELECT DISTINCT user_id, ${day}::VARCHAR FROM ${quoteName(name)}
       JOIN (SELECT user_id, min(start_at) AS first_at FROM sync.windows WHERE collection = ${quoteText(name)} AND outcome = 'complete' GROUP BY user_id) USING (user_id)
       WHERE user_id IN (${textList(users)}) AND ${quoteName(endColumn)} IS NULL
         AND ${day} >= first_at AND ${day} < DATE ${quoteText(from)} AND ${day} >= DATE ${quoteText(from)} - ${LONGEST_DAYS}
       ORDER BY ALL`,
    );
    spans.push(...rows.map(({ userId, day }) => ({ userId, collection: name, from: day, to: day })));
  }
  return spans;
}
