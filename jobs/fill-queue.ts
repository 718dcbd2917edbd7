import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../src/errors.ts';
import type { Journal } from '../src/journal.ts';
import type { Log } from '../src/log.ts';
import { isPassing } from '../src/queue/machine.ts';
import type { NewJob, Queues } from '../src/queue/queues.ts';

/** Keeps a queue holding a job for everything in a journal. The queue may be lost at any time. */
export interface QueueFilling {
  /** Something was appended: it goes into the queue next. */
  add(key: string): void;
  /** What shared a job has one of its own from now on. */
  isAlone(key: string): void;
  /** Resolves when nothing more is added. */
  close(): Promise<void>;
}

export interface FillOptions {
  journal: Pick<Journal, 'find' | 'has' | 'keys' | 'size'>;
  queues: Pick<Queues, 'addAll' | 'forget' | 'ids'>;
  queue: string;
  /** By this the queue knows it again. */
  idOf(key: string): string;
  jobOf(key: string, text: string): NewJob;
  /** One job for several that come at once. Where it is left out each has its own. */
  togetherOf?(keys: readonly string[]): NewJob & { opts: { jobId: string } };
  /** What the queue is known to hold: by which job, for each key. */
  held?: ReadonlyMap<string, string>;
  log: Log;
  /** How often it is looked whether the queue still holds what it should, and after how long what failed is tried again. */
  checkMs?: number;
  againMs?: number;
}

const AT_ONCE = 200;
const TOGETHER = 50;
const CHECK_MS = 3_000;
const AGAIN_MS = 1_000;

/**
 * Begins with all that the journal holds and the queue does not. What arrives while an addition is under way goes into the next one
 * together. While the queue takes nothing (away, full, read-only) everything waits in the journal, and that is said once.
 */
export function fillQueue(options: FillOptions): QueueFilling {
  const { journal, queues, queue, idOf, jobOf, togetherOf, held, log, checkMs = CHECK_MS, againMs = AGAIN_MS } = options;
  /** By which job the queue holds what has none of its own. */
  const shared = new Map(held);
  const jobIdOf = (key: string) => shared.get(key) ?? idOf(key);
  /** What is perhaps not in the queue. */
  const missing = new Set(journal.keys().filter(key => !shared.has(key)));
  const closing = new AbortController();
  const { signal } = closing;
  let filling: Promise<void> | undefined;
  let checking: Promise<void> | undefined;
  let refused = false;

  async function fill(): Promise<void> {
    while (missing.size > 0 && !signal.aborted) {
      const keys = firstOf(missing, AT_ONCE);
      try {
        await queues.addAll(queue, toJobs(keys.filter(key => journal.has(key))));
        for (const key of keys) missing.delete(key);
        if (refused) log.info({ waiting: missing.size }, 'the queue takes work again');
        refused = false;
      } catch (error) {
        if (signal.aborted) break;
        const reason = messageOf(error);
        if (!refused) log.warn({ reason, waiting: journal.size }, 'the queue takes no work: what was accepted is kept and waits for it');
        if (!isPassing(error)) log.error({ reason }, 'accepted work could not be enqueued: tried again');
        refused = true;
        await sleep(againMs, undefined, { signal }).catch(() => undefined);
      }
    }
    filling = undefined;
  }

  function toJobs(keys: readonly string[]): NewJob[] {
    if (!togetherOf || keys.length < 2) {
      for (const key of keys) shared.delete(key);
      return keys.map(key => jobOf(key, journal.find(key)!));
    }
    const jobs: NewJob[] = [];
    for (let i = 0; i < keys.length; i += TOGETHER) {
      const some = keys.slice(i, i + TOGETHER);
      const job = togetherOf(some);
      jobs.push(job);
      // Before the queue has it: a worker may be through with it before we hear so.
      for (const key of some) shared.set(key, job.opts.jobId);
    }
    return jobs;
  }

  /** What the queue should hold and does not: it was emptied, restored from an older dump, failed over, or has dropped a part. */
  async function findLost(): Promise<string[]> {
    for (const key of shared.keys()) if (!journal.has(key)) shared.delete(key);
    const expected = journal
      .keys()
      .filter(key => !missing.has(key))
      .map(key => ({ key, jobId: jobIdOf(key) }));
    if (!expected.length) return [];
    // What was settled meanwhile has left both; what got a job of its own meanwhile may have done so after the answer.
    const findAbsent = async (among: typeof expected) => {
      const ids = await queues.ids(queue);
      return among.filter(({ key, jobId }) => journal.has(key) && !ids.has(jobId) && jobIdOf(key) === jobId);
    };
    const absent = await findAbsent(expected);
    // The embedded queue is read state by state, and what goes from one to another meanwhile is in neither.
    const lost = absent.length ? await findAbsent(absent) : [];
    if (!lost.length) return [];
    await queues.forget(queue, [...new Set(lost.map(({ jobId }) => jobId))]);
    return lost.map(({ key }) => key);
  }

  async function check(): Promise<void> {
    // A queue that is away answers when it is back.
    const lost = await findLost().catch(() => []);
    if (!lost.length || signal.aborted) return;
    log.warn({ waiting: lost.length }, 'the queue has lost what it held: what is not settled is enqueued again');
    for (const key of lost) missing.add(key);
    start();
  }

  function start(): void {
    if (missing.size > 0 && !signal.aborted) filling ??= fill();
  }

  const timer = setInterval(() => {
    checking ??= check().finally(() => {
      checking = undefined;
    });
  }, checkMs);
  // It must not keep the process of who never closes it.
  timer.unref();
  checking = check().finally(() => {
    checking = undefined;
  });
  start();

  return {
    add(key) {
      missing.add(key);
      start();
    },
    isAlone(key) {
      shared.delete(key);
    },
    async close() {
      closing.abort();
      clearInterval(timer);
      await Promise.all([filling, checking]);
    },
  };
}

function firstOf(keys: ReadonlySet<string>, most: number): string[] {
  const first: string[] = [];
  for (const key of keys) {
    if (first.push(key) === most) break;
  }
  return first;
}
