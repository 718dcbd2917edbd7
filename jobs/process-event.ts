import type { Job } from 'bullmq';
import { dataTypeOf, webhookEvent } from '../schema/webhook.ts';
import { messageOf, TryLaterError } from '../src/base/errors.ts';
import type { QueueFilling } from '../src/queue/fill-queue.ts';
import {
  EVENT_JOB_OPTIONS,
  type EventJob,
  type EventsJob,
  enqueueEvents,
  eventJob,
  eventQueue,
  findHeld,
  isOfInbox,
} from '../src/sync/events/accept-event.ts';
import { keepEvents, readEvents } from '../src/sync/events/erase-events.ts';
import { type AcceptedEvent, type EventResult, FORGOTTEN, mayBeEarly, type Tries } from '../src/sync/events/event-outcome.ts';
import { createEventProcessor, type EventDelays } from '../src/sync/events/process-event.ts';
import type { Pipeline } from '../src/sync/pipeline.ts';
import { delay } from './retry.ts';
import { createWorkSemaphore } from './work-semaphore.ts';

/** Jobs, and events, that are worked on at a time: most of it is waiting for answers, and each account's requests are bounded by the rate limiter. */
const CONCURRENCY = 256;

/** How often a process may end while it works on an event, before the queue sets the event aside as failed: it may be what ends it. */
const MOST_CRASHES = 100;

/** What became of an event, for whoever looks on. */
export interface EventLine {
  /** When its outcome was committed, ISO 8601. */
  at: string;
  event_type: string;
  data_type: string;
  /** The account, where known. */
  user_id: string | null;
  object_id: string;
  outcome: EventResult['outcome'];
  /** From its acceptance until then. */
  ms: number;
  /** How many documents left the warehouse. */
  removedRows?: number;
}

export interface FetchOptions {
  delays?: Partial<EventDelays>;
  lookAgainMs?: number;
  /** After each event by which a document was stored that comes with heart rate: heart rate has no events of its own. */
  onHeartRate?(userId: string): void;
  onEvent?(line: EventLine): void;
}

/** Who waits longer waits for something else than a place. */
const PUT_OFF_MS = 15_000;

/** The outcomes of a second look that are news. */
const CHANGING: ReadonlySet<string> = new Set(['stored', 'removed']);

/** After which the document of an event that found nothing new is looked at once more. */
const LOOK_AGAIN_MS = 30_000;

/** What the queue holds of an event that was worked on before. */
type FetchJob = EventJob & Partial<Tries> & { again?: boolean };

/** What there is to do after a step: what the queue is to hold of the event, and how long it is left alone. */
interface Advance {
  next?: { data: FetchJob; ms: number };
  /** It has its outcome: it leaves the inbox when the queue holds what is next. */
  isSettled: boolean;
}

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
export async function startFetching(pipeline: Pipeline, options: FetchOptions = {}): Promise<Fetching> {
  const { inbox } = pipeline;
  const processEvent = createEventProcessor(pipeline, options);
  const measured = new Set(pipeline.warehouse.mappings.flatMap(({ resource }) => (resource.bringsHeartRate ? [resource.dataType] : [])));
  const semaphore = createWorkSemaphore(CONCURRENCY, 0);

  async function work(job: Job<FetchJob>, lock: string | undefined): Promise<void> {
    const { data } = job;
    const key = String(data.receivedAt);
    // Settled already: enqueued twice, or of a queue that was restored from a dump.
    if (isOfInbox(job.id) && !data.again && !inbox.has(key)) return;
    const { next, isSettled } = await advance(data);
    if (next && next.data !== data) await job.updateData(next.data);
    if (isSettled) filling.settle(key);
    else if (next && next.ms > PUT_OFF_MS) filling.putOff(key);
    if (next) return delay(job, lock, next.ms);
  }

  /** Events that came at once: each that is not settled now goes on in a job of its own. */
  async function workTogether(job: Job<EventsJob>): Promise<void> {
    const goOn = async (key: string, data: FetchJob, ms: number) => {
      await pipeline.queues.addAll(queue, [eventJob(data, ms)]);
      filling.isAlone(key);
      if (ms > PUT_OFF_MS) filling.putOff(key);
    };
    const work = async (key: string) => {
      const event = inbox.find(key);
      if (event === undefined) return;
      const data = { receivedAt: Number(key), event, misses: 0 };
      // One of them may have ended the process: apart, it keeps no other from its outcome.
      if (job.attemptsStarted > 1) return goOn(key, data, 0);
      // What one throws, the queue would see of a job of its own: it waits as long, and keeps the others from nothing.
      const { next, isSettled } = await advance(data).catch(() => ({
        next: { data, ms: EVENT_JOB_OPTIONS.backoff.delay },
        isSettled: false,
      }));
      if (next) await goOn(key, next.data, next.ms);
      if (isSettled) filling.settle(key);
    };
    const ends = await Promise.allSettled(job.data.keys.map(work));
    const failed = ends.find(end => end.status === 'rejected');
    if (failed) throw failed.reason;
  }

  async function advance(data: FetchJob): Promise<Advance> {
    await semaphore.acquire(false);
    try {
      return await takeStep(data);
    } finally {
      semaphore.release();
    }
  }

  async function takeStep(data: FetchJob): Promise<Advance> {
    const { receivedAt, event: text, misses, absences = 0, failures = 0, refusals = 0, again = false } = data;
    const accepted = { receivedAt, event: webhookEvent.parse(JSON.parse(text)), tries: { misses, absences, failures, refusals }, again };
    const { userId, step } = await processEvent(accepted);
    if ('finished' in step) {
      if (step.finished !== FORGOTTEN && (!again || CHANGING.has(step.finished.outcome))) tell(accepted, userId, step.finished);
      const looksAgain = !again && mayBeEarly(accepted, step.finished, pipeline.serviceClock.now());
      if (!looksAgain) return { isSettled: true };
      const second = { ...data, misses: 0, absences: 0, failures: 0, refusals: 0, again: true };
      return { next: { data: second, ms: options.lookAgainMs ?? LOOK_AGAIN_MS }, isSettled: true };
    }
    const next = step.tries === accepted.tries ? data : { ...data, ...step.tries };
    return { next: { data: next, ms: step.again }, isSettled: false };
  }

  function tell({ receivedAt, event }: AcceptedEvent, userId: string | null, { outcome, removedRows }: EventResult): void {
    const now = pipeline.now();
    const line: EventLine = {
      at: new Date(now).toISOString(),
      event_type: event.event_type,
      data_type: event.data_type,
      user_id: userId,
      object_id: event.object_id,
      outcome,
      ms: Math.max(0, now - receivedAt / 1000),
      ...(removedRows === undefined ? {} : { removedRows }),
    };
    pipeline.log.debug(line, 'event settled');
    options.onEvent?.(line);
    if (userId !== null && outcome === 'stored' && measured.has(dataTypeOf(event.data_type))) options.onHeartRate?.(userId);
  }

  const queue = await eventQueue(pipeline.warehouse);
  // What a version without an inbox accepted is in the queue alone, and may be lost with it.
  const held = [...(await pipeline.queues.ids(queue))];
  if (!held.every(isOfInbox)) await keepEvents(pipeline, await readEvents(pipeline));
  const filling = enqueueEvents(pipeline, queue, await findHeld(pipeline.queues.queue(queue), held));
  const worker = pipeline.queues.worker<FetchJob | EventsJob>(
    queue,
    (job, lock) => ('keys' in job.data ? workTogether(job as Job<EventsJob>) : work(job as Job<FetchJob>, lock)),
    { concurrency: CONCURRENCY, maxStalledCount: MOST_CRASHES },
  );
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
