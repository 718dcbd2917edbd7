import { MICROS_PER_DAY } from '../../schema/instant.ts';
import { heartRate } from '../../schema/resources/heart-rate.ts';
import { readValues, text } from '../warehouse/rows.ts';
import type { Warehouse } from '../warehouse/warehouse.ts';
import { dayNumber } from './day-numbers.ts';
import { TRIED_DAYS } from './unread.ts';
import { WIDENED_DAYS } from './windows.ts';

const KEPT_DAYS = 7;
/** For longer than they are tried again: by the oldest it is known since when. */
const FAILED_KEPT_DAYS = TRIED_DAYS + 1;

/**
 * Takes sweeps out of the ledger, complete ones after a week, failed ones after a month: heart rate alone makes a hundred a day. One that
 * settled a day, because it read far back, stays: a backfill would read that day again. So does the last that read a day to its end which
 * another reading did not: without it the day would be called what that one came to. And the last that failed over a day, or beside it,
 * which nobody has read to its end since it was over, and the last that read such a day before: without them the part of it that may have
 * come would be called stored. Of those that read heart rate from the sandbox path the last of each range stays: by it the rows are found,
 * should they turn out to be nobody's.
 */
export async function forgetSweeps({
  warehouse,
  now,
  settledDays,
}: {
  warehouse: Pick<Warehouse, 'read' | 'record'>;
  now: () => number;
  settledDays: number;
}): Promise<void> {
  const before = (days: number) => `make_timestamp(${now() * 1000 - days * MICROS_PER_DAY}::BIGINT)`;
  // Joined day by day: of one account and collection there are thousands of windows, and to compare each with each takes minutes.
  const days = (wider: number) =>
    `unnest(CASE WHEN start_at IS NULL THEN [NULL] ELSE range(${dayNumber('start_at')} - ${wider}, ${dayNumber('end_at')} + ${wider}) END)`;
  const runs = await readValues(
    warehouse,
    text,
    `WITH
       unread AS (SELECT run_id, user_id, collection, start_at, end_at, outcome, committed_at, ${days(WIDENED_DAYS)} AS n
                  FROM sync.windows WHERE outcome IS DISTINCT FROM 'complete'),
       readings AS (SELECT run_id, user_id, collection, ${days(0)} AS n, requested_at, committed_at, sync.over_at(service_at, read_at) AS over_at
                    FROM sync.windows WHERE outcome = 'complete' AND requested_at IS NOT NULL),
       deciding AS (SELECT unnest([arg_max(run_id, requested_at), arg_max(run_id, committed_at)]) AS run_id
                    FROM readings r SEMI JOIN unread u
                      ON u.user_id = r.user_id AND u.collection = r.collection AND u.n IS NOT DISTINCT FROM r.n
                    GROUP BY user_id, collection, n),
       answered AS (SELECT user_id, collection, n FROM readings WHERE n IS NULL OR ${dayNumber('over_at')} > n),
       begun AS (SELECT unnest([arg_max(run_id, committed_at),
                                arg_max(run_id, committed_at) FILTER (n BETWEEN ${dayNumber('start_at')} AND ${dayNumber('end_at')} - 1)]) AS run_id
                 FROM unread u ANTI JOIN answered a
                   ON a.user_id = u.user_id AND a.collection = u.collection AND a.n IS NOT DISTINCT FROM u.n
                 WHERE outcome <> 'not_offered' GROUP BY user_id, collection, n),
       early AS (SELECT arg_max(run_id, requested_at) AS run_id
                 FROM readings r ANTI JOIN answered a ON a.user_id = r.user_id AND a.collection = r.collection AND a.n = r.n
                 WHERE n IS NOT NULL GROUP BY user_id, collection, n)
     SELECT run_id FROM sync.runs r WHERE kind = 'sweep'
     AND (state = 'complete' AND ended_at < ${before(KEPT_DAYS)} OR state = 'failed' AND ended_at < ${before(FAILED_KEPT_DAYS)})
     AND NOT EXISTS (SELECT 1 FROM sync.windows w WHERE w.run_id = r.run_id AND w.outcome = 'complete'
                     AND sync.over_at(w.service_at, w.read_at) >= w.start_at + INTERVAL ${settledDays + 1} DAY)
     AND run_id NOT IN (SELECT run_id FROM (FROM deciding UNION ALL FROM begun UNION ALL FROM early) WHERE run_id IS NOT NULL)
     AND run_id NOT IN (SELECT arg_max(run_id, committed_at) FROM sync.windows
                        WHERE route = '${heartRate.sandboxPath}' AND outcome = 'complete' GROUP BY user_id, start_at, end_at)`,
  );
  const keys = runs.map(id => ({ run_id: id }));
  await warehouse.record(['sync.windows', 'sync.runs'].flatMap(table => keys.map(key => ({ table, key }))));
}
