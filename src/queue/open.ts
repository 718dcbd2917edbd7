import { type Processor, withBackend } from 'bullmq';
import { messageOf } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { TimeoutError, withTimeout } from '../base/timeout.ts';
import type { Backend } from './backend.ts';
import { isConnectionError, refusalOfRedis } from './environment-errors.ts';
import type { Claim } from './lease.ts';
import { type NewJob, type Queue, type QueueEvents, type Queues, QueueUnavailable, type Worker, type WorkerSettings } from './queues.ts';

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
  const { log } = options;
  const backend = await openBackend(options);
  const bull = withBackend(backend.factory);
  // The connection is in the factory, but BullMQ asks for one.
  const base = { connection: {}, prefix: options.prefix ?? 'ringneck' };
  let giveBack: (() => Promise<void>) | undefined;
  try {
    if (options.claim) giveBack = await backend.claim?.(base.prefix, options.claim);
  } catch (error) {
    backend.closing?.();
    await backend.end();
    throw error;
  }
  const queues = new Map<string, Queue>();
  const workers: Worker[] = [];
  const readers: QueueEvents[] = [];
  const errors = new Map<string, number>();
  let closing: Promise<void> | undefined;

  const report = (error: Error) => {
    const reason = messageOf(error);
    if (closing || isConnectionError(error)) return;
    // BullMQ names the job: each of thousands would be a reason of its own.
    const kind = reason.replace(/\bjob \S+/gi, 'job');
    if (Date.now() - (errors.get(kind) ?? 0) < repeatedErrorMs) return;
    if (errors.size > 100) errors.clear();
    errors.set(kind, Date.now());
    log.error({ reason }, 'the queue reports an error');
  };

  const queue = (name: string): Queue => {
    let found = queues.get(name);
    if (!found) {
      found = new bull.Queue(name, { ...base, defaultJobOptions: { removeOnComplete: true, removeOnFail: { count: 1_000 } } }) as Queue;
      found.on('error', report);
      queues.set(name, found);
    }
    return found;
  };

  const addSlice = async (name: string, jobs: readonly NewJob[]): Promise<void> => {
    if (jobs.length >= backend.togetherFrom) await queue(name).addBulk([...jobs]);
    else await Promise.all(jobs.map(job => queue(name).add(job.name, job.data, job.opts)));
  };

  const orUnavailable = async <T>(work: () => Promise<T>): Promise<T> => {
    if (closing) throw new QueueUnavailable('the queue is closing; try again');
    const end = Date.now() + answerMs;
    try {
      await backend.ready(AbortSignal.timeout(answerMs));
      return await withTimeout(work(), end - Date.now());
    } catch (error) {
      if (error instanceof TimeoutError || isConnectionError(error))
        throw new QueueUnavailable('the queue gives no answer; try again', { cause: error });
      const refusal = refusalOfRedis(error);
      if (refusal) throw new QueueUnavailable(`Redis refuses (${refusal}); see its own log, then try again`, { cause: error });
      throw error;
    }
  };

  const closeAll = async (graceMs: number) => {
    backend.closing?.();
    const ended = Promise.all(workers.map(worker => worker.close()));
    // While the store is away no worker ends, and what its jobs have done cannot be noted: they run again.
    const isThere = await backend.ready(AbortSignal.timeout(answerMs)).then(
      () => true,
      () => false,
    );
    await withTimeout(ended, isThere ? graceMs : 0).catch(() => workers.forEach(worker => void worker.cancelAllJobs('the process ends')));
    const rest = Promise.allSettled([disconnectAll(), ...[...readers, ...queues.values()].map(one => one.close())]);
    if (isThere) await withTimeout(rest, closeMs).catch(() => undefined);
    if (isThere) await giveBack?.();
    await backend.end();
  };

  // One after the other: each also disconnects the connection that they share, listening to its socket; Node warns of the eleventh.
  const disconnectAll = async () => {
    for (const worker of workers) await worker.disconnect();
  };

  return {
    kind: backend.kind,
    queue,
    worker: <Data, Result>(name: string, process: Processor<Data, Result>, settings: WorkerSettings) => {
      // What is left of a job without its data says itself nothing of when to remove it.
      const defaults = { ...backend.worker, runRetryDelay: 1_000, maxStalledCount: 10, removeOnComplete: { count: 0 } };
      const worker = new bull.Worker<Data, Result>(name, whole(process), { ...base, ...defaults, ...settings });
      worker.on('error', report);
      workers.push(worker as Worker);
      return worker;
    },
    events: name => {
      const events = new bull.QueueEvents(name, base);
      events.on('error', report);
      readers.push(events);
      return events;
    },
    add: (name, job, data, jobOptions) => orUnavailable(() => queue(name).add(job, data, jobOptions)),
    addAll: async (name, jobs) => {
      for (let i = 0; i < jobs.length; i += sliceLength) await orUnavailable(() => addSlice(name, jobs.slice(i, i + sliceLength)));
    },
    addBulk: async (name, jobs) => {
      for (let i = 0; i < jobs.length; i += sliceLength) await addSlice(name, jobs.slice(i, i + sliceLength));
    },
    empty: name => queue(name).obliterate({ force: true }),
    forget: async (name, ids) => {
      // Embedded a job is one row.
      if (backend.kind === 'embedded') return;
      for (let i = 0; i < ids.length; i += sliceLength) {
        await orUnavailable(() => Promise.all(ids.slice(i, i + sliceLength).map(id => queue(name).remove(id))));
      }
    },
    ids: async name =>
      new Set(await orUnavailable(() => queue(name).getRanges(['wait', 'prioritized', 'delayed', 'active', 'failed'], 0, -1))),
    counts: async name => {
      const counts = await orUnavailable(() => queue(name).getJobCounts());
      const { waiting = 0, prioritized = 0, paused = 0, active = 0, delayed = 0, failed = 0 } = counts;
      return { waiting: waiting + prioritized + paused, active, delayed, failed };
    },
    ping: () => orUnavailable(() => backend.ping()),
    close: ({ graceMs = 10_000 } = {}) => {
      closing ??= closeAll(graceMs);
      return closing;
    },
  };
}

/** A Redis that drops keys may keep a job's place without its data: there is nothing to be done, and its owner finds it missing. */
const whole =
  <Data, Result>(process: Processor<Data, Result>): Processor<Data, Result> =>
  async (job, lock, signal) =>
    job.name === undefined ? (undefined as Result) : process(job, lock, signal);

/** Loads the store that is opened, and not the other one. */
async function openBackend({ url, folder, log }: { url?: string; folder: string; log: Log }): Promise<Backend> {
  if (url === undefined) return (await import('./embedded.ts')).openEmbedded(folder, log);
  return (await import('./redis.ts')).openRedis(url, log);
}
