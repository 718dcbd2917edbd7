import { setMaxListeners } from 'node:events';
import { setTimeout as sleepFor } from 'node:timers/promises';
import { heartRate } from '../../../schema/resources/heart-rate.ts';
import { messageOf } from '../../base/errors.ts';
import { Mutex } from '../../base/mutex.ts';
import { listParkedCollections } from '../../ledger/accounts.ts';
import { findLate } from '../../ledger/late-heart-rate.ts';
import type { Pipeline } from '../pipeline.ts';
import { lastDays, startSpans } from '../runs/backfill.ts';
import { createJudge, type JudgeOptions } from './missed-events.ts';
import { listUsers, type Schedule, sweepOnSchedule } from './sweep.ts';

/** Yesterday, today and tomorrow (UTC). */
const DAYS = 3;
/** A sync announces several documents within moments: one reading does for all of them, and for all accounts that ask meanwhile. */
const GATHER_MS = 2_000;
/** On request one account is read at most this often. */
const EVERY_MS = 60_000;
/** The next reading waits so long for one that does not end. */
const PATIENCE_MS = 120_000;

type Sleep = (ms: number, signal: AbortSignal) => Promise<unknown>;

/**
 * Reads heart rate, which no event announces. One reading at a time: what is requested during one is read by the next, for its rows may be
 * younger. An account whose service makes it wait keeps the others for a while only, and is left out until its own reading has ended.
 */
export class HeartRateSweeps {
  readonly #pipeline: Pipeline;
  readonly #sleep: Sleep;
  readonly #patienceMs: number;
  readonly #closing = new AbortController();
  readonly #readings = new Mutex();
  /** Accounts whose time has not come yet, and those to be read next. */
  readonly #waiting = new Set<string>();
  readonly #due = new Set<string>();
  /** When an account was read last. */
  readonly #readAt = new Map<string, number>();
  #working = false;

  /** @param sleep waits after a request */
  constructor(pipeline: Pipeline, sleep: Sleep = (ms, signal) => sleepFor(ms, undefined, { signal }), patienceMs = PATIENCE_MS) {
    this.#pipeline = pipeline;
    this.#sleep = sleep;
    this.#patienceMs = patienceMs;
    // Every account may be waiting; Node would warn of a leak at the eleventh.
    setMaxListeners(0, this.#closing.signal);
  }

  /** Reads that of all accounts. */
  sweepAll(): Promise<void> {
    return this.#readings.run(async () => this.#read(await listUsers(this.#pipeline)));
  }

  /** Reads an account's soon. */
  request(userId: string): void {
    if (this.#isClosed || this.#waiting.has(userId)) return;
    this.#waiting.add(userId);
    this.#readSoon(userId).catch(error => {
      if (!this.#isClosed) this.#pipeline.log.warn({ account: userId, reason: messageOf(error) }, 'heart rate was not read');
    });
  }

  /** Forgets what was requested; a reading under way ends with its run. */
  close(): void {
    this.#closing.abort();
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  async #readSoon(user: string): Promise<void> {
    await this.#sleep(Math.max(GATHER_MS, this.#msUntilDue(user)), this.#closing.signal);
    for (const other of this.#waiting) {
      if (other !== user && this.#msUntilDue(other) > 0) continue;
      this.#waiting.delete(other);
      this.#due.add(other);
    }
    await this.#readDue();
  }

  #msUntilDue(user: string): number {
    return Math.max(0, (this.#readAt.get(user) ?? Number.NEGATIVE_INFINITY) + EVERY_MS - this.#pipeline.now());
  }

  async #readDue(): Promise<void> {
    if (this.#working) return;
    this.#working = true;
    try {
      while (this.#due.size && !this.#isClosed) {
        await this.#readings.run(async () => {
          const asked = [...this.#due];
          this.#due.clear();
          const active = await listUsers(this.#pipeline);
          await this.#read(asked.filter(user => active.includes(user)));
        });
      }
    } finally {
      this.#working = false;
    }
  }

  async #read(users: readonly string[]): Promise<void> {
    if (!users.length || this.#isClosed) return;
    for (const user of users) this.#readAt.set(user, this.#pipeline.now());
    const last = sweepOnSchedule(this.#pipeline, { kind: 'sweep', days: DAYS, users, collections: [heartRate.name] }, this.#patienceMs);
    await last.finally(() => this.#readLate(users));
  }

  /** What a ring brings after days without its phone lies before what is read again and again. It is not waited for. */
  async #readLate(users: readonly string[]): Promise<void> {
    if (this.#isClosed) return;
    const { warehouse, serviceClock } = this.#pipeline;
    const refused = (await listParkedCollections(warehouse)).filter(({ collection }) => collection === heartRate.name);
    const asked = users.filter(user => !refused.some(({ userId }) => userId === user));
    const spans = await findLate(this.#pipeline, { users: asked, before: lastDays(DAYS, serviceClock).from });
    if (spans.length) await startSpans(this.#pipeline, spans);
  }
}

/** Reads heart rate every few minutes, and before that, for the reading waits for the service, judges which events were missed. */
export function heartRateSchedule(
  pipeline: Pipeline,
  heartRates: HeartRateSweeps,
  { heartRateMinutes, ...options }: { heartRateMinutes: number } & JudgeOptions,
): Schedule {
  const judge = createJudge(pipeline, options);
  return {
    name: 'heart-rate',
    repeat: async () => ({ everyMs: heartRateMinutes * 60_000, afterMs: 0 }),
    missed: async () => false,
    run: async () => {
      await judge();
      await heartRates.sweepAll();
    },
  };
}
