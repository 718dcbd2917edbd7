import { dataTypeOf, type WebhookEvent } from '../../../schema/webhook.ts';
import { detailOf, messageOf, RingneckError, TryLaterError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { Mutex } from '../../base/mutex.ts';
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

const LONGEST_MS = 6 * 3_600_000;
const SHORTEST_MS = 5_000;
const FIRST_RETRY_MS = 60_000;
const LONGEST_RETRY_MS = 30 * 60_000;

/** Our subscriptions at the service. All that changes them goes through one manager, one thing after the other. */
export class SubscriptionManager {
  readonly #options: SubscriptionManagerOptions;
  readonly #changes = new Mutex();
  readonly #notOffered = new Set<string>();
  /** Those of which an event was answered 410. */
  readonly #noted = new Set<string>();
  #desired: Desired;
  #problem: string | null;
  #started = false;
  #closed = false;
  #failures = 0;
  /** What the log was told last: how many are kept, and why some are not renewed. */
  #toldKept: string | undefined;
  #toldNotKept: string | null = null;
  #clearTimer = () => {};
  #details: ReadonlyMap<string, string> = new Map();
  #problemDetail: string | undefined;

  private constructor(options: SubscriptionManagerOptions, { desired, problem }: Awaited<ReturnType<typeof readDesired>>) {
    this.#options = options;
    this.#desired = desired;
    this.#problem = problem;
  }

  /** Opens the manager; until `start` it does nothing by itself. */
  static async open(options: SubscriptionManagerOptions): Promise<SubscriptionManager> {
    return new SubscriptionManager(options, await readDesired(options.warehouse));
  }

  /** What the service said in the last round of those that failed, by `keyOf`, and of all of them: for whoever asks, and never stored. */
  get said(): { details: ReadonlyMap<string, string>; ofAll: string | undefined } {
    return { details: this.#details, ofAll: this.#problemDetail };
  }

  /** Whether the receiver is to answer 410 to events: each ends the subscription that it came by (6.1). */
  isGone(): boolean {
    return this.#desired === 'gone';
  }

  /** An event was answered 410. */
  noteGone({ event_type, data_type }: Pick<WebhookEvent, 'event_type' | 'data_type'>): void {
    const { warehouse, log } = this.#options;
    const key = `${event_type} ${dataTypeOf(data_type)}`;
    if (!this.isGone() || this.#noted.has(key)) return;
    this.#noted.add(key);
    const note = async () => {
      const row = (await readSubscriptions(warehouse)).get(key);
      if (row) await warehouse.record([removedEntry(warehouse, row, 'its next event was answered 410')]);
      log.info({ subscription: key }, 'a subscription was ended by the answer to its event');
    };
    this.#changes
      .run(note)
      .catch(error => log.warn({ subscription: key, reason: messageOf(error) }, 'the end of a subscription could not be noted'));
  }

  /** Keeps them from now on, unless they were removed by command. The receiver must be listening: the service verifies it meanwhile. */
  start(): void {
    this.#started = true;
    const desired = this.#desired;
    if (desired === 'ensured') this.#keep();
    else this.#options.log.warn({ desired }, 'the subscriptions were removed by command and are not kept: ringneck subscriptions ensure');
  }

  get started(): boolean {
    return this.#started;
  }

  /** Has them again, now. Like `remove` and `list` it throws a RingneckError that says what to do about a service that refuses all of them. */
  ensure(): Promise<Ensured> {
    return advised(
      this.#changes.run(async () => {
        await this.#setDesired('ensured');
        this.#notOffered.clear();
        return this.#ensureAll();
      }),
    );
  }

  /** Cancels them, now or (`onNextEvent`) each at its next event; they are not made again until `ensure`. */
  remove({ onNextEvent }: { onNextEvent: boolean }): Promise<Removed> {
    return advised(
      this.#changes.run(async () => {
        this.#clearTimer();
        await this.#setDesired(onNextEvent ? 'gone' : 'removed');
        this.#toldKept = undefined;
        this.#noted.clear();
        return onNextEvent ? { removed: 0, failed: [], listed: false } : removeSubscriptions(this.#options);
      }),
    );
  }

  /** What the service has (undefined: it does not tell) and what we know. It waits for no round, which may wait for the service for minutes. */
  list(): Promise<{ remote: RemoteSubscription[] | undefined; rows: SubscriptionRow[] }> {
    const { client, warehouse } = this.#options;
    const read = async () => {
      const remote = await client.list();
      return { remote, rows: [...(await readSubscriptions(warehouse)).values()] };
    };
    return advised(read());
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#clearTimer();
    await this.#options.client.close();
    await this.#changes.drain();
  }

  #keep(): void {
    this.#changes
      .run(async () => {
        if (!this.#closed && this.#desired === 'ensured') await this.#ensureAll();
      })
      .catch(error => {
        const facts = { reason: messageOf(withAdvice(error)), failures: this.#failures };
        if (!this.#closed) this.#options.log.warn(facts, 'the subscriptions could not be kept; tried again');
      });
  }

  /** One round, and the timer of the next one. */
  async #ensureAll(): Promise<Ensured> {
    const { now, setTimer = setSystemTimer } = this.#options;
    this.#clearTimer();
    let nextMs = SHORTEST_MS;
    try {
      const ensured = await ensureSubscriptions({ ...this.#options, notOffered: this.#notOffered });
      this.#details = ensured.details;
      this.#problemDetail = undefined;
      this.#failures = ensured.failed.size ? this.#failures + 1 : 0;
      nextMs = nextRoundMs(ensured, this.#failures, now());
      await this.#noteProblem(this.#warnOfNotKept(ensured));
      this.#tellKept(ensured);
      return ensured;
    } catch (error) {
      this.#failures++;
      this.#details = new Map();
      this.#problemDetail = detailOf(error);
      nextMs = Math.max(retryMs(this.#failures), error instanceof ServiceError ? (error.retryAfterMs ?? 0) : 0);
      if (!this.#closed) await this.#noteFailedRound(messageOf(withAdvice(error))).catch(() => undefined);
      throw error;
    } finally {
      if (this.#started && !this.#closed && this.#desired === 'ensured') this.#clearTimer = setTimer(() => this.#keep(), nextMs);
    }
  }

  async #setDesired(desired: Desired): Promise<void> {
    this.#desired = desired;
    await this.#options.warehouse.record([desiredEntry(desired)]);
  }

  async #noteProblem(problem: string | null): Promise<void> {
    if (problem === this.#problem) return;
    await this.#options.warehouse.record([problemEntry(problem)]);
    this.#problem = problem;
  }

  async #noteFailedRound(reason: string): Promise<void> {
    await this.#noteProblem(reason);
    await noteExpired(this.#options, reason);
  }

  /** What is in the way of renewals, as a sentence; the log is told of each new one. */
  #warnOfNotKept({ notKept }: Ensured): string | null {
    const reason = [...new Set(notKept.values())].toSorted().join('; ');
    const sentence = reason ? `${NOT_RENEWED}: ${reason}` : null;
    if (sentence && sentence !== this.#toldNotKept)
      this.#options.log.warn({ subscriptions: [...notKept.keys()], reason }, `${NOT_RENEWED}; tried again`);
    this.#toldNotKept = sentence;
    return sentence;
  }

  /** Tells the log how many there are of those that the service offers, when that has changed. */
  #tellKept({ rows }: Ensured): void {
    const { log } = this.#options;
    const offered = rows.filter(({ state }) => state !== 'not_offered');
    const facts = { active: offered.filter(({ state }) => state === 'active').length, desired: offered.length };
    const kept = JSON.stringify(facts);
    if (kept === this.#toldKept) return;
    this.#toldKept = kept;
    if (facts.desired === 0) log.warn(facts, 'the service offers none of the subscriptions');
    else if (facts.active === facts.desired) log.info(facts, 'the subscriptions are kept');
    else log.warn(facts, 'subscriptions are missing; tried again');
  }
}

const NOT_RENEWED = 'subscriptions are not renewed, and are lost when they expire';

function advised<T>(work: Promise<T>): Promise<T> {
  return work.catch((error: unknown) => {
    throw withAdvice(error);
  });
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
