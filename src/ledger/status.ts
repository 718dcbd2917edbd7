import { number, oneOf, orNull, type Readable, type Row, readRows, text } from '../warehouse/rows.ts';
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

interface LastReading {
  /** Of the last one that was complete, in microseconds. */
  success: number | null;
  outcome: string;
  committedAt: number;
}

/** Windows are committed side by side, and not quite in their order: microseconds. */
const OVERLAP = 3_600_000_000;

/** How fresh accounts are, asked again and again: the ledger grows with each night, and what is known of it is not read twice. */
export class Freshness {
  /** By account and collection. */
  readonly #readings = new Map<string, Map<string, LastReading>>();
  #until: number | undefined;

  /**
   * When the collection of an account that was read to its end longest ago was, in microseconds; null where one never was. Those that the
   * service does not offer, or that were not granted, do not count.
   */
  async read(warehouse: Readable, collections: readonly string[]): Promise<Map<string, number | null>> {
    const since = this.#until === undefined ? '' : `AND committed_at >= make_timestamp(${this.#until - OVERLAP}::BIGINT)`;
    const rows = await readRows(
      warehouse,
      { userId: text, collection: text, success: orNull(number), outcome: text, committedAt: number },
      `SELECT user_id, collection, max(coalesce(read_at, committed_at)) FILTER (outcome = 'complete'), arg_max(outcome, committed_at), max(committed_at)
       FROM sync.windows
       WHERE outcome IS NOT NULL AND outcome <> 'stopped' AND committed_at IS NOT NULL ${since}
       GROUP BY user_id, collection`,
    );
    for (const { userId, collection, ...reading } of rows) this.#add(userId, collection, reading);
    const fresh = new Map<string, number | null>();
    for (const [userId, readings] of this.#readings) {
      const counted = collections.flatMap(name => readings.get(name) ?? []).filter(({ outcome }) => !UNGIVEN.includes(outcome));
      if (!counted.length) continue;
      const times = counted.map(({ success }) => success).filter(success => success !== null);
      fresh.set(userId, times.length < counted.length ? null : Math.min(...times));
    }
    return fresh;
  }

  #add(userId: string, collection: string, reading: LastReading): void {
    const readings = this.#readings.get(userId) ?? new Map<string, LastReading>();
    this.#readings.set(userId, readings);
    const before = readings.get(collection);
    const later = before && before.committedAt > reading.committedAt ? before : reading;
    const successes = [before?.success ?? null, reading.success].filter(success => success !== null);
    readings.set(collection, { ...later, success: successes.length ? Math.max(...successes) : null });
    this.#until = Math.max(this.#until ?? 0, reading.committedAt);
  }
}

const UNGIVEN: readonly string[] = ['not_offered', 'not_authorised'];

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
