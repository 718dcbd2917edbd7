import { number, type Readable, readRows, text } from '../warehouse/rows.ts';
import { quoteName } from '../warehouse/sql.ts';
import { dayNumber, dayOfNumber } from './day-numbers.ts';
import { WIDENED_DAYS } from './windows.ts';

/** The days of one collection of an account that are to be read by a repair, as far as they are over. */
export interface Hole {
  userId: string;
  collection: string;
  days: number;
  from: string;
  to: string;
}

/** A collection whose rows belong to days. */
export interface DatedCollection {
  name: string;
  /** The column with the day of a document; undefined where rows come with their readings. */
  dayColumn: string | undefined;
}

/**
 * What is unread of each collection from its account's first planned day of it to yesterday: no reading went to the end of the day, and no
 * document of it is there but what a reading that did not end may have brought; or the last reading failed, or is not believed. Where rows come with the readings, as those of heart rate, the
 * reading alone tells. It is what a repair reads, by the rules of sync.coverage_between; but yesterday counts as read once it was asked for. The ranges of
 * the ledger are joined by their ends, not day by day, and documents are looked at only where there are gaps: of half a million windows that
 * takes less than a second.
 */
export async function findHoles(warehouse: Readable, collections: readonly DatedCollection[], yesterday: string): Promise<Hole[]> {
  const holes: Hole[] = [];
  const found = await readRows(
    warehouse,
    { collection: text, first: number, last: number },
    `SELECT collection, min(from_n), max(until_n) FROM (${gaps(yesterday)} UNION ALL ${inVain(yesterday)}) GROUP BY collection`,
  );
  for (const { collection, first, last } of found) {
    // One at a time: the days of all together do not fit into the memory that storing has.
    const dated = collections.find(({ name }) => name === collection);
    if (dated) holes.push(...(await findHolesOf(warehouse, dated, yesterday, [first, last])));
  }
  return holes;
}

async function findHolesOf(
  warehouse: Readable,
  { name, dayColumn }: DatedCollection,
  yesterday: string,
  [first, last]: readonly [number, number],
): Promise<Hole[]> {
  const besideDays = (day: string) => `
     ANTI JOIN (
       SELECT user_id, ${dayNumber(day)} AS n FROM "${name}" WHERE ${day} >= ${dayOfNumber(first)} AND ${day} < ${dayOfNumber(last)}
       EXCEPT
       SELECT user_id, unnest(range(greatest(${dayNumber('start_at')} - ${WIDENED_DAYS}, ${first}), least(${dayNumber('end_at')} + ${WIDENED_DAYS}, ${last}))) FROM sync.windows
       WHERE collection = '${name}' AND outcome NOT IN ('complete', 'not_offered')
       -- Nor is it read what came before the day was over.
       EXCEPT
       SELECT user_id, unnest(range(greatest(${dayNumber('start_at')}, ${dayNumber('sync.over_at(service_at, read_at)')}, ${first}), least(${dayNumber('end_at')}, ${last}))) FROM sync.windows
       WHERE collection = '${name}' AND outcome = 'complete' AND requested_at IS NOT NULL
     ) USING (user_id, n)`;
  const rows = await readRows(
    warehouse,
    { userId: text, days: number, from: text, to: text },
    `SELECT user_id, count(*), ${dayOfNumber('min(n)')}::VARCHAR, ${dayOfNumber('max(n)')}::VARCHAR
     FROM (SELECT user_id, n FROM (SELECT user_id, unnest(range(from_n, until_n)) AS n FROM (${gaps(yesterday, name)})) ${dayColumn === undefined ? '' : besideDays(quoteName(dayColumn))}
           UNION SELECT user_id, unnest(range(from_n, until_n)) FROM (${inVain(yesterday, name)}))
     GROUP BY user_id`,
  );
  return rows.map(row => ({ ...row, collection: name }));
}

/** The stretches of days that no reading went to the end of, as numbers: from the first to the one after the last. */
function gaps(yesterday: string, collection?: string): string {
  const today = dayNumber(`DATE '${yesterday}' + 1`);
  const over = 'sync.over_at(service_at, read_at)';
  return `
    WITH planned AS (
           SELECT user_id, collection, ${dayNumber('start_at')} AS start_n,
                  CASE WHEN outcome = 'complete' AND requested_at IS NOT NULL
                       THEN least(${dayNumber('end_at')}, if(${over} > DATE '${yesterday}', ${today}, ${dayNumber(over)})) END AS until_n
           FROM sync.windows
           WHERE start_at IS NOT NULL ${collection ? `AND collection = '${collection}'` : ''}
             -- Windows of a plan that was killed are no plan.
             AND (outcome IS NOT NULL OR run_id IN (SELECT run_id FROM sync.runs))),
         bounds AS (SELECT user_id, collection, min(start_n) AS first_n, max(until_n) FILTER (until_n > start_n) AS last_n FROM planned GROUP BY ALL),
         readings AS (
           SELECT user_id, collection, start_n,
                  max(until_n) OVER (PARTITION BY user_id, collection ORDER BY start_n ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before_n
           FROM planned WHERE until_n > start_n)
    SELECT user_id, collection, coalesce(before_n, first_n) AS from_n, start_n AS until_n
    FROM readings JOIN bounds USING (user_id, collection) WHERE start_n > coalesce(before_n, first_n)
    UNION ALL
    SELECT user_id, collection, greatest(first_n, last_n), ${today} FROM bounds WHERE greatest(first_n, last_n) < ${today}`;
}

/** The days of each window that failed, or brought what is not believed, and that none has read since; one that reads a part of them is left out. */
function inVain(yesterday: string, collection?: string): string {
  const today = dayNumber(`DATE '${yesterday}' + 1`);
  const of = collection ? `AND collection = '${collection}'` : '';
  return `
    SELECT user_id, collection, n AS from_n, n + 1 AS until_n
    FROM (SELECT user_id, collection, committed_at, unnest(range(${dayNumber('start_at')}, least(${dayNumber('end_at')}, ${today}))) AS n
          FROM sync.windows WHERE outcome IN ('failed', 'suspicious', 'not_authorised') AND start_at IS NOT NULL ${of}) f
    ANTI JOIN (SELECT user_id, collection, committed_at, ${dayNumber('start_at')} AS start_n, ${dayNumber('end_at')} AS end_n
               FROM sync.windows WHERE outcome = 'complete' AND requested_at IS NOT NULL AND start_at IS NOT NULL ${of}) c
      ON c.user_id = f.user_id AND c.collection = f.collection AND c.committed_at > f.committed_at AND f.n >= c.start_n AND f.n < c.end_n`;
}
