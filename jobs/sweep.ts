import { type AccountState, listAccounts } from './accounts.ts';
import { lastDays, prepareRequest, type Skipped } from './backfill.ts';
import type { Pipeline } from './pipeline.ts';
import type { Run, RunRequest } from './run.ts';
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
export async function startSweep(pipeline: Pipeline, { kind, days, acceptDeletions, ...selection }: SweepRange): Promise<Sweep> {
  const rest: Parameters<typeof prepareRequest>[2] = { ...lastDays(days, pipeline.now()), kind, refresh: true };
  const { request, skipped } = await prepareRequest(pipeline, selection, acceptDeletions ? { ...rest, acceptDeletions: true } : rest);
  return { run: await pipeline.runs.start(request), skipped };
}

/** Waits for a run that a schedule started, and tells the log of it. */
export async function finishSweep({ log }: Pick<Pipeline, 'log'>, run: Run): Promise<void> {
  run.claim();
  const { state, documents, removed, failures } = await run.done;
  const { kind, collections } = run.request;
  const level = state === 'complete' && collections.length === 1 ? 'debug' : 'info';
  log[level]({ run: run.id, state, documents, removed, failures: failures.length }, `${kind} run ended`);
}

/** The names of the accounts that are in this state. */
export async function listUsers({ warehouse }: Pick<Pipeline, 'warehouse'>, wanted: AccountState = 'active'): Promise<string[]> {
  return (await listAccounts(warehouse)).filter(({ state }) => state === wanted).map(({ userId }) => userId);
}

/** Reads the last days of everything every few hours; where the last time is longer ago, at once. */
export function sweepSchedule(pipeline: Pipeline, { hours, days }: { hours: number; days: number }): Schedule {
  const everyMs = hours * 3_600_000;
  return {
    name: 'sweep',
    repeat: async () => ({ everyMs, afterMs: Math.max(0, ((await readLastSweep(pipeline)) ?? pipeline.now()) + everyMs - pipeline.now()) }),
    missed: async () => false,
    run: async () => {
      if ((await listUsers(pipeline)).length) await finishSweep(pipeline, (await startSweep(pipeline, { kind: 'sweep', days })).run);
    },
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
