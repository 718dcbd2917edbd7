import { number, oneOf, orNull, type Readable, type Row, readRows, text } from '../warehouse/rows.ts';
import { textList } from '../warehouse/sql.ts';
import { OUTCOMES } from './windows.ts';

const STANDING = {
  userId: text,
  collection: text,
  /** Microseconds, as `readUntil`. */
  success: orNull(number),
  outcome: orNull(oneOf(OUTCOMES)),
  reason: orNull(text),
  failures: number,
  openRuns: orNull(text),
  stopped: number,
  readUntil: orNull(number),
};

/** How the readings of a collection of an account stand. */
export interface Standing extends Omit<Row<typeof STANDING>, 'openRuns'> {
  /** The runs under way, or interrupted, that were to read it. */
  openRuns: string[];
}

export async function readStandings(warehouse: Readable): Promise<Standing[]> {
  const rows = await readRows(
    warehouse,
    STANDING,
    // What counts is the run that settled something last: of its windows, read side by side, one that failed tells more than all others. A
    // run's row comes after all its windows: those of a plan that was killed are never read.
    `WITH w AS (SELECT run_id, user_id, collection, outcome, reason, committed_at, requested_at, read_at, service_at, end_at,
                       outcome IN ('failed', 'suspicious', 'not_authorised') AS bad,
                       max(committed_at) OVER (PARTITION BY run_id, user_id, collection) AS run_at FROM sync.windows),
          r AS (SELECT *, bool_or(bad) OVER (PARTITION BY run_id, user_id, collection) AS bad_run FROM w),
          s AS (SELECT *, max(run_at) FILTER (NOT bad_run) OVER (PARTITION BY user_id, collection) AS good_until,
                       arg_max(CASE outcome WHEN 'complete' THEN read_at WHEN 'not_offered' THEN started_at END, committed_at)
                         OVER (PARTITION BY user_id, collection) AS success,
                       max(least(end_at, sync.over_at(service_at, read_at))) FILTER (outcome = 'complete' AND requested_at IS NOT NULL)
                         OVER (PARTITION BY user_id, collection) AS read_until
                FROM r LEFT JOIN (SELECT run_id, started_at FROM sync.runs) USING (run_id))
     SELECT user_id, collection, any_value(success),
            arg_max(outcome, (run_at, bad, committed_at)) FILTER (committed_at IS NOT NULL),
            arg_max(coalesce(reason, ''), (run_at, bad, committed_at)) FILTER (committed_at IS NOT NULL),
            count(*) FILTER (bad AND (good_until IS NULL OR committed_at > good_until)),
            string_agg(DISTINCT run_id, ' ') FILTER (outcome IS NULL AND started_at IS NOT NULL), count(*) FILTER (outcome = 'stopped'),
            any_value(read_until)
     FROM s GROUP BY user_id, collection`,
  );
  return rows.map(row => ({ ...row, openRuns: row.openRuns?.split(' ') ?? [] }));
}

/**
 * When the collection of an account that was read to its end longest ago was, in microseconds; null where one never was. Those that the
 * service does not offer, or that were not granted, do not count.
 */
export const readFreshness = (warehouse: Readable, collections: readonly string[]) =>
  readRows(
    warehouse,
    { userId: text, readAt: orNull(number) },
    `SELECT user_id, CASE WHEN count(*) = count(success) THEN min(success) END
     FROM (SELECT user_id, collection, max(coalesce(read_at, committed_at)) FILTER (outcome = 'complete') AS success,
                  arg_max(outcome, committed_at) AS last
           FROM sync.windows
           WHERE outcome IS NOT NULL AND outcome <> 'stopped' AND collection IN (${textList(new Set(collections))})
           GROUP BY user_id, collection)
     WHERE last NOT IN ('not_offered', 'not_authorised') GROUP BY user_id`,
  );

/** How many documents of each collection of an account could not be stored. */
export const countRejected = (warehouse: Readable) =>
  readRows(
    warehouse,
    { userId: text, collection: text, count: number },
    'SELECT user_id, collection, count(*) FROM sync.rejected GROUP BY ALL',
  );

/** How many of each collection, and of how many accounts; the most first. */
export const countRejectedByCollection = (warehouse: Readable) =>
  readRows(
    warehouse,
    { collection: text, documents: number, accounts: number },
    'SELECT collection, count(*), count(DISTINCT user_id) FROM sync.rejected GROUP BY collection ORDER BY 2 DESC, 1',
  );

/** What documents had since a moment, in microseconds, that their declaration does not foresee. */
export const listDrift = (warehouse: Readable, since: number) =>
  readRows(
    warehouse,
    { collection: text, path: text, kind: text, documents: number, firstSeenAt: number, lastSeenAt: number, example: orNull(text) },
    `SELECT collection, path, kind, documents, first_seen_at, last_seen_at, example FROM sync.drift
     WHERE last_seen_at >= make_timestamp(${since}::BIGINT) ORDER BY collection, path, kind`,
  );
