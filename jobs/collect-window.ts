import { setTimeout as sleep } from 'node:timers/promises';
import type { Job } from 'bullmq';
import { isDiskFull } from '../src/base/disk.ts';
import { detailOf, messageOf } from '../src/base/errors.ts';
import { ServiceError } from '../src/client/error.ts';
import type { Account } from '../src/ledger/accounts.ts';
import { changeAccounts, findAccount } from '../src/ledger/accounts.ts';
import type { Outcome } from '../src/ledger/windows.ts';
import { type AccountJob, hasSeveralDays, TooLarge, windowEntry } from '../src/ledger/windows.ts';
import type { Pipeline, WindowResult } from '../src/sync/pipeline.ts';
import { TokenReplaced } from '../src/sync/pipeline.ts';
import type { AccountWindows, OpenWindow } from '../src/sync/runs/account-windows.ts';
import type { Run } from '../src/sync/runs/run.ts';
import { collectQueue } from '../src/sync/runs/runs.ts';
import { askForAddress, offersAnything } from '../src/sync/verdicts/not-offered.ts';
import { ATTEMPTS, decide } from '../src/sync/verdicts/outcome.ts';
import { kindOf, park, type Refused } from '../src/sync/verdicts/park.ts';
import { isRefusal } from '../src/sync/verdicts/probe.ts';
import { confirmsRefusal, refuteRefusal } from '../src/sync/verdicts/refusals.ts';
import { delay } from './retry.ts';
import { createWorkSemaphore, type WorkSemaphore } from './work-semaphore.ts';

/** Waiting for answers is the cost of a real network: windows run side by side, each token's requests are bounded by the rate limiter. */
const CONCURRENCY = 40;

/** Windows in the middle of which the service has asked for a wait: each keeps its job and works on nothing. */
const MOST_ASIDE = 200;

/** Accounts that are worked on at a time, each a job; where there are more they take turns. */
const IN_HAND = 256;

/** So long an account waits for its next window without leaving its worker. */
const PATIENCE_MS = 100;

const ONCE = ', for the first time: what a later run is answered decides, a minute later at the earliest';

/** How long a job of a run that is not worked on here is left alone. */
const UNKNOWN_MS = 10_000;

/** How long a window stays away from a disk that was full and is not any more. */
const PLACE_MS = 1_000;

/** What the windows that are worked on have in common. */
interface Shared {
  probing: Map<string, Promise<Refused>>;
  semaphore: WorkSemaphore;
  accounts: { inHand: number; most: number };
}

/** Starts working off the windows of all runs. */
export async function startCollecting(pipeline: Pipeline, { inHand = IN_HAND } = {}): Promise<void> {
  const accounts = { inHand: 0, most: inHand };
  const shared: Shared = { probing: new Map(), semaphore: createWorkSemaphore(CONCURRENCY, MOST_ASIDE), accounts };
  pipeline.queues.worker<AccountJob>(
    await collectQueue(pipeline.warehouse),
    async (job, lock) => {
      accounts.inHand++;
      try {
        await collectAccount(pipeline, job as Job<AccountJob>, lock, shared);
      } finally {
        accounts.inHand--;
      }
    },
    { concurrency: inHand },
  );
}

/**
 * Collects what a run has left of an account. May run twice, at any time, and only one of them does anything: the run knows which windows
 * have no outcome, however often its job is lost.
 */
async function collectAccount(pipeline: Pipeline, job: Job<AccountJob>, lock: string | undefined, shared: Shared): Promise<void> {
  const run = pipeline.runs.find(job.data.runId);
  // One that the ledger does not call over is somebody's: its job is not ours to take away.
  if (!run && !(await pipeline.runs.isOver(job.data.runId))) return delay(job, lock, UNKNOWN_MS);
  const windows = run?.enter(job.data);
  if (!run || !windows) return;
  let awayMs: number | undefined;
  try {
    awayMs = await takeTurn(pipeline, run, windows, shared);
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
async function takeTurn(pipeline: Pipeline, run: Run, windows: AccountWindows, shared: Shared): Promise<number | undefined> {
  const working = new Set<Promise<void>>();
  const { accounts } = shared;
  let isFull = false;
  for (;;) {
    while (!run.signal.aborted && !isFull && windows.hasNext(working.size - windows.inHand)) {
      const work = collectNext(pipeline, run, windows, shared).finally(() => working.delete(work));
      working.add(work);
    }
    isFull ||= accounts.inHand >= accounts.most;
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
async function collectNext(pipeline: Pipeline, run: Run, windows: AccountWindows, shared: Shared): Promise<void> {
  await shared.semaphore.acquire(run.request.kind !== 'backfill');
  const window = run.signal.aborted ? undefined : windows.take();
  try {
    if (window) await attempt(pipeline, run, windows, window, shared);
  } finally {
    shared.semaphore.release();
  }
}

/**
 * One attempt at a window. What it stores is guarded by the order of requests. A window whose last attempt cannot even be noted in the
 * ledger fails all the same: its run must not wait for it without end.
 */
async function attempt(pipeline: Pipeline, run: Run, windows: AccountWindows, window: OpenWindow, shared: Shared): Promise<void> {
  try {
    // Before the service is asked for what could not be stored.
    const awayMs = pipeline.runs.findDiskWait() ?? (await collect(pipeline, run, windows, window, shared));
    if (awayMs !== undefined) windows.putOff(window, awayMs);
  } catch (error) {
    // What was asked with the earlier token is no attempt at the window.
    if (!(error instanceof TokenReplaced)) window.attemptsMade++;
    if (window.attemptsMade < ATTEMPTS) windows.putOff(window, pipeline.retryDelayMs * 2 ** Math.max(0, window.attemptsMade - 1));
    else await run.settle(window, 'failed', messageOf(error), kindOf(error), detailOf(error));
  }
}

/**
 * Collects one window. Throwing is a failed attempt.
 * @returns after how long it is to be begun again; undefined when it has its outcome
 */
async function collect(
  pipeline: Pipeline,
  run: Run,
  windows: AccountWindows,
  window: OpenWindow,
  shared: Shared,
): Promise<number | undefined> {
  const find = () => findAccount(pipeline.warehouse, window.userId);
  const found = await find();
  // Without a token it may be in the middle of being removed.
  const isSettled = found?.state === 'active' && pipeline.tokens.find(window.userId) !== undefined;
  const account = isSettled ? found : await changeAccounts(pipeline.warehouse, find);
  const closed =
    account?.state === 'active'
      ? undefined
      : `the account is ${account?.state ?? 'removed'}${account?.reason ? `: ${account.reason}` : ''}`;
  if (closed || !account) {
    // The service has refused nothing: after whatever is done to the account from then on, this says nothing of the collection.
    return finish(pipeline, run, window, 'not_authorised', closed, 'not_authorised', undefined, { committedAt: account?.since });
  }
  const token = pipeline.tokens.find(window.userId);
  try {
    return await collectWindow(pipeline, run, window, token, shared.semaphore);
  } catch (error) {
    if (run.signal.aborted) return undefined;
    if (error instanceof TooLarge || (kindOf(error) === 'too_large' && hasSeveralDays(window))) {
      await pipeline.runs.cut(run, window);
      return undefined;
    }
    // What was said to it says nothing of the new one.
    if (error instanceof ServiceError && pipeline.tokens.find(window.userId) !== token) throw new TokenReplaced(messageOf(error));
    if (error instanceof TokenReplaced) throw error;
    return resolve(pipeline, run, windows, window, account, error, shared);
  }
}

/** Does what an error asks for, like `collect`. */
async function resolve(
  pipeline: Pipeline,
  run: Run,
  windows: AccountWindows,
  window: OpenWindow,
  account: Account,
  error: unknown,
  shared: Shared,
): Promise<number | undefined> {
  // Its attempts are for what may be wrong with the window.
  if (isDiskFull(error)) return pipeline.runs.findDiskWait() ?? PLACE_MS;
  const decision = decide(error, window.attemptsMade);
  switch (decision.do) {
    case 'wait':
      run.progress.waits++;
      windows.slowDown();
      return decision.ms;
    case 'retry':
      throw error;
    case 'confirm': {
      const token = pipeline.tokens.find(window.userId);
      try {
        return await confirmNotOffered(pipeline, run, window, error, shared);
      } catch (unclear) {
        if (unclear === error || unclear instanceof TokenReplaced) throw unclear;
        if (isRefusal(unclear) && pipeline.tokens.find(window.userId) !== token) throw new TokenReplaced(messageOf(unclear));
        return resolve(pipeline, run, windows, window, account, unclear, shared);
      }
    }
    case 'park': {
      let refused: Refused;
      try {
        refused = await park(pipeline, account, error, shared.probing);
      } catch (unclear) {
        // What the refusal means is unknown while the probe has no answer: that is decided as the probe's own error.
        return resolve(pipeline, run, windows, window, account, unclear, shared);
      }
      if (refused === 'replaced_token') throw new TokenReplaced(messageOf(error));
      if (refused === 'account' || (await confirmsRefusal(pipeline, window))) {
        return finish(pipeline, run, window, 'not_authorised', messageOf(error), kindOf(error), detailOf(error));
      }
      return finish(pipeline, run, window, 'suspicious', `${messageOf(error)}${ONCE}`, 'suspicious', detailOf(error));
    }
    case 'settle': {
      const unreached = decision.outcome === 'failed' ? await pipeline.runs.findUnreached(run, false) : undefined;
      if (unreached) {
        pipeline.runs.breakOff(run, unreached);
        return undefined;
      }
      return finish(pipeline, run, window, decision.outcome, decision.reason, kindOf(error), detailOf(error));
    }
  }
}

/** A collection is not offered once it has said 404 twice, where the service offers anything at all: else the address is wrong. */
async function confirmNotOffered(
  pipeline: Pipeline,
  run: Run,
  window: OpenWindow,
  notFound: unknown,
  { semaphore }: Shared,
): Promise<number | undefined> {
  const { client } = pipeline;
  const waitMs = run.notFounds.note(window, pipeline.secondLookMs);
  if (waitMs > 0) return waitMs;
  const token = pipeline.tokens.find(window.userId);
  if (token === undefined) throw notFound;
  // A gateway whose service is away answers 404 to all, and in JSON.
  const offers = await run.notFounds.askOffers(() => offersAnything(pipeline, token));
  if (!offers && client.hasAnswered()) {
    const route = notFound instanceof ServiceError ? notFound.route : window.collection;
    throw new ServiceError('unavailable', route, 'answered 404, and so does everything that has answered before');
  }
  if (!offers) {
    await run.fail(window, 'wrong_address', askForAddress(client.address, window.userId));
    return undefined;
  }
  const collection = pipeline.collections.find(({ name }) => name === window.collection);
  if (collection?.collectNotOffered) return collectWindow(pipeline, run, window, token, semaphore, 'collectNotOffered');
  return finish(pipeline, run, window, 'not_offered', messageOf(notFound), kindOf(notFound), detailOf(notFound));
}

async function collectWindow(
  pipeline: Pipeline,
  run: Run,
  window: OpenWindow,
  token: string | undefined,
  semaphore: WorkSemaphore,
  how: 'collect' | 'collectNotOffered' = 'collect',
): Promise<undefined> {
  const collection = pipeline.collections.find(({ name }) => name === window.collection);
  if (!collection) return finish(pipeline, run, window, 'failed', `no collection ${window.collection} in this version`);
  // No refusal of the service's: with a token, or at the address that it was given for, the same window is read again.
  if (!token) return finish(pipeline, run, window, 'failed', pipeline.tokens.whyMissing(window.userId));
  const share = run.brake.share(pipeline.warehouse, window);
  let answered = false;
  let result: WindowResult;
  try {
    result = await collection[how]!(window, {
      pipeline,
      token,
      signal: run.signal,
      releaseWhile: semaphore.releaseWhile,
      acceptDeletions: run.request.acceptDeletions ?? false,
      share,
      expectsEvents: run.request.kind !== 'backfill',
      onAnswer: () => {
        answered = true;
        run.progress.requests++;
      },
      onStored: (counts, documents) => run.count(counts, documents),
      // What was read to its end, and is not believed, has stored what it brought; a first refusal has brought nothing.
      hasFailed: name =>
        run.failures.some(
          failure =>
            failure.user_id === window.userId &&
            failure.collection === name &&
            (failure.kind !== 'suspicious' || failure.message.endsWith(ONCE)),
        ),
      goesOnIn: next => run.goesOnIn.push(next),
      ledger: result => [windowEntry(window, { ...result, committedAt: pipeline.warehouse.clock.next() })],
    });
  } catch (error) {
    // A refusal is an answer too.
    if (error instanceof ServiceError && error.status !== undefined) run.progress.requests++;
    share.giveBack();
    throw error;
  } finally {
    if (answered) await refuteRefusal(pipeline, window);
  }
  if (result.outcome !== 'complete') share.keep(result.removed ?? 0);
  if (result.outcome === 'complete') await run.settle(window, 'complete', undefined, 'complete');
  else await finish(pipeline, run, window, result.outcome, result.reason, result.outcome, undefined, { removed: result.removed });
}

async function finish(
  pipeline: Pipeline,
  run: Run,
  window: OpenWindow,
  outcome: Outcome,
  reason?: string,
  kind: string = outcome,
  detail?: string,
  { removed, committedAt }: { removed?: number | undefined; committedAt?: number | undefined } = {},
): Promise<undefined> {
  const { clock } = pipeline.warehouse;
  await pipeline.runs.store(run, () =>
    pipeline.warehouse.record([windowEntry(window, { outcome, reason, removed, committedAt: committedAt ?? clock.next() })]),
  );
  await run.settle(window, outcome, reason, kind, detail);
}
