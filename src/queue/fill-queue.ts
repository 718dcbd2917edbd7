import { setTimeout as sleep } from 'node:timers/promises';
import { ClockSetBack } from '../base/clock-set-back.ts';
import { messageOf } from '../base/errors.ts';
import type { Inbox } from '../base/journal.ts';
import type { Log } from '../base/log.ts';
import { isPassing } from './environment-errors.ts';
import type { NewJob, Queues } from './queues.ts';

export interface FillOptions extends FillPace {
  journal: Pick<Inbox, 'find' | 'has' | 'keys' | 'finish' | 'size'>;
  queues: Pick<Queues, 'addAll' | 'forget' | 'ids' | 'promote'>;
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
}

/** How often it is looked whether the queue still holds what it should, and after how long what failed is tried again. */
export interface FillPace {
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
 * Keeps a queue holding jobs for what is in a journal. The queue may be lost at any time. Begins with what the journal holds and the queue
 * does not: of each owner the first first, and who has least in the queue before others. What arrives while an addition is under way goes
 * into the next one together. While the queue takes nothing (away, full, read-only) everything waits in the journal, and that is said once.
 */
export class QueueFilling {
  readonly #options: FillOptions;
  readonly #bound: Bound;
  /** By which job the queue holds what has none of its own. */
  readonly #shared: Map<string, string>;
  /** What is perhaps not in the queue, and of which it is not known whose it is. */
  readonly #unsorted: Set<string>;
  readonly #rows = new Map<string, Row>();
  /** What the queue should hold, each with the row of its owner. */
  readonly #held = new Map<string, Row>();
  readonly #closing = new AbortController();
  readonly #timer: NodeJS.Timeout;
  #isFilling = false;
  #filling: Promise<void> | undefined;
  #isChecking = false;
  readonly #setBack = new ClockSetBack();
  #isToPromote = false;
  #refused = false;

  constructor(options: FillOptions) {
    const { journal, held, bound = NO_BOUND, checkMs = CHECK_MS } = options;
    this.#options = options;
    this.#bound = bound;
    this.#shared = new Map(held);
    this.#unsorted = new Set(journal.keys().filter(key => !this.#shared.has(key)));
    // Of these it is not known which are put off.
    for (const key of this.#shared.keys()) {
      const row = this.#findRow(key);
      if (row) this.#hold(key, row);
      else this.#shared.delete(key);
    }
    this.#timer = setInterval(() => this.#startCheck(), checkMs);
    // It must not keep the process of who never closes it.
    this.#timer.unref();
    this.#startCheck();
    this.#start();
  }

  /** Something was appended: it goes into the queue when it is its turn. */
  add(key: string): void {
    this.#unsorted.add(key);
    this.#start();
  }

  /** What shared a job has one of its own from now on. */
  isAlone(key: string): void {
    this.#shared.delete(key);
  }

  /** It waits in the queue for long: meanwhile it takes its owner's next no turn. */
  putOff(key: string): void {
    this.#held.get(key)?.inTurn.delete(key);
    this.#start();
  }

  /** It is done: it leaves the journal, and its place in the queue to the next. */
  finish(key: string): void {
    this.#options.journal.finish(key);
    this.#leave(key);
    this.#start();
  }

  /** Resolves when nothing more is added. */
  async close(): Promise<void> {
    this.#closing.abort();
    clearInterval(this.#timer);
    // A check that is under way changes nothing any more, and may wait for an answer for long.
    await this.#filling;
  }

  #start(): void {
    if (this.#isFilling || this.#options.journal.size <= this.#held.size || this.#closing.signal.aborted) return;
    this.#isFilling = true;
    this.#filling = this.#fill();
  }

  async #fill(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        this.#sort();
        const entries = this.#next();
        if (!entries.length && !this.#unsorted.size) break;
        await this.#enqueue(entries);
      } catch (error) {
        if (signal.aborted) break;
        await this.#noteRefusal(error);
      }
    }
    // In the same turn in which nothing was found: what comes later must begin anew.
    this.#isFilling = false;
  }

  async #enqueue(entries: readonly { key: string; row: Row }[]): Promise<void> {
    const { queues, queue, journal, log } = this.#options;
    if (!entries.length) return void (await sleep(0));
    await queues.addAll(queue, this.#toJobs(entries.map(({ key }) => key)));
    for (const { key, row } of entries) {
      row.waiting.delete(key);
      if (this.#hold(key, row)) row.inTurn.add(key);
    }
    if (this.#refused) log.info({ waiting: journal.size - this.#held.size }, 'the queue takes work again');
    this.#refused = false;
  }

  async #noteRefusal(error: unknown): Promise<void> {
    const { log, journal, againMs = AGAIN_MS } = this.#options;
    const reason = messageOf(error);
    if (!this.#refused) log.warn({ reason, waiting: journal.size }, 'the queue takes no work: what was accepted is kept and waits for it');
    if (!isPassing(error)) log.error({ reason }, 'accepted work could not be enqueued: tried again');
    this.#refused = true;
    await sleep(againMs, undefined, { signal: this.#closing.signal }).catch(() => undefined);
  }

  #sort(): void {
    for (const key of firstOf(this.#unsorted, SORTED_AT_ONCE)) {
      if (!this.#held.has(key)) this.#findRow(key)?.waiting.add(key);
      this.#unsorted.delete(key);
    }
  }

  /** The row of its owner; undefined of what has left the journal. */
  #findRow(key: string): Row | undefined {
    const { journal } = this.#options;
    if (!journal.has(key)) return undefined;
    const text = this.#bound === NO_BOUND ? '' : journal.find(key);
    if (text === undefined) return undefined;
    const owner = this.#bound === NO_BOUND ? '' : this.#bound.ownerOf(text);
    const row = this.#rows.get(owner) ?? { waiting: new Set(), held: 0, inTurn: new Set() };
    this.#rows.set(owner, row);
    return row;
  }

  /** What goes into the queue now: as much as there is room for, and the first of each owner. */
  #next(): { key: string; row: Row }[] {
    const { most, mostOfOne } = this.#bound;
    const entries: { key: string; row: Row }[] = [];
    const room = roomOf(this.#held.size, most);
    for (const [owner, row] of this.#rows) if (!row.waiting.size && !row.held) this.#rows.delete(owner);
    let turns = [...this.#rows.values()]
      .filter(({ waiting }) => waiting.size > 0)
      .sort((a, b) => a.held - b.held)
      .map(row => ({ row, left: row.waiting.values(), taken: 0, most: roomOf(row.inTurn.size, mostOfOne) }));
    while (turns.length) {
      turns = turns.filter(turn => {
        const { row, taken } = turn;
        const isOne = row.inTurn.size + taken < OF_EACH && row.held + taken < mostOfOne;
        const isIn = isOne || (entries.length < room && taken < turn.most);
        if (entries.length >= AT_ONCE || !isIn) return false;
        const { value: key } = turn.left.next();
        if (key === undefined) return false;
        if (this.#options.journal.has(key)) {
          entries.push({ key, row });
          turn.taken++;
        } else row.waiting.delete(key);
        return true;
      });
    }
    return entries;
  }

  #toJobs(keys: readonly string[]): NewJob[] {
    const { journal, jobOf, togetherOf } = this.#options;
    if (!togetherOf || keys.length < 2) {
      for (const key of keys) this.#shared.delete(key);
      return keys.flatMap(key => {
        const text = journal.find(key);
        return text === undefined ? [] : [jobOf(key, text)];
      });
    }
    const jobs: NewJob[] = [];
    for (let i = 0; i < keys.length; i += TOGETHER) {
      const some = keys.slice(i, i + TOGETHER);
      const job = togetherOf(some);
      jobs.push(job);
      // Before the queue has it: a worker may be through with it before we hear so.
      for (const key of some) this.#shared.set(key, job.opts.jobId);
    }
    return jobs;
  }

  #hold(key: string, row: Row): boolean {
    if (!this.#options.journal.has(key)) {
      this.#shared.delete(key);
      return false;
    }
    this.#held.set(key, row);
    row.held++;
    return true;
  }

  #leave(key: string): void {
    this.#shared.delete(key);
    const row = this.#held.get(key);
    if (!row) return;
    this.#held.delete(key);
    row.held--;
    row.inTurn.delete(key);
  }

  #startCheck(): void {
    if (this.#isChecking) return;
    this.#isChecking = true;
    void this.#check().finally(() => {
      this.#isChecking = false;
    });
  }

  async #check(): Promise<void> {
    await this.#promoteAfterSetBack().catch(() => undefined);
    // A queue that is away answers when it is back.
    const lost = (await this.#findLost().catch(() => [])).filter(key => this.#held.has(key));
    if (this.#closing.signal.aborted) return;
    if (lost.length)
      this.#options.log.warn({ waiting: lost.length }, 'the queue has lost what it held: what is not finished is enqueued again');
    const lostOf = new Map<Row, string[]>();
    for (const key of lost) {
      const row = this.#held.get(key);
      if (row) lostOf.set(row, [...(lostOf.get(row) ?? []), key]);
      this.#leave(key);
    }
    // They came before all that waits.
    for (const [row, keys] of lostOf) row.waiting = new Set([...keys, ...row.waiting]);
    this.#takeUpUntold();
    this.#start();
  }

  /** What is put off waits for a time of the machine's clock, and would wait for as long as that was set back. */
  async #promoteAfterSetBack(): Promise<void> {
    const { queues, queue, log } = this.#options;
    const happened = this.#setBack.happened();
    if (happened) log.warn('the clock of this machine was set back: what waits in the queue is done now');
    this.#isToPromote ||= happened;
    if (!this.#isToPromote) return;
    await queues.promote(queue);
    this.#isToPromote = false;
  }

  /** What the queue should hold and does not: it was emptied, restored from an older dump, failed over, or has dropped a part. */
  async #findLost(): Promise<string[]> {
    const { journal, queues, queue } = this.#options;
    for (const key of this.#held.keys()) if (!journal.has(key)) this.#leave(key);
    const expected = [...this.#held.keys()].map(key => ({ key, jobId: this.#jobIdOf(key) }));
    if (!expected.length) return [];
    // What was finished meanwhile has left both; what got a job of its own meanwhile may have done so after the answer.
    const findAbsent = async (among: typeof expected) => {
      const ids = await queues.ids(queue);
      return among.filter(({ key, jobId }) => journal.has(key) && !ids.has(jobId) && this.#jobIdOf(key) === jobId);
    };
    const absent = await findAbsent(expected);
    // The embedded queue is read state by state, and what goes from one to another meanwhile is in neither.
    const lost = absent.length && !this.#closing.signal.aborted ? await findAbsent(absent) : [];
    if (!lost.length || this.#closing.signal.aborted) return [];
    await queues.forget(queue, [...new Set(lost.map(({ jobId }) => jobId))]);
    return lost.map(({ key }) => key);
  }

  #jobIdOf(key: string): string {
    return this.#shared.get(key) ?? this.#options.idOf(key);
  }

  /** What was appended while nobody could be told of it. */
  #takeUpUntold(): void {
    const { journal } = this.#options;
    let known = this.#held.size + this.#unsorted.size;
    for (const { waiting } of this.#rows.values()) known += waiting.size;
    if (known < journal.size) for (const key of journal.keys()) this.#unsorted.add(key);
  }
}

const roomOf = (count: number, most: number): number => (count <= most * REFILLED_AT ? most - count : 0);

function firstOf(keys: ReadonlySet<string>, most: number): string[] {
  const first: string[] = [];
  for (const key of keys) {
    if (first.push(key) === most) break;
  }
  return first;
}
