import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { MICROS_PER_DAY } from '../../../schema/instant.ts';
import { ClockSetBack } from '../../base/clock-set-back.ts';
import { isDiskFull } from '../../base/disk.ts';
import { messageOf, RingneckError, TryLaterError, unlessRefused } from '../../base/errors.ts';
import { Mutex } from '../../base/mutex.ts';
import { withTimeout } from '../../base/timeout.ts';
import { factEntry, readFact } from '../../ledger/meta.ts';
import {
  findRunStart,
  isRunOver,
  listBrokenPlans,
  listResumable,
  listRunning,
  noPlanEntry,
  type RecordedRun,
  type RunRequest,
  runEntry,
} from '../../ledger/runs.ts';
import { plannedEntry, readPlanned, readRunWindows } from '../../ledger/window-rows.ts';
import { type AccountJob, cutWindow, type PlannedWindow, windowEntry } from '../../ledger/windows.ts';
import { isPassing } from '../../queue/environment-errors.ts';
import type { LedgerEntry } from '../../warehouse/sql.ts';
import { DeletionBrake } from '../deletions/deletion-brake.ts';
import { takeUpOwed } from '../events/take-up.ts';
import type { Pipeline, RunKeeper } from '../pipeline.ts';
import type { OpenWindow } from './account-windows.ts';
import { findEarlierDays, planWindows } from './plan-windows.ts';
import { Run, type RunParts } from './run.ts';
import { Waits } from './waits.ts';

/** The queue of windows to collect belongs to one warehouse: two of them may share a Redis. */
export const collectQueue = async (warehouse: Pipeline['warehouse']): Promise<string> => `collect-${await warehouseId(warehouse)}`;

export const scheduleQueue = async (warehouse: Pipeline['warehouse']): Promise<string> => `schedule-${await warehouseId(warehouse)}`;

/** What tells the queues of two warehouses in one Redis apart. */
export async function warehouseId(warehouse: Pipeline['warehouse']): Promise<string> {
  return (await readFact(warehouse, 'id')) ?? renewWarehouseId(warehouse);
}

/** From now on the warehouse has queues of its own, whoever had its id too. */
export async function renewWarehouseId(warehouse: Pipeline['warehouse']): Promise<string> {
  const id = randomUUID().slice(0, 8);
  await warehouse.record([factEntry('id', id)]);
  return id;
}

/** Windows of one account that are worked on for each of its requests in flight: while one stores its page another asks for its own. */
const WINDOWS_PER_REQUEST = 2;

/** How often the queue is looked at: whether it holds what it should, and takes what it did not take before. */
const LOOK_MS = 3_000;

/** How often it is looked whether a run has been answered. */
const ANSWER_MS = 1_000;

/** How long another route has to answer. */
const PROBE_MS = 5_000;

/** How long a full disk is left alone. */
const DISK_MS = 3_000;

/** So many rows of a plan are written at once. */
const SLICE = 100;

/** How often a run is looked for that the ledger calls running and nobody works on, and what else was left. */
const TAKE_UP_MS = 60_000;

/** The same for the same account, so that adding it twice adds it once. The queue does not take every name of an account. */
const jobIdOf = ({ runId, part, number }: AccountJob): string => `${runId}-${part}-${number}`;

/** The runs of the process that owns the warehouse. The ledger is the truth, the queue a to-do list that may be lost. */
export class Runs implements RunKeeper {
  readonly #active = new Map<string, Run>();
  readonly #waits: Waits;
  readonly #setBack = new ClockSetBack();
  #isToPromote = false;
  readonly #times: { lookMs: number; takeUpMs: number };
  /** What looks for runs that nobody works on and for events that could not be taken up, and what looks after those under way, while there are any. */
  #takingUp: NodeJS.Timeout | undefined;
  #lookingAfter: NodeJS.Timeout[] = [];
  #pipeline!: Pipeline;
  #asking: Promise<void> | undefined;
  /** How many answers there had been when it was told last that nobody can be reached. */
  #toldAfter: number | undefined;
  #queue!: string;
  readonly #starting = new Mutex();
  #closed: TryLaterError | undefined;

  constructor({ lookMs = LOOK_MS, takeUpMs = TAKE_UP_MS } = {}) {
    this.#times = { lookMs, takeUpMs };
    this.#waits = new Waits(reason => {
      for (const run of this.#active.values()) run.tellWait(reason);
    });
  }

  /** Empties the queue (its jobs may be half done, their locks held by the dead) and takes up what the ledger says is unfinished. */
  async open(pipeline: Pipeline): Promise<void> {
    this.#pipeline = pipeline;
    this.#queue = await collectQueue(pipeline.warehouse);
    this.#waits.log = pipeline.log;
    await pipeline.queues.empty(this.#queue);
    await this.#forgetPlans();
    await this.#takeUp();
    this.#takingUp = this.#every(this.#times.takeUpMs, async () => {
      await takeUpOwed(pipeline);
      await this.takeUp();
    });
  }

  #lookAfter(): void {
    if (this.#lookingAfter.length) return;
    this.#lookingAfter = [this.#every(this.#times.lookMs, () => this.#look()), this.#every(ANSWER_MS, () => this.#lookForAnswers())];
  }

  #lookAway(): void {
    for (const timer of this.#lookingAfter.splice(0)) clearInterval(timer);
  }

  /** One at a time, and never what keeps the process. */
  #every(ms: number, work: () => Promise<void>): NodeJS.Timeout {
    let working = false;
    const timer = setInterval(() => {
      if (working || this.#closed) return;
      working = true;
      void work()
        .catch(error => {
          if (!this.#closed) this.#pipeline.log.warn({ reason: messageOf(error) }, 'the runs could not be looked after: tried again soon');
        })
        .finally(() => {
          working = false;
        });
    }, ms);
    timer.unref();
    return timer;
  }

  /** Takes up every run that the ledger calls running and nobody works on. */
  takeUp(): Promise<void> {
    return this.#starting.run(() => this.#takeUp());
  }

  async #takeUp(): Promise<void> {
    for (const run of await listRunning(this.#pipeline.warehouse)) {
      if (!this.#active.has(run.id)) await this.#resume(run, true);
    }
  }

  /**
   * Why a run that has not been answered yet is to end: nobody can be reached there. Undefined where somebody was, and before the time
   * that a first answer has is over. Where the service has answered before, one of its base collections is asked first: what the run asks
   * for may be all that is broken.
   * @param patient whether it may still be waited for
   */
  async findUnreached(run: Run, patient: boolean): Promise<RingneckError | undefined> {
    const { client } = this.#pipeline;
    // A route that is broken alone may have ended after another one answered: silence is said of the service only if it stays.
    const isSilent = this.#judge(run, patient) !== undefined || (!patient && client.findSilence() !== undefined);
    if (isSilent && client.hasAnswered()) {
      this.#asking ??= this.#askAnother(run).finally(() => {
        this.#asking = undefined;
      });
      await this.#asking;
    }
    return this.#judge(run, patient);
  }

  async #askAnother(run: Run): Promise<void> {
    const { client, tokens } = this.#pipeline;
    const token = run.request.users.map(user => unlessRefused(() => tokens.find(user))).find(found => found !== undefined);
    if (token !== undefined) await withTimeout(client.probe(token, run.signal), PROBE_MS).catch(() => undefined);
  }

  #judge(run: Run, patient: boolean): RingneckError | undefined {
    const { client } = this.#pipeline;
    if (client.answers > run.answersBefore) return undefined;
    const silence = client.findSilence();
    if (!silence) return undefined;
    const ms = Math.min(silence.ms, performance.now() - run.beganAt);
    if (patient && (silence.mayEnd || ms < this.#pipeline.unreachedMs)) return undefined;
    return new RingneckError(`the service cannot be reached: ${silence.why}`);
  }

  /** Leaves a run to the next start, or to the next look at those that nobody works on. */
  breakOff(run: Run, reason: RingneckError): void {
    if (run.signal.aborted) return;
    const { client, log, onFailure } = this.#pipeline;
    onFailure({ reason: 'run_failed', message: reason.message });
    // Whoever started it hears of it. One that was taken up is tried again every minute, which is told again when somebody has answered meanwhile.
    if (run.takenUp && this.#toldAfter !== client.answers)
      log.warn({ run: run.id, reason: reason.message }, `${run.request.kind} run is broken off, and goes on when the service answers`);
    if (run.takenUp) this.#toldAfter = client.answers;
    run.suspend(reason);
  }

  async #lookForAnswers(): Promise<void> {
    for (const run of this.active()) {
      const unreached = await this.findUnreached(run, true);
      if (unreached) this.breakOff(run, unreached);
    }
  }

  /**
   * Puts into the queue what it should hold and does not: a Redis may be emptied, come back from an older dump, or have taken nothing for a
   * while.
   */
  async #look(): Promise<void> {
    // An account that is put off waits for a time of the machine's clock.
    this.#isToPromote ||= this.#setBack.happened();
    const runs = this.active().map(run => ({ run, jobs: run.jobs() }));
    if (!runs.some(({ jobs }) => jobs.length)) return;
    try {
      if (this.#isToPromote) await this.#pipeline.queues.promote(this.#queue);
      this.#isToPromote = false;
      const held = await this.#pipeline.queues.ids(this.#queue);
      for (const { run, jobs } of runs) {
        const lost = jobs.filter(job => !held.has(jobIdOf(job)) && run.awaits(job));
        if (!lost.length) continue;
        await this.#pipeline.queues.forget(this.#queue, lost.map(jobIdOf));
        await this.#add(run.request, lost);
      }
      this.#waits.end('queue');
    } catch (error) {
      if (!isPassing(error)) throw error;
      this.#waits.begin('queue', error);
    }
  }

  /** Does what stores something for a run, again and again while the disk is full. */
  async store<T>(run: Run, work: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        const stored = await work();
        this.#waits.end('disk');
        return stored;
      } catch (error) {
        if (!isDiskFull(error) || run.signal.aborted) throw error;
        this.#waits.begin('disk', error);
        try {
          await sleep(DISK_MS, undefined, { signal: run.signal });
        } catch {
          throw error;
        }
      }
    }
  }

  /** Has a window that is too large read in parts. In the ledger first: what is read of it must not pass for all of it. */
  async cut(run: Run, window: OpenWindow): Promise<void> {
    if (!run.isPending(window)) return;
    const parts = cutWindow(window);
    await this.store(run, () => this.#pipeline.warehouse.record(parts.map(part => windowEntry(part, { outcome: null }))));
    run.replace(window, parts);
  }

  /** How long a window stays away from a disk that is full; undefined while there is room. */
  findDiskWait(): number | undefined {
    try {
      this.#pipeline.warehouse.ensureRoom();
      this.#waits.end('disk');
      return undefined;
    } catch (error) {
      if (!isDiskFull(error)) throw error;
      this.#waits.begin('disk', error);
      return DISK_MS;
    }
  }

  find(id: string): Run | undefined {
    return this.#active.get(id);
  }

  /** Whether the ledger says that a run has come to its end. */
  isOver(id: string): Promise<boolean> {
    return isRunOver(this.#pipeline.warehouse, id);
  }

  active(): Run[] {
    return [...this.#active.values()];
  }

  /** How many windows are worked on, and how many are put off. */
  countWindows(): { active: number; delayed: number } {
    const counts = this.active().map(run => run.countWindows());
    return {
      active: counts.reduce((sum, { active }) => sum + active, 0),
      delayed: counts.reduce((sum, { delayed }) => sum + delayed, 0),
    };
  }

  /**
   * Leaves every run to the next start.
   * @param pause why, where that comes in a moment
   */
  close(pause?: string): void {
    this.#closed = new TryLaterError(
      pause ? `${pause}: the run goes on then` : 'the process ends before the run does: it goes on at the next start',
    );
    clearInterval(this.#takingUp);
    this.#lookAway();
    for (const run of this.#active.values()) run.suspend(this.#closed);
    this.#active.clear();
  }

  /**
   * Plans a run and starts it. The same request as that of a run that was interrupted, or of a backfill that was stopped less than a day
   * ago, goes on with that run; that of one under way joins it. A nightly and a sweep read what the last days are now.
   */
  start(request: RunRequest): Promise<Run> {
    // One after the other: two equal requests in one moment are one run.
    return this.#starting.run(async () => (await this.#goOn(request)) ?? this.#plan(request));
  }

  /** The run of the same request that is not over yet. */
  async #goOn(request: RunRequest): Promise<Run | undefined> {
    const same = JSON.stringify(request);
    for (const run of this.#active.values()) {
      // A night that was killed hours ago does not tell how the last days are now.
      const isOfBefore = run.takenUp && request.kind !== 'backfill';
      if (JSON.stringify(run.request) === same && !run.signal.aborted && !isOfBefore) return run;
    }
    const since = this.#pipeline.now() * 1000 - MICROS_PER_DAY;
    // One that is running in the ledger and not here could not note its end.
    const unfinished = await listResumable(this.#pipeline.warehouse, since);
    const stopped = unfinished.find(({ id, request }) => !this.#active.has(id) && JSON.stringify(request) === same);
    if (!stopped) return undefined;
    await this.#recordRun(stopped.id, request, 'running', stopped.startedAt, null);
    return this.#resume(stopped, false);
  }

  async #plan(request: RunRequest): Promise<Run> {
    // Of one whose plan was broken off, by a full disk, nothing is left to be taken for planned.
    await this.#forgetPlans();
    const id = randomUUID();
    const earlier = request.kind === 'backfill' ? undefined : await findEarlierDays(this.#pipeline, request);
    const { windows, skipped } = await planWindows(this.#pipeline, request, id, earlier);
    // A new run has no earlier rows to replace. The run comes last: one whose plan is not whole is none.
    await this.#recordWindows(windows, plannedEntry);
    const startedAt = this.#pipeline.now() * 1000;
    await this.#recordRun(id, request, 'running', startedAt, null);
    return this.#begin(id, request, { windows, startedAt, skipped, alreadyDone: 0, brake: new DeletionBrake(), takenUp: false });
  }

  /** Many rows in slices: live work goes between, and none of them takes the memory of all. */
  async #recordWindows<T>(windows: readonly T[], entryOf: (window: T) => LedgerEntry): Promise<void> {
    for (let i = 0; i < windows.length; i += SLICE) {
      await this.#pipeline.warehouse.record(windows.slice(i, i + SLICE).map(entryOf));
    }
  }

  /** Removes what is left of a plan that a process did not bring to its end. */
  async #forgetPlans(): Promise<void> {
    const plans = await listBrokenPlans(this.#pipeline.warehouse);
    if (plans.length) await this.#pipeline.warehouse.record(plans.map(noPlanEntry));
  }

  async #resume({ id, request, startedAt }: RecordedRun, takenUp: boolean): Promise<Run> {
    const rows = await readRunWindows(this.#pipeline.warehouse, id);
    // What failed before the interruption is tried again: a run that ends as complete has read everything.
    const open = rows
      .filter(({ outcome }) => outcome !== 'complete' && outcome !== 'not_offered')
      .map(({ userId, collection, startAt, endAt, outcome }) => ({ window: { runId: id, userId, collection, startAt, endAt }, outcome }));
    const windows = open.map(({ window }) => window);
    // In the ledger they are planned again, whatever became of them before.
    await this.#recordWindows(
      open.filter(({ outcome }) => outcome !== null),
      ({ window }) => windowEntry(window, { outcome: null }),
    );
    const brake = new DeletionBrake(rows.map(({ userId, collection, removed }) => ({ userId, collection, count: removed ?? 0 })));
    const alreadyDone = rows.length - open.length;
    const readAts = rows.flatMap(({ outcome, readAt }) => (outcome === 'complete' && readAt !== null ? [readAt] : []));
    const since = readAts.reduce((least, readAt) => Math.min(least, readAt), Number.POSITIVE_INFINITY);
    const readBefore = readAts.length ? { windows: alreadyDone, since: new Date(since / 1000).toISOString() } : undefined;
    return this.#begin(id, request, { windows, startedAt, skipped: 0, alreadyDone, readBefore, brake, takenUp });
  }

  async #begin(
    id: string,
    request: RunRequest,
    {
      windows,
      ...parts
    }: { windows: readonly PlannedWindow[] } & Pick<RunParts, 'startedAt' | 'skipped' | 'alreadyDone' | 'readBefore' | 'brake' | 'takenUp'>,
  ): Promise<Run> {
    // Planned while the rest was closed: nobody would work on it, and whoever waits for it would wait for ever.
    if (this.#closed) throw this.#closed;
    const run = new Run({
      id,
      request,
      windows: windows.filter(({ startAt }) => startAt !== null),
      later: windows.filter(({ startAt }) => startAt === null),
      ...parts,
      answersBefore: this.#pipeline.client.answers,
      windowsPerAccount: WINDOWS_PER_REQUEST * this.#pipeline.requestsPerToken,
      enqueue: jobs => this.#enqueue(request, jobs),
      end: ended => this.store(ended, () => this.#finish(ended)),
      leave: ended => {
        if (this.#active.get(ended.id) === ended) this.#active.delete(ended.id);
        if (!this.#active.size) this.#lookAway();
      },
    });
    this.#active.set(id, run);
    this.#lookAfter();
    run.tellWait(this.#waits.reason);
    try {
      await run.begin();
    } catch (error) {
      run.suspend(error);
      throw error;
    }
    return run;
  }

  /** What the queue does not take now it is given later: whoever looks after it finds that it is not there. */
  async #enqueue(request: RunRequest, jobs: readonly AccountJob[]): Promise<void> {
    try {
      await this.#add(request, jobs);
      this.#waits.end('queue');
    } catch (error) {
      if (!isPassing(error)) throw error;
      this.#waits.begin('queue', error);
    }
  }

  #add({ kind }: RunRequest, jobs: readonly AccountJob[]): Promise<void> {
    // Before what waits already: recent days must not wait for a long backfill.
    const first = kind === 'backfill' ? {} : { lifo: true };
    const options = { removeOnComplete: true, removeOnFail: true, ...first };
    return this.#pipeline.queues.addAll(
      this.#queue,
      jobs.map(data => ({ name: 'account', data, opts: { ...options, jobId: jobIdOf(data) } })),
    );
  }

  async #finish(run: Run): Promise<void> {
    const { warehouse } = this.#pipeline;
    await this.#recordWindows(await readPlanned(warehouse, run.id), window =>
      windowEntry(
        window,
        // Of a run that came to its end only a window that could not be noted is left.
        run.state === 'stopped'
          ? { outcome: 'stopped' }
          : { outcome: 'failed', reason: run.failedFor ?? 'its outcome could not be noted', committedAt: warehouse.clock.next() },
      ),
    );
    const startedAt = await findRunStart(warehouse, run.id);
    await this.#recordRun(run.id, run.request, run.state, startedAt, this.#pipeline.now() * 1000);
    if (run.state === 'failed') this.#tell(run);
  }

  #tell({ request, failures }: Run): void {
    const [first] = failures;
    if (!first) return;
    const more = failures.length > 1 ? ` (and ${failures.length - 1} more)` : '';
    const message = `${request.kind} ${first.from ?? request.from} to ${first.to ?? request.to}: ${first.message}${more}`;
    this.#pipeline.onFailure({ reason: 'run_failed', user: first.user_id, collection: first.collection, message });
  }

  #recordRun(id: string, request: RunRequest, state: string, startedAt: number, endedAt: number | null): Promise<void> {
    return this.#pipeline.warehouse.record([runEntry(id, request, state, startedAt, endedAt)]);
  }
}
