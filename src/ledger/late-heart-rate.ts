import { MICROS_PER_DAY } from '../../schema/instant.ts';
import { heartRate } from '../../schema/resources/heart-rate.ts';
import { readRows, text } from '../warehouse/rows.ts';
import { qualified, textList } from '../warehouse/sql.ts';
import type { Warehouse } from '../warehouse/warehouse.ts';
import { dayNumber, dayOfNumber } from './day-numbers.ts';
import type { Span } from './runs.ts';

/** How long it is tried to read what an event has told of; then nights and repairs are left to it. */
const TRIED_DAYS = 30;

/** How long what could not be read is left alone. */
const LEFT_ALONE_MS = 6 * 3_600_000;

/**
 * The days before those of a sweep of whose nights and activities events have told since their heart rate was read last: a ring that was
 * without its phone for a week brings all of it at once. With the day before, on which a night begins, and the one after, for UTC has
 * other days. None lies before the first day whose heart rate was ever asked for: of such a time nothing is read because of one document.
 * @param before the first of the days that are read anyway
 */
export async function findLate(
  { warehouse, now }: { warehouse: Pick<Warehouse, 'read' | 'mappings'>; now: () => number },
  { users, before }: { users: readonly string[]; before: string },
): Promise<Span[]> {
  const tables = warehouse.mappings.filter(({ resource }) => resource.bringsHeartRate);
  if (!users.length || !tables.length) return [];
  const ago = (micros: number) => `make_timestamp(${now() * 1000 - micros}::BIGINT)`;
  const rows = await readRows(
    warehouse,
    { userId: text, from: text, to: text },
    `WITH
       told AS (SELECT user_id, object_id AS id, max(committed_at) AS told_at FROM sync.events
                WHERE outcome IN ('stored', 'unchanged') AND user_id IN (${textList(users)}) AND settled_at > ${ago(TRIED_DAYS * MICROS_PER_DAY)}
                GROUP BY user_id, object_id),
       come AS (SELECT user_id, day, max(told_at) AS told_at
                FROM (${tables.map(({ table }) => `SELECT user_id, id, day FROM ${qualified(table)}`).join(' UNION ALL ')}) d
                JOIN told USING (user_id, id) GROUP BY user_id, day),
       windows AS (SELECT w.user_id, w.start_at, w.end_at, w.outcome, w.requested_at, w.committed_at, r.started_at
                   FROM sync.windows w LEFT JOIN sync.runs r ON r.run_id = w.run_id
                   WHERE w.collection = '${heartRate.name}' AND w.start_at IS NOT NULL AND (w.outcome IS DISTINCT FROM 'complete' OR w.requested_at IS NOT NULL) AND w.user_id IN (SELECT user_id FROM come)),
       asked AS (SELECT user_id, min(${dayNumber('start_at')}) AS first FROM windows GROUP BY user_id),
       late AS (SELECT user_id, n, max(told_at) AS told_at
                FROM (SELECT c.user_id, c.told_at, unnest(range(${dayNumber('c.day')} - 1, ${dayNumber('c.day')} + 2)) AS n FROM come c) JOIN asked USING (user_id)
                WHERE n >= first AND n < ${dayNumber(`DATE '${before}'`)} GROUP BY user_id, n),
       -- An answer that is not believed is one: what it lacks would be asked for without end.
       read AS (SELECT user_id, CASE outcome WHEN 'complete' THEN requested_at WHEN 'suspicious' THEN committed_at END AS answered_at,
                       unnest(range(${dayNumber('start_at')}, ${dayNumber('end_at')})) AS n
                FROM windows WHERE CASE WHEN outcome IN ('complete', 'suspicious') THEN committed_at > (SELECT min(told_at) FROM late)
                                        ELSE outcome IS DISTINCT FROM 'stopped' AND started_at BETWEEN ${ago(LEFT_ALONE_MS * 1000)} AND ${ago(0)} END),
       open AS (SELECT l.user_id, l.n, l.n - row_number() OVER (PARTITION BY l.user_id ORDER BY l.n) AS stretch
                FROM late l ANTI JOIN read r
                  ON r.user_id = l.user_id AND r.n = l.n AND coalesce(r.answered_at > l.told_at, true))
     SELECT user_id, ${dayOfNumber('min(n)')}::VARCHAR, ${dayOfNumber('max(n)')}::VARCHAR FROM open GROUP BY user_id, stretch ORDER BY ALL`,
  );
  return rows.map(row => ({ ...row, collection: heartRate.name }));
}
