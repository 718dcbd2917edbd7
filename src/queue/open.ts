import { type IQueueBackend, type Job, type JobsOptions, type Processor, withBackend } from 'bullmq';
import { messageOf } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { TimeoutError, withTimeout } from '../base/timeout.ts';
import type { Backend } from './backend.ts';
import { isConnectionError, refusalOfRedis } from './environment-errors.ts';
import type { Claim } from './lease.ts';
import {
  type NewJob,
  type Queue,
  type QueueCounts,
  type QueueEvents,
  type Queues,
  QueueUnavailable,
  type Worker,
  type WorkerSettings,
} from './queues.ts';

const answerMs = 1_500;
const sliceLength = 200;
const closeMs = 2_000;
const repeatedErrorMs = 60_000;

/**
 * Opens the queues: in Redis when there is a URL, else embedded in the folder, which the caller owns. One factory for both, so that
 * nobody above knows which one it is.
 * @param options.claim for whom the queues are worked off: of a Redis that others reach too, nobody else has them meanwhile
 */
export async function openQueues(options: { url?: string; folder: string; prefix?: string; log: Log; claim?: Claim }): Promise<Queues> {
  const { log, claim, prefix = 'ringneck' } = options;
  const backend = await openBackend(options);
  try {
    const giveBack = claim && (await backend.claim?.(prefix, claim));
    return new BullQueues(backend, prefix, log, { giveBack, mayWork: claim?.mayWork });
  } catch (error) {
    backend.closing?.();
    await backend.end();
    throw error;
  }
}

class BullQueues implements Queues {
  readonly kind: Backend['kind'];
  readonly #backend: Backend;
  readonly #bull: ReturnType<typeof withBackend<IQueueBackend, unknown>>;
  // The connection is in the factory, but BullMQ asks for one.
  readonly #base: { connection: object; prefix: string };
  readonly #log: Log;
  readonly #giveBack: (() => Promise<void>) | undefined;
  readonly #mayWork: () => boolean;
  readonly #queues = new Map<string, Queue>();
  readonly #workers: Pick<Worker, 'close' | 'cancelAllJobs' | 'disconnect'>[] = [];
  readonly #readers: QueueEvents[] = [];
  readonly #errors = new Map<string, number>();
  #closing: Promise<void> | undefined;

  constructor(
    backend: Backend,
    prefix: string,
    log: Log,
    { giveBack, mayWork = () => true }: Pick<Claim, 'mayWork'> & { giveBack: (() => Promise<void>) | undefined },
  ) {
    this.kind = backend.kind;
    this.#backend = backend;
    this.#bull = withBackend(backend.factory);
    this.#base = { connection: {}, prefix };
    this.#log = log;
    this.#giveBack = giveBack;
    this.#mayWork = mayWork;
  }

  queue(name: string): Queue {
    const found = this.#queues.get(name);
    if (found) return found;
    const defaultJobOptions = { removeOnComplete: true, removeOnFail: { count: 1_000 } };
    const made: Queue = new this.#bull.Queue(name, { ...this.#base, defaultJobOptions });
    made.on('error', error => this.#report(error));
    this.#queues.set(name, made);
    return made;
  }

  worker<Data = unknown, Result = unknown>(name: string, process: Processor<Data, Result>, settings: WorkerSettings): Worker<Data, Result> {
    // What is left of a job without its data says itself nothing of when to remove it.
    const defaults = { ...this.#backend.worker, runRetryDelay: 1_000, maxStalledCount: 10, removeOnComplete: { count: 0 } };
    const worker = new this.#bull.Worker<Data, Result>(name, whole(process, this.#mayWork), { ...this.#base, ...defaults, ...settings });
    worker.on('error', error => this.#report(error));
    this.#workers.push(worker);
    return worker;
  }

  events(name: string): QueueEvents {
    const events = new this.#bull.QueueEvents(name, this.#base);
    events.on('error', error => this.#report(error));
    this.#readers.push(events);
    return events;
  }

  add(name: string, job: string, data: unknown, options?: JobsOptions): Promise<Job> {
    return this.#orUnavailable(() => this.queue(name).add(job, data, options));
  }

  async addAll(name: string, jobs: readonly NewJob[]): Promise<void> {
    for (const slice of slicesOf(jobs)) await this.#orUnavailable(() => this.#addSlice(name, slice));
  }

  async addBulk(name: string, jobs: readonly NewJob[]): Promise<void> {
    for (const slice of slicesOf(jobs)) await this.#addSlice(name, slice);
  }

  empty(name: string): Promise<void> {
    return this.queue(name).obliterate({ force: true });
  }

  async forget(name: string, ids: readonly string[]): Promise<void> {
    // Embedded a job is one row.
    if (this.kind === 'embedded') return;
    for (const slice of slicesOf(ids)) {
      await this.#orUnavailable(() => Promise.all(slice.map(id => this.queue(name).remove(id))));
    }
  }

  promote(name: string): Promise<void> {
    return this.#orUnavailable(() => this.queue(name).promoteJobs());
  }

  async ids(name: string): Promise<Set<string>> {
    const states = ['wait', 'prioritized', 'delayed', 'active', 'failed'] as const;
    return new Set(await this.#orUnavailable(() => this.queue(name).getRanges([...states], 0, -1)));
  }

  async counts(name: string): Promise<QueueCounts> {
    const counts = await this.#orUnavailable(() => this.queue(name).getJobCounts());
    const { waiting = 0, prioritized = 0, paused = 0, active = 0, delayed = 0, failed = 0 } = counts;
    return { waiting: waiting + prioritized + paused, active, delayed, failed };
  }

  ping(): Promise<void> {
    return this.#orUnavailable(() => this.#backend.ping());
  }

  close({ graceMs = 10_000 }: { graceMs?: number } = {}): Promise<void> {
    this.#closing ??= this.#closeAll(graceMs);
    return this.#closing;
  }

  #report(error: Error): void {
    const reason = messageOf(error);
    if (this.#closing || isConnectionError(error)) return;
    // BullMQ names the job: each of thousands would be a reason of its own.
    const kind = reason.replace(/\bjob \S+/gi, 'job');
    if (Date.now() - (this.#errors.get(kind) ?? 0) < repeatedErrorMs) return;
    if (this.#errors.size > 100) this.#errors.clear();
    this.#errors.set(kind, Date.now());
    this.#log.error({ reason }, 'the queue reports an error');
  }

  async #addSlice(name: string, jobs: readonly NewJob[]): Promise<void> {
    if (jobs.length >= this.#backend.togetherFrom) await this.queue(name).addBulk([...jobs]);
    else await Promise.all(jobs.map(job => this.queue(name).add(job.name, job.data, job.opts)));
  }

  async #orUnavailable<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closing) throw new QueueUnavailable('the queue is closing; try again');
    const end = Date.now() + answerMs;
    try {
      await this.#backend.ready(AbortSignal.timeout(answerMs));
      return await withTimeout(work(), end - Date.now());
    } catch (error) {
      if (error instanceof TimeoutError || isConnectionError(error))
        throw new QueueUnavailable('the queue gives no answer; try again', { cause: error });
      const refusal = refusalOfRedis(error);
      if (refusal) throw new QueueUnavailable(`Redis refuses (${refusal}); see its own log, then try again`, { cause: error });
      throw error;
    }
  }

  async #closeAll(graceMs: number): Promise<void> {
    const workers = this.#workers;
    this.#backend.closing?.();
    const ended = Promise.all(workers.map(worker => worker.close()));
    // While the store is away no worker ends, and what its jobs have done cannot be noted: they run again.
    const isThere = await this.#answers();
    await withTimeout(ended, isThere ? graceMs : 0).catch(() => workers.forEach(worker => void worker.cancelAllJobs('the process ends')));
    const rest = Promise.allSettled([this.#disconnectAll(), ...[...this.#readers, ...this.#queues.values()].map(one => one.close())]);
    if (isThere) await withTimeout(rest, closeMs).catch(() => undefined);
    if (isThere) await this.#giveBack?.();
    await this.#backend.end();
  }

  /** Asked: a store that has just gone away seems to be there until its connection is noticed to have ended. */
  #answers(): Promise<boolean> {
    const answer = this.#backend.ready(AbortSignal.timeout(answerMs)).then(() => this.#backend.ping());
    return withTimeout(answer, answerMs).then(
      () => true,
      () => false,
    );
  }

  // One after the other: each also disconnects the connection that they share, listening to its socket; Node warns of the eleventh.
  async #disconnectAll(): Promise<void> {
    for (const worker of this.#workers) await worker.disconnect();
  }
}

function* slicesOf<T>(all: readonly T[]): Generator<T[]> {
  for (let i = 0; i < all.length; i += sliceLength) yield all.slice(i, i + sliceLength);
}

/** A Redis that drops keys may keep a job's place without its data: there is nothing to be done, and its owner finds it missing. */
const whole =
  <Data, Result>(process: Processor<Data, Result>, mayWork: () => boolean): Processor<Data, Result> =>
  async (job, lock, signal) => {
    // Neither done nor failed: its lock ends, and whoever may work does it.
    if (!mayWork()) return new Promise<Result>(() => undefined);
    return job.name === undefined ? (undefined as Result) : process(job, lock, signal);
  };

/** Loads the store that is opened, and not the other one. */
async function openBackend({ url, folder, log }: { url?: string; folder: string; log: Log }): Promise<Backend> {
  if (url === undefined) return (await import('./embedded.ts')).openEmbedded(folder, log);
  return (await import('./redis.ts')).openRedis(url, log);
}
