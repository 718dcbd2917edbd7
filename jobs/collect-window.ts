import { setTimeout as sleep } from 'node:timers/promises';
import type { Job } from 'bullmq';
import type { AccountJob } from '../src/ledger/windows.ts';
import { WorkSemaphore } from '../src/queue/work-semaphore.ts';
import type { Pipeline } from '../src/sync/pipeline.ts';
import type { AccountWindows } from '../src/sync/runs/account-windows.ts';
import { Attempt, type AttemptParts } from '../src/sync/runs/attempt.ts';
import type { Run } from '../src/sync/runs/run.ts';
import { collectQueue } from '../src/sync/runs/runs.ts';
import { delay } from './retry.ts';

/** Waiting for answers is the cost of a real network: windows run side by side, each token's requests are bounded by the rate limiter. */
const CONCURRENCY = 40;

/** Windows in the middle of which the service has asked for a wait: each keeps its job and works on nothing. */
const MOST_ASIDE = 200;

/** Accounts that are worked on at a time, each a job; where there are more they take turns. */
const IN_HAND = 256;

/** So long an account waits for its next window without leaving its worker. */
const PATIENCE_MS = 100;

/** How long a job of a run that is not worked on here is left alone. */
const UNKNOWN_MS = 10_000;

/** Starts working off the windows of all runs. */
export async function startCollecting(pipeline: Pipeline, { inHand = IN_HAND } = {}): Promise<void> {
  const jobs = new AccountJobs(pipeline, inHand);
  const queue = await collectQueue(pipeline.warehouse);
  pipeline.queues.worker<AccountJob>(queue, (job, lock) => jobs.work(job, lock), { concurrency: inHand });
}

class AccountJobs {
  readonly #pipeline: Pipeline;
  readonly #mostInHand: number;
  readonly #semaphore = new WorkSemaphore(CONCURRENCY, MOST_ASIDE);
  readonly #probing: AttemptParts['probing'] = new Map();
  #inHand = 0;

  constructor(pipeline: Pipeline, mostInHand: number) {
    this.#pipeline = pipeline;
    this.#mostInHand = mostInHand;
  }

  async work(job: Job<AccountJob>, lock: string | undefined): Promise<void> {
    this.#inHand++;
    try {
      await this.#collectAccount(job, lock);
    } finally {
      this.#inHand--;
    }
  }

  /**
   * Collects what a run has left of an account. May run twice, at any time, and only one of them does anything: the run knows which windows
   * have no outcome, however often its job is lost.
   */
  async #collectAccount(job: Job<AccountJob>, lock: string | undefined): Promise<void> {
    const { runs } = this.#pipeline;
    const run = runs.find(job.data.runId);
    // One that the ledger does not call over is somebody's: its job is not ours to take away.
    if (!run && !(await runs.isOver(job.data.runId))) return delay(job, lock, UNKNOWN_MS);
    const windows = run?.enter(job.data);
    if (!run || !windows) return;
    let awayMs: number | undefined;
    try {
      awayMs = await this.#takeTurn(run, windows);
    } finally {
      run.leave(job.data);
    }
    if (awayMs === 0) await run.queueUp(job.data);
    if (awayMs) return delay(job, lock, awayMs);
  }

  /**
   * Works on windows of an account side by side until none can be begun. Where all workers are taken, each account has so many windows in
   * its turn as it may have side by side.
   * @returns how long it is to stay away from its worker, 0 where only its turn is over; undefined when nothing is left
   */
  async #takeTurn(run: Run, windows: AccountWindows): Promise<number | undefined> {
    const working = new Set<Promise<void>>();
    let isFull = false;
    for (;;) {
      while (!run.signal.aborted && !isFull && windows.hasNext(working.size - windows.inHand)) {
        const work = this.#collectNext(run, windows).finally(() => working.delete(work));
        working.add(work);
      }
      isFull ||= this.#inHand >= this.#mostInHand;
      if (!working.size && run.signal.aborted) return undefined;
      if (!working.size && isFull && windows.hasNext()) return 0;
      const waitMs = windows.findWait();
      if (!working.size && (waitMs === undefined || waitMs > PATIENCE_MS)) return waitMs;
      const timer = new AbortController();
      const wait = waitMs === undefined ? [] : [sleep(Math.ceil(waitMs), undefined, { signal: timer.signal }).catch(() => undefined)];
      await Promise.race([...working, ...wait]);
      timer.abort();
    }
  }

  /** Takes the next window as soon as there is a place among all that are worked on, and takes it as far as it comes. */
  #collectNext(run: Run, windows: AccountWindows): Promise<void> {
    return this.#semaphore.run(run.request.kind !== 'backfill', async () => {
      const window = run.signal.aborted ? undefined : windows.take();
      const parts = { pipeline: this.#pipeline, run, windows, probing: this.#probing, releaseWhile: this.#releaseWhile };
      if (window) await new Attempt(parts, window).make();
    });
  }

  readonly #releaseWhile: AttemptParts['releaseWhile'] = wait => this.#semaphore.releaseWhile(wait);
}
