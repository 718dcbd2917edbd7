import type { Job, Processor } from 'bullmq';
import { withTimeout } from '../base/timeout.ts';
import type { NewJob, Queues, WorkerSettings } from './queues.ts';

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
export function openMemoryQueues(): Queues {
  const held = new Map<string, Map<string, Waiting>>();
  const workers: { close(graceMs: number): Promise<void> }[] = [];
  const wake = new Map<string, () => void>();
  let closing: Promise<void> | undefined;

  const jobsOf = (name: string) => {
    const jobs = held.get(name) ?? new Map<string, Waiting>();
    held.set(name, jobs);
    return jobs;
  };

  async function addAll(name: string, added: readonly NewJob[]): Promise<void> {
    for (const job of added) {
      const jobs = jobsOf(name);
      const id = job.opts?.jobId;
      if (id === undefined || jobs.has(id)) continue;
      const waiting = { id, job, at: 0 };
      if (!job.opts?.lifo) jobs.set(id, waiting);
      else held.set(name, new Map([[id, waiting], ...jobs]));
    }
    wake.get(name)?.();
  }

  function worker<Data, Result>(name: string, process: Processor<Data, Result>, { concurrency }: WorkerSettings) {
    const working = new Set<Promise<void>>();
    const ended = new AbortController();
    let timer: NodeJS.Timeout | undefined;

    async function work(waiting: Waiting): Promise<void> {
      const { id, job } = waiting;
      let putOffTo: number | undefined;
      const moveToDelayed = async (ms: number) => {
        putOffTo = performance.now() + ms - Date.now();
      };
      waiting.at = undefined;
      try {
        await process({ id, name: job.name, data: job.data, moveToDelayed } as unknown as Job<Data, Result>, undefined, ended.signal);
      } catch (error) {
        if (putOffTo !== undefined && (error as Error).name === PUT_OFF) {
          waiting.at = putOffTo;
          return;
        }
      }
      jobsOf(name).delete(id);
    }

    function begin(): void {
      clearTimeout(timer);
      if (ended.signal.aborted) return;
      let next = Number.POSITIVE_INFINITY;
      for (const waiting of jobsOf(name).values()) {
        if (working.size >= concurrency) return;
        if (waiting.at === undefined) continue;
        if (waiting.at > performance.now()) {
          next = Math.min(next, waiting.at);
          continue;
        }
        const done = work(waiting).finally(() => {
          working.delete(done);
          begin();
        });
        working.add(done);
      }
      if (next < Number.POSITIVE_INFINITY) timer = setTimeout(begin, Math.ceil(next - performance.now()));
    }

    wake.set(name, () => setImmediate(begin));
    workers.push({
      async close(graceMs) {
        clearTimeout(timer);
        ended.abort();
        await withTimeout(Promise.all(working), graceMs).catch(() => undefined);
      },
    });
    begin();
    // Nobody looks at it.
    return undefined as never;
  }

  return {
    kind: 'memory',
    queue: nobody,
    events: nobody,
    worker,
    add: nobody,
    addAll,
    addBulk: addAll,
    empty: async name => void held.delete(name),
    forget: async () => undefined,
    ids: async name => new Set(jobsOf(name).keys()),
    counts: async name => {
      const jobs = [...jobsOf(name).values()];
      const active = jobs.filter(({ at }) => at === undefined).length;
      const delayed = jobs.filter(({ at }) => at !== undefined && at > performance.now()).length;
      return { waiting: jobs.length - active - delayed, active, delayed, failed: 0 };
    },
    ping: async () => undefined,
    close: ({ graceMs = 10_000 } = {}) => {
      closing ??= Promise.all(workers.map(one => one.close(graceMs))).then(() => undefined);
      return closing;
    },
  };
}

/** What needs a queue that outlives the process is done by `up`. */
function nobody(): never {
  throw new Error('a command that works by itself has no such queue');
}
