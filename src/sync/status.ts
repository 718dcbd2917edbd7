import { dayOfMicros, isoOf, MICROS_PER_DAY } from '../../schema/instant.ts';
import type { Tokens } from '../base/secrets/secrets.ts';
import { listAccounts, listParkedCollections, shownAccount } from '../ledger/accounts.ts';
import { findHoles, type Hole } from '../ledger/holes.ts';
import { countRejected, listDrift, readStandings, type Standing } from '../ledger/status.ts';
import { readNewestDays } from '../warehouse/stored-documents.ts';
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

const STATES: Record<string, string> = { complete: 'up_to_date', stopped: 'not_asked' };

/** In which a repair would read something that no run under way does. */
const MENDABLE = ['up_to_date', 'not_asked', 'failed', 'suspicious', 'interrupted'];

/** What tells more of a collection than that a run was interrupted. */
const TOLD_FIRST = ['failed', 'suspicious'];

const STOPPED = 'the run that was to read it was stopped: the same command reads it';

const NO_WINDOWS: Omit<Standing, 'userId' | 'collection'> = {
  success: null,
  outcome: null,
  reason: null,
  failures: 0,
  openRuns: [],
  stopped: 0,
  readUntil: null,
};

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
    for (const { userId, day } of await readNewestDays(warehouse, name, newestDay)) newest.set(`${userId}\n${name}`, day);
  }
  const interrupted = await findInterrupted({ warehouse }, workedOn);
  const known = new Map((await readStandings(warehouse)).map(row => [`${row.userId}\n${row.collection}`, row]));
  const yesterday = dayOfMicros(bothNows(serviceClock)[0] * 1000 - MICROS_PER_DAY);
  const dated = collections.filter(({ newestDay }) => newestDay);
  const rejected = new Map((await countRejected(warehouse)).map(({ userId, collection, count }) => [`${userId}\n${collection}`, count]));
  const holes = new Map((await findHoles(warehouse, dated, yesterday)).map(hole => [`${hole.userId}\n${hole.collection}`, hole]));
  return accounts.map(account => ({
    user_id: account.userId,
    service_user_id: account.serviceUserId,
    state: account.state,
    reason: account.reason,
    since: isoOf(account.since),
    collections: collections.map(({ name }) => {
      const key = `${account.userId}\n${name}`;
      const { success, outcome, reason, failures, openRuns, stopped, readUntil } = known.get(key) ?? NO_WINDOWS;
      const left = openRuns.map(id => interrupted.get(id)).find(run => run !== undefined);
      const isParked = parked.some(({ userId, collection }) => userId === account.userId && collection === name);
      const lastDay = readUntil === null ? '' : dayOfMicros(readUntil - 1);
      const isOutdated = outcome === 'complete' && lastDay < yesterday;
      // The account was not active then, and is now.
      const isOfFormerState = outcome === 'not_authorised' && account.state === 'active' && !isParked;
      const last = isOutdated || isOfFormerState ? 'not_asked' : outcome === null ? undefined : (STATES[outcome] ?? outcome);
      const isPending = openRuns.some(id => workedOn.has(id));
      const settled = last ?? (left ? 'interrupted' : stopped ? 'not_asked' : 'never_asked');
      const state = isParked ? 'not_authorised' : isPending ? 'pending' : settled;
      const hole = account.state === 'active' && MENDABLE.includes(state) ? holes.get(key) : undefined;
      // Of what was interrupted another run may have read all since.
      const isInterrupted = left && (state === 'interrupted' || (hole && !TOLD_FIRST.includes(state)));
      const unasked = state === 'not_asked' && lastDay ? `nothing after ${lastDay} was asked for` : null;
      const wasStopped = last === undefined && stopped ? STOPPED : undefined;
      const unread = state === 'up_to_date' && hole ? tellHole(hole) : undefined;
      const count = rejected.get(key);
      const refused = state === 'up_to_date' && count !== undefined ? tellRejected(count) : undefined;
      return {
        name,
        state: isInterrupted ? 'interrupted' : unread ? 'holes' : state,
        reason: isInterrupted
          ? tellInterrupted(left)
          : (unread ?? refused ?? wasStopped ?? (outcome === 'complete' ? unasked : reason || null)),
        newest_day: newest.get(key) ?? null,
        last_success: success === null ? null : isoOf(success),
        lag: success === null ? null : Math.max(0, Math.round(now() / 1000 - success / 1_000_000)),
        failures,
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
  return (await listDrift(warehouse, since)).map(({ firstSeenAt, lastSeenAt, example, ...row }) => ({
    ...row,
    first_seen_at: isoOf(firstSeenAt),
    last_seen_at: isoOf(lastSeenAt),
    example,
  }));
}
