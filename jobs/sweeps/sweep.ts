import { addDays, dayOfMicros, findDayNumber } from '../../schema/instant.ts';
import { isOneTime } from '../../src/client/service-clock.ts';
import { messageOf, TryLaterError } from '../../src/errors.ts';
import { TooLate, withinTime } from '../../src/within-time.ts';
import { listAccounts, shownAccount } from '../accounts.ts';
import { bothNows, lastDays, prepareRequest, type Skipped } from '../backfill.ts';
import type { Pipeline } from '../pipeline.ts';
import type { Run, RunRequest } from '../run.ts';
import { askServiceClock } from '../service-clock.ts';
import type { DayRange } from '../windows.ts';
import type { Schedule } from './schedule.ts';

/** The run of a sweep, and what it leaves out. */
export interface Sweep {
  run: Run;
  skipped: Skipped[];
}

/** What a sweep reads again: without users or collections, all of them. */
export interface SweepRange {
  kind: 'sweep' | 'nightly';
  /** How many days, tomorrow (UTC) being the last. */
  days: number;
  users?: readonly string[];
  collections?: readonly string[];
  acceptDeletions?: boolean | undefined;
}

/** Reads the last days again, whatever is known of them: it bounds how stale the warehouse may be, whatever events do. */
export async function startSweep(
  pipeline: Pipeline,
  { kind, days, acceptDeletions, ...selection }: SweepRange,
  signal?: AbortSignal,
): Promise<Sweep> {
  const range = lastDays(days, await askServiceClock(pipeline, signal));
  const from = await findReach(pipeline, range, { kind, days, ...selection });
  const rest: Parameters<typeof prepareRequest>[2] = { from, to: range.to, kind, refresh: true };
  const { request, skipped } = await prepareRequest(pipeline, selection, acceptDeletions ? { ...rest, acceptDeletions: true } : rest);
  return { run: await pipeline.runs.start(request), skipped };
}

/** A night of fewer days than these is a short one, however many another asks for. */
const USUAL_DAYS = 14;

/** For so long readings that are shorter than a night do not count as one. */
const SHORT_DAYS = 30;

/** How far before the last days a backfill may have ended that they follow. */
const REACH_DAYS = 30;

/**
 * From where the last days are read: from further back where more of them have gone by since the last time that an account's collection
 * was read, because nobody was here or the service's clock runs fast. A night goes as far back from the last one as it would have gone the
 * day after: a ring may have brought what it measured in all these days. What was asked for then and failed is not among them: see findUnread.
 */
async function findReach(
  { warehouse, collections, serviceClock, now, tokens }: Pick<Pipeline, 'warehouse' | 'collections' | 'serviceClock' | 'now' | 'tokens'>,
  { from, to }: DayRange,
  { kind, days, users, collections: chosen = collections.map(({ name }) => name) }: SweepRange,
): Promise<string> {
  const rows = await warehouse.read(`SELECT request::VARCHAR, started_at FROM sync.runs WHERE state <> 'stopped'`);
  const earliest = addDays(from, -REACH_DAYS);
  const isNow = isOneTime(serviceClock.aheadMs ?? 0);
  const isFarBehind = serviceClock.now() < now() && !isNow;
  const wanted = new Set((users ?? (await listUsers({ warehouse, tokens }))).flatMap(user => chosen.map(name => `${user}\n${name}`)));
  const lastOf = new Map<string, { to: string; short?: { since: string; to: string } }>();
  const ends = rows
    .map(([text, startedAt]) => {
      const run = JSON.parse(text as string) as Partial<RunRequest>;
      return { ...run, startedAt: startedAt as number, to: run.to && overBy({ kind: run.kind!, to: run.to }, startedAt as number, isNow) };
    })
    // A sweep goes less far back than a night.
    .filter(run => kind !== 'nightly' || run.kind !== 'sweep')
    // Of a service whose clock was far behind ours then, and is not now: its calendar tells nothing of this one.
    .filter(run => run.kind === 'backfill' || !run.to || isFarBehind || !wasFarBehind(run.to, run.startedAt))
    // A backfill that ended far back was meant to; what ends beyond the calendar is of another clock.
    .filter(
      run => !run.spans && run.to && run.to <= to && (run.kind !== 'backfill' || run.to >= earliest || wasRecent(run.to, run.startedAt)),
    )
    .sort((a, b) => a.startedAt - b.startedAt);
  const back = (depth: number) => Math.min(-2, kind === 'nightly' ? 2 - depth : -2);
  for (const run of ends) {
    for (const place of (run.users ?? []).flatMap(user => (run.collections ?? []).map(name => `${user}\n${name}`))) {
      if (!wanted.has(place)) continue;
      const before = lastOf.get(place);
      // What was shorter than a night leaves to the next one what it did not read.
      const isShort = kind === 'nightly' && before !== undefined && run.from! > addDays(before.to, back(Math.min(days, USUAL_DAYS)));
      if (isShort) {
        const follows = before.short && run.from! <= before.short.to;
        before.short = { since: follows ? before.short!.since : run.to!, to: run.to! };
      }
      // Who reads no more than that for weeks, one time after the other, means it.
      const isMeant = run.to! > addDays(before?.short?.since ?? run.to!, SHORT_DAYS);
      if ((!isShort || isMeant) && run.to! > (before?.to ?? '')) lastOf.set(place, { to: run.to! });
    }
  }
  // What was never read waits for a backfill.
  const last = [...lastOf.values()].map(run => run.to).sort()[0];
  if (last === undefined) return from;
  // It ended with a tomorrow; its today was not over then, nor all of its yesterday there. Where the service's clock is behind, its days were not as far.
  const [, later] = bothNows(serviceClock);
  const behind = numberOf(later) - numberOf(serviceClock.now());
  const open = addDays(last, back(days) - behind);
  return open < from ? open : from;
}

/** Whether a run's tomorrow was of a time far before ours. */
function wasFarBehind(to: string, startedAt: number): boolean {
  const behindMs = startedAt / 1000 - (findDayNumber(to)! - 1) * 86_400_000;
  return behindMs > 0 && !isOneTime(behindMs);
}

const numberOf = (ms: number) => Math.floor(ms / 86_400_000);

/** Whether a run ended with the last days of its time. */
const wasRecent = (to: string, startedAt: number) => to >= addDays(dayOfMicros(startedAt), -REACH_DAYS);

/**
 * The day with which a run ended, or our tomorrow of then: where both are of one time, the service's clock may have been ahead, and a backfill
 * may have been asked for days to come.
 * @param isNow whether the service's clock tells our time
 */
function overBy({ kind, to }: Pick<RunRequest, 'kind' | 'to'>, startedAt: number, isNow: boolean): string {
  const tomorrow = addDays(dayOfMicros(startedAt), 1);
  const isToCome = to > tomorrow && (to <= addDays(tomorrow, 31) || (kind === 'backfill' && isNow));
  return isToCome ? tomorrow : to;
}

/** How long a reading of everything keeps the next one from its turn. */
export const SWEEP_PATIENCE_MS = 30 * 60_000;

/**
 * Reads the last days as a schedule has it, but not of accounts that a run under way still reads for it. Returns when the run has ended or
 * has taken too long: the service may hold up an account for days, and then the run goes on while the schedule does.
 */
export async function sweepOnSchedule(pipeline: Pipeline, range: SweepRange, patienceMs: number): Promise<void> {
  const busy = findBusyUsers(pipeline, range);
  const users = (range.users ?? (await listUsers(pipeline))).filter(user => !busy.has(user));
  if (!users.length) return;
  const { run } = await startSweep(pipeline, { ...range, users });
  const ended = tellEnd(pipeline, run);
  try {
    await withinTime(ended, patienceMs);
  } catch (error) {
    if (!(error instanceof TooLate)) throw error;
    const { kind } = run.request;
    pipeline.log.info({ run: run.id, accounts: run.findOpenUsers().size }, `${kind} run takes long: the next one does not wait for it`);
    ended.catch(failure => tellBroken(pipeline, run, failure));
  }
}

/** The accounts that a sweep under way has not yet read, where it reads the same and as far back. */
function findBusyUsers({ runs, collections, serviceClock }: Pipeline, range: SweepRange): Set<string> {
  const { from } = lastDays(range.days, serviceClock);
  const wanted = range.collections ?? collections.map(({ name }) => name);
  const open = runs.active().filter(({ request }) => {
    const same = request.collections.length === wanted.length && wanted.every(name => request.collections.includes(name));
    return same && request.kind !== 'backfill' && request.from <= from;
  });
  return new Set(open.flatMap(run => [...run.findOpenUsers()]));
}

/** Waits for a run that nobody looks at, and tells the log of it. */
async function tellEnd({ log }: Pick<Pipeline, 'log'>, run: Run): Promise<void> {
  run.claim();
  const { state, documents, removed, failures } = await run.done;
  const { kind, collections } = run.request;
  const level = state === 'complete' && collections.length === 1 ? 'debug' : 'info';
  log[level]({ run: run.id, state, documents, removed, failures: failures.length }, `${kind} run ended`);
}

function tellBroken({ log }: Pick<Pipeline, 'log'>, run: Run, error: unknown): void {
  // At the end of the process a run is left to the next start.
  const level = error instanceof TryLaterError ? 'info' : 'warn';
  log[level]({ run: run.id, reason: messageOf(error) }, `${run.request.kind} run did not come to its end`);
}

/** The names of the accounts that can be asked. */
export async function listUsers({ warehouse, tokens }: Pick<Pipeline, 'warehouse' | 'tokens'>): Promise<string[]> {
  const accounts = (await listAccounts(warehouse)).map(account => shownAccount(account, tokens));
  return accounts.filter(({ state }) => state === 'active').map(({ userId }) => userId);
}

/** Reads the last days of everything every few hours; where the last time is longer ago, at once. */
export function sweepSchedule(
  pipeline: Pipeline,
  { hours, days }: { hours: number; days: number },
  patienceMs = SWEEP_PATIENCE_MS,
): Schedule {
  const everyMs = hours * 3_600_000;
  return {
    name: 'sweep',
    repeat: async () => {
      const now = pipeline.now();
      // One that is ahead of the clock is of a time when the clock was wrong.
      const last = Math.min(now, (await readLastSweep(pipeline)) ?? now);
      return { everyMs, afterMs: Math.max(0, last + everyMs - now) };
    },
    missed: async () => false,
    run: () => sweepOnSchedule(pipeline, { kind: 'sweep', days }, patienceMs),
  };
}

/** When the last days of everything were read last, in milliseconds; before the first time, since when there is something to read. */
async function readLastSweep({ warehouse, collections }: Pick<Pipeline, 'warehouse' | 'collections'>): Promise<number | undefined> {
  const rows = await warehouse.read(
    `SELECT kind, started_at, request::VARCHAR FROM sync.runs
     WHERE kind IN ('sweep', 'nightly') AND state <> 'stopped' ORDER BY started_at DESC`,
  );
  const whole = rows.find(([, , request]) => (JSON.parse(request as string) as RunRequest).collections?.length === collections.length);
  if (whole) return (whole[1] as number) / 1000;
  const [row] = await warehouse.read(
    `SELECT least((SELECT min(since) FROM sync.accounts WHERE state <> 'removed'), (SELECT min(started_at) FROM sync.runs))`,
  );
  return row![0] === null ? undefined : (row![0] as number) / 1000;
}
