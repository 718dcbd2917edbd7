import type { Job } from 'bullmq';
import type { WebhookEvent } from '../schema/webhook.ts';
import { Journal } from '../src/base/journal.ts';
import type { Log } from '../src/base/log.ts';
import { withTimeout } from '../src/base/timeout.ts';
import { QueueFilling } from '../src/queue/fill-queue.ts';
import { KeyedSemaphore } from '../src/queue/keyed-semaphore.ts';
import type { NewJob, Queues } from '../src/queue/queues.ts';
import { ReplayCache } from '../src/receiver/replay-cache.ts';
import type { Posted } from '../src/service/webhooks/post-event.ts';
import type { Webhooks } from '../src/service/webhooks/webhooks.ts';
import { delay, type Failures, planRetry } from './retry.ts';

/** Something that happened to a document, to be told to whoever subscribed to it. */
export interface Announcement {
  /** Names the change for good: announced twice, it makes no second delivery while the first is remembered. 1 to 100 of A–Z, a–z, 0–9, “_”, “.” and “-”. */
  eventId: string;
  event: WebhookEvent;
  /** Beyond the usual delay. */
  delayMs?: number;
}

export interface Deliveries {
  /** Plans one delivery for each active subscription of each change. Resolves when all are kept durably, whatever becomes of the queue. */
  announce(changes: readonly Announcement[]): Promise<void>;
  /** Takes up nothing more and ends what is still under way after `graceMs` (2 s); that is made again at the next start. */
  close(options?: { graceMs?: number }): Promise<void>;
}

export interface DeliveryOptions {
  queues: Queues;
  /** Holds the deliveries that have no outcome yet. */
  folder: string;
  webhooks: Pick<Webhooks, 'client' | 'subscriptions' | 'post'>;
  /** From a change to its first delivery (6.1). */
  delayMs: number;
  /** Divides the delays of retries. */
  timeScale: number;
  log: Log;
  random?: () => number;
}

/** A delivery as the outbox keeps it. */
interface Planned {
  subscriptionId: string;
  event: WebhookEvent;
  /** Milliseconds since the epoch. */
  dueAt: number;
}

interface DeliveryJob extends Omit<Planned, 'dueAt'> {
  /** Missing in what a version without an outbox left in the queue. */
  dueAt?: number;
  failures: Failures;
}

/** Deliveries in flight to one destination. */
const PLACES = 8;

/** Beside those that wait for an answer, which take no worker from others: a client's 51 subscriptions at most, each with its places. */
const WORKERS = 64;

/** A delivery is remembered this long: who announces again makes no second one. */
const REMEMBERED_MS = 600_000;

const CLOSING_MS = 2_000;

/** For errors of our own, as a full disk; a callback's failures are counted apart and do not use these up. */
const OWN_ATTEMPTS = { attempts: 20, backoff: { type: 'exponential', delay: 1_000, jitter: 0.5 } };

/**
 * Delivers events to callbacks (6.1), beginning with what an earlier process left. What is due lies in an outbox until it has its outcome;
 * the queue may be lost. Close it before the queues.
 */
export function openDeliveries(options: DeliveryOptions): Deliveries {
  const { queues, webhooks, delayMs, log } = options;
  // Services that share a Redis have queues of their own.
  const queue = `deliver-${webhooks.client.id}`;
  const outbox = new Journal(options.folder, { notesFinished: true });
  const filling = new QueueFilling({ journal: outbox, queues, queue, idOf: key => key, jobOf: deliveryJob, log });
  const finished = new ReplayCache({ windowMs: REMEMBERED_MS / 2, now: Date.now });
  const destinations = new KeyedSemaphore(PLACES, () => performance.now());
  const ending = new AbortController();
  let inFlight = 0;
  const countInFlight = (change: 1 | -1) => {
    inFlight += change;
    worker.concurrency = WORKERS + inFlight;
  };
  const worker = queues.worker<DeliveryJob>(
    queue,
    async (job, lock) => {
      const id = String(job.id);
      // It has its outcome: enqueued twice, or of a queue that was restored from a dump.
      if (job.data.dueAt !== undefined && !outbox.has(id)) return;
      await deliver(options, { destinations, countInFlight, ending: ending.signal }, job, lock);
      finished.add(id);
      filling.finish(id);
    },
    { concurrency: WORKERS },
  );

  return {
    async announce(changes) {
      const planned = changes.flatMap(({ eventId, event, delayMs: moreMs = 0 }) => {
        if (!/^[A-Za-z0-9_.-]{1,100}$/.test(eventId)) throw new Error(`no id of an event: ${JSON.stringify(eventId)}`);
        const dueAt = Date.now() + delayMs + moreMs;
        return webhooks.subscriptions
          .listFor(event)
          .map(({ id }) => ({ key: `${eventId}-${id}`, delivery: { subscriptionId: id, event, dueAt } satisfies Planned }))
          .filter(({ key }) => !finished.has(key));
      });
      await Promise.all(planned.map(({ key, delivery }) => outbox.append(key, JSON.stringify(delivery))));
      for (const { key } of planned) filling.add(key);
    },
    async close({ graceMs = 2_000 } = {}) {
      const end = setTimeout(() => ending.abort(), graceMs);
      await filling.close();
      // While Redis is away a worker cannot be closed; closing the queues gives it up.
      await withTimeout(worker.close(), graceMs + CLOSING_MS).catch(() => undefined);
      clearTimeout(end);
      await outbox.close();
    },
  };
}

function deliveryJob(key: string, text: string): NewJob {
  const delivery: Planned = JSON.parse(text);
  const data: DeliveryJob = { ...delivery, failures: {} };
  const delay = Math.max(0, Math.ceil(delivery.dueAt - Date.now()));
  return { name: 'deliver', data, opts: { jobId: key, delay, removeOnComplete: true, ...OWN_ATTEMPTS } };
}

interface Delivering {
  destinations: KeyedSemaphore;
  countInFlight(change: 1 | -1): void;
  ending: AbortSignal;
}

async function deliver(
  options: DeliveryOptions,
  { destinations, countInFlight, ending }: Delivering,
  job: Job<DeliveryJob>,
  lock: string | undefined,
): Promise<void> {
  const { subscriptions, post } = options.webhooks;
  const id = String(job.id);
  const { subscriptionId, event } = job.data;
  destinations.returned(id);
  // None when it was cancelled, has expired, or was changed to something else: nobody asks for this event any more.
  const findSubscription = () => subscriptions.listFor(event).find(one => one.id === subscriptionId);
  const asked = findSubscription();
  if (!asked) return;
  const destination = new URL(asked.callback_url).origin;
  const delayMs = await destinations.acquire(destination, id);
  if (delayMs !== undefined) return delay(job, lock, delayMs);
  let posted: Posted;
  countInFlight(1);
  try {
    // A 410 may have come while this one waited for its place.
    const subscription = findSubscription();
    if (!subscription) return;
    posted = await post(subscription, event, ending);
  } catch (error) {
    if (!ending.aborted) throw error;
    return delay(job, lock, 0);
  } finally {
    destinations.release(destination, id);
    countInFlight(-1);
  }
  return resolve(options, job, lock, posted);
}

/** Does what the outcome of an attempt asks for. */
async function resolve(
  { webhooks, timeScale, log, random = Math.random }: DeliveryOptions,
  job: Job<DeliveryJob>,
  lock: string | undefined,
  { outcome, reason }: Posted,
): Promise<void> {
  const { subscriptionId, event, failures } = job.data;
  const facts = { subscription: subscriptionId, event_type: event.event_type, data_type: event.data_type, reason };
  switch (outcome) {
    case 'delivered':
      log.debug(facts, 'delivered an event');
      return;
    case 'gone':
      webhooks.subscriptions.noteGone(subscriptionId);
      log.info(facts, 'a callback has cancelled its subscription');
      return;
    default: {
      const retry = planRetry(failures, outcome, random());
      if (!retry) {
        log.warn({ ...facts, failures }, 'gave an event up after its last retry');
        return;
      }
      const delayMs = retry.delayMs / timeScale;
      log.info({ ...facts, failures: retry.failures, retryInMs: Math.round(delayMs) }, 'an event was not taken: trying again later');
      await job.updateData({ ...job.data, failures: retry.failures });
      return delay(job, lock, delayMs);
    }
  }
}
