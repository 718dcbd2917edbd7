import { randomUUID } from 'node:crypto';
import { setTimeout as sleepFor } from 'node:timers/promises';
import { resources } from '../../schema/index.ts';
import { addDays, dayOfMicros } from '../../schema/instant.ts';
import type { Resource } from '../../schema/resource.ts';
import { AbortRegistry } from './abort-registry.ts';
import { isAskable, parseBaseUrl, parsePath, type ServiceAddress } from './base-url.ts';
import { ServiceError } from './error.ts';
import { type HeartRateQuery, HeartRateReader } from './heart-rate.ts';
import { createDigest, type Digest, type Page, PageReader } from './pages.ts';
import { RateLimiter, type RequestLane } from './rate-limiter.ts';
import {
  type OkResponse,
  type RequestClock,
  RequestSender,
  type RequestSettings,
  type RequestTimes,
  type TokenRenewal,
} from './request.ts';
import type { ReleaseWhile, ServiceRequest } from './response.ts';
import { createRouteMemory, type RouteMemory } from './routes.ts';
import { createServiceClock, type ServiceClock } from './service-clock.ts';
import { explainUnreachable, LATE, Transport } from './transport.ts';

export type { Page } from './pages.ts';
export type { RequestLane } from './rate-limiter.ts';
export type { RequestClock, RequestTimes, TokenRenewal } from './request.ts';
export type { ReleaseWhile } from './response.ts';
export type { RouteMemory } from './routes.ts';
export type { ServiceClock } from './service-clock.ts';

export interface ClientOptions {
  /** RINGNECK_SERVICE_URL; may have a path. */
  baseUrl: string;
  clock: RequestClock;
  /** Given where several clients ask one service from one process. */
  limiter?: RateLimiter;
  /** How many requests of one token may be under way, and how many of these places are kept for live ones; without effect where a `limiter` is given. */
  requestsPerToken?: number;
  reservedForLive?: number;
  /** `auto` or a path. */
  heartRatePath?: 'auto' | (string & {});
  /** For one attempt, headers and body. */
  deadlineMs?: number;
  /** For a connection to come about. */
  connectMs?: number;
  maxResponseBytes?: number;
  /** Attempts after the first. */
  retries?: number;
  /** What one request may wait in place, all its waits together, before it throws. */
  maxWaitMs?: number;
  maxPages?: number;
  maxEmptyPages?: number;
  connections?: number;
  sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Milliseconds since the Unix epoch; should not jump. */
  now?: () => number;
  /** The time of day, in milliseconds. */
  wallNow?: () => number;
  random?: () => number;
  /** Without it a token is good as long as the service takes it. */
  renewal?: TokenRenewal | undefined;
  /** What is known of the service's routes from earlier runs. */
  routes?: RouteMemory;
  /** What is known of the service's clock, and learns from every answer. */
  serviceClock?: ServiceClock;
  /** What answers are told from others with, so that who has their digests and not this learns nothing of them. Without it no earlier answer is known. */
  digestKey?: () => string;
  /** Before each wait, for a limit or after a fault. */
  onWait?: (ms: number) => void;
  /** As each attempt is sent. */
  onRequest?: () => void;
}

/** What is known of a person, with its identifier. */
export interface PersonAnswer extends RequestTimes {
  document: Identified;
}

export interface DocumentAnswer extends RequestTimes {
  document: unknown;
}

interface CollectionQuery {
  token: string;
  from?: string | undefined;
  to?: string | undefined;
  lane?: RequestLane | undefined;
  releaseWhile?: ReleaseWhile | undefined;
  signal?: AbortSignal | undefined;
  /** The digests of an earlier reading of the same range: pages that are the same are not parsed. Without it pages have no digest. */
  known?: readonly string[] | undefined;
}

interface DocumentQuery {
  token: string;
  lane?: RequestLane | undefined;
  releaseWhile?: ReleaseWhile | undefined;
  signal?: AbortSignal | undefined;
  /** Called as each attempt is sent, before its moment. */
  onSend?: (() => void) | undefined;
}

const COLLECTIONS = '/v2/usercollection';
const documentRoute = ({ path }: Pick<Resource, 'path'>) => `${COLLECTIONS}/${path}/{document_id}`;
const sleepReally = (ms: number, signal: AbortSignal) => sleepFor(ms, undefined, { signal });

const ANSWER_CLASSES = ['2xx', '3xx', '4xx', '429', '5xx', 'other', 'none'] as const;

/** `429` is not among `4xx`, `other` is no status that HTTP has, `none` that no answer came. */
export type AnswerClass = (typeof ANSWER_CLASSES)[number];

function classOf(status: number | undefined): AnswerClass {
  if (status === undefined) return 'none';
  if (status === 429) return '429';
  return ANSWER_CLASSES.find(name => name === `${Math.floor(status / 100)}xx`) ?? 'other';
}

/** The client of one service. */
export class Client {
  /** The base address. */
  readonly address: string;
  /** What tells one text from all others, as it does answers. */
  readonly digestOf: Digest;
  readonly #base: ServiceAddress;
  readonly #routes: RouteMemory;
  readonly #serviceClock: ServiceClock;
  readonly #now: () => number;
  readonly #transport: Transport;
  readonly #send: RequestSender;
  readonly #pages: PageReader;
  readonly #heartRate: HeartRateReader;
  readonly #aborts = new AbortRegistry();
  #requests = 0;
  #answers = 0;
  readonly #byClass = Object.fromEntries(ANSWER_CLASSES.map(name => [name, 0])) as Record<AnswerClass, number>;
  /** Since the first request that reached nobody, and what the last one came to. */
  #silence: { since: number; code: string; isLate: boolean } | undefined;
  #awaited = 0;

  constructor(options: ClientOptions) {
    const { clock, now = steadyNow, wallNow = Date.now, sleep = sleepReally, heartRatePath = 'auto' } = options;
    const heartRateSetting = heartRatePath === 'auto' ? 'auto' : parsePath(heartRatePath, 'RINGNECK_HEART_RATE_PATH');
    this.#base = parseBaseUrl(options.baseUrl);
    this.address = this.#base.origin + this.#base.path;
    this.#now = now;
    this.#routes = options.routes ?? createRouteMemory(options.wallNow);
    this.#serviceClock = options.serviceClock ?? createServiceClock(wallNow);
    this.#transport = new Transport(this.#base, {
      deadlineMs: options.deadlineMs ?? 60_000,
      connectMs: options.connectMs,
      maxResponseBytes: options.maxResponseBytes ?? 64 * 1024 * 1024,
      connections: options.connections ?? 128,
    });
    const { requestsPerToken, reservedForLive } = options;
    this.#send = new RequestSender({
      transport: this.#transport,
      renewal: options.renewal,
      clock,
      routes: this.#routes,
      serviceClock: this.#serviceClock,
      now,
      wallNow,
      limiter: options.limiter ?? new RateLimiter({ now, requestsPerToken, reservedForLive }),
      retries: options.retries ?? 3,
      maxWaitMs: options.maxWaitMs ?? 60_000,
      random: options.random ?? Math.random,
      sleep,
      ...this.#watch(options),
    });
    this.digestOf = createDigest(options.digestKey ?? randomUUID);
    this.#pages = new PageReader(this.#send, this.#routes, this.digestOf, {
      maxPages: options.maxPages ?? 10_000,
      maxEmptyPages: options.maxEmptyPages ?? 1_000,
    });
    this.#heartRate = new HeartRateReader(heartRateSetting, this.#pages, this.#routes, now, sleep);
  }

  /** Counts attempts and what became of them. */
  #watch({ onWait = () => {}, onRequest }: ClientOptions): Pick<RequestSettings, `on${string}` & keyof RequestSettings> {
    return {
      onWait,
      onReached: () => {
        this.#answers += 1;
        this.#silence = undefined;
      },
      onUnreached: (code, sentMs) => {
        const before = this.#silence;
        this.#silence = { since: Math.min(before?.since ?? sentMs, sentMs), code, isLate: before?.isLate || code === LATE };
      },
      onAwaited: change => {
        this.#awaited += change;
      },
      onAnswer: status => {
        this.#byClass[classOf(status)] += 1;
      },
      onRequest: () => {
        this.#requests += 1;
        onRequest?.();
      },
    };
  }

  /** Reads a collection to its end; `from` and `to` are days, of rows those of UTC. */
  documents(
    { path, identifiedBy }: Pick<Resource, 'path' | 'identifiedBy'>,
    { from, to, signal, ...rest }: CollectionQuery,
  ): AsyncGenerator<Page, void, undefined> {
    const parameters = identifiedBy === undefined ? daysAsked(from, to) : momentsAsked(from, to);
    return this.#stoppable(signal, stop => this.#pages.read({ route: `${COLLECTIONS}/${path}`, parameters, ...rest }, stop));
  }

  /** @param take commits or dismisses the answer, which is under way until then */
  async document<T>(
    resource: Pick<Resource, 'path'>,
    id: string,
    { signal, ...rest }: DocumentQuery,
    take: (answer: DocumentAnswer) => T | Promise<T>,
  ): Promise<T> {
    const route = documentRoute(resource);
    if (!isAskable(id)) throw new ServiceError('invalid_request', route, 'not asked: no document can have this identifier');
    const path = `${COLLECTIONS}/${resource.path}/${encodeURIComponent(id)}`;
    return this.#askOnce({ route, path, ...rest }, signal, ({ value, ...moments }) => take({ document: value, ...moments }));
  }

  /** Whether the document route of a resource has ever answered 200 at this service: only then, or where 4.1 lists it, a 404 means gone. */
  hasDocumentRoute(resource: Pick<Resource, 'path'>): boolean {
    return this.#routes.hasAnswered(`GET ${documentRoute(resource)}`);
  }

  /** Reads heart rate; `from` and `to` are date-times with offset. */
  heartRate<Rows = never>({
    signal,
    ...query
  }: HeartRateQuery<Rows> & { signal?: AbortSignal | undefined }): AsyncGenerator<Page<Rows>, void, undefined> {
    return this.#stoppable(signal, stop => this.#heartRate.read(query, stop));
  }

  /**
   * Who the person of a token is.
   * @param take commits or dismisses the answer, which is under way until then
   */
  async person<T>({ signal, ...rest }: DocumentQuery, take: (answer: PersonAnswer) => T | Promise<T>): Promise<T> {
    const route = `${COLLECTIONS}/personal_info`;
    return this.#askOnce({ route, path: route, ...rest }, signal, ({ value, ...moments }) => take({ document: value, ...moments }));
  }

  /** Undefined where the service does not offer it. */
  async personalInfo(token: string, signal?: AbortSignal): Promise<Identified | undefined> {
    try {
      return await this.person({ token, signal }, ({ document }) => document);
    } catch (error) {
      if (error instanceof ServiceError && error.kind === 'not_found') return undefined;
      throw error;
    }
  }

  /** Asks for one day of a base collection and throws what that gives: is the token dead, or does it lack one scope? */
  async probe(token: string, signal?: AbortSignal): Promise<void> {
    const today = dayOfMicros(this.#serviceClock.now() * 1000);
    for (const resource of resources) {
      if (!resource.dated || !resource.specified.includes('collection')) continue;
      for await (const _ of this.documents(resource, { token, from: today, to: today, signal })) return;
      return;
    }
  }

  /** How many attempts were sent. */
  get requests(): number {
    return this.#requests;
  }

  /** How many attempts somebody has answered at the address, whatever the answer. */
  get answers(): number {
    return this.#answers;
  }

  /** What became of all attempts, by the class of the answer. */
  get answersByClass(): Readonly<Record<AnswerClass, number>> {
    return this.#byClass;
  }

  /**
   * For how long nobody could be reached at the address, and why; undefined after an answer. `mayEnd`: there is a connection on which an
   * answer may still come, as it does of a service that is slow.
   */
  findSilence(): { ms: number; why: string; mayEnd: boolean } | undefined {
    if (!this.#silence) return undefined;
    const { since, code, isLate } = this.#silence;
    return { ms: this.#now() - since, why: explainUnreachable(this.#base, code), mayEnd: this.#awaited > 0 && !isLate };
  }

  /** Whether any route of the service has ever answered 200. */
  hasAnswered(): boolean {
    return this.#routes.hasAnsweredAny();
  }

  /** Where heart rate is read; undefined until it is known. */
  get heartRatePath(): string | undefined {
    return this.#heartRate.path();
  }

  /** Stops what is under way and closes the connections. */
  async close(): Promise<void> {
    this.#aborts.stopAll();
    await this.#transport.close();
  }

  async *#stoppable<P extends Page<unknown>>(
    signal: AbortSignal | undefined,
    pages: (signal: AbortSignal) => AsyncGenerator<P, void, undefined>,
  ) {
    const read = this.#aborts.open(signal);
    try {
      yield* pages(read.signal);
    } finally {
      read.leave();
    }
  }

  async #askOnce<T>(
    request: Pick<ServiceRequest<Identified>, 'route' | 'path' | 'token' | 'lane' | 'releaseWhile' | 'onSend'>,
    signal: AbortSignal | undefined,
    take: (answer: Omit<OkResponse<Identified>, 'done'>) => T | Promise<T>,
  ): Promise<T> {
    const read = this.#aborts.open(signal);
    const { done, ...answer } = await this.#send.send({ ...request, accept: acceptIdentified }, read.signal).finally(() => read.leave());
    try {
      return await take(answer);
    } finally {
      done();
    }
  }
}

const daysAsked = (from: string | undefined, to: string | undefined) => ({
  ...(from !== undefined && { start_date: from }),
  ...(to !== undefined && { end_date: to }),
});

/** The end of a range of moments is left out, so that it is the midnight after the last day. */
const momentsAsked = (from: string | undefined, to: string | undefined) => ({
  ...(from !== undefined && { start_datetime: midnight(from) }),
  ...(to !== undefined && { end_datetime: midnight(addDays(to, 1)) }),
});

const midnight = (day: string) => `${day}T00:00:00.000Z`;

/** The time of day at which the process started, carried on by a clock that nobody sets back. */
function steadyNow(): number {
  return performance.timeOrigin + performance.now();
}

interface Identified {
  id: string;
}

/** A document, or what is known of a person: an object with an identifier. */
function acceptIdentified(value: unknown): Identified | undefined {
  return isIdentified(value) ? value : undefined;
}

const isIdentified = (value: unknown): value is Identified =>
  typeof value === 'object' && value !== null && 'id' in value && typeof value.id === 'string' && value.id !== '';
