import { MICROS_PER_DAY } from '../../schema/instant.ts';
import { type Readable, readRows, text } from '../warehouse/rows.ts';
import { dayNumber, dayOfNumber } from './day-numbers.ts';
import type { Span } from './runs.ts';

/** How long sweeps and nights try what they failed to read; then it is left to a repair, which coverage calls for. */
export const TRIED_DAYS = 30;

/** How long what failed is left alone: a day that never comes is not to be an alarm with every sweep. */
const LEFT_ALONE_MS = 6 * 3_600_000;

/**
 * The days before those of a sweep that sweeps or nights have failed to read, and nobody has read to the end since they were over: a service
 * that was ill for longer than a night goes back leaves no hole. Of an account's collection that is still failing there are none: what is
 * wrong with its last days is wrong with these. What was tried again and failed is read day by day: one that never comes takes none along.
 */
export function findUnread({ warehouse, now }: { warehouse: Readable; now: () => number }, { from }: { from: string }): Promise<Span[]> {
  const first = dayNumber(`DATE '${from}'`);
  return readRows(
    warehouse,
    { userId: text, collection: text, from: text, to: text },
    `WITH
       failed AS (SELECT w.user_id, w.collection, r.started_at,
                         coalesce(w.end_at <= TRY_CAST(r.request ->> '$.from' AS DATE), false) AS again,
                         unnest(range(${dayNumber('start_at')}, least(${dayNumber('end_at')}, ${first}))) AS n
                  FROM sync.windows w JOIN sync.runs r ON r.run_id = w.run_id
                  WHERE w.outcome = 'failed' AND w.start_at < DATE '${from}' AND r.kind <> 'backfill'),
       tried AS (SELECT user_id, collection, n, bool_or(again) AS again FROM failed GROUP BY user_id, collection, n
                 HAVING min(started_at) >= make_timestamp(${now() * 1000 - TRIED_DAYS * MICROS_PER_DAY}::BIGINT)
                   -- What began in the future was by a clock that was wrong.
                   AND coalesce(max(started_at) FILTER (started_at <= make_timestamp(${now() * 1000}::BIGINT)) <= make_timestamp(${(now() - LEFT_ALONE_MS) * 1000}::BIGINT), true)),
       answering AS (SELECT user_id, collection FROM sync.windows WHERE outcome <> 'stopped' AND end_at > DATE '${from}' GROUP BY user_id, collection
                     HAVING arg_max(outcome, committed_at) IN ('complete', 'suspicious')),
       readings AS (SELECT user_id, collection, unnest(range(${dayNumber('start_at')}, least(${dayNumber('end_at')}, ${dayNumber('sync.over_at(service_at, read_at)')}))) AS n
                    FROM sync.windows WHERE outcome = 'complete' AND sync.over_at(service_at, read_at) IS NOT NULL
                      AND end_at > (SELECT ${dayOfNumber('min(n)')}::TIMESTAMP FROM tried)),
       unread AS (SELECT t.user_id, t.collection, t.n, t.again,
                         if(t.again, t.n, t.n - row_number() OVER (PARTITION BY t.user_id, t.collection, t.again ORDER BY t.n)) AS stretch
                  FROM tried t
                  SEMI JOIN answering a ON a.user_id = t.user_id AND a.collection = t.collection
                  ANTI JOIN readings r ON r.user_id = t.user_id AND r.collection = t.collection AND r.n = t.n)
     SELECT user_id, collection, ${dayOfNumber('min(n)')}::VARCHAR, ${dayOfNumber('max(n)')}::VARCHAR FROM unread GROUP BY user_id, collection, again, stretch ORDER BY ALL`,
  );
}
