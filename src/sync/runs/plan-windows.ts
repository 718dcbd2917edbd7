import { setImmediate } from 'node:timers/promises';
import { addDays, MICROS_PER_DAY } from '../../../schema/instant.ts';
import { isOneTime } from '../../client/service-clock.ts';
import { listParkedCollections } from '../../ledger/accounts.ts';
import { type EarlierDays, findReach } from '../../ledger/reach.ts';
import type { RunRequest, Span } from '../../ledger/runs.ts';
import { findUnended } from '../../ledger/unended.ts';
import { findUnread } from '../../ledger/unread.ts';
import { earlierKey, readCompletions, readEarlier } from '../../ledger/window-rows.ts';
import { type Coverage, type DayRange, type PlannedWindow, planDays } from '../../ledger/windows.ts';
import type { Pipeline } from '../pipeline.ts';
import { bothNows } from './backfill.ts';

/**
 * The windows that a request needs, one user after the other. Changes nothing.
 * @param earlier days beside those of the request
 */
export async function planWindows(
  { warehouse, collections, settledDays }: Pick<Pipeline, 'warehouse' | 'collections' | 'settledDays'>,
  request: RunRequest,
  runId = '',
  earlier: EarlierDays = { reach: [], apart: [] },
): Promise<{ windows: PlannedWindow[]; skipped: number }> {
  const parked = new Set((await listParkedCollections(warehouse)).map(({ userId, collection }) => `${userId}\n${collection}`));
  const [reach, apart] = [byPlace(earlier.reach), byPlace(earlier.apart)];
  let skipped = 0;
  const lists: PlannedWindow[][] = [];
  for (const userId of request.users) {
    // Years of many people are much to plan: events go between.
    await setImmediate();
    const known = request.refresh ? await readEarlier(warehouse, userId, request) : undefined;
    const coverage = request.refresh ? new Map<string, Coverage[]>() : await readCompletions(warehouse, userId, request);
    const list: PlannedWindow[] = [];
    const add = (collection: string, startAt: number | null, endAt: number | null) => {
      const reading = known?.get(earlierKey(collection, startAt, endAt));
      list.push({ userId, collection, startAt, endAt, runId, ...(reading && { earlier: reading }) });
    };
    for (const { name, windowDays } of collections) {
      if (!request.collections.includes(name) || parked.has(`${userId}\n${name}`)) continue;
      const place = `${userId}\n${name}`;
      const ranges = [...joinNeighbours([...rangesOf(request, userId, name), ...(reach.get(place) ?? [])]), ...(apart.get(place) ?? [])];
      if (windowDays === undefined) {
        if (ranges.length) add(name, null, null);
        continue;
      }
      const settled = request.refresh ? undefined : { coverage: coverage.get(name) ?? [], settledDays };
      for (const range of ranges) {
        const plan = planDays(range, windowDays, settled);
        skipped += plan.skipped;
        for (const { startAt, endAt } of plan.spans) add(name, startAt, endAt);
      }
    }
    lists.push(list);
  }
  return { windows: lists.flat(), skipped };
}

/** All days before those of a sweep or a night that it reads too. */
export async function findEarlierDays(
  pipeline: Pick<Pipeline, 'warehouse' | 'collections' | 'serviceClock' | 'now'>,
  request: Pick<RunRequest, 'kind' | 'users' | 'collections' | 'from'>,
): Promise<EarlierDays> {
  const { warehouse, serviceClock, now } = pipeline;
  const [earlier, later] = bothNows(serviceClock);
  const dayNumber = (ms: number) => Math.floor((ms * 1000) / MICROS_PER_DAY);
  const isFar = !isOneTime(serviceClock.aheadMs ?? 0);
  const clocks = { today: dayNumber(earlier), latest: dayNumber(later), isFar, nowMicros: now() * 1000 };
  const { reach, apart } = await findReach(warehouse, request, clocks);
  const known = [...(await findUnread(pipeline, request)), ...apart];
  const unended = request.kind === 'nightly' ? await findUnended(warehouse, request, pipeline.collections) : [];
  return { reach, apart: [...known, ...unended.filter(span => ![...known, ...reach].some(other => holds(other, span)))] };
}

const holds = (span: Span, { userId, collection, from, to }: Span) =>
  span.userId === userId && span.collection === collection && span.from <= from && span.to >= to;

function byPlace(spans: readonly Span[]): Map<string, Span[]> {
  const places = new Map<string, Span[]>();
  for (const span of spans) {
    const place = `${span.userId}\n${span.collection}`;
    const list = places.get(place);
    if (list) list.push(span);
    else places.set(place, [span]);
  }
  return places;
}

/** Ranges that follow each other day by day as one. */
function joinNeighbours(ranges: readonly DayRange[]): DayRange[] {
  const joined: DayRange[] = [];
  for (const { from, to } of ranges.toSorted((a, b) => (a.from < b.from ? -1 : 1))) {
    const last = joined.at(-1);
    if (last && from === addDays(last.to, 1)) last.to = to;
    else joined.push({ from, to });
  }
  return joined;
}

const rangesOf = (request: RunRequest, userId: string, collection: string): readonly DayRange[] =>
  request.spans?.filter(span => span.userId === userId && span.collection === collection) ?? [request];
