import { randomUUID } from 'node:crypto';
import { formatDay, MICROS_PER_DAY } from '../../../schema/instant.ts';
import type { RunRequest } from '../../ledger/runs.ts';
import type { AccountJob, Outcome, PlannedWindow } from '../../ledger/windows.ts';
import type { WriteResult } from '../../warehouse/write-result.ts';
import type { DeletionBrake } from '../deletions/deletion-brake.ts';
import { AccountWindows, type OpenWindow } from './account-windows.ts';

export interface WindowFailure {
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
  /** Whose windows are all that is left, while each of them is put off for long, and when the first is begun again (ISO 8601, UTC). */
  waiting_until?: { at: string; users: string[] };
}

export interface RunSummary extends Omit<Progress, 'waiting_for' | 'waiting_until'> {
  run: string;
  state: 'complete' | 'failed' | 'stopped';
  from: string;
  to: string;
  /** What of it was read before this part of the run: how many windows, and when the first of them (ISO 8601, UTC). */
  read_before?: ReadBefore;
  failures: WindowFailure[];
}

export interface ReadBefore {
  windows: number;
  since: string;
}

/** A shorter wait is soon over: it is not told. */
const TOLD_WAIT_MS = 10_000;

export interface RunParts {
  id: string;
  request: RunRequest;
  windows: readonly PlannedWindow[];
  /** Those that need what the others of their account bring: begun when these have their outcome. */
  later: readonly PlannedWindow[];
  alreadyDone: number;
  readBefore?: ReadBefore | undefined;
  brake: DeletionBrake;
  /** As the ledger has it, in microseconds. */
  startedAt: number;
  answersBefore: number;
  skipped: number;
  windowsPerAccount: number;
  takenUp: boolean;
  enqueue(jobs: AccountJob[]): Promise<void>;
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
  readonly brake: DeletionBrake;
  readonly notFounds = new NotFounds();
  /** Microseconds; of a run that was taken up, when it was planned. */
  readonly startedAt: number;
  /** When work on it began, by a clock that nobody sets. */
  readonly beganAt = performance.now();
  /** How many answers the client had then. */
  readonly answersBefore: number;
  /** An earlier process left it, and nobody asked for it here. */
  readonly takenUp: boolean;
  readonly progress: Progress;
  readonly failures: WindowFailure[] = [];
  /** Runs that read what this one has made unread: whoever waits for it waits for these too. */
  readonly goesOnIn: Promise<Run>[] = [];
  readonly done: Promise<RunSummary>;
  /** Tells the jobs of this run from those that an earlier part of it, before a stop, may have left in the queue. */
  readonly part = randomUUID().slice(0, 8);
  /** What is left of each account. */
  readonly #accounts = new Map<string, AccountWindows>();
  /** Accounts that a worker of this process is at. */
  readonly #inHand = new Set<string>();
  readonly #stopping = new AbortController();
  readonly #parts: RunParts;
  #nextNumber = 0;
  #ended = false;
  #failedFor: string | undefined;
  #claimed = false;
  #resolve!: (summary: RunSummary) => void;
  #reject!: (error: unknown) => void;

  constructor(parts: RunParts) {
    this.id = parts.id;
    this.request = parts.request;
    this.brake = parts.brake;
    this.startedAt = parts.startedAt;
    this.answersBefore = parts.answersBefore;
    this.takenUp = parts.takenUp;
    this.#parts = parts;
    const lists = new Map<string, [PlannedWindow[], PlannedWindow[]]>();
    const listOf = ({ userId }: PlannedWindow) => {
      const list = lists.get(userId) ?? [[], []];
      lists.set(userId, list);
      return list;
    };
    for (const window of parts.windows) listOf(window)[0].push(window);
    for (const window of parts.later) listOf(window)[1].push(window);
    for (const [userId, list] of lists) {
      this.#accounts.set(userId, new AccountWindows(this.#nextNumber++, list, parts.windowsPerAccount));
    }
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

  /** Whether this window is still without an outcome, here and now. */
  isPending(window: OpenWindow): boolean {
    return this.#findPending(window) !== undefined;
  }

  /** The windows of its account, where this one is still without an outcome. */
  #findPending(window: OpenWindow): AccountWindows | undefined {
    const account = this.#accounts.get(window.userId);
    return account?.has(window) ? account : undefined;
  }

  /** The accounts with windows that have no outcome. */
  findOpenUsers(): Set<string> {
    return new Set(this.#accounts.keys());
  }

  /** True for the first who asks: whoever started a run may end it, those who join it later may not. */
  claim(): boolean {
    const first = !this.#claimed;
    this.#claimed = true;
    return first;
  }

  /** Starts working the windows off. */
  async begin(): Promise<void> {
    if (this.#accounts.size) await this.#parts.enqueue(this.jobs());
    else await this.#finish();
  }

  /** What the queue should hold: the accounts that something is left of and nobody is at. A job that is not there was lost. */
  jobs(): AccountJob[] {
    if (this.signal.aborted) return [];
    const accounts = [...this.#accounts].filter(([userId]) => !this.#inHand.has(userId));
    return accounts.map(([userId, { number }]) => this.#jobOf(userId, number));
  }

  /** Puts an account that nobody is at any more behind those that wait in the queue, as another job. */
  async queueUp({ userId }: AccountJob): Promise<void> {
    const windows = this.#accounts.get(userId);
    if (!windows || this.signal.aborted) return;
    windows.number = this.#nextNumber++;
    await this.#parts.enqueue([this.#jobOf(userId, windows.number)]);
  }

  #jobOf(userId: string, number: number): AccountJob {
    return { runId: this.id, part: this.part, number, userId };
  }

  /** Whether a job of this part of the run has something to do and nobody is at it. */
  awaits({ part, number, userId }: AccountJob): boolean {
    if (part !== this.part || this.signal.aborted || this.#inHand.has(userId)) return false;
    return this.#accounts.get(userId)?.number === number;
  }

  /** What there is to do for a job, which leaves when it is through; undefined where there is nothing. */
  enter(job: AccountJob): AccountWindows | undefined {
    if (!this.awaits(job)) return undefined;
    this.#inHand.add(job.userId);
    return this.#accounts.get(job.userId);
  }

  leave({ userId }: AccountJob): void {
    this.#inHand.delete(userId);
  }

  /** How many windows are worked on, and how many are put off. */
  countWindows(): { active: number; delayed: number } {
    const accounts = [...this.#accounts.values()];
    const sum = (counts: number[]) => counts.reduce((total, count) => total + count, 0);
    return { active: sum(accounts.map(({ inHand }) => inHand)), delayed: sum(accounts.map(({ putAside }) => putAside)) };
  }

  tellWait(reason: string | undefined): void {
    if (reason === undefined) delete this.progress.waiting_for;
    else this.progress.waiting_for = reason;
  }

  /** How it goes, at this moment. */
  tellProgress(wallNow: () => number = Date.now): Progress {
    const accounts = [...this.#accounts];
    const waits = accounts.map(([, windows]) => windows.findIdleWait());
    const ms = Math.min(...waits.map(wait => wait ?? 0));
    if (!accounts.length || ms < TOLD_WAIT_MS) return this.progress;
    const at = new Date(wallNow() + ms).toISOString();
    return { ...this.progress, waiting_until: { at, users: accounts.map(([userId]) => userId) } };
  }

  count(counts: WriteResult, documents: number): void {
    this.progress.documents += documents;
    this.progress.samples += counts.samples;
    this.progress.unchanged += counts.unchanged;
    this.progress.rejected += counts.rejected;
    this.progress.removed += counts.removed;
  }

  /** A window has its outcome, which is in the ledger. One that is finished twice counts once. */
  async finishWindow(window: OpenWindow, outcome: Outcome, reason: string | undefined, kind: string, detail?: string): Promise<void> {
    const account = this.#findPending(window);
    if (!account) return;
    account.close(window);
    if (account.isDone) this.#accounts.delete(window.userId);
    if (outcome === 'complete' || outcome === 'not_offered') this.progress.windows.done++;
    else if (outcome !== 'stopped') {
      this.progress.windows.failed++;
      this.#addFailure(window, kind, reason ?? outcome, detail);
    }
    if (!this.#accounts.size) await this.#finish();
  }

  /** Parts of a window come in its place. */
  replace(window: OpenWindow, parts: readonly PlannedWindow[]): void {
    const account = this.#findPending(window);
    if (!account) return;
    this.progress.windows.planned += parts.length - 1;
    account.replace(window, parts);
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

  async #finish(): Promise<void> {
    if (this.#ended) return;
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
  async fail({ userId, collection }: PlannedWindow, kind: string, message: string): Promise<void> {
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
    this.#accounts.clear();
    await this.#finish();
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
    const { readBefore } = this.#parts;
    const earlier = readBefore ? { read_before: readBefore } : {};
    return { run: this.id, state: this.state, from, to, ...progress, ...earlier, failures: [...this.failures] };
  }
}

/** The 404s of one run: said once, that may be a mistake, of the service or of something on the way. */
class NotFounds {
  readonly #firstAt = new Map<string, number>();
  #offers: Promise<boolean> | undefined;

  /** How long until a 404 counts as the second one; 0 where this one does. */
  note({ userId, collection }: Pick<PlannedWindow, 'userId' | 'collection'>, apartMs: number): number {
    const key = `${userId}\n${collection}`;
    const now = performance.now();
    const first = this.#firstAt.get(key);
    if (first !== undefined) return Math.max(0, first + apartMs - now);
    this.#firstAt.set(key, now);
    return apartMs;
  }

  /** Whether the service offers anything, asked once at a time. */
  askOffers(ask: () => Promise<boolean>): Promise<boolean> {
    this.#offers ??= ask().finally(() => {
      this.#offers = undefined;
    });
    return this.#offers;
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
