import { setMaxListeners } from 'node:events';
import { setTimeout as sleepFor } from 'node:timers/promises';
import { heartRate } from '../../schema/heart-rate.ts';
import { addDays } from '../../schema/instant.ts';
import { messageOf } from '../../src/errors.ts';
import { lastDays, startSpans } from '../backfill.ts';
import type { Pipeline } from '../pipeline.ts';
import type { Span } from '../run.ts';
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
  /** Reads an account's soon: of the last days, and about an earlier day of which a night or an activity has come late. */
  request(userId: string, day?: string): void;
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
  /** Accounts whose time has not come yet, and those to be read next, with the days that were named. */
  const waiting = new Map<string, Set<string>>();
  const due = new Map<string, Set<string>>();
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
    await sweepOnSchedule(pipeline, { kind: 'sweep', days: DAYS, users, collections: [heartRate.name] }, patienceMs);
  }

  /** What a ring brings after days without its phone lies before what is read again and again. It is not waited for. */
  async function readLate(asked: readonly (readonly [user: string, days: ReadonlySet<string>])[]): Promise<void> {
    const late = asked.filter(([, days]) => days.size > 0);
    if (!late.length || closing.signal.aborted) return;
    const { from } = lastDays(DAYS, pipeline.serviceClock);
    const firstDays = await findFirstDays(pipeline);
    const spans = late.flatMap(([user, days]) => joinLate(user, days, { first: firstDays.get(user) ?? from, before: from }));
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
          const known = asked.filter(([user]) => active.includes(user));
          await read(known.map(([user]) => user));
          await readLate(known);
        });
      }
    } finally {
      working = false;
    }
  }

  const msUntilDue = (user: string) => Math.max(0, (readAt.get(user) ?? Number.NEGATIVE_INFINITY) + EVERY_MS - pipeline.now());

  async function readSoon(user: string): Promise<void> {
    await sleep(Math.max(GATHER_MS, msUntilDue(user)), closing.signal);
    for (const [other, days] of waiting) {
      if (other !== user && msUntilDue(other) > 0) continue;
      waiting.delete(other);
      due.set(other, new Set([...(due.get(other) ?? []), ...days]));
    }
    await readDue();
  }

  return {
    sweepAll: () => inTurn(async () => read(await listUsers(pipeline))),
    request(userId, day) {
      if (closing.signal.aborted) return;
      const known = waiting.get(userId);
      if (day !== undefined) known?.add(day);
      if (known) return;
      waiting.set(userId, new Set(day === undefined ? [] : [day]));
      readSoon(userId).catch(error => {
        if (!closing.signal.aborted) pipeline.log.warn({ account: userId, reason: messageOf(error) }, 'heart rate was not read');
      });
    },
    close: () => closing.abort(),
  };
}

/** Since when heart rate was asked for, by account: of a time that nobody asked for, nothing is read because of one document. */
async function findFirstDays({ warehouse }: Pick<Pipeline, 'warehouse'>): Promise<Map<string, string>> {
  const rows = await warehouse.read(
    `SELECT user_id, min(start_at)::DATE::VARCHAR FROM sync.windows
     WHERE collection = '${heartRate.name}' AND start_at IS NOT NULL GROUP BY user_id`,
  );
  return new Map(rows as [string, string][]);
}

/** The days about those, from the first one and before the last ones, neighbours together: a night begins on the day before its own, and UTC has other days. */
function joinLate(userId: string, days: ReadonlySet<string>, { first, before }: { first: string; before: string }): Span[] {
  const spans: Span[] = [];
  for (const day of [...days].sort()) {
    if (day < addDays(first, -1)) continue;
    const about = { from: maxOf(first, addDays(day, -1)), to: addDays(day, 1) };
    const last = spans.at(-1);
    if (about.from >= before) continue;
    if (last && about.from <= addDays(last.to, 1)) last.to = about.to;
    else spans.push({ userId, collection: heartRate.name, ...about });
  }
  return spans;
}

const maxOf = (one: string, other: string) => (one > other ? one : other);
