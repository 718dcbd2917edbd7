import { formatDay, MICROS_PER_DAY } from '../schema/instant.ts';
import type { Counts, LedgerEntry, Value } from '../src/warehouse/warehouse.ts';
import type { Outcome } from './outcome.ts';
import type { DayRange, Window } from './windows.ts';

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
  #ended = false;
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
    if (this.#ended) return;
    this.#ended = true;
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
  suspend(reason: unknown): void {
    if (this.signal.aborted) return;
    this.#ended = true;
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
