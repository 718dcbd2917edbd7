import {
  hasRows,
  json,
  number,
  orNull,
  type Readable,
  type Row,
  readRow,
  readRows,
  readValue,
  readValues,
  text,
} from '../warehouse/rows.ts';
import type { LedgerEntry } from '../warehouse/sql.ts';
import { quoteText } from '../warehouse/sql.ts';
import type { DayRange } from './windows.ts';

export interface RunRequest extends DayRange {
  kind: 'backfill' | 'nightly' | 'sweep';
  users: readonly string[];
  collections: readonly string[];
  /** Reads again what is covered and settled. */
  refresh: boolean;
  /** Removes what the service no longer has, however much it is. */
  acceptDeletions?: true;
  /** Exactly these, and not the range of all. */
  spans?: readonly Span[];
}

/** Days of one collection of one account; where a collection has no dates, the days say nothing. */
export interface Span extends DayRange {
  userId: string;
  collection: string;
}

const RUN = { id: text, request: json<RunRequest>(), startedAt: number };

/** A run as the ledger has it; `startedAt` in microseconds. */
export type RecordedRun = Row<typeof RUN>;

const listRuns = (warehouse: Readable, where: string): Promise<RecordedRun[]> =>
  readRows(warehouse, RUN, `SELECT run_id, request::VARCHAR, started_at FROM sync.runs WHERE ${where} ORDER BY started_at DESC`);

/** The runs that nobody has ended, the latest first. */
export const listRunning = (warehouse: Readable): Promise<RecordedRun[]> => listRuns(warehouse, `state = 'running'`);

/** Those, and the backfills that were stopped and had begun by then. */
export const listResumable = (warehouse: Readable, sinceMicros: number): Promise<RecordedRun[]> =>
  listRuns(
    warehouse,
    `state = 'running' OR (state = 'stopped' AND kind = 'backfill' AND started_at >= make_timestamp(${sinceMicros}::BIGINT))`,
  );

/** The sweeps and nights that were not stopped, the latest first. */
export const listSweeps = (warehouse: Readable): Promise<RecordedRun[]> =>
  listRuns(warehouse, `kind IN ('sweep', 'nightly') AND state <> 'stopped'`);

/** Whether a run has come to its end. */
export const isRunOver = (warehouse: Readable, id: string): Promise<boolean> =>
  hasRows(warehouse, `SELECT 1 FROM sync.runs WHERE run_id = ${quoteText(id)} AND state <> 'running'`);

/** @throws Error where the ledger has no such run */
export async function findRunStart(warehouse: Readable, id: string): Promise<number> {
  return (await readRow(warehouse, { startedAt: number }, `SELECT started_at FROM sync.runs WHERE run_id = ${quoteText(id)}`)).startedAt;
}

/** When the last nightly run that read all it was to came to its end, in microseconds; null without one. */
export const findLastNightly = (warehouse: Readable): Promise<number | null | undefined> =>
  readValue(warehouse, orNull(number), `SELECT max(ended_at) FROM sync.runs WHERE kind = 'nightly' AND state = 'complete'`);

/** Since when there is something to read, in microseconds: the first account or run; undefined without any. */
export async function findBeginning(warehouse: Readable): Promise<number | undefined> {
  const at = await readValue(
    warehouse,
    orNull(number),
    `SELECT least((SELECT min(since) FROM sync.accounts WHERE state <> 'removed'), (SELECT min(started_at) FROM sync.runs))`,
  );
  return at ?? undefined;
}

/** What there was before a moment, and what there is, to tell whether a night was missed. */
export const countAround = (warehouse: Readable, dueMicros: number, nowMicros: number) =>
  readRow(
    warehouse,
    { accountsBefore: number, runsBefore: number, accounts: number, nightliesSince: number },
    `SELECT (SELECT count(*) FROM sync.accounts WHERE state <> 'removed' AND since < make_timestamp(${dueMicros}::BIGINT)),
            (SELECT count(*) FROM sync.runs WHERE started_at < make_timestamp(${dueMicros}::BIGINT)),
            (SELECT count(*) FROM sync.accounts WHERE state <> 'removed'),
            (SELECT count(*) FROM sync.runs WHERE kind = 'nightly' AND started_at BETWEEN make_timestamp(${dueMicros}::BIGINT)
               AND make_timestamp(${nowMicros}::BIGINT))`,
  );

/** When something was committed last, in microseconds, as far as that is not ahead of the clock: such a moment is of a time when it was wrong. */
export const findNewestCommit = (warehouse: Readable, nowMicros: number): Promise<number | null | undefined> =>
  readValue(
    warehouse,
    orNull(number),
    `SELECT max(moment) FROM (
       SELECT committed_at AS moment FROM sync.windows UNION ALL SELECT committed_at FROM sync.events
       UNION ALL SELECT greatest(started_at, ended_at) FROM sync.runs UNION ALL SELECT since FROM sync.accounts)
     WHERE moment <= make_timestamp(${nowMicros}::BIGINT)`,
  );

/** Of which runs windows are planned although the run itself was never recorded: their process did not bring the plan to its end. */
export const listBrokenPlans = (warehouse: Readable): Promise<string[]> =>
  readValues(
    warehouse,
    text,
    'SELECT DISTINCT run_id FROM sync.windows WHERE outcome IS NULL AND run_id NOT IN (SELECT run_id FROM sync.runs)',
  );

/** What takes such a plan away. */
export const noPlanEntry = (runId: string): LedgerEntry => ({ table: 'sync.windows', key: { run_id: runId, outcome: null } });

/** The ledger's row of a run. */
export function runEntry(id: string, request: RunRequest, state: string, startedAt: number, endedAt: number | null): LedgerEntry {
  const row = { kind: request.kind, started_at: startedAt, ended_at: endedAt, state, request: JSON.stringify(request) };
  return { table: 'sync.runs', key: { run_id: id }, row };
}
