import { messageOf, TryLaterError } from '../../base/errors.ts';
import { TimeoutError, withTimeout } from '../../base/timeout.ts';
import { listAccounts, shownAccount } from '../../ledger/accounts.ts';
import { findBeginning, listSweeps } from '../../ledger/runs.ts';
import type { Pipeline } from '../pipeline.ts';
import { lastDays, prepareRequest, type Skipped } from '../runs/backfill.ts';
import type { Run } from '../runs/run.ts';
import { askServiceClock } from '../service-clock.ts';

/** Something to be done again and again. */
export interface Schedule {
  name: string;
  /** A cron pattern with its IANA zone, or every so often, for the first time after a while. */
  repeat(): Promise<{ pattern: string; timeZone: string | undefined } | { everyMs: number; afterMs: number }>;
  /** Whether its last time went by while nobody was there. */
  missed(): Promise<boolean>;
  run(): Promise<void>;
}

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
  const rest: Parameters<typeof prepareRequest>[2] = { ...range, kind, refresh: true };
  const { request, skipped } = await prepareRequest(pipeline, selection, acceptDeletions ? { ...rest, acceptDeletions: true } : rest);
  return { run: await pipeline.runs.start(request), skipped };
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
    await withTimeout(ended, patienceMs);
  } catch (error) {
    if (!(error instanceof TimeoutError)) throw error;
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

/** The accounts that can be asked. */
export async function listActive({
  warehouse,
  tokens,
}: Pick<Pipeline, 'warehouse' | 'tokens'>): Promise<ReturnType<typeof shownAccount>[]> {
  const accounts = (await listAccounts(warehouse)).map(account => shownAccount(account, tokens));
  return accounts.filter(({ state }) => state === 'active');
}

/** Their names. */
export const listUsers = async (pipeline: Parameters<typeof listActive>[0]): Promise<string[]> =>
  (await listActive(pipeline)).map(({ userId }) => userId);

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
  const whole = (await listSweeps(warehouse)).find(({ request }) => request.collections?.length === collections.length);
  const micros = whole?.startedAt ?? (await findBeginning(warehouse));
  return micros === undefined ? undefined : micros / 1000;
}
