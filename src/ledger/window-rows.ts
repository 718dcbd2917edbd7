import { json, number, oneOf, orNull, type Readable, type Row, readRow, readRows, text } from '../warehouse/rows.ts';
import type { LedgerEntry } from '../warehouse/sql.ts';
import { quoteText, textList } from '../warehouse/sql.ts';
import { type Coverage, type DayRange, type EarlierReading, OUTCOMES, type PlannedWindow } from './windows.ts';

/** What of the windows is meant: without names everything, without days all of them. */
export interface WindowSelection {
  users?: readonly string[];
  collections?: readonly string[];
  from?: string;
  to?: string;
}

const PLACE = { userId: text, collection: text, startAt: orNull(number), endAt: orNull(number) };

const RUN_WINDOW = { ...PLACE, outcome: orNull(oneOf(OUTCOMES)), removed: orNull(number), readAt: orNull(number) };

/** A window of a run, and what became of it. */
export type RunWindow = Row<typeof RUN_WINDOW>;

export const readRunWindows = (warehouse: Readable, runId: string): Promise<RunWindow[]> =>
  readRows(
    warehouse,
    RUN_WINDOW,
    `SELECT user_id, collection, start_at, end_at, outcome, removed, read_at FROM sync.windows
     WHERE run_id = ${quoteText(runId)} ORDER BY start_at, user_id`,
  );

/** The windows of a run without an outcome. */
export async function readPlanned(warehouse: Readable, runId: string): Promise<PlannedWindow[]> {
  const rows = await readRows(
    warehouse,
    PLACE,
    `SELECT user_id, collection, start_at, end_at FROM sync.windows WHERE run_id = ${quoteText(runId)} AND outcome IS NULL`,
  );
  return rows.map(row => ({ runId, ...row }));
}

/** The row of a window that is planned for the first time: no earlier one is there to be replaced. */
export const plannedEntry = ({ runId, userId, collection, startAt, endAt }: PlannedWindow): LedgerEntry => ({
  table: 'sync.windows',
  row: { run_id: runId, user_id: userId, collection, start_at: startAt, end_at: endAt },
});

/** How many windows the runs under way have still to read. */
export const countPlanned = async (warehouse: Readable): Promise<number> =>
  (
    await readRow(
      warehouse,
      { count: number },
      `SELECT count(*) FROM sync.windows JOIN sync.runs USING (run_id) WHERE outcome IS NULL AND state = 'running'`,
    )
  ).count;

const OPEN = { runId: text, userId: text, collection: text };

/** The first day that any run was to read of a collection; undefined where none was. */
export async function findFirstDay(warehouse: Readable, userId: string, collection: string): Promise<string | undefined> {
  const { day } = await readRow(
    warehouse,
    { day: orNull(text) },
    `SELECT min(start_at)::DATE::VARCHAR FROM sync.windows
     WHERE user_id = ${quoteText(userId)} AND collection = ${quoteText(collection)}`,
  );
  return day ?? undefined;
}

/** By which runs something of the selection is still to be read. */
export function listOpen(warehouse: Readable, { users, collections, from, to }: WindowSelection): Promise<Row<typeof OPEN>[]> {
  const conditions = [
    'outcome IS NULL',
    ...(users?.length ? [`user_id IN (${textList(users)})`] : []),
    ...(collections?.length ? [`collection IN (${textList(collections)})`] : []),
    ...(from ? [`(end_at IS NULL OR end_at > DATE ${quoteText(from)})`] : []),
    ...(to ? [`(start_at IS NULL OR start_at <= DATE ${quoteText(to)})`] : []),
  ];
  return readRows(warehouse, OPEN, `SELECT DISTINCT run_id, user_id, collection FROM sync.windows WHERE ${conditions.join(' AND ')}`);
}

/** By what `earlierKey` names, the last reading of each range of an account by which the same answer is known again. */
export async function readEarlier(warehouse: Readable, userId: string, { from, to }: DayRange): Promise<Map<string, EarlierReading>> {
  const rows = await readRows(
    warehouse,
    {
      collection: text,
      startAt: number,
      endAt: number,
      requestedAt: number,
      route: orNull(text),
      pages: text,
      documents: number,
      rowsByDay: orNull(json<number[]>()),
    },
    `SELECT collection, start_at, end_at, requested_at, route, pages, documents, rows_by_day::VARCHAR FROM sync.windows
     WHERE user_id = ${quoteText(userId)} AND outcome = 'complete' AND pages IS NOT NULL AND start_at <= DATE '${to}' AND end_at > DATE '${from}'
     ORDER BY committed_at`,
  );
  return new Map(
    rows.map(({ collection, startAt, endAt, rowsByDay, ...reading }) => [
      earlierKey(collection, startAt, endAt),
      { ...reading, rowsByDay: rowsByDay ?? [] },
    ]),
  );
}

export const earlierKey = (collection: string, startAt: number | null, endAt: number | null): string => `${collection} ${startAt} ${endAt}`;

/** What was read of an account, by collection. */
export async function readCompletions(warehouse: Readable, userId: string, { from, to }: DayRange): Promise<Map<string, Coverage[]>> {
  const rows = await readRows(
    warehouse,
    { collection: text, startAt: number, endAt: number, readAt: number },
    `SELECT collection, start_at, end_at, sync.over_at(service_at, read_at) FROM sync.windows
     WHERE user_id = ${quoteText(userId)} AND outcome = 'complete' AND sync.over_at(service_at, read_at) IS NOT NULL
       AND start_at <= DATE '${to}' AND end_at > DATE '${from}'`,
  );
  const coverage = new Map<string, Coverage[]>();
  for (const { collection, ...range } of rows) {
    const list = coverage.get(collection);
    if (list) list.push(range);
    else coverage.set(collection, [range]);
  }
  return coverage;
}

const READ = { startAt: orNull(number), endAt: orNull(number), requestedAt: number };

/** The complete readings of a collection that were asked for before a moment, the latest first. */
export const listReadingsBefore = (
  warehouse: Readable,
  { userId, collection, before }: { userId: string; collection: string; before: number },
): Promise<Row<typeof READ>[]> =>
  readRows(
    warehouse,
    READ,
    `SELECT start_at, end_at, requested_at FROM sync.windows
     WHERE user_id = ${quoteText(userId)} AND collection = ${quoteText(collection)} AND outcome = 'complete'
       AND requested_at < make_timestamp(${before}::BIGINT)
     ORDER BY requested_at DESC`,
  );

/** What a run reads of a collection of an account, as stretches without gaps, and how much it has taken away of that. */
export async function readRunSpans(
  warehouse: Readable,
  { runId, userId, collection }: Pick<PlannedWindow, 'runId' | 'userId' | 'collection'>,
): Promise<{ spans: { startAt: number | null; endAt: number | null }[]; removed: number }> {
  const rows = await readRows(
    warehouse,
    { startAt: orNull(number), endAt: orNull(number), removed: orNull(number) },
    `SELECT start_at, end_at, removed FROM sync.windows
     WHERE run_id = ${quoteText(runId)} AND user_id = ${quoteText(userId)} AND collection = ${quoteText(collection)} ORDER BY start_at`,
  );
  const spans: { startAt: number | null; endAt: number | null }[] = [];
  let removed = 0;
  for (const { removed: count, ...span } of rows) {
    removed += count ?? 0;
    const last = spans.at(-1);
    if (last?.endAt != null && span.startAt !== null && span.endAt !== null && span.startAt <= last.endAt) {
      last.endAt = Math.max(last.endAt, span.endAt);
    } else spans.push(span);
  }
  return { spans, removed };
}
