import { addDays, dayNumberOf, dayOfMicros } from '../../schema/instant.ts';
import { UsageError } from '../base/errors.ts';
import { noAccount } from '../base/no-account.ts';
import { listAllNames, listNames } from '../ledger/accounts.ts';
import { type CoverageRun, type CoverageState, findFirstPlanned, readCoverageRuns } from '../ledger/coverage.ts';
import type { RunRequest, Span } from '../ledger/runs.ts';
import { listOpen, type WindowSelection } from '../ledger/window-rows.ts';
import type { DayRange } from '../ledger/windows.ts';
import type { Pipeline } from './pipeline.ts';
import { bothNows, prepareRequest, type Skipped } from './runs/backfill.ts';
import type { Run } from './runs/run.ts';
import { askServiceClock } from './service-clock.ts';

/** States that another reading may change; of what is stored see findMissing. */
export const MISSING: readonly CoverageState[] = ['failed', 'suspicious', 'pending', 'not_asked'];

export interface CoverageReport {
  from: string;
  to: string;
  /** The last day that is over. */
  over: string;
  runs: CoverageRun[];
}

/** As the reason of what is stored begins in sync.coverage where more may have come since. */
const READ_EARLY = 'last read before the day was over';
const READ_IN_VAIN = 'failed when last read';
const REFUSED = 'was refused when last read, and may be asked again';

/** What another reading may change. */
export function findMissing({ runs, over }: CoverageReport): CoverageRun[] {
  return runs.flatMap(run => (MISSING.includes(run.state) ? run : overOf(run, over, [READ_EARLY, READ_IN_VAIN, REFUSED])));
}

/** What is stored of days that were last read before they were over, and are so now. */
export function findReadEarly({ runs, over }: CoverageReport): CoverageRun[] {
  return runs.flatMap(run => overOf(run, over, [READ_EARLY]));
}

/** What is stored of days that are over, where its reason is one of these. */
function overOf(run: CoverageRun, over: string, reasons: readonly string[]): CoverageRun[] {
  const { state, reason, from, to } = run;
  if (state !== 'stored' || !reasons.some(begin => reason?.startsWith(begin)) || (from ?? over) > over) return [];
  return [to !== null && to > over ? { ...run, to: over } : run];
}

/** Without names everything; without days those from the first planned one to yesterday (UTC), which is over by the service's clock and by ours. */
export type CoverageSelection = WindowSelection;

/**
 * Of each day there is a row for each account and collection. More of them at once do not fit into the memory that storing has. Accounts
 * are asked about one group after another, each with as many days as there are.
 */
const MOST_ROWS = 30_000;
const MOST_DAYS = 36_525;

type Parts = Pick<Pipeline, 'warehouse' | 'collections' | 'serviceClock'>;

/**
 * What is known of each account, collection and day, where no end is named to the day before `nowMs`. Accounts that were removed are there
 * when they are named.
 * @throws UsageError for an account or a collection that does not exist, or a range that is none
 */
export async function readCoverage(
  parts: Parts,
  selection: CoverageSelection,
  nowMs = bothNows(parts.serviceClock)[0],
): Promise<CoverageReport> {
  const { collections } = parts;
  const { collections: chosen } = selection;
  await ensureKnown(parts, selection);
  const { from, to } = await findRange(parts, selection, nowMs);
  const accounts = await listNames(parts.warehouse, selection.users);
  const days = Math.min(dayNumberOf(to) - dayNumberOf(from) + 1, Math.max(1, Math.floor(MOST_ROWS / collections.length)));
  const together = Math.max(1, Math.floor(MOST_ROWS / (collections.length * days)));
  const places = new Map(collections.map(({ name }, index) => [name, index]));
  const placeOf = ({ collection }: CoverageRun) => places.get(collection) ?? places.size;
  const runs: CoverageRun[] = [];
  for (let index = 0; index < accounts.length; index += together) {
    const part: CoverageRun[] = [];
    for (let first = from; first <= to; first = addDays(first, days)) {
      const [last = to] = [addDays(first, days - 1), to].sort();
      const some = accounts.slice(index, index + together);
      const which = { collections: chosen, withUndated: first === from };
      part.push(...(await readCoverageRuns(parts.warehouse, some, { from: first, to: last }, which)));
    }
    // The sort is stable: within one account and collection the days stay in their order.
    part.sort((a, b) => compare(a.user_id, b.user_id) || placeOf(a) - placeOf(b));
    for (const run of joinRuns(part)) runs.push(run);
  }
  return { from, to, over: addDays(dayOfMicros(bothNows(parts.serviceClock)[0] * 1000), -1), runs };
}

/** Neighbours of which the same is known, as one. */
function joinRuns(runs: readonly CoverageRun[]): CoverageRun[] {
  const joined: CoverageRun[] = [];
  for (const run of runs) {
    const last = joined.at(-1);
    const isAlike = (['user_id', 'collection', 'state', 'reason'] as const).every(key => last?.[key] === run[key]);
    if (last?.to && isAlike && addDays(last.to, 1) === run.from) last.to = run.to;
    else joined.push(run);
  }
  return joined;
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

async function ensureKnown({ warehouse, collections }: Parts, { users = [], collections: chosen = [] }: CoverageSelection): Promise<void> {
  const known = await listAllNames(warehouse);
  for (const user of users) {
    if (!known.includes(user)) throw noAccount(user, known);
  }
  const names = collections.map(({ name }) => name);
  for (const name of chosen) {
    if (!names.includes(name)) throw new UsageError(`no collection ${JSON.stringify(name)}: there are ${names.join(', ')}`);
  }
}

async function findRange(parts: Parts, selection: CoverageSelection, nowMs: number): Promise<DayRange> {
  const range = await findDays(parts, selection, nowMs);
  if (dayNumberOf(range.to) - dayNumberOf(range.from) >= MOST_DAYS) {
    throw new UsageError(
      `${range.from} to ${range.to} is more than 100 years: name days that are nearer to each other with --from and --to`,
    );
  }
  return range;
}

async function findDays({ warehouse }: Parts, selection: CoverageSelection, nowMs: number): Promise<DayRange> {
  const to = selection.to ?? addDays(dayOfMicros(nowMs * 1000), -1);
  if (selection.from) {
    if (selection.from > to)
      throw new UsageError(`--from ${selection.from} is after ${selection.to ? `--to ${to}` : `yesterday (UTC), ${to}`}`);
    return { from: selection.from, to };
  }
  const [from = to] = [to, (await findFirstPlanned(warehouse, selection.users)) ?? to].sort();
  return { from, to };
}

/** The runs under way that still have to read something of the selection. */
export async function findOpenRuns(
  { warehouse, runs }: Pick<Pipeline, 'warehouse' | 'runs'>,
  selection: CoverageSelection,
): Promise<Run[]> {
  return (await listOpen(warehouse, selection)).flatMap(({ runId }) => runs.find(runId) ?? []).filter(unique);
}

const unique = <T>(item: T, index: number, all: readonly T[]) => all.indexOf(item) === index;

/**
 * The request that reads exactly what is missing up to today (UTC), and what it leaves out because nobody may ask for it; no request where
 * nothing is missing. What a run under way is about to read is left to it.
 */
export async function planRepair(
  pipeline: Parts & Pick<Pipeline, 'runs' | 'client' | 'tokens'>,
  given: CoverageSelection,
  signal?: AbortSignal,
): Promise<{ request?: RunRequest; skipped: Skipped[] }> {
  const [, laterMs] = bothNows(await askServiceClock(pipeline, signal));
  const today = dayOfMicros(laterMs * 1000);
  // Of what is to come nobody can ask; what one of the clocks only calls so may be there.
  const selection = given.to !== undefined && given.to > today ? { ...given, to: today } : given;
  if (given.to !== selection.to && given.from !== undefined && given.from > today) return { skipped: [] };
  const report = await readCoverage(pipeline, selection, laterMs);
  const { from, to } = report;
  const missing = findMissing(report);
  if (!missing.length) return { skipped: [] };
  const rest = { kind: 'backfill' as const, from, to, refresh: true };
  const { request, skipped } = await prepareRequest(pipeline, await withoutRemoved(pipeline, selection), rest);
  const closed = new Set(skipped.map(({ user_id, collection }) => `${user_id}\n${collection ?? ''}`));
  const open = (await listOpen(pipeline.warehouse, selection)).filter(({ runId }) => pipeline.runs.find(runId));
  const read = new Set(open.map(({ userId, collection }) => `${userId}\n${collection}`));
  const asked = missing.filter(
    ({ user_id, collection, state }) =>
      request.users.includes(user_id) &&
      !closed.has(`${user_id}\n${collection}`) &&
      !(state === 'pending' && read.has(`${user_id}\n${collection}`)),
  );
  if (!asked.length) return { skipped };
  const spans = asked.map(run => ({ userId: run.user_id, collection: run.collection, from: run.from ?? from, to: run.to ?? to }));
  const isAsked = (userId: string, name: string) => spans.some(span => span.userId === userId && span.collection === name);
  // What is read of one may name documents of another.
  const named = pipeline.collections.flatMap(({ name: collection, namedBy }) =>
    request.users
      .filter(userId => namedBy && isAsked(userId, namedBy) && !isAsked(userId, collection))
      .filter(userId => request.collections.includes(collection) && !closed.has(`${userId}\n${collection}`))
      .map(userId => ({ userId, collection, from, to })),
  );
  return { request: { ...request, spans: joinSpans([...spans, ...named]) }, skipped };
}

/** A removed account may be looked at, and is not asked. */
async function withoutRemoved({ warehouse }: Parts, { users, collections }: CoverageSelection) {
  const asked = users?.length ? await listNames(warehouse) : [];
  const left = users?.filter(user => asked.includes(user));
  return { ...(left?.length ? { users: left } : {}), ...(collections ? { collections } : {}) };
}

/** Neighbours of one account and collection together, whatever is missing about each. */
function joinSpans(spans: readonly Span[]): Span[] {
  const joined: Span[] = [];
  for (const span of spans) {
    const last = joined.at(-1);
    const follows = last?.userId === span.userId && last.collection === span.collection && addDays(last.to, 1) === span.from;
    if (follows) joined[joined.length - 1] = { ...last, to: span.to };
    else joined.push(span);
  }
  return joined;
}
