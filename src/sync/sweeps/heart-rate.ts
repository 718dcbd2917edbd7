import { setMaxListeners } from 'node:events';
import { setTimeout as sleepFor } from 'node:timers/promises';
import { heartRate } from '../../../schema/resources/heart-rate.ts';
import { messageOf } from '../../base/errors.ts';
import { listParkedCollections } from '../../ledger/accounts.ts';
import { findLate } from '../../ledger/late-heart-rate.ts';
import type { Pipeline } from '../pipeline.ts';
import { lastDays, startSpans } from '../runs/backfill.ts';
import { listUsers, sweepOnSchedule } from './sweep.ts';

/** Yesterday, today and tomorrow (UTC). */
const DAYS = 3;
/** A sync announces several documents within moments: one reading does for all of them, and for all accounts that ask meanwhile. */
const GATHER_MS = 2_000;
/** On request one account is read at most this often. */
const EVERY_MS = 60_000;
/** The next reading waits so long for one that does not end. */
const PATIENCE_MS = 120_000;

/** Reads heart rate, which no event announces. */
export interface HeartRates {
  /** Reads that of all accounts. */
  sweepAll(): Promise<void>;
  /** Reads an account's soon. */
  request(userId: string): void;
  /** Forgets what was requested; a reading under way ends with its run. */
  close(): void;
}

/**
 * One reading at a time: what is requested during one is read by the next, for its rows may be younger. An account whose service makes it
 * wait keeps the others for a while only, and is left out until its own reading has ended.
 * @param sleep waits after a request
 */
export function sweepHeartRates(
  pipeline: Pipeline,
  sleep: (ms: number, signal: AbortSignal) => Promise<unknown> = (ms, signal) => sleepFor(ms, undefined, { signal }),
  patienceMs = PATIENCE_MS,
): HeartRates {
  const closing = new AbortController();
  // Every account may be waiting; Node would warn of a leak at the eleventh.
  setMaxListeners(0, closing.signal);
  /** Accounts whose time has not come yet, and those to be read next. */
  const waiting = new Set<string>();
  const due = new Set<string>();
  /** When an account was read last. */
  const readAt = new Map<string, number>();
  let turn: Promise<void> = Promise.resolve();
  let working = false;

  function inTurn(work: () => Promise<void>): Promise<void> {
    const done = turn.then(work);
    turn = done.catch(() => undefined);
    return done;
  }

  async function read(users: readonly string[]): Promise<void> {
    if (!users.length || closing.signal.aborted) return;
    for (const user of users) readAt.set(user, pipeline.now());
    const last = sweepOnSchedule(pipeline, { kind: 'sweep', days: DAYS, users, collections: [heartRate.name] }, patienceMs);
    await last.finally(() => readLate(users));
  }

  /** What a ring brings after days without its phone lies before what is read again and again. It is not waited for. */
  async function readLate(users: readonly string[]): Promise<void> {
    if (closing.signal.aborted) return;
    const refused = (await listParkedCollections(pipeline.warehouse)).filter(({ collection }) => collection === heartRate.name);
    const asked = users.filter(user => !refused.some(({ userId }) => userId === user));
    const spans = await findLate(pipeline, { users: asked, before: lastDays(DAYS, pipeline.serviceClock).from });
    if (spans.length) await startSpans(pipeline, spans);
  }

  async function readDue(): Promise<void> {
    if (working) return;
    working = true;
    try {
      while (due.size && !closing.signal.aborted) {
        await inTurn(async () => {
          const asked = [...due];
          due.clear();
          const active = await listUsers(pipeline);
          await read(asked.filter(user => active.includes(user)));
        });
      }
    } finally {
      working = false;
    }
  }

  const msUntilDue = (user: string) => Math.max(0, (readAt.get(user) ?? Number.NEGATIVE_INFINITY) + EVERY_MS - pipeline.now());

  async function readSoon(user: string): Promise<void> {
    await sleep(Math.max(GATHER_MS, msUntilDue(user)), closing.signal);
    for (const other of waiting) {
      if (other !== user && msUntilDue(other) > 0) continue;
      waiting.delete(other);
      due.add(other);
    }
    await readDue();
  }

  return {
    sweepAll: () => inTurn(async () => read(await listUsers(pipeline))),
    request(userId) {
      if (closing.signal.aborted || waiting.has(userId)) return;
      waiting.add(userId);
      readSoon(userId).catch(error => {
        if (!closing.signal.aborted) pipeline.log.warn({ account: userId, reason: messageOf(error) }, 'heart rate was not read');
      });
    },
    close: () => closing.abort(),
  };
}
