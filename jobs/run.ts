import { randomUUID } from 'node:crypto';
import { formatDay, MICROS_PER_DAY } from '../schema/instant.ts';
import type { Counts } from '../src/warehouse/store-documents.ts';
import { NotFounds } from './not-offered.ts';
import type { Outcome } from './outcome.ts';
import type { RemovalBrake } from './removal-brake.ts';
import type { DayRange, PlannedWindow, WindowJob } from './windows.ts';

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

export interface Failure {
  user_id: string;
  collection: string;
  from: string | null;
  to: string | null;
  kind: string;
  /** In our own words: it is logged, and told to RINGNECK_ON_FAILURE. */
  message: string;
  /** The service's own sentence, for whoever asked. */
  detail?: string;
}

export interface Progress {
  windows: { planned: number; done: number; skipped: number; failed: number };
  documents: number;
  samples: number;
  unchanged: number;
  rejected: number;
  /** Documents, and rows of heart rate, that the service no longer has. */
  removed: number;
  requests: number;
  waits: number;
  /** What the run waits for to pass, while it does: a queue or a disk that takes nothing. */
  waiting_for?: string;
}

export interface RunSummary extends Omit<Progress, 'waiting_for'> {
  run: string;
  state: 'complete' | 'failed' | 'stopped';
  from: string;
  to: string;
  failures: Failure[];
}

interface RunParts {
  id: string;
  request: RunRequest;
  windows: readonly PlannedWindow[];
  /** Those that need what the others of their account bring: begun when these are settled. */
  later: readonly PlannedWindow[];
  alreadyDone: number;
  brake: RemovalBrake;
  answersBefore: number;
  skipped: number;
  windowsPerAccount: number;
  enqueue(windows: WindowJob[]): Promise<void>;
  /** Notes the end in the ledger. */
  end(run: Run): Promise<void>;
  /** The run is not worked on any more, ended or not. */
  leave(run: Run): void;
}

/** One run under way in this process. */
export class Run {
  readonly id: string;
  readonly request: RunRequest;
  /** How much of what is stored the run takes away. */
  readonly brake: RemovalBrake;
  readonly notFounds = new NotFounds();
  /** When work on it began, by a clock that nobody sets. */
  readonly beganAt = performance.now();
  /** How many answers the client had then. */
  readonly answersBefore: number;
  readonly progress: Progress;
  readonly failures: Failure[] = [];
  /** Runs that read what this one has made unread: whoever waits for it waits for these too. */
  readonly goesOnIn: Promise<Run>[] = [];
  readonly done: Promise<RunSummary>;
  /** Tells the jobs of this run from those that an earlier part of it, before a stop, may have left in the queue. */
  readonly part = randomUUID().slice(0, 8);
  /** Windows that the queue should hold: those without an outcome whose turn has come. */
  readonly #queue = new Map<number, PlannedWindow>();
  /** Windows whose turn has not come, by account. */
  readonly #waiting = new Map<string, PlannedWindow[]>();
  /** Those of the second stage, by account. */
  readonly #later = new Map<string, PlannedWindow[]>();
  /** How many windows of an account have no outcome, without those of a stage that has not begun. */
  readonly #open = new Map<string, number>();
  /** Windows that a worker of this process is at. */
  readonly #inHand = new Set<number>();
  /** How many windows of an account are in the queue, and how many are worked on. */
  readonly #queued = new Map<string, number>();
  readonly #working = new Map<string, number>();
  /** Accounts whose windows go one at a time. */
  readonly #slow = new Set<string>();
  readonly #stopping = new AbortController();
  readonly #parts: RunParts;
  /** The number of the next window that the plan did not know. */
  #nextNumber: number;
  #ended = false;
  #failedFor: string | undefined;
  #claimed = false;
  #resolve!: (summary: RunSummary) => void;
  #reject!: (error: unknown) => void;

  constructor(parts: RunParts) {
    this.id = parts.id;
    this.request = parts.request;
    this.brake = parts.brake;
    this.answersBefore = parts.answersBefore;
    this.#parts = parts;
    this.#nextNumber = parts.windows.length + parts.later.length;
    this.#wait(parts.windows);
    for (const window of parts.later) {
      if (this.#open.has(window.userId)) listOf(this.#later, window.userId).push(window);
    }
    this.#wait(parts.later.filter(({ userId }) => !this.#later.has(userId)));
    const planned = parts.windows.length + parts.later.length + parts.alreadyDone;
    this.progress = {
      windows: { planned, done: parts.alreadyDone, skipped: parts.skipped, failed: 0 },
      documents: 0,
      samples: 0,
      unchanged: 0,
      rejected: 0,
      removed: 0,
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

  /** Whether this window, as a job of this part of the run, is still without an outcome. */
  isPending({ part, number }: Pick<WindowJob, 'part' | 'number'>): boolean {
    return part === this.part && this.#queue.has(number);
  }

  /** The accounts with windows that have no outcome. */
  findOpenUsers(): Set<string> {
    return new Set(this.#open.keys());
  }

  /** True for the first who asks: whoever started a run may end it, those who join it later may not. */
  claim(): boolean {
    const first = !this.#claimed;
    this.#claimed = true;
    return first;
  }

  /** Starts working the windows off. */
  async begin(): Promise<void> {
    await this.#feed(this.#waiting.keys());
    await this.#advance();
  }

  /**
   * Takes a place for working on a window of an account; false when there is none. After a long wait for a limit an account's
   * windows go one at a time: together they would use up the next allowance without any of them coming to its end.
   */
  enter({ userId, number }: Pick<WindowJob, 'userId' | 'number'>): boolean {
    const working = this.#working.get(userId) ?? 0;
    if (working >= this.#places(userId)) return false;
    this.#working.set(userId, working + 1);
    this.#inHand.add(number);
    return true;
  }

  leave({ userId, number }: Pick<WindowJob, 'userId' | 'number'>): void {
    this.#working.set(userId, (this.#working.get(userId) ?? 1) - 1);
    this.#inHand.delete(number);
  }

  slowDown(userId: string): void {
    this.#slow.add(userId);
  }

  #places(userId: string): number {
    return this.#slow.has(userId) ? 1 : this.#parts.windowsPerAccount;
  }

  #wait(windows: readonly PlannedWindow[]): void {
    for (const window of windows) {
      listOf(this.#waiting, window.userId).push(window);
      this.#open.set(window.userId, (this.#open.get(window.userId) ?? 0) + 1);
    }
  }

  /** Puts windows of these accounts into the queue, the accounts in turn: one account's wait must not fill the workers. */
  async #feed(userIds: Iterable<string>): Promise<void> {
    const next: PlannedWindow[] = [];
    const users = [...userIds];
    for (let found = true; found; ) {
      found = false;
      for (const userId of users) {
        const queued = this.#queued.get(userId) ?? 0;
        const window = queued < this.#places(userId) ? this.#waiting.get(userId)?.shift() : undefined;
        if (!window) continue;
        this.#queued.set(userId, queued + 1);
        this.#queue.set(window.number, window);
        next.push(window);
        found = true;
      }
    }
    if (next.length) await this.#parts.enqueue(next.map(window => this.#jobOf(window)));
  }

  /** What the queue should hold and nobody is at: a job that is not there was lost. */
  queued(): WindowJob[] {
    return [...this.#queue.values()].filter(({ number }) => !this.#inHand.has(number)).map(window => this.#jobOf(window));
  }

  #jobOf(window: PlannedWindow): WindowJob {
    return { ...window, part: this.part };
  }

  tellWait(reason: string | undefined): void {
    if (reason === undefined) delete this.progress.waiting_for;
    else this.progress.waiting_for = reason;
  }

  count(counts: Counts, documents: number): void {
    this.progress.documents += documents;
    this.progress.samples += counts.samples;
    this.progress.unchanged += counts.unchanged;
    this.progress.rejected += counts.rejected;
    this.progress.removed += counts.removed;
  }

  /** A window has its outcome, which is in the ledger. A job that ran twice settles once. */
  async settle(window: WindowJob, outcome: Outcome, reason: string | undefined, kind: string, detail?: string): Promise<void> {
    if (!this.isPending(window)) return;
    this.#queue.delete(window.number);
    this.#close(window.userId);
    this.#queued.set(window.userId, (this.#queued.get(window.userId) ?? 1) - 1);
    if (outcome === 'complete' || outcome === 'not_offered') this.progress.windows.done++;
    else if (outcome !== 'stopped') {
      this.progress.windows.failed++;
      this.#addFailure(window, kind, reason ?? outcome, detail);
    }
    await this.#advance(window.userId);
  }

  /** Parts of a window come in its place, before all that waits of its account, under numbers of their own: its job is still there. */
  async replace(window: WindowJob, parts: readonly PlannedWindow[]): Promise<void> {
    if (!this.isPending(window)) return;
    const { userId } = window;
    this.#queue.delete(window.number);
    this.#queued.set(userId, (this.#queued.get(userId) ?? 1) - 1);
    this.#open.set(userId, this.#open.get(userId)! + parts.length - 1);
    this.progress.windows.planned += parts.length - 1;
    listOf(this.#waiting, userId).unshift(...parts.map(part => ({ ...part, number: this.#nextNumber++ })));
    await this.#advance(userId);
  }

  /** One window less of an account; with its last one the later ones have their turn. */
  #close(userId: string): void {
    const open = this.#open.get(userId)! - 1;
    if (open) {
      this.#open.set(userId, open);
      return;
    }
    this.#open.delete(userId);
    this.#wait(this.#later.get(userId) ?? []);
    this.#later.delete(userId);
  }

  /** Failures of one collection for one reason are one failure over their whole range. */
  #addFailure({ userId, collection, startAt, endAt }: PlannedWindow, kind: string, message: string, detail?: string): void {
    const from = startAt === null ? null : formatDay(Math.floor(startAt / MICROS_PER_DAY));
    const to = endAt === null ? null : formatDay(Math.ceil(endAt / MICROS_PER_DAY) - 1);
    const same = this.failures.find(f => f.user_id === userId && f.collection === collection && f.kind === kind && f.message === message);
    if (!same) this.failures.push({ user_id: userId, collection, from, to, kind, message, ...(detail === undefined ? {} : { detail }) });
    else {
      if (from && (!same.from || from < same.from)) same.from = from;
      if (to && (!same.to || to > same.to)) same.to = to;
    }
  }

  /** Goes on after a window of an account was settled: with its next one, or to the end. */
  async #advance(userId?: string): Promise<void> {
    if (this.#ended) return;
    if (this.#open.size) {
      try {
        if (userId !== undefined) await this.#feed([userId]);
      } catch (error) {
        // What no queue takes, now or later: the ledger has it, for the next start.
        this.suspend(error);
      }
      return;
    }
    this.#ended = true;
    try {
      await this.#parts.end(this);
      this.#resolve(this.summary());
    } catch (error) {
      this.#reject(error);
    } finally {
      this.#parts.leave(this);
    }
  }

  /** Stops reading, because what is wrong with this window is wrong with all that are left: they have failed for this reason. */
  async fail({ userId, collection }: WindowJob, kind: string, message: string): Promise<void> {
    if (this.signal.aborted) return;
    const { from, to } = this.request;
    this.#failedFor = message;
    this.failures.push({ user_id: userId, collection, from, to, kind, message });
    this.progress.windows.failed = this.progress.windows.planned - this.progress.windows.done;
    await this.#end();
  }

  /** What all windows without an outcome have failed for. */
  get failedFor(): string | undefined {
    return this.#failedFor;
  }

  /** Stops reading; what is not yet read is marked as stopped and waits for the same command. */
  async stop(): Promise<void> {
    if (!this.signal.aborted) await this.#end();
  }

  async #end(): Promise<void> {
    this.#stopping.abort();
    this.#queue.clear();
    this.#waiting.clear();
    this.#later.clear();
    this.#open.clear();
    await this.#advance();
  }

  /** Stops reading and leaves the ledger as it is: the next start takes the run up. */
  suspend(reason: unknown): void {
    if (this.signal.aborted) return;
    this.#ended = true;
    this.#stopping.abort();
    this.#reject(reason);
    this.#parts.leave(this);
  }

  get state(): RunSummary['state'] {
    if (this.signal.aborted && this.#failedFor === undefined) return 'stopped';
    return this.failures.length ? 'failed' : 'complete';
  }

  summary(): RunSummary {
    const { from, to } = this.request;
    const { waiting_for: _, ...progress } = structuredClone(this.progress);
    return { run: this.id, state: this.state, from, to, ...progress, failures: [...this.failures] };
  }
}

/** What a run and one in which it goes on came to together. */
export function joinSummaries(first: RunSummary, next: RunSummary): RunSummary {
  const joined = structuredClone(first);
  for (const key of ['planned', 'done', 'skipped', 'failed'] as const) joined.windows[key] += next.windows[key];
  for (const key of ['documents', 'samples', 'unchanged', 'rejected', 'removed', 'requests', 'waits'] as const) joined[key] += next[key];
  joined.failures.push(...next.failures);
  if (next.state !== 'complete') joined.state = next.state;
  return joined;
}

function listOf<T>(lists: Map<string, T[]>, name: string): T[] {
  const list = lists.get(name) ?? [];
  lists.set(name, list);
  return list;
}
