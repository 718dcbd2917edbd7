import { type CoverageReport, type CoverageSelection, findOpenRuns, planRepair, readCoverage } from '../sync/coverage.ts';
import type { Progress } from '../sync/runs/run.ts';
import type { App } from './app.ts';
import type { CommandContext } from './control/command.ts';
import { followRun, type RunReport, waitForRun } from './follow-run.ts';
import { planOnly } from './run-commands.ts';

export interface RepairInput extends CoverageSelection {
  /** It goes on when its caller goes away. */
  detach?: boolean;
}

/** What the owner of a data folder knows of each day, and does about what is missing. */
export const coverageCommands = { coverage, repair, repairPlan };

async function coverage({ warehouse, collections, serviceClock }: App, selection: CoverageSelection): Promise<CoverageReport> {
  return readCoverage({ warehouse, collections, serviceClock }, selection);
}

/**
 * Reads exactly what is missing; null where nothing is. What a run under way is about to read is waited for first: it may be all that
 * is missing.
 */
async function repair(app: App, selection: RepairInput, context: CommandContext<Progress>): Promise<RunReport | null> {
  const pipeline = await app.pipeline();
  for (const run of await findOpenRuns(pipeline, selection)) {
    const report = await waitForRun(app, run, context);
    if (report.state === 'stopped') return report;
  }
  const { request, skipped } = await planRepair(pipeline, selection, context.signal);
  return request ? followRun(app, await pipeline.runs.start(request), skipped, context) : null;
}

/** How much a repair would read; null where nothing is missing that may be asked for. */
async function repairPlan(app: App, selection: CoverageSelection, { signal }: CommandContext<never>): Promise<RunReport | null> {
  const pipeline = await app.pipeline();
  const { request, skipped } = await planRepair(pipeline, selection, signal);
  if (!request) return null;
  return { ...(await planOnly(pipeline, request)), not_asked: skipped, parked: [], heart_rate_path: null };
}
