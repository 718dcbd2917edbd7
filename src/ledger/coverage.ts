import { oneOf, orNull, type Readable, type Row, readRows, readValue, text } from '../warehouse/rows.ts';
import { quoteText, textList } from '../warehouse/sql.ts';
import { dayNumber } from './day-numbers.ts';
import type { DayRange } from './windows.ts';

/** What is known of a day, in the order in which it is told: what is well, what somebody else decides, what is to be fixed. */
export const STATES = ['stored', 'empty', 'not_offered', 'not_authorised', 'failed', 'suspicious', 'pending', 'not_asked'] as const;

export type CoverageState = (typeof STATES)[number];

const COVERAGE_RUN = {
  user_id: text,
  collection: text,
  from: orNull(text),
  to: orNull(text),
  state: oneOf(STATES),
  reason: orNull(text),
};

/** Days in a row of which the same is known; both null where a collection has no dates. */
export type CoverageRun = Row<typeof COVERAGE_RUN>;

/**
 * What is known of these days of accounts.
 * @param withUndated those of collections without dates too
 */
export const readCoverageRuns = (
  warehouse: Readable,
  accounts: readonly string[],
  { from, to }: DayRange,
  { collections, withUndated }: { collections: readonly string[] | undefined; withUndated: boolean },
): Promise<CoverageRun[]> =>
  readRows(
    warehouse,
    COVERAGE_RUN,
    `SELECT user_id, collection, min(day)::VARCHAR, max(day)::VARCHAR, state, reason
     FROM (SELECT user_id, collection, day, state, reason,
                  ${dayNumber('day')} - row_number() OVER (PARTITION BY user_id, collection, state, reason ORDER BY day) AS run
           FROM sync.coverage_between(DATE ${quoteText(from)}, DATE ${quoteText(to)}, accounts := [${textList(accounts)}])
           WHERE ${withUndated ? 'true' : 'day IS NOT NULL'} ${collections?.length ? `AND collection IN (${textList(collections)})` : ''})
     GROUP BY user_id, collection, state, reason, run ORDER BY user_id, min(day)`,
  );

/** The first day that was ever planned, of accounts that are not removed or are named; null without any. */
export async function findFirstPlanned(warehouse: Readable, named: readonly string[] = []): Promise<string | null> {
  const orNamed = named.length ? ` OR a.user_id IN (${textList(named)})` : '';
  const day = await readValue(
    warehouse,
    orNull(text),
    `SELECT min(w.start_at)::DATE::VARCHAR FROM sync.windows w SEMI JOIN sync.accounts a
     ON a.user_id = w.user_id AND (a.state <> 'removed'${orNamed})`,
  );
  return day ?? null;
}
