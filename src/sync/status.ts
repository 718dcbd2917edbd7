import { dayOfMicros, formatInstant, MICROS_PER_DAY } from '../../schema/instant.ts';
import type { Tokens } from '../base/secrets/secrets.ts';
import { listAccounts, listParkedCollections, shownAccount } from '../ledger/accounts.ts';
import { findHoles, type Hole } from '../ledger/holes.ts';
import type { Collection, Pipeline } from './pipeline.ts';
import { bothNows } from './runs/backfill.ts';
import { findInterrupted, tellInterrupted } from './runs/interrupted-runs.ts';

export interface CollectionStatus {
  name: string;
  /**
   * up_to_date, not_asked (no reading reaches into yesterday, UTC), holes (one does, and days before it were never read, or failed when last read), failed, suspicious,
   * not_offered, not_authorised, pending (a run under way reads it), interrupted (one was to, and nobody works on it), never_asked.
   */
  state: string;
  reason: string | null;
  newest_day: string | null;
  /** ISO 8601, UTC. */
  last_success: string | null;
  /** Seconds since the last success. */
  lag: number | null;
  /** Windows that failed since the last run in which none did. */
  failures: number;
  /** Days from the first planned one to yesterday (UTC) that nobody has read to their end: those that a repair would read. */
  unread_days: number;
}

export interface AccountStatus {
  user_id: string;
  service_user_id: string | null;
  state: string;
  reason: string | null;
  since: string;
  collections: CollectionStatus[];
}

/** Something that documents had and that their declaration does not foresee. */
export interface DriftStatus {
  collection: string;
  path: string;
  kind: string;
  documents: number;
  first_seen_at: string;
  last_seen_at: string;
  /** Where it was seen, as JSON path. */
  example: string | null;
}

export const isoOf = (micros: number): string => formatInstant({ micros, offset: 0 }).replace('+00:00', 'Z');

const STATES: Record<string, string> = { complete: 'up_to_date', stopped: 'not_asked' };

/** In which a repair would read something that no run under way does. */
const MENDABLE = ['up_to_date', 'not_asked', 'failed', 'suspicious', 'interrupted'];

/** What tells more of a collection than that a run was interrupted. */
const TOLD_FIRST = ['failed', 'suspicious'];

const STOPPED = 'the run that was to read it was stopped: the same command reads it';

const NO_WINDOWS = [null, null, null, null, null, 0, null, 0, null];

/**
 * How each account and collection stands, from the ledger and the documents.
 * @param workedOn the runs that this process works on
 */
export async function reportAccounts(
  { warehouse, now, serviceClock, tokens }: Pick<Pipeline, 'warehouse' | 'now' | 'serviceClock'> & { tokens?: Pick<Tokens, 'whyMissing'> },
  collections: readonly Collection[],
  workedOn: ReadonlySet<string> = new Set(),
): Promise<AccountStatus[]> {
  const accounts = (await listAccounts(warehouse)).map(account => shownAccount(account, tokens));
  const parked = await listParkedCollections(warehouse);
  const newest = new Map<string, string>();
  for (const { name, newestDay } of collections) {
    if (!newestDay) continue;
    for (const [userId, day] of await warehouse.read(`SELECT user_id, ${newestDay} FROM "${name}" GROUP BY user_id`)) {
      newest.set(`${userId}\n${name}`, day as string);
    }
  }
  const rows = await warehouse.read(
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
  const interrupted = await findInterrupted({ warehouse }, workedOn);
  const known = new Map(rows.map(row => [`${row[0]}\n${row[1]}`, row]));
  const yesterday = dayOfMicros(bothNows(serviceClock)[0] * 1000 - MICROS_PER_DAY);
  const dated = collections.filter(({ newestDay }) => newestDay).map(({ name }) => name);
  const rejected = new Map(
    (await warehouse.read('SELECT user_id, collection, count(*) FROM sync.rejected GROUP BY ALL')).map(([userId, name, count]) => [
      `${userId}\n${name}`,
      count as number,
    ]),
  );
  const holes = new Map((await findHoles(warehouse, dated, yesterday)).map(hole => [`${hole.userId}\n${hole.collection}`, hole]));
  return accounts.map(account => ({
    user_id: account.userId,
    service_user_id: account.serviceUserId,
    state: account.state,
    reason: account.reason,
    since: isoOf(account.since),
    collections: collections.map(({ name }) => {
      const key = `${account.userId}\n${name}`;
      const [, , success, outcome, reason, failures, open, stopped, until] = known.get(key) ?? NO_WINDOWS;
      const openRuns = (open as string | null)?.split(' ') ?? [];
      const left = openRuns.map(id => interrupted.get(id)).find(run => run !== undefined);
      const isParked = parked.some(({ userId, collection }) => userId === account.userId && collection === name);
      const lastDay = until === null ? '' : dayOfMicros((until as number) - 1);
      const isOutdated = outcome === 'complete' && lastDay < yesterday;
      // The account was not active then, and is now.
      const isOfFormerState = outcome === 'not_authorised' && account.state === 'active' && !isParked;
      const last =
        isOutdated || isOfFormerState ? 'not_asked' : outcome === null ? undefined : (STATES[outcome as string] ?? (outcome as string));
      const isPending = openRuns.some(id => workedOn.has(id));
      const settled = last ?? (left ? 'interrupted' : stopped ? 'not_asked' : 'never_asked');
      const state = isParked ? 'not_authorised' : isPending ? 'pending' : settled;
      const hole = account.state === 'active' && MENDABLE.includes(state) ? holes.get(key) : undefined;
      // Of what was interrupted another run may have read all since.
      const isInterrupted = left && (state === 'interrupted' || (hole && !TOLD_FIRST.includes(state)));
      const unasked = state === 'not_asked' && lastDay ? `nothing after ${lastDay} was asked for` : null;
      const wasStopped = last === undefined && stopped ? STOPPED : undefined;
      const unread = state === 'up_to_date' && hole ? tellHole(hole) : undefined;
      const refused = state === 'up_to_date' && rejected.has(key) ? tellRejected(rejected.get(key)!) : undefined;
      return {
        name,
        state: isInterrupted ? 'interrupted' : unread ? 'holes' : state,
        reason: isInterrupted
          ? tellInterrupted(left)
          : (unread ?? refused ?? wasStopped ?? (outcome === 'complete' ? unasked : (reason as string | null) || null)),
        newest_day: newest.get(key) ?? null,
        last_success: success === null ? null : isoOf(success as number),
        lag: success === null ? null : Math.max(0, Math.round(now() / 1000 - (success as number) / 1_000_000)),
        failures: failures as number,
        unread_days: hole?.days ?? 0,
      };
    }),
  }));
}

const tellRejected = (count: number) => `${count} that came could not be stored (sync.rejected)`;

const tellHole = ({ days, from, to }: Hole) =>
  `${days === 1 ? '1 day is' : `${days} days are`} unread, or failed when last read, from ${from} to ${to}`;

/** What a document stored so long ago had, the service may long have given up. */
const DRIFT_DAYS = 30;

/** What was seen in the last 30 days of what the declarations do not foresee. */
export async function reportDrift({ warehouse, now }: Pick<Pipeline, 'warehouse' | 'now'>): Promise<DriftStatus[]> {
  const since = now() * 1000 - DRIFT_DAYS * MICROS_PER_DAY;
  const rows = await warehouse.read(
    `SELECT collection, path, kind, documents, first_seen_at, last_seen_at, example FROM sync.drift
     WHERE last_seen_at >= make_timestamp(${since}::BIGINT) ORDER BY collection, path, kind`,
  );
  return rows.map(([collection, path, kind, documents, first, last, example]) => ({
    collection: collection as string,
    path: path as string,
    kind: kind as string,
    documents: documents as number,
    first_seen_at: isoOf(first as number),
    last_seen_at: isoOf(last as number),
    example: example as string | null,
  }));
}
