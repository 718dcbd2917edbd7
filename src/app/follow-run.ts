import { RingneckError, shownMessageOf } from '../base/errors.ts';
import { createFailure } from '../base/failure.ts';
import { listAccounts } from '../ledger/accounts.ts';
import type { Pipeline } from '../sync/pipeline.ts';
import type { Skipped } from '../sync/runs/backfill.ts';
import { joinSummaries, type Progress, type Run, type RunSummary } from '../sync/runs/run.ts';
import type { RunName } from '../sync/runs/run-name.ts';
import type { App } from './app.ts';
import type { CommandContext } from './control/command.ts';
import { isRefused, type Standing } from './fixes.ts';

export interface RunReport extends RunSummary {
  /** What was left out, because it was parked or paused before. */
  not_asked: Skipped[];
  /** Those of its accounts that the service refuses, parked: the failures of each are one. */
  parked: Standing[];
  /** Where heart rate was read, once known. */
  heart_rate_path: string | null;
  /** Interrupted runs that the command went on with after its own. */
  gone_on?: GoneOn[];
}

/** An interrupted run that a command went on with. */
export interface GoneOn extends Omit<RunSummary, 'state'>, RunName {
  /** running: it did not come to its end, and the next start goes on with it. */
  state: RunSummary['state'] | 'running';
  /** Why it did not. */
  reason: string | null;
}

/** How a run goes, and which one it is where it is not the command's own. */
export type ShownRun = Progress & { going_on?: RunName };

const PROGRESS_MS = 200;

/** Follows a run to its end, and those in which it goes on; a caller who stops ends the run, an owner who closes leaves it to the next start. */
export async function followRun(app: App, run: Run, skipped: Skipped[], context: CommandContext<Progress>): Promise<RunReport> {
  return reportOf(app, await follow(run, context, true), skipped, context);
}

/** The same for a run that the caller did not ask for: who stops leaves it to whoever works on it, or to the next start. */
export async function waitForRun(app: App, run: Run, context: CommandContext<Progress>): Promise<RunReport> {
  return reportOf(app, await follow(run, context, false), [], context);
}

async function reportOf(app: App, summary: RunSummary, skipped: Skipped[], { signal }: CommandContext<Progress>): Promise<RunReport> {
  if (summary.state !== 'stopped') await app.snapshots.publishAfterRun(signal);
  return {
    ...summary,
    not_asked: skipped,
    parked: await findParked(app, summary),
    heart_rate_path: (await app.client()).heartRatePath ?? null,
  };
}

async function findParked({ warehouse }: App, { failures }: RunSummary): Promise<Standing[]> {
  const refused = new Set(failures.filter(isRefused).map(({ user_id: name }) => name));
  if (!refused.size) return [];
  return (await listAccounts(warehouse))
    .filter(({ userId, state }) => state === 'parked' && refused.has(userId))
    .map(({ userId, state, reason }) => ({ user_id: userId, state, reason }));
}

/**
 * Does a command's own run and then goes on with those that an earlier process left, where this one ends with its command: they would be
 * begun with every command, and come to their end with none. Who stops leaves them to the next start.
 */
export async function andGoOn(
  app: App,
  { runs }: Pick<Pipeline, 'runs'>,
  { emit, signal }: CommandContext<ShownRun>,
  doOwn: () => Promise<RunReport>,
): Promise<RunReport> {
  const takenUp = () => runs.active().filter(run => run.takenUp);
  const left = app.isAlone ? takenUp() : [];
  const report = await doOwn();
  if (!app.isAlone || report.state === 'stopped') return report;
  const seen = new Set<Run>();
  const goneOn = new Map<string, GoneOn>();
  const next = () => [...left, ...takenUp()].find(run => run.id !== report.run && !seen.has(run));
  for (let run = next(); run; run = next()) {
    seen.add(run);
    const { kind, from, to } = run.request;
    const going_on = { kind, from, to };
    try {
      const summary = await follow(run, { signal, emit: progress => emit({ ...progress, going_on }) }, false);
      goneOn.set(run.id, { ...going_on, ...summary, reason: null });
      await app.snapshots.publishAfterRun(signal);
    } catch (error) {
      goneOn.set(run.id, { ...going_on, ...run.summary(), state: 'running', reason: signal.aborted ? null : shownMessageOf(error) });
    }
  }
  return goneOn.size ? { ...report, gone_on: [...goneOn.values()] } : report;
}

/** @param mayStop whether a caller who stops ends the run */
async function follow(run: Run, { emit, signal }: CommandContext<Progress>, mayStop: boolean): Promise<RunSummary> {
  let current = run;
  let mine = mayStop && run.claim();
  const timer = setInterval(() => emit(current.tellProgress()), PROGRESS_MS);
  const closing = createFailure();
  const onAbort = () => {
    if (signal.reason instanceof RingneckError && signal.reason.exitCode === 130 && mine) void current.stop();
    else closing.fail(signal.reason);
  };
  signal.addEventListener('abort', onAbort);
  if (signal.aborted) onAbort();
  try {
    let summary = await Promise.race([run.done, closing.failed]);
    const followed = new Set([run]);
    for (const started of run.goesOnIn) {
      if (summary.state === 'stopped') break;
      const next = await Promise.race([started, closing.failed]);
      if (followed.has(next)) continue;
      followed.add(next);
      current = next;
      mine = mayStop && next.claim();
      summary = joinSummaries(summary, await Promise.race([next.done, closing.failed]));
    }
    emit(current.tellProgress());
    return summary;
  } finally {
    clearInterval(timer);
    signal.removeEventListener('abort', onAbort);
  }
}
