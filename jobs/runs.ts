import { randomUUID } from 'node:crypto';
import { formatDay, MICROS_PER_DAY } from '../schema/instant.ts';
import { TryLaterError } from '../src/errors.ts';
import type { Counts, LedgerEntry, Value } from '../src/warehouse/warehouse.ts';
import { listParkedCollections } from './accounts.ts';
import type { Outcome } from './outcome.ts';
import { ATTEMPTS } from './outcome.ts';
import type { Pipeline } from './pipeline.ts';
import type { Coverage, DayRange, Window } from './windows.ts';
import { planDays } from './windows.ts';

export interface RunRequest extends DayRange {
  kind: 'backfill' | 'nightly';
  users: readonly string[];
  collections: readonly string[];
  /** Reads again what is covered and settled. */
  refresh: boolean;
}

export interface Failure {
  user_id: string;
  collection: string;
  from: string | null;
  to: string | null;
  kind: string;
  message: string;
}

export interface Progress {
  windows: { planned: number; done: number; skipped: number; failed: number };
  documents: number;
  samples: number;
  unchanged: number;
  rejected: number;
  requests: number;
  waits: number;
}

export interface RunSummary extends Progress {
  run: string;
  state: 'complete' | 'failed' | 'stopped';
  from: string;
  to: string;
  failures: Failure[];
}

/** A window of a run, with the number that names its job. */
export interface PlannedWindow extends Window {
  runId: string;
  number: number;
}

/** The queue of windows to collect belongs to one warehouse: two of them may share a Redis. */
export const collectQueue = async (warehouse: Pipeline['warehouse']): Promise<string> => `collect-${await warehouseId(warehouse)}`;

export const scheduleQueue = async (warehouse: Pipeline['warehouse']): Promise<string> => `schedule-${await warehouseId(warehouse)}`;

async function warehouseId(warehouse: Pipeline['warehouse']): Promise<string> {
  const [row] = await warehouse.read(`SELECT value FROM sync.meta WHERE key = 'id'`);
  if (row) return row[0] as string;
  const id = randomUUID().slice(0, 8);
  await warehouse.record([{ table: 'sync.meta', key: { key: 'id' }, row: { value: id } }]);
  return id;
}

const windowKey = ({ runId, userId, collection, startAt }: PlannedWindow): Readonly<Record<string, Value>> => ({
  run_id: runId,
  user_id: userId,
  collection,
  start_at: startAt,
});

/** The ledger's row of a window. */
export function windowEntry(
  window: PlannedWindow,
  result: { outcome: Outcome | null; reason?: string; requestedAt?: number; requests?: number; documents?: number; committedAt?: number },
): LedgerEntry {
  return {
    table: 'sync.windows',
    key: windowKey(window),
    row: {
      end_at: window.endAt,
      requested_at: result.requestedAt || null,
      committed_at: result.committedAt ?? null,
      requests: result.requests ?? null,
      documents: result.documents ?? null,
      outcome: result.outcome,
      reason: result.reason ?? null,
    },
  };
}

/** One run under way in this process. */
export class Run {
  readonly id: string;
  readonly request: RunRequest;
  readonly progress: Progress;
  readonly failures: Failure[] = [];
  readonly done: Promise<RunSummary>;
  readonly #pending = new Map<number, PlannedWindow>();
  readonly #stopping = new AbortController();
  readonly #end: (run: Run) => Promise<void>;
  readonly #nextStage: (windows: PlannedWindow[]) => Promise<void>;
  #later: PlannedWindow[];
  #resolve!: (summary: RunSummary) => void;
  #reject!: (error: unknown) => void;

  constructor(parts: {
    id: string;
    request: RunRequest;
    windows: readonly PlannedWindow[];
    /** Those that need what the others bring: enqueued when all others are settled. */
    later: readonly PlannedWindow[];
    alreadyDone: number;
    skipped: number;
    enqueue: (windows: PlannedWindow[]) => Promise<void>;
    end: (run: Run) => Promise<void>;
  }) {
    this.id = parts.id;
    this.request = parts.request;
    this.#end = parts.end;
    this.#nextStage = parts.enqueue;
    this.#later = [...parts.later];
    for (const window of parts.windows) this.#pending.set(window.number, window);
    const planned = parts.windows.length + parts.later.length + parts.alreadyDone;
    this.progress = {
      windows: { planned, done: parts.alreadyDone, skipped: parts.skipped, failed: 0 },
      documents: 0,
      samples: 0,
      unchanged: 0,
      rejected: 0,
      requests: 0,
      waits: 0,
    };
    this.done = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    // Whoever waits for the run hears of it; a run that nobody waits for must not end the process.
    this.done.catch(() => undefined);
  }

  get signal(): AbortSignal {
    return this.#stopping.signal;
  }

  isPending(number: number): boolean {
    return this.#pending.has(number);
  }

  /** Starts working the windows off. */
  async begin(): Promise<void> {
    await this.#nextStage([...this.#pending.values()]);
    await this.#advance();
  }

  count(counts: Counts, documents: number): void {
    this.progress.documents += documents;
    this.progress.samples += counts.samples;
    this.progress.unchanged += counts.unchanged;
    this.progress.rejected += counts.rejected;
  }

  /** A window has its outcome, which is in the ledger. A job that ran twice settles once. */
  async settle(window: PlannedWindow, outcome: Outcome, reason: string | undefined, kind: string): Promise<void> {
    if (!this.#pending.delete(window.number)) return;
    if (outcome === 'complete' || outcome === 'not_offered') this.progress.windows.done++;
    else if (outcome !== 'stopped') {
      this.progress.windows.failed++;
      this.#addFailure(window, kind, reason ?? outcome);
    }
    await this.#advance();
  }

  /** Failures of one collection for one reason are one failure over their whole range. */
  #addFailure({ userId, collection, startAt, endAt }: PlannedWindow, kind: string, message: string): void {
    const from = startAt === null ? null : formatDay(Math.floor(startAt / MICROS_PER_DAY));
    const to = endAt === null ? null : formatDay(Math.ceil(endAt / MICROS_PER_DAY) - 1);
    const same = this.failures.find(f => f.user_id === userId && f.collection === collection && f.kind === kind && f.message === message);
    if (!same) this.failures.push({ user_id: userId, collection, from, to, kind, message });
    else {
      if (from && (!same.from || from < same.from)) same.from = from;
      if (to && (!same.to || to > same.to)) same.to = to;
    }
  }

  async #advance(): Promise<void> {
    if (this.#pending.size) return;
    if (this.#later.length && !this.signal.aborted) {
      const next = this.#later;
      this.#later = [];
      for (const window of next) this.#pending.set(window.number, window);
      await this.#nextStage(next);
      return;
    }
    try {
      await this.#end(this);
      this.#resolve(this.summary());
    } catch (error) {
      this.#reject(error);
    }
  }

  /** Stops reading; what is not yet read is marked as stopped and waits for the same command. */
  async stop(): Promise<void> {
    if (this.signal.aborted) return;
    this.#stopping.abort();
    this.#pending.clear();
    await this.#advance();
  }

  /** Stops reading and leaves the ledger as it is: the next start takes the run up. */
  suspend(reason: Error): void {
    if (this.signal.aborted) return;
    this.#stopping.abort();
    this.#reject(reason);
  }

  get state(): RunSummary['state'] {
    if (this.signal.aborted) return 'stopped';
    return this.failures.length ? 'failed' : 'complete';
  }

  summary(): RunSummary {
    const { from, to } = this.request;
    return { run: this.id, state: this.state, from, to, ...structuredClone(this.progress), failures: [...this.failures] };
  }
}

/** The runs of the process that owns the warehouse. The ledger is the truth, the queue a to-do list that may be lost. */
export class Runs {
  readonly #active = new Map<string, Run>();
  #pipeline!: Pipeline;
  #queue!: string;

  /** Empties the queue (its jobs may be half done, their locks held by the dead) and takes up what the ledger says is unfinished. */
  async open(pipeline: Pipeline): Promise<void> {
    this.#pipeline = pipeline;
    this.#queue = await collectQueue(pipeline.warehouse);
    await pipeline.queues.queue(this.#queue).obliterate({ force: true });
    for (const { id, request } of await this.#unfinished(`state = 'running'`)) await this.#resume(id, request);
  }

  find(id: string): Run | undefined {
    return this.#active.get(id);
  }

  active(): Run[] {
    return [...this.#active.values()];
  }

  /** Leaves every run to the next start. */
  close(): void {
    const reason = new TryLaterError('the process ends before the run does: it goes on at the next start');
    for (const run of this.#active.values()) run.suspend(reason);
    this.#active.clear();
  }

  /**
   * Plans a run and starts it; `plan` alone counts what it would read. The same request as that of a run that was stopped or
   * interrupted less than a day ago goes on with that run.
   */
  async start(request: RunRequest): Promise<Run> {
    const same = JSON.stringify(request);
    for (const run of this.#active.values()) if (JSON.stringify(run.request) === same) return run;
    const since = this.#pipeline.now() * 1000 - MICROS_PER_DAY;
    const [stopped] = (await this.#unfinished(`state = 'stopped' AND started_at >= make_timestamp(${since}::BIGINT)`)).filter(
      run => JSON.stringify(run.request) === same,
    );
    if (stopped) {
      await this.#recordRun(stopped.id, request, 'running', stopped.startedAt, null);
      return this.#resume(stopped.id, request);
    }
    const id = randomUUID();
    const { windows, skipped } = await this.plan(request, id);
    await this.#pipeline.warehouse.record([
      this.#runEntry(id, request, 'running', this.#pipeline.now() * 1000, null),
      // A new run has no earlier rows to replace.
      ...windows.map(window => {
        const { table, key, row } = windowEntry(window, { outcome: null });
        return { table, row: { ...key, ...row } };
      }),
    ]);
    return this.#begin(id, request, windows, 0, skipped);
  }

  /** The windows that a request needs, users side by side. */
  async plan(request: RunRequest, runId = ''): Promise<{ windows: PlannedWindow[]; skipped: number }> {
    const coverage = request.refresh ? new Map<string, Coverage[]>() : await this.#coverage();
    const parked = new Set(
      (await listParkedCollections(this.#pipeline.warehouse)).map(({ userId, collection }) => `${userId}\n${collection}`),
    );
    let skipped = 0;
    const lists = request.users.map(userId => {
      const windows: Window[] = [];
      for (const collection of this.#pipeline.collections) {
        if (!request.collections.includes(collection.name) || parked.has(`${userId}\n${collection.name}`)) continue;
        if (collection.windowDays === undefined) {
          windows.push({ userId, collection: collection.name, startAt: null, endAt: null });
          continue;
        }
        const settled = request.refresh
          ? undefined
          : { coverage: coverage.get(`${userId}\n${collection.name}`) ?? [], settledDays: this.#pipeline.settledDays };
        const plan = planDays(request, collection.windowDays, settled);
        skipped += plan.skipped;
        for (const span of plan.spans) windows.push({ userId, collection: collection.name, ...span });
      }
      return windows;
    });
    // One user's wait must not fill the workers: the queue takes a window of each in turn.
    const windows: PlannedWindow[] = [];
    for (let i = 0; lists.some(list => i < list.length); i++) {
      for (const list of lists) if (list[i]) windows.push({ ...list[i]!, runId, number: windows.length });
    }
    return { windows, skipped };
  }

  async #coverage(): Promise<Map<string, Coverage[]>> {
    const rows = await this.#pipeline.warehouse.read(
      `SELECT user_id, collection, start_at, end_at, requested_at FROM sync.windows
       WHERE outcome = 'complete' AND start_at IS NOT NULL AND requested_at IS NOT NULL`,
    );
    const coverage = new Map<string, Coverage[]>();
    for (const [userId, collection, startAt, endAt, requestedAt] of rows) {
      const key = `${userId}\n${collection}`;
      const list = coverage.get(key) ?? [];
      list.push({ startAt: startAt as number, endAt: endAt as number, requestedAt: requestedAt as number });
      coverage.set(key, list);
    }
    return coverage;
  }

  async #unfinished(where: string): Promise<{ id: string; request: RunRequest; startedAt: number }[]> {
    const rows = await this.#pipeline.warehouse.read(
      `SELECT run_id, request::VARCHAR, started_at FROM sync.runs WHERE ${where} ORDER BY started_at DESC`,
    );
    return rows.map(([id, request, startedAt]) => ({
      id: id as string,
      request: JSON.parse(request as string) as RunRequest,
      startedAt: startedAt as number,
    }));
  }

  async #resume(id: string, request: RunRequest): Promise<Run> {
    const rows = await this.#pipeline.warehouse.read(
      `SELECT user_id, collection, start_at, end_at, outcome FROM sync.windows WHERE run_id = '${id}' ORDER BY start_at, user_id`,
    );
    const open = rows.filter(([, , , , outcome]) => outcome === null || outcome === 'stopped');
    const windows = open.map(([userId, collection, startAt, endAt], number) => ({
      runId: id,
      number,
      userId: userId as string,
      collection: collection as string,
      startAt: startAt as number | null,
      endAt: endAt as number | null,
    }));
    return this.#begin(id, request, windows, rows.length - open.length, 0);
  }

  async #begin(id: string, request: RunRequest, windows: readonly PlannedWindow[], alreadyDone: number, skipped: number): Promise<Run> {
    const run = new Run({
      id,
      request,
      windows: windows.filter(({ startAt }) => startAt !== null),
      later: windows.filter(({ startAt }) => startAt === null),
      alreadyDone,
      skipped,
      enqueue: list => this.#enqueue(list),
      end: ended => this.#finish(ended),
    });
    this.#active.set(id, run);
    await run.begin();
    return run;
  }

  #enqueue(windows: readonly PlannedWindow[]): Promise<void> {
    const backoff = { type: 'exponential', delay: this.#pipeline.retryDelayMs };
    const options = { attempts: ATTEMPTS, backoff, removeOnComplete: true, removeOnFail: true };
    return this.#pipeline.queues.addBulk(
      this.#queue,
      windows.map(window => ({ name: window.collection, data: window, opts: { ...options, jobId: `${window.runId}-${window.number}` } })),
    );
  }

  async #finish(run: Run): Promise<void> {
    const { warehouse } = this.#pipeline;
    if (run.state === 'stopped') {
      const rows = await warehouse.read(
        `SELECT user_id, collection, start_at, end_at FROM sync.windows WHERE run_id = '${run.id}' AND outcome IS NULL`,
      );
      await warehouse.record(
        rows.map(([userId, collection, startAt, endAt]) =>
          windowEntry(
            {
              runId: run.id,
              number: 0,
              userId: userId as string,
              collection: collection as string,
              startAt: startAt as number | null,
              endAt: endAt as number | null,
            },
            { outcome: 'stopped' },
          ),
        ),
      );
    }
    const [row] = await warehouse.read(`SELECT started_at FROM sync.runs WHERE run_id = '${run.id}'`);
    await this.#recordRun(run.id, run.request, run.state, row![0] as number, this.#pipeline.now() * 1000);
    this.#active.delete(run.id);
  }

  #runEntry(id: string, request: RunRequest, state: string, startedAt: number, endedAt: number | null): LedgerEntry {
    const row = { kind: request.kind, started_at: startedAt, ended_at: endedAt, state, request: JSON.stringify(request) };
    return { table: 'sync.runs', key: { run_id: id }, row };
  }

  #recordRun(id: string, request: RunRequest, state: string, startedAt: number, endedAt: number | null): Promise<void> {
    return this.#pipeline.warehouse.record([this.#runEntry(id, request, state, startedAt, endedAt)]);
  }
}
