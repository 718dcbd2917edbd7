import { UsageError } from '../base/errors.ts';
import { accessCommand } from '../base/sign-in-again.ts';
import { listAccounts } from '../ledger/accounts.ts';
import type { RunRequest } from '../ledger/runs.ts';
import type { DayRange } from '../ledger/windows.ts';
import { lastDays, prepareRequest, type Skipped } from '../sync/runs/backfill.ts';
import { planWindows } from '../sync/runs/plan-windows.ts';
import type { RunSummary } from '../sync/runs/run.ts';
import { askServiceClock } from '../sync/service-clock.ts';
import { startNightly } from '../sync/sweeps/nightly.ts';
import type { App } from './app.ts';
import type { CommandContext } from './control/command.ts';
import { sentenceOf, tellAlike } from './fixes.ts';
import { andGoOn, followRun, type RunReport, type ShownRun } from './follow-run.ts';

export interface BackfillInput extends Partial<DayRange> {
  /** The last days of the service’s calendar, in place of a range; a range without an end goes as far as they do. */
  last?: number;
  users?: string[];
  collections?: string[];
  refresh: boolean;
  /** Removes what the service no longer has, however much it is. */
  acceptDeletions?: boolean;
  /** Only counts what would be read. */
  plan: boolean;
  /** The run goes on when its caller goes away. */
  detach?: boolean;
}

export type { RunReport, ShownRun } from './follow-run.ts';

export interface NightlyInput {
  days: number;
  acceptDeletions?: boolean;
}

/** What the owner of a data folder reads from the service when it is told to. */
export const runCommands = { backfill, nightly };

async function backfill(app: App, input: BackfillInput, context: CommandContext<ShownRun>): Promise<RunReport> {
  const { warehouse, collections, secrets, settings } = app;
  const selected = { warehouse, collections, tokens: secrets };
  const selection = {
    ...(input.users ? { users: input.users } : {}),
    ...(input.collections ? { collections: input.collections } : {}),
  };
  const accepted = input.acceptDeletions ? { acceptDeletions: true as const } : {};
  const rest = { kind: 'backfill' as const, ...(await findRange(app, input, context.signal)), refresh: input.refresh, ...accepted };
  const { request, skipped } = await prepareRequest(selected, selection, rest);
  if (!request.users.length) throw nobodyToAsk(app, skipped);
  // Counting must not take up what an earlier run left open.
  if (input.plan) {
    const planned = await planOnly({ ...selected, settledDays: settings.settledDays }, request);
    return { ...planned, not_asked: skipped, parked: [], heart_rate_path: null };
  }
  ensureTokensReadable(app, request.users);
  const pipeline = await app.pipeline();
  return andGoOn(app, pipeline, context, async () => followRun(app, await pipeline.runs.start(request), skipped, context));
}

async function nightly(app: App, { days, acceptDeletions }: NightlyInput, context: CommandContext<ShownRun>): Promise<RunReport> {
  const accounts = await listAccounts(app.warehouse);
  if (!accounts.length) throw nobodyToAsk(app, []);
  ensureTokensReadable(
    app,
    accounts.map(({ userId }) => userId),
  );
  const pipeline = await app.pipeline();
  return andGoOn(app, pipeline, context, async () => {
    const { run, skipped } = await startNightly(pipeline, days, acceptDeletions, context.signal);
    if (!run.request.users.length) {
      await run.done;
      throw nobodyToAsk(app, skipped);
    }
    return followRun(app, run, skipped, context);
  });
}

/** A key that is missing or wrong concerns every account: it is said at once, and not once for each window. */
function ensureTokensReadable({ secrets }: App, users: readonly string[]): void {
  for (const user of users) {
    try {
      secrets.find(user);
    } catch (error) {
      if (error instanceof UsageError) throw error;
    }
  }
}

/** The days that are asked for. Where it depends on today, that is the service's. */
async function findRange(app: App, { from, to, last = 1, plan }: BackfillInput, signal: AbortSignal): Promise<DayRange> {
  if (from !== undefined && to !== undefined) return { from, to };
  const { settings, warehouse, serviceClock, secrets: tokens } = app;
  const asked =
    plan || !settings.serviceUrl
      ? serviceClock
      : await askServiceClock({ serviceClock, warehouse, client: await app.client(), tokens }, signal);
  const days = lastDays(last, asked);
  if (from === undefined) return days;
  if (from > days.to) throw new UsageError(`--from ${from} is in the future`);
  return { from, to: days.to };
}

function nobodyToAsk({ settings }: App, skipped: readonly Skipped[]): Error {
  const told = tellAlike(skipped).map(sentenceOf);
  return new NobodyToAsk(
    told.length
      ? `nobody can be asked: ${told.join('; ')}`
      : `there is no account yet in ${settings.data} (RINGNECK_DATA): ${accessCommand('NAME', settings)}`,
  );
}

class NobodyToAsk extends UsageError {
  override readonly exitCode = 1;
}

/** How much a request would read. */
export async function planOnly(parts: Parameters<typeof planWindows>[0], request: RunRequest): Promise<RunSummary> {
  const { windows, skipped } = await planWindows(parts, request);
  const nothing = { documents: 0, samples: 0, unchanged: 0, rejected: 0, removed: 0, requests: 0, waits: 0, failures: [] };
  const counts = { planned: windows.length, done: 0, skipped, failed: 0 };
  return { run: '', state: 'complete', from: request.from, to: request.to, windows: counts, ...nothing };
}
