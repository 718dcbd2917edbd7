import type { Job, Processor } from 'bullmq';
import { withTimeout } from '../base/timeout.ts';
import type { NewJob, QueueCounts, Queues, WorkerSettings } from './queues.ts';

interface Waiting {
  id: string;
  job: NewJob;
  /** When it may be begun, by the clock of timers; undefined while it is worked on. */
  at: number | undefined;
}

/** What BullMQ takes for a job that was put off, by its name. */
const PUT_OFF = 'DelayedError';

/**
 * The queues of a command that works by itself. Its jobs are of runs, which the ledger knows: nobody takes one up after the process, so that
 * none is kept anywhere. To open the embedded queue for them would cost more than most of these commands do.
 */
export class MemoryQueues implements Queues {
  readonly kind = 'memory';
  readonly queue = nobody;
  readonly events = nobody;
  readonly add = nobody;
  readonly #held: Held = new Map();
  readonly #workers = new Map<string, Pick<MemoryWorker, 'begin' | 'close'>>();
  #closing: Promise<void> | undefined;

  worker<Data = unknown, Result = unknown>(name: string, process: Processor<Data, Result>, { concurrency }: WorkerSettings) {
    const worker = new MemoryWorker(() => jobsOf(this.#held, name), process, concurrency);
    this.#workers.set(name, worker);
    worker.begin();
    // Nobody looks at it.
    return undefined as never;
  }

  async addAll(name: string, added: readonly NewJob[]): Promise<void> {
    for (const job of added) {
      const jobs = jobsOf(this.#held, name);
      const id = job.opts?.jobId;
      if (id === undefined || jobs.has(id)) continue;
      const waiting = { id, job, at: 0 };
      if (!job.opts?.lifo) jobs.set(id, waiting);
      else this.#held.set(name, new Map([[id, waiting], ...jobs]));
    }
    const worker = this.#workers.get(name);
    if (worker) setImmediate(() => worker.begin());
  }

  addBulk(name: string, added: readonly NewJob[]): Promise<void> {
    return this.addAll(name, added);
  }

  async empty(name: string): Promise<void> {
    this.#held.delete(name);
  }

  async forget(): Promise<void> {}

  /** Waits here go by a clock that nobody sets. */
  async promote(): Promise<void> {}

  async ids(name: string): Promise<Set<string>> {
    return new Set(jobsOf(this.#held, name).keys());
  }

  async counts(name: string): Promise<QueueCounts> {
    const jobs = [...jobsOf(this.#held, name).values()];
    const active = jobs.filter(({ at }) => at === undefined).length;
    const delayed = jobs.filter(({ at }) => at !== undefined && at > performance.now()).length;
    return { waiting: jobs.length - active - delayed, active, delayed, failed: 0 };
  }

  async ping(): Promise<void> {}

  close({ graceMs = 10_000 }: { graceMs?: number } = {}): Promise<void> {
    this.#closing ??= Promise.all([...this.#workers.values()].map(one => one.close(graceMs))).then(() => undefined);
    return this.#closing;
  }
}

type Held = Map<string, Map<string, Waiting>>;

function jobsOf(held: Held, name: string): Map<string, Waiting> {
  const jobs = held.get(name) ?? new Map<string, Waiting>();
  held.set(name, jobs);
  return jobs;
}

class MemoryWorker<Data = unknown, Result = unknown> {
  readonly #jobs: () => Map<string, Waiting>;
  readonly #process: Processor<Data, Result>;
  readonly #concurrency: number;
  readonly #working = new Set<Promise<void>>();
  readonly #ended = new AbortController();
  #timer: NodeJS.Timeout | undefined;

  constructor(jobs: () => Map<string, Waiting>, process: Processor<Data, Result>, concurrency: number) {
    this.#jobs = jobs;
    this.#process = process;
    this.#concurrency = concurrency;
  }

  begin(): void {
    clearTimeout(this.#timer);
    if (this.#ended.signal.aborted) return;
    let next = Number.POSITIVE_INFINITY;
    for (const waiting of this.#jobs().values()) {
      if (this.#working.size >= this.#concurrency) return;
      if (waiting.at === undefined) continue;
      if (waiting.at > performance.now()) {
        next = Math.min(next, waiting.at);
        continue;
      }
      const done = this.#work(waiting).finally(() => {
        this.#working.delete(done);
        this.begin();
      });
      this.#working.add(done);
    }
    if (next < Number.POSITIVE_INFINITY) this.#timer = setTimeout(() => this.begin(), Math.ceil(next - performance.now()));
  }

  async close(graceMs: number): Promise<void> {
    clearTimeout(this.#timer);
    this.#ended.abort();
    await withTimeout(Promise.all(this.#working), graceMs).catch(() => undefined);
  }

  async #work(waiting: Waiting): Promise<void> {
    const { id, job } = waiting;
    let putOffTo: number | undefined;
    const moveToDelayed = async (ms: number) => {
      putOffTo = performance.now() + ms - Date.now();
    };
    waiting.at = undefined;
    try {
      await this.#process(
        { id, name: job.name, data: job.data, moveToDelayed } as unknown as Job<Data, Result>,
        undefined,
        this.#ended.signal,
      );
    } catch (error) {
      if (putOffTo !== undefined && error instanceof Error && error.name === PUT_OFF) {
        waiting.at = putOffTo;
        return;
      }
    }
    this.#jobs().delete(id);
  }
}

/** What needs a queue that outlives the process is done by `up`. */
function nobody(): never {
  throw new Error('a command that works by itself has no such queue');
}
