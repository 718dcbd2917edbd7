import { dataTypeOf, type WebhookEvent } from '../../../schema/webhook.ts';
import { messageOf, RingneckError, TryLaterError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { ServiceError, type ServiceErrorKind } from '../../client/error.ts';
import type { RemoteSubscription, SubscriptionClient } from '../../client/subscriptions.ts';
import {
  type Desired,
  desiredEntry,
  keyOf,
  problemEntry,
  readDesired,
  readSubscriptions,
  type SubscriptionRow,
} from '../../ledger/subscriptions.ts';
import type { Warehouse } from '../../warehouse/warehouse.ts';
import { type Ensured, ensureSubscriptions } from './ensure-subscriptions.ts';
import { dueAt, noteExpired } from './expiry.ts';
import { type Removed, removedEntry, removeSubscriptions } from './remove-subscriptions.ts';

export interface SubscriptionManagerOptions {
  client: SubscriptionClient;
  warehouse: Warehouse;
  callbackUrl: string;
  /** The kinds of data that we hold. */
  dataTypes: readonly string[];
  /** Milliseconds since the epoch. */
  now: () => number;
  log: Log;
  /** Calls back after so many milliseconds; returns what calls that off. For tests. */
  setTimer?: (run: () => void, ms: number) => () => void;
}

/** Our subscriptions at the service. All that changes them goes through one manager, one thing after the other. */
export interface SubscriptionManager {
  /** Whether the receiver is to answer 410 to events: each ends the subscription that it came by (6.1). */
  isGone(): boolean;
  /** An event was answered 410. */
  noteGone(event: Pick<WebhookEvent, 'event_type' | 'data_type'>): void;
  /** Keeps them from now on, unless they were removed by command. The receiver must be listening: the service verifies it meanwhile. */
  start(): void;
  readonly started: boolean;
  /** Has them again, now. Like `remove` and `list` it throws a RingneckError that says what to do about a service that refuses all of them. */
  ensure(): Promise<Ensured>;
  /** Cancels them, now or (`onNextEvent`) each at its next event; they are not made again until `ensure`. */
  remove(options: { onNextEvent: boolean }): Promise<Removed>;
  /** What the service has (undefined: it does not tell) and what we know. */
  list(): Promise<{ remote: RemoteSubscription[] | undefined; rows: SubscriptionRow[] }>;
  close(): Promise<void>;
}

const LONGEST_MS = 6 * 3_600_000;
const SHORTEST_MS = 5_000;
const FIRST_RETRY_MS = 60_000;
const LONGEST_RETRY_MS = 30 * 60_000;

/** Opens the manager; until `start` it does nothing by itself. */
export async function openSubscriptionManager(options: SubscriptionManagerOptions): Promise<SubscriptionManager> {
  const { client, warehouse, now, log, setTimer = setSystemTimer } = options;
  let { desired, problem } = await readDesired(warehouse);
  const notOffered = new Set<string>();
  const noted = new Set<string>();
  let started = false;
  let closed = false;
  let failures = 0;
  let keptBefore: string | undefined;
  let notKeptBefore: string | null = null;
  let clearTimer = () => {};
  let turn: Promise<unknown> = Promise.resolve();

  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = turn.then(work);
    turn = done.catch(() => undefined);
    return done;
  }

  const advised = <T>(work: Promise<T>): Promise<T> =>
    work.catch((error: unknown) => {
      throw withAdvice(error);
    });

  async function readBoth() {
    const remote = await client.list();
    return { remote, rows: [...(await readSubscriptions(warehouse)).values()] };
  }

  async function note(next: string | null): Promise<void> {
    if (next === problem) return;
    await warehouse.record([problemEntry(next)]);
    problem = next;
  }

  async function noteTrouble(reason: string): Promise<void> {
    await note(reason);
    await noteExpired(options, reason);
  }

  /** What is in the way of renewals, as a sentence; the log is told of each new one. */
  function warnOfNotKept({ notKept }: Ensured): string | null {
    const reasons = [...new Set(notKept.values())].toSorted().join('; ');
    const sentence = reasons ? `subscriptions are not renewed, and are lost when they expire: ${reasons}` : null;
    if (sentence && sentence !== notKeptBefore)
      log.warn(
        { subscriptions: [...notKept.keys()], reason: reasons },
        'subscriptions are not renewed, and are lost when they expire; tried again',
      );
    notKeptBefore = sentence;
    return sentence;
  }

  /** Tells the log how many there are of those that the service offers, when that has changed. */
  function tellKept({ rows }: Ensured): void {
    const desiredRows = rows.filter(({ state }) => state !== 'not_offered');
    const facts = { active: desiredRows.filter(({ state }) => state === 'active').length, desired: desiredRows.length };
    const kept = JSON.stringify(facts);
    if (kept === keptBefore) return;
    keptBefore = kept;
    if (facts.desired === 0) log.warn(facts, 'the service offers none of the subscriptions');
    else if (facts.active === facts.desired) log.info(facts, 'the subscriptions are kept');
    else log.warn(facts, 'subscriptions are missing; tried again');
  }

  async function want(next: Desired): Promise<void> {
    desired = next;
    await warehouse.record([desiredEntry(next)]);
  }

  /** One round, and the timer of the next one. */
  async function round(): Promise<Ensured> {
    clearTimer();
    let nextMs = SHORTEST_MS;
    try {
      const ensured = await ensureSubscriptions({ ...options, notOffered });
      failures = ensured.failed.size ? failures + 1 : 0;
      nextMs = nextRoundMs(ensured, failures, now());
      await note(warnOfNotKept(ensured));
      tellKept(ensured);
      return ensured;
    } catch (error) {
      failures++;
      nextMs = Math.max(retryMs(failures), error instanceof ServiceError ? (error.retryAfterMs ?? 0) : 0);
      if (!closed) await noteTrouble(messageOf(withAdvice(error))).catch(() => undefined);
      throw error;
    } finally {
      if (started && !closed && desired === 'ensured') clearTimer = setTimer(keep, nextMs);
    }
  }

  function keep(): void {
    inTurn(async () => {
      if (!closed && desired === 'ensured') await round();
    }).catch(error => {
      if (!closed) log.warn({ reason: messageOf(withAdvice(error)), failures }, 'the subscriptions could not be kept; tried again');
    });
  }

  return {
    isGone: () => desired === 'gone',
    noteGone(event) {
      const key = `${event.event_type} ${dataTypeOf(event.data_type)}`;
      if (desired !== 'gone' || noted.has(key)) return;
      noted.add(key);
      inTurn(async () => {
        const row = (await readSubscriptions(warehouse)).get(key);
        if (row) await warehouse.record([removedEntry(warehouse, row, 'its next event was answered 410')]);
        log.info({ subscription: key }, 'a subscription was ended by the answer to its event');
      }).catch(error => log.warn({ subscription: key, reason: messageOf(error) }, 'the end of a subscription could not be noted'));
    },
    start() {
      started = true;
      if (desired === 'ensured') keep();
      else log.warn({ desired }, 'the subscriptions were removed by command and are not kept: ringneck subscriptions ensure');
    },
    get started() {
      return started;
    },
    ensure: () =>
      advised(
        inTurn(async () => {
          await want('ensured');
          notOffered.clear();
          return round();
        }),
      ),
    remove: ({ onNextEvent }) =>
      advised(
        inTurn(async () => {
          clearTimer();
          await want(onNextEvent ? 'gone' : 'removed');
          keptBefore = undefined;
          noted.clear();
          return onNextEvent ? { removed: 0, failed: [], listed: false } : removeSubscriptions(options);
        }),
      ),
    // Not in turn: a round may wait for the service for minutes.
    list: () => advised(readBoth()),
    async close() {
      closed = true;
      clearTimer();
      await client.close();
      await turn;
    },
  };
}

const ADVICE: Partial<Record<ServiceErrorKind, string>> = {
  unauthorized: 'check RINGNECK_CLIENT_ID and RINGNECK_CLIENT_SECRET',
  forbidden: 'check RINGNECK_CLIENT_ID and RINGNECK_CLIENT_SECRET, and what the service lets this client do',
  not_found: 'check RINGNECK_SERVICE_URL: this service has no subscriptions there',
};

/** What concerns all subscriptions, with what to do about it. */
function withAdvice(error: unknown): unknown {
  if (!(error instanceof ServiceError)) return error;
  if (error.kind === 'unavailable' || error.kind === 'rate_limited')
    return new TryLaterError(`${error.message}; try again later`, { cause: error });
  const advice = ADVICE[error.kind];
  return new RingneckError(advice ? `${error.message}: ${advice}` : error.message, 1, { cause: error });
}

const retryMs = (failures: number) => Math.min(FIRST_RETRY_MS * 2 ** (failures - 1), LONGEST_RETRY_MS);

/** Until the next renewal is due, or what failed is tried again. */
function nextRoundMs({ rows, failed }: Ensured, failures: number, nowMs: number): number {
  const due = rows.filter(row => row.state === 'active' && !failed.has(keyOf(row))).map(row => dueAt(row) / 1000 - nowMs);
  return Math.max(SHORTEST_MS, Math.min(LONGEST_MS, ...due, ...(failures ? [retryMs(failures)] : [])));
}

function setSystemTimer(run: () => void, ms: number): () => void {
  const timer = setTimeout(run, ms);
  return () => clearTimeout(timer);
}
