import { dayNumberOf, formatDay, MICROS_PER_DAY, type MomentRange } from '../../schema/instant.ts';
import type { RequestTimes } from '../client/client.ts';
import type { LedgerEntry, Value } from '../warehouse/sql.ts';
import type { WriteResult } from '../warehouse/write-result.ts';

/**
 * Ranges of documents are widened on both sides: a service may leave out the last day, or file a night under the next one.
 * Whatever comes is kept, so that a reading without an end may have brought a part of these days too: as sync.coverage_between has it.
 */
export const WIDENED_DAYS = 2;

/** A range that one job collects, in microseconds UTC, `endAt` excluded; both null where a collection has no dates. */
export interface Window {
  userId: string;
  collection: string;
  startAt: number | null;
  endAt: number | null;
  /** The same range was read before, and all that came was stored. */
  earlier?: EarlierReading | undefined;
}

/** What the ledger has of a reading by which the same answer is known again. */
export interface EarlierReading {
  requestedAt: number;
  route: string | null;
  /** As `windowEntry` is given them. */
  pages: string;
  documents: number;
  rowsByDay: readonly number[];
}

/** Days, both included. */
export interface DayRange {
  from: string;
  to: string;
}

/** A window that was read completely. */
export interface Coverage {
  startAt: number;
  endAt: number;
  /** When its first request was sent, as `sync.over_at` tells it: what is over then is over by each clock that counts. */
  readAt: number;
}

/**
 * Cuts a range of days into windows of at most `size` days, leaving out, day by day, what is settled: read completely at least
 * `settledDays` after the day's end. Also counts the pieces that are left out whole.
 */
export function planDays(
  range: DayRange,
  size: number,
  settled: { coverage: readonly Coverage[]; settledDays: number } | undefined,
): { spans: MomentRange[]; skipped: number } {
  const first = dayNumberOf(range.from);
  const last = dayNumberOf(range.to);
  const isSettled = (day: number) =>
    settled?.coverage.some(
      ({ startAt, endAt, readAt }) =>
        startAt <= day * MICROS_PER_DAY &&
        endAt >= (day + 1) * MICROS_PER_DAY &&
        readAt >= (day + 1 + settled.settledDays) * MICROS_PER_DAY,
    ) ?? false;
  const spans: MomentRange[] = [];
  let skipped = 0;
  for (let start = first; start <= last; start += size) {
    const end = Math.min(start + size - 1, last);
    let open: MomentRange | undefined;
    const before = spans.length;
    for (let day = start; day <= end; day++) {
      if (isSettled(day)) {
        open = undefined;
      } else if (open) {
        open.endAt = (day + 1) * MICROS_PER_DAY;
      } else {
        open = { startAt: day * MICROS_PER_DAY, endAt: (day + 1) * MICROS_PER_DAY };
        spans.push(open);
      }
    }
    if (spans.length === before) skipped++;
  }
  return { spans, skipped };
}

/** An answer that is more than can be held at once: its window is to be read in parts. */
export class TooLarge extends Error {}

/** Where a window begins and ends; undefined where its collection has no dates. */
export const rangeOf = ({ startAt, endAt }: Window): MomentRange | undefined =>
  startAt === null || endAt === null ? undefined : { startAt, endAt };

/** Whether a window can be read in parts: those are whole days. */
export function hasSeveralDays(window: Window): boolean {
  const range = rangeOf(window);
  return range !== undefined && range.endAt - range.startAt > MICROS_PER_DAY;
}

/** So many parts are made of one, unless it has fewer days. */
const PARTS = 4;

/** Parts of whole days, for a day that is read in two pieces would never be settled. */
export function cutWindow<W extends Window>(window: W): W[] {
  const range = rangeOf(window);
  if (!range) return [window];
  const size = Math.ceil((range.endAt - range.startAt) / MICROS_PER_DAY / PARTS);
  return planDays(daysOf(range), size, undefined).spans.map(span => ({ ...window, earlier: undefined, ...span }));
}

/** The days of a window, both included. */
export function daysOf({ startAt, endAt }: MomentRange): DayRange {
  return { from: formatDay(Math.floor(startAt / MICROS_PER_DAY)), to: formatDay(Math.ceil(endAt / MICROS_PER_DAY) - 1) };
}

/** A window of a run. */
export interface PlannedWindow extends Window {
  runId: string;
}

/** Of what came, how many could not be stored, and of how many of these the day is unknown. */
export type Rejects = Pick<WriteResult, 'rejected' | 'undated'>;

/** What a job of the queue holds: an account, whose windows in a run are to be worked off. */
export interface AccountJob {
  runId: string;
  /** The part of the run that enqueued it. */
  part: string;
  number: number;
  userId: string;
}

const windowKey = ({ runId, userId, collection, startAt }: PlannedWindow): Readonly<Record<string, Value>> => ({
  run_id: runId,
  user_id: userId,
  collection,
  start_at: startAt,
});

export const OUTCOMES = ['complete', 'failed', 'not_offered', 'not_authorised', 'suspicious', 'stopped'] as const;

/** What became of a window. */
export type Outcome = (typeof OUTCOMES)[number];

/** The ledger's row of a window. */
export function windowEntry(
  window: PlannedWindow,
  result: Partial<RequestTimes> & {
    outcome: Outcome | null;
    reason?: string | undefined;
    requests?: number;
    documents?: number;
    removed?: number | undefined;
    route?: string | undefined;
    committedAt?: number;
    rowsByDay?: readonly number[] | undefined;
    pages?: string | undefined;
    rejects?: Rejects | undefined;
  },
): LedgerEntry {
  return {
    table: 'sync.windows',
    key: windowKey(window),
    row: {
      end_at: window.endAt,
      requested_at: result.requestedAt || null,
      read_at: result.readAt || null,
      service_at: result.serviceAt ?? null,
      committed_at: result.committedAt ?? null,
      requests: result.requests ?? null,
      documents: result.documents ?? null,
      removed: result.removed ?? null,
      route: result.route ?? null,
      outcome: result.outcome,
      reason: result.reason ?? null,
      rows_by_day: result.rowsByDay ? JSON.stringify(result.rowsByDay) : null,
      pages: result.pages ?? null,
      rejected: result.rejects?.rejected ?? null,
      rejected_undated: result.rejects?.undated ?? null,
    },
  };
}
