import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../base/errors.ts';
import type { Journal } from '../base/journal.ts';
import type { Log } from '../base/log.ts';
import { isPassing } from './environment-errors.ts';
import type { NewJob, Queues } from './queues.ts';

/** Keeps a queue holding jobs for what is in a journal. The queue may be lost at any time. */
export interface QueueFilling {
  /** Something was appended: it goes into the queue when it is its turn. */
  add(key: string): void;
  /** What shared a job has one of its own from now on. */
  isAlone(key: string): void;
  /** It waits in the queue for long: meanwhile it takes its owner's next no turn. */
  putOff(key: string): void;
  /** It is done: it leaves the journal, and its place in the queue to the next. */
  settle(key: string): void;
  /** Resolves when nothing more is added. */
  close(): Promise<void>;
}

export interface FillOptions {
  journal: Pick<Journal, 'find' | 'has' | 'keys' | 'settle' | 'size'>;
  queues: Pick<Queues, 'addAll' | 'forget' | 'ids'>;
  queue: string;
  /** By this the queue knows it again. */
  idOf(key: string): string;
  jobOf(key: string, text: string): NewJob;
  /** One job for several that come at once. Where it is left out each has its own. */
  togetherOf?(keys: readonly string[]): NewJob & { opts: { jobId: string } };
  /** What the queue is known to hold: by which job, for each key. */
  held?: ReadonlyMap<string, string>;
  /** Where it is left out the queue holds all of the journal. */
  bound?: Bound;
  log: Log;
  /** How often it is looked whether the queue still holds what it should, and after how long what failed is tried again. */
  checkMs?: number;
  againMs?: number;
}

export interface Bound {
  /** How many of the journal the queue holds at a time, but for the first few of each owner. */
  most: number;
  /** How many of one owner it holds that are not put off. */
  mostOfOne: number;
  ownerOf(text: string): string;
}

/** What there is of one owner. */
interface Row {
  /** Perhaps not in the queue, the first first. */
  waiting: Set<string>;
  held: number;
  /** Of those held the ones that are not put off. */
  inTurn: Set<string>;
}

const AT_ONCE = 200;
const TOGETHER = 50;
/** So many of each owner are in the queue that are not put off, however full it is, unless too many of the owner are: who waits for long keeps nobody else out. */
const OF_EACH = 4;
/** Of so many it is found out whose they are before others have their turn. */
const SORTED_AT_ONCE = 500;
/** What is full takes the next when it is down to this part of its bound: they enter together, and may share jobs. */
const REFILLED_AT = 2 / 3;
const CHECK_MS = 3_000;
const AGAIN_MS = 1_000;

const NO_BOUND: Bound = { most: Number.POSITIVE_INFINITY, mostOfOne: Number.POSITIVE_INFINITY, ownerOf: () => '' };

/**
 * Begins with what the journal holds and the queue does not: of each owner the first first, and who has least in the queue before others.
 * What arrives while an addition is under way goes into the next one together. While the queue takes nothing (away, full, read-only)
 * everything waits in the journal, and that is said once.
 */
export function fillQueue(options: FillOptions): QueueFilling {
  const { journal, queues, queue, idOf, jobOf, togetherOf, bound = NO_BOUND, log, checkMs = CHECK_MS, againMs = AGAIN_MS } = options;
  /** By which job the queue holds what has none of its own. */
  const shared = new Map(options.held);
  const jobIdOf = (key: string) => shared.get(key) ?? idOf(key);
  /** What is perhaps not in the queue, and of which it is not known whose it is. */
  const unsorted = new Set(journal.keys().filter(key => !shared.has(key)));
  const rows = new Map<string, Row>();
  /** What the queue should hold, each with the row of its owner. */
  const held = new Map<string, Row>();
  const closing = new AbortController();
  const { signal } = closing;
  let isFilling = false;
  let filling: Promise<void> | undefined;
  let isChecking = false;
  let refused = false;

  async function fill(): Promise<void> {
    while (!signal.aborted) {
      try {
        sort();
        const entries = next();
        if (!entries.length && !unsorted.size) break;
        if (entries.length) await queues.addAll(queue, toJobs(entries.map(({ key }) => key)));
        else await sleep(0);
        for (const { key, row } of entries) {
          row.waiting.delete(key);
          if (hold(key, row)) row.inTurn.add(key);
        }
        if (refused && entries.length) log.info({ waiting: journal.size - held.size }, 'the queue takes work again');
        refused &&= !entries.length;
      } catch (error) {
        if (signal.aborted) break;
        const reason = messageOf(error);
        if (!refused) log.warn({ reason, waiting: journal.size }, 'the queue takes no work: what was accepted is kept and waits for it');
        if (!isPassing(error)) log.error({ reason }, 'accepted work could not be enqueued: tried again');
        refused = true;
        await sleep(againMs, undefined, { signal }).catch(() => undefined);
      }
    }
    // In the same turn in which nothing was found: what comes later must begin anew.
    isFilling = false;
  }

  function sort(): void {
    for (const key of firstOf(unsorted, SORTED_AT_ONCE)) {
      if (journal.has(key) && !held.has(key)) rowOf(key).waiting.add(key);
      unsorted.delete(key);
    }
  }

  function rowOf(key: string): Row {
    const owner = bound === NO_BOUND ? '' : bound.ownerOf(journal.find(key)!);
    const row = rows.get(owner) ?? { waiting: new Set(), held: 0, inTurn: new Set() };
    rows.set(owner, row);
    return row;
  }

  /** What goes into the queue now: as much as there is room for, and the first of each owner. */
  function next(): { key: string; row: Row }[] {
    const entries: { key: string; row: Row }[] = [];
    const room = roomOf(held.size, bound.most);
    for (const [owner, row] of rows) if (!row.waiting.size && !row.held) rows.delete(owner);
    let turns = [...rows.values()]
      .filter(({ waiting }) => waiting.size > 0)
      .sort((a, b) => a.held - b.held)
      .map(row => ({ row, left: row.waiting.values(), taken: 0, most: roomOf(row.inTurn.size, bound.mostOfOne) }));
    while (turns.length) {
      turns = turns.filter(turn => {
        const { row, taken, most } = turn;
        const isOne = row.inTurn.size + taken < OF_EACH && row.held + taken < bound.mostOfOne;
        const isIn = isOne || (entries.length < room && taken < most);
        if (entries.length >= AT_ONCE || !isIn) return false;
        const { value: key } = turn.left.next();
        if (key === undefined) return false;
        if (journal.has(key)) {
          entries.push({ key, row });
          turn.taken++;
        } else row.waiting.delete(key);
        return true;
      });
    }
    return entries;
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

  function hold(key: string, row: Row): boolean {
    if (!journal.has(key)) {
      shared.delete(key);
      return false;
    }
    held.set(key, row);
    row.held++;
    return true;
  }

  function leave(key: string): void {
    shared.delete(key);
    const row = held.get(key);
    if (!row) return;
    held.delete(key);
    row.held--;
    row.inTurn.delete(key);
  }

  /** What the queue should hold and does not: it was emptied, restored from an older dump, failed over, or has dropped a part. */
  async function findLost(): Promise<string[]> {
    for (const key of held.keys()) if (!journal.has(key)) leave(key);
    const expected = [...held.keys()].map(key => ({ key, jobId: jobIdOf(key) }));
    if (!expected.length) return [];
    // What was settled meanwhile has left both; what got a job of its own meanwhile may have done so after the answer.
    const findAbsent = async (among: typeof expected) => {
      const ids = await queues.ids(queue);
      return among.filter(({ key, jobId }) => journal.has(key) && !ids.has(jobId) && jobIdOf(key) === jobId);
    };
    const absent = await findAbsent(expected);
    // The embedded queue is read state by state, and what goes from one to another meanwhile is in neither.
    const lost = absent.length && !signal.aborted ? await findAbsent(absent) : [];
    if (!lost.length || signal.aborted) return [];
    await queues.forget(queue, [...new Set(lost.map(({ jobId }) => jobId))]);
    return lost.map(({ key }) => key);
  }

  async function check(): Promise<void> {
    // A queue that is away answers when it is back.
    const lost = (await findLost().catch(() => [])).filter(key => held.has(key));
    if (signal.aborted) return;
    if (lost.length) log.warn({ waiting: lost.length }, 'the queue has lost what it held: what is not settled is enqueued again');
    const lostOf = new Map<Row, string[]>();
    for (const key of lost) {
      const row = held.get(key)!;
      lostOf.set(row, [...(lostOf.get(row) ?? []), key]);
      leave(key);
    }
    // They came before all that waits.
    for (const [row, keys] of lostOf) row.waiting = new Set([...keys, ...row.waiting]);
    takeUpUntold();
    start();
  }

  /** What was appended while nobody could be told of it. */
  function takeUpUntold(): void {
    let known = held.size + unsorted.size;
    for (const { waiting } of rows.values()) known += waiting.size;
    if (known < journal.size) for (const key of journal.keys()) unsorted.add(key);
  }

  function startCheck(): void {
    if (isChecking) return;
    isChecking = true;
    void check().finally(() => {
      isChecking = false;
    });
  }

  function start(): void {
    if (isFilling || journal.size <= held.size || signal.aborted) return;
    isFilling = true;
    filling = fill();
  }

  // Of these it is not known which are put off.
  for (const key of shared.keys()) {
    if (journal.has(key)) hold(key, rowOf(key));
    else shared.delete(key);
  }
  const timer = setInterval(startCheck, checkMs);
  // It must not keep the process of who never closes it.
  timer.unref();
  startCheck();
  start();

  return {
    add(key) {
      unsorted.add(key);
      start();
    },
    isAlone(key) {
      shared.delete(key);
    },
    putOff(key) {
      held.get(key)?.inTurn.delete(key);
      start();
    },
    settle(key) {
      journal.settle(key);
      leave(key);
      start();
    },
    async close() {
      closing.abort();
      clearInterval(timer);
      // A check that is under way changes nothing any more, and may wait for an answer for long.
      await filling;
    },
  };
}

const roomOf = (count: number, most: number): number => (count <= most * REFILLED_AT ? most - count : 0);

function firstOf(keys: ReadonlySet<string>, most: number): string[] {
  const first: string[] = [];
  for (const key of keys) {
    if (first.push(key) === most) break;
  }
  return first;
}
