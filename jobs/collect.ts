import { DelayedError, type Job } from 'bullmq';
import { ServiceError } from '../src/client/error.ts';
import { isDiskFull } from '../src/disk.ts';
import { detailOf, messageOf } from '../src/errors.ts';
import { QueueUnavailable } from '../src/queue/queues.ts';
import type { Account } from './accounts.ts';
import { findAccount } from './accounts.ts';
import type { WindowResult } from './collections.ts';
import { delay } from './delay.ts';
import { askForAddress, offersAnything } from './not-offered.ts';
import type { Outcome } from './outcome.ts';
import { ATTEMPTS, decide } from './outcome.ts';
import { kindOf, park, type Refused } from './park.ts';
import type { Pipeline } from './pipeline.ts';
import { isRefusal } from './probe.ts';
import { confirmsRefusal, refuteRefusal } from './refusals.ts';
import type { Run } from './run.ts';
import { collectQueue } from './runs.ts';
import { TooLarge, type WindowJob, windowEntry } from './windows.ts';
import { createWorkPlaces, type WorkPlaces } from './work-places.ts';

/** Waiting for answers is the cost of a real network: windows run side by side, each token's requests are bounded by its gate. */
const CONCURRENCY = 24;

/** Windows in the middle of which the service has asked for a wait: each keeps its job and works on nothing. */
const MOST_ASIDE = 200;

/** Jobs in hand. BullMQ asks for no further one while all that it has only wait, so there are more of them than can wait. */
const IN_HAND = CONCURRENCY + MOST_ASIDE + 32;

const ONCE = ', for the first time: what a later run is answered decides, a minute later at the earliest';

/** How long a job of a run that is not worked on here is left alone. */
const UNKNOWN_MS = 10_000;

/** How long a window waits for the place that another one of its account has. */
const PLACE_MS = 1_000;

/** What the windows that are worked on have in common. */
interface Shared {
  probing: Map<string, Promise<Refused>>;
  places: WorkPlaces;
}

/** Starts working off the windows of all runs. */
export async function startCollecting(pipeline: Pipeline): Promise<void> {
  const shared: Shared = { probing: new Map(), places: createWorkPlaces(CONCURRENCY, MOST_ASIDE) };
  pipeline.queues.worker<WindowJob>(
    await collectQueue(pipeline.warehouse),
    (job, lock) => attempt(pipeline, job as Job<WindowJob>, lock, shared),
    { concurrency: IN_HAND },
  );
}

/** A window whose last attempt cannot even be noted in the ledger fails all the same: its run must not wait for it without end. */
async function attempt(pipeline: Pipeline, job: Job<WindowJob>, lock: string | undefined, shared: Shared): Promise<void> {
  await shared.places.take(pipeline.runs.find(job.data.runId)?.request.kind !== 'backfill');
  try {
    await collect(pipeline, job, lock, shared);
  } catch (error) {
    // A queue that takes nothing says nothing of the window: it is enqueued again when it does.
    if (error instanceof DelayedError || error instanceof QueueUnavailable || job.attemptsMade + 1 < ATTEMPTS) throw error;
    await pipeline.runs.find(job.data.runId)?.settle(job.data, 'failed', messageOf(error), kindOf(error), detailOf(error));
  } finally {
    shared.places.leave();
  }
}

/**
 * Collects one window. May run twice, at any time: what it stores is guarded by the order of requests, and a window settles once.
 */
async function collect(pipeline: Pipeline, job: Job<WindowJob>, lock: string | undefined, shared: Shared): Promise<void> {
  const window = job.data;
  const run = pipeline.runs.find(window.runId);
  // One that the ledger does not call over is somebody's: its job is not ours to take away.
  if (!run && !(await pipeline.runs.isOver(window.runId))) return delay(job, lock, UNKNOWN_MS);
  if (!run?.isPending(window) || run.signal.aborted) return;
  // Before the service is asked for what could not be stored.
  const diskMs = pipeline.runs.findDiskWait();
  if (diskMs !== undefined) return delay(job, lock, diskMs);
  if (!run.enter(window)) return delay(job, lock, PLACE_MS);
  try {
    await collectInPlace(pipeline, run, job, lock, shared);
  } finally {
    run.leave(window);
  }
}

async function collectInPlace(pipeline: Pipeline, run: Run, job: Job<WindowJob>, lock: string | undefined, shared: Shared): Promise<void> {
  const window = job.data;
  const account = await findAccount(pipeline.warehouse, window.userId);
  const closed =
    account?.state === 'active'
      ? undefined
      : `the account is ${account?.state ?? 'removed'}${account?.reason ? `: ${account.reason}` : ''}`;
  if (closed || !account) return settle(pipeline, run, window, 'not_authorised', closed);
  const token = pipeline.tokens.find(window.userId);
  try {
    await collectWindow(pipeline, run, window, token, shared.places);
  } catch (error) {
    if (run.signal.aborted) return;
    if (error instanceof TooLarge) return pipeline.runs.cut(run, window);
    // A token that was replaced meanwhile: its refusal says nothing of the new one.
    if (isRefusal(error) && pipeline.tokens.find(window.userId) !== token) throw error;
    await resolve(pipeline, run, job, lock, account, error, shared);
  }
}

/** Does what an error asks for. Throwing makes BullMQ try again. */
async function resolve(
  pipeline: Pipeline,
  run: Run,
  job: Job<WindowJob>,
  lock: string | undefined,
  account: Account,
  error: unknown,
  shared: Shared,
): Promise<void> {
  // Its attempts are for what may be wrong with the window.
  if (isDiskFull(error)) return delay(job, lock, pipeline.runs.findDiskWait() ?? PLACE_MS);
  const decision = decide(error, job.attemptsMade);
  switch (decision.do) {
    case 'wait':
      run.progress.waits++;
      run.slowDown(job.data.userId);
      return delay(job, lock, decision.ms);
    case 'retry':
      throw error;
    case 'confirm':
      try {
        return await confirmNotOffered(pipeline, run, job, lock, error, shared);
      } catch (unclear) {
        if (unclear === error || unclear instanceof DelayedError) throw unclear;
        return resolve(pipeline, run, job, lock, account, unclear, shared);
      }
    case 'park': {
      let refused: Refused;
      try {
        refused = await park(pipeline, account, error, shared.probing);
      } catch (unclear) {
        // What the refusal means is unknown while the probe has no answer: that is decided as the probe's own error.
        return resolve(pipeline, run, job, lock, account, unclear, shared);
      }
      if (refused === 'account' || (await confirmsRefusal(pipeline, job.data))) {
        return settle(pipeline, run, job.data, 'not_authorised', messageOf(error), kindOf(error), detailOf(error));
      }
      return settle(pipeline, run, job.data, 'suspicious', `${messageOf(error)}${ONCE}`, 'suspicious', detailOf(error));
    }
    case 'settle': {
      const unreached = decision.outcome === 'failed' ? pipeline.runs.findUnreached(run, false) : undefined;
      if (unreached) return pipeline.runs.breakOff(run, unreached);
      return settle(pipeline, run, job.data, decision.outcome, decision.reason, kindOf(error), detailOf(error));
    }
  }
}

/** A collection is not offered once it has said 404 twice, where the service offers anything at all: else the address is wrong. */
async function confirmNotOffered(
  pipeline: Pipeline,
  run: Run,
  job: Job<WindowJob>,
  lock: string | undefined,
  notFound: unknown,
  { places }: Shared,
): Promise<void> {
  const window = job.data;
  const { client } = pipeline;
  const waitMs = run.notFounds.note(window, pipeline.secondLookMs);
  if (waitMs > 0) return delay(job, lock, waitMs);
  const token = pipeline.tokens.find(window.userId);
  if (token === undefined) throw notFound;
  // A gateway whose service is away answers 404 to all, and in JSON.
  const offers = await run.notFounds.askOffers(() => offersAnything(pipeline, token));
  if (!offers && client.hasAnswered()) {
    const route = notFound instanceof ServiceError ? notFound.route : window.collection;
    throw new ServiceError('unavailable', route, 'answered 404, and so does everything that has answered before');
  }
  if (!offers) return run.fail(window, 'wrong_address', askForAddress(client.address, window.userId));
  const collection = pipeline.collections.find(({ name }) => name === window.collection);
  if (collection?.collectNotOffered) return collectWindow(pipeline, run, window, token, places, 'collectNotOffered');
  return settle(pipeline, run, window, 'not_offered', messageOf(notFound), kindOf(notFound), detailOf(notFound));
}

async function collectWindow(
  pipeline: Pipeline,
  run: Run,
  window: WindowJob,
  token: string | undefined,
  places: WorkPlaces,
  how: 'collect' | 'collectNotOffered' = 'collect',
): Promise<void> {
  const collection = pipeline.collections.find(({ name }) => name === window.collection);
  if (!collection) return settle(pipeline, run, window, 'failed', `no collection ${window.collection} in this version`);
  // No refusal of the service's: with a token, or at the address that it was given for, the same window is read again.
  if (!token) return settle(pipeline, run, window, 'failed', pipeline.tokens.whyMissing(window.userId));
  const share = run.brake.share(pipeline.warehouse, window);
  let answered = false;
  let result: WindowResult;
  try {
    result = await collection[how]!(window, {
      pipeline,
      token,
      signal: run.signal,
      aside: places.aside,
      acceptDeletions: run.request.acceptDeletions ?? false,
      share,
      expectsEvents: run.request.kind !== 'backfill',
      onAnswer: () => {
        answered = true;
        run.progress.requests++;
      },
      onStored: (counts, documents) => run.count(counts, documents),
      goesOnIn: next => run.goesOnIn.push(next),
      ledger: result => [windowEntry(window, { ...result, committedAt: pipeline.warehouse.moments.next() })],
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
  else await settle(pipeline, run, window, result.outcome, result.reason, result.outcome, undefined, result.removed);
}

async function settle(
  pipeline: Pipeline,
  run: Run,
  window: WindowJob,
  outcome: Outcome,
  reason?: string,
  kind: string = outcome,
  detail?: string,
  removed?: number,
): Promise<void> {
  await pipeline.runs.store(run, () =>
    pipeline.warehouse.record([windowEntry(window, { outcome, reason, removed, committedAt: pipeline.warehouse.moments.next() })]),
  );
  await run.settle(window, outcome, reason, kind, detail);
}
