import type { Job } from 'bullmq';
import { messageOf, TryLaterError } from '../src/base/errors.ts';
import type { FillPace, QueueFilling } from '../src/queue/fill-queue.ts';
import type { Queue } from '../src/queue/queues.ts';
import { WorkSemaphore } from '../src/queue/work-semaphore.ts';
import {
  EVENT_JOB_OPTIONS,
  type EventsJob,
  enqueueEvents,
  eventJob,
  eventQueue,
  findHeld,
  isOfInbox,
} from '../src/sync/events/accept-event.ts';
import { type Advance, EventAdvancer, type EventOptions, type OpenEvent } from '../src/sync/events/advance-event.ts';
import { keepEvents, readEvents } from '../src/sync/events/erase-events.ts';
import type { Pipeline } from '../src/sync/pipeline.ts';
import { delay } from './retry.ts';

/** Jobs, and events, that are worked on at a time: most of it is waiting for answers, and each account's requests are bounded by the rate limiter. */
const CONCURRENCY = 256;

/** How often a process may end while it works on an event, before the queue sets the event aside as failed: it may be what ends it. */
const MOST_CRASHES = 100;

/** Who waits longer waits for something else than a place. */
const PUT_OFF_MS = 15_000;

/** Events being worked off. */
export interface Fetching {
  /** What puts them into the queue. */
  filling: QueueFilling;
  /** Enqueues nothing more, and lets what is under way come to its end. */
  stop(): Promise<void>;
}

/**
 * Starts working off the accepted events. An event is a hint: its document is fetched, and what the service answers is stored. The queue
 * may be lost, for the inbox holds what has no outcome yet; a job may run twice, at any time.
 */
export async function startFetching(pipeline: Pipeline, options: EventOptions & FillPace = {}): Promise<Fetching> {
  const queue = await eventQueue(pipeline.warehouse);
  // What a version without an inbox accepted is in the queue alone, and may be lost with it.
  const held = [...(await pipeline.queues.ids(queue))];
  if (!held.every(isOfInbox)) await keepEvents(pipeline, await readEvents(pipeline));
  await promoteFromAhead(pipeline.queues.queue(queue));
  const filling = enqueueEvents(pipeline, queue, await findHeld(pipeline.queues.queue(queue), held), options);
  const jobs = new EventJobs(pipeline, queue, filling, options);
  const settings = { concurrency: CONCURRENCY, maxStalledCount: MOST_CRASHES };
  const worker = pipeline.queues.worker<OpenEvent | EventsJob>(queue, (job, lock) => jobs.work(job, lock), settings);
  // One whose first connection is lost never takes up anything: no start is better than one that works nothing off.
  await worker.waitUntilReady().catch(async error => {
    await filling.close();
    throw new TryLaterError(`the queue cannot be used: ${messageOf(error)}`, { cause: error });
  });
  return {
    filling,
    async stop() {
      await filling.close();
      await worker.close();
    },
  };
}

/** Clocks of two moments of one machine may differ by so much. */
const SAME_CLOCK_MS = 60_000;

/** Has those worked on that were put off by a clock of this machine that was ahead: they would wait for as long as it was. */
async function promoteFromAhead(queue: Queue): Promise<void> {
  for (const job of await queue.getDelayed()) {
    // A worker of another process may have been quicker.
    if (job.timestamp > Date.now() + SAME_CLOCK_MS) await job.promote().catch(() => undefined);
  }
}

class EventJobs {
  readonly #pipeline: Pipeline;
  readonly #queue: string;
  readonly #filling: QueueFilling;
  readonly #events: EventAdvancer;
  readonly #semaphore = new WorkSemaphore(CONCURRENCY, 0);

  constructor(pipeline: Pipeline, queue: string, filling: QueueFilling, options: EventOptions) {
    this.#pipeline = pipeline;
    this.#queue = queue;
    this.#filling = filling;
    this.#events = new EventAdvancer(pipeline, options);
  }

  work(job: Job<OpenEvent | EventsJob>, lock: string | undefined): Promise<void> {
    const { data } = job;
    return 'keys' in data ? this.#workTogether(data.keys, job.attemptsStarted > 1) : this.#workAlone(job, data, lock);
  }

  async #workAlone(job: Job, data: OpenEvent, lock: string | undefined): Promise<void> {
    const key = String(data.receivedAt);
    // Settled already: enqueued twice, or of a queue that was restored from a dump.
    if (isOfInbox(job.id) && !data.again && !this.#pipeline.inbox.has(key)) return;
    const { next, isFinished } = await this.#advance(data);
    if (next && next.data !== data) await job.updateData(next.data);
    if (isFinished) this.#filling.finish(key);
    else if (next && next.ms > PUT_OFF_MS) this.#filling.putOff(key);
    if (next) return delay(job, lock, next.ms);
  }

  /**
   * Events that came at once: each that has no outcome now goes on in a job of its own.
   * @param isRepeated one of them may have ended the process: apart, it keeps no other from its outcome
   */
  async #workTogether(keys: readonly string[], isRepeated: boolean): Promise<void> {
    const ends = await Promise.allSettled(keys.map(key => this.#workOnOne(key, isRepeated)));
    const failed = ends.find(end => end.status === 'rejected');
    if (failed) throw failed.reason;
  }

  async #workOnOne(key: string, isRepeated: boolean): Promise<void> {
    const event = this.#pipeline.inbox.find(key);
    if (event === undefined) return this.#filling.finish(key);
    const data = { receivedAt: Number(key), event, misses: 0 };
    if (isRepeated) return this.#goOnAlone(key, { data, ms: 0 });
    // What one throws, the queue would see of a job of its own: it waits as long, and keeps the others from nothing.
    const failed = { next: { data, ms: EVENT_JOB_OPTIONS.backoff.delay }, isFinished: false };
    const { next, isFinished } = await this.#advance(data).catch(() => failed);
    if (next) await this.#goOnAlone(key, next);
    if (isFinished) this.#filling.finish(key);
  }

  async #goOnAlone(key: string, { data, ms }: { data: OpenEvent; ms: number }): Promise<void> {
    await this.#pipeline.queues.addAll(this.#queue, [eventJob(data, ms)]);
    this.#filling.isAlone(key);
    if (ms > PUT_OFF_MS) this.#filling.putOff(key);
  }

  #advance(data: OpenEvent): Promise<Advance> {
    return this.#semaphore.run(false, () => this.#events.advance(data));
  }
}
