import { findDayNumber, MICROS_PER_DAY } from '../../schema/instant.ts';
import { flag, type Readable, readRows, text } from '../warehouse/rows.ts';
import { textList } from '../warehouse/sql.ts';
import { dayNumber, dayOfNumber } from './day-numbers.ts';
import type { Span } from './runs.ts';
import { TRIED_DAYS } from './unread.ts';

/** A night reads a day for so long, however many days another asks for. */
const USUAL_DEPTH = 12;

/** Where more days than these were last read too early, shorter readings have been the rule. */
const RULE_DAYS = 30;

/** Days before those of a sweep that it reads too. */
export interface EarlierDays {
  /** Read with those of the sweep where they are next to them. */
  reach: Span[];
  /** Read in windows of their own: what is wrong with them is not to be in the way of other days. */
  apart: Span[];
}

/** What it is by the clocks. */
export interface ReachClocks {
  /** The numbers of the days that it is, by the clock that is behind and by the one that is ahead. */
  today: number;
  latest: number;
  /** Whether the service's calendar is far from ours. */
  isFar: boolean;
  nowMicros: number;
}

/**
 * The days before those of a sweep or a night that were last read earlier than a later one would have read them, had there been one each
 * day, and all days between that nobody has read: nobody was here, an account was paused, a collection refused, or the service's clock runs
 * fast. A ring may have brought meanwhile what it measured in all these days. What was never read waits for a backfill. Of a collection whose last
 * days cannot be read there are none, and what has failed in every reading since it was over is left to `findUnread`.
 */
export async function findReach(
  warehouse: Readable,
  { users, collections, from }: { users: readonly string[]; collections: readonly string[]; from: string },
  { today, latest, isFar, nowMicros }: ReachClocks,
): Promise<EarlierDays> {
  if (!users.length || !collections.length) return { reach: [], apart: [] };
  const first = findDayNumber(from) ?? today;
  const depth = Math.max(1, today - first);
  const selected = (row: string) => `${row}.user_id IN (${textList(users)}) AND ${row}.collection IN (${textList(collections)})`;
  const rows = await readRows(
    warehouse,
    { userId: text, collection: text, from: text, to: text, again: flag },
    `WITH
       depths AS (SELECT DISTINCT unnest([${Math.min(depth, USUAL_DEPTH)}, ${depth}]) AS depth),
       -- Days to come were asked for in vain.
       readings AS (SELECT user_id, collection, ${dayNumber('start_at')} AS start_n, least(${dayNumber('end_at')}, read_n + 2) AS end_n, max(read_n) AS read_n
                    FROM (SELECT *, least(${dayNumber('sync.over_at(service_at, read_at)')}, ${latest}) AS read_n FROM sync.windows) w
                    WHERE outcome = 'complete' AND start_at IS NOT NULL AND requested_at IS NOT NULL AND ${selected('w')}
                      -- By a calendar that was far from ours then, and is not now, nothing is told of these days.
                      AND (${isFar} OR service_at IS NULL OR abs(epoch_us(service_at) - epoch_us(read_at)) <= 31 * ${MICROS_PER_DAY})
                    GROUP BY ALL),
       vain AS (SELECT w.user_id, w.collection, unnest(range(${dayNumber('start_at')}, least(${dayNumber('end_at')}, ${first}))) AS n, r.started_at,
                       ${dayNumber("TRY_CAST(r.request ->> '$.from' AS TIMESTAMP)")} AS from_n
                FROM sync.windows w JOIN sync.runs r ON r.run_id = w.run_id
                WHERE w.outcome IN ('failed', 'suspicious') AND w.start_at < DATE '${from}' AND r.kind <> 'backfill' AND ${selected('w')}),
       tried AS (SELECT user_id, collection, n, bool_or(n < from_n) AS again,
                        coalesce(min(started_at) FILTER (n < from_n) < make_timestamp(${nowMicros - TRIED_DAYS * MICROS_PER_DAY}::BIGINT), false) AS left_alone
                 FROM vain GROUP BY ALL),
       over AS (SELECT DISTINCT user_id, collection, unnest(range(start_n, least(end_n, read_n))) AS n FROM readings
                WHERE end_n > (SELECT min(n) FROM tried)),
       barred AS (FROM tried t ANTI JOIN over o ON o.user_id = t.user_id AND o.collection = t.collection AND o.n = t.n
                  UNION ALL FROM tried WHERE left_alone),
       silent AS (SELECT user_id, collection FROM sync.windows w WHERE outcome <> 'stopped' AND end_at > DATE '${from}' AND ${selected('w')}
                  GROUP BY user_id, collection HAVING arg_max(outcome, committed_at) IN ('failed', 'not_offered')),
       done AS (SELECT DISTINCT user_id, collection, depth, unnest(range(start_n, least(end_n, read_n - depth + 1, ${first}))) AS n
                FROM readings CROSS JOIN depths),
       open AS (SELECT d.* FROM (SELECT user_id, collection, depth, unnest(range(min(start_n), ${first})) AS n
                                 FROM readings CROSS JOIN depths GROUP BY ALL) d
                ANTI JOIN done USING (user_id, collection, depth, n)),
       early AS (SELECT o.* FROM open o
                 SEMI JOIN readings r ON r.user_id = o.user_id AND r.collection = o.collection AND o.n >= r.start_n AND o.n < r.end_n
                 ANTI JOIN barred b ON b.user_id = o.user_id AND b.collection = o.collection AND b.n = o.n
                 ANTI JOIN silent s ON s.user_id = o.user_id AND s.collection = o.collection),
       -- The last reading may have been early in its day: one more day is read than it had left.
       since AS (SELECT user_id, collection, depth,
                        if(count(*) > ${RULE_DAYS}, min(n) FILTER (n >= ${first - RULE_DAYS}), min(n)) - 1 AS n
                 FROM early GROUP BY ALL HAVING n IS NOT NULL),
       wanted AS (SELECT o.user_id, o.collection, o.n FROM open o
                  JOIN since s ON s.user_id = o.user_id AND s.collection = o.collection AND s.depth = o.depth AND o.n > s.n
                  UNION SELECT user_id, collection, n FROM since),
       reached AS (FROM wanted ANTI JOIN barred USING (user_id, collection, n)),
       stretches AS (SELECT user_id, collection, n, coalesce(again, false) AS again,
                            if(coalesce(again, false), n, n - row_number() OVER (PARTITION BY user_id, collection, coalesce(again, false) ORDER BY n)) AS stretch
                     FROM reached LEFT JOIN tried USING (user_id, collection, n))
     SELECT user_id, collection, ${dayOfNumber('min(n)')}::VARCHAR, ${dayOfNumber('max(n)')}::VARCHAR, again FROM stretches GROUP BY user_id, collection, again, stretch ORDER BY ALL`,
  );
  const spansOf = (isApart: boolean): Span[] => rows.flatMap(({ again, ...span }) => (again === isApart ? [span] : []));
  return { reach: spansOf(false), apart: spansOf(true) };
}
