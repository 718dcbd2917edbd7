import { randomUUID } from 'node:crypto';
import { setTimeout as sleepFor } from 'node:timers/promises';
import { resources } from '../../schema/index.ts';
import { dayOfMicros } from '../../schema/instant.ts';
import type { Resource } from '../../schema/resource.ts';
import { createAbortRegistry } from './abort-registry.ts';
import { isAskable, parseBaseUrl, parsePath } from './base-url.ts';
import { ServiceError } from './error.ts';
import { createHeartRateReader } from './heart-rate.ts';
import { createDigest, type Digest } from './known-pages.ts';
import { createReadPages, type Page } from './pages.ts';
import { createRateLimiter, type RateLimiter, type RequestLane } from './rate-limiter.ts';
import { createSend, type OkResponse, type RequestClock, type RequestTimes } from './request.ts';
import type { ReleaseWhile, ServiceRequest } from './response.ts';
import { createRouteMemory, type RouteMemory } from './routes.ts';
import { createServiceClock, type ServiceClock } from './service-clock.ts';
import { createTransport, LATE } from './transport.ts';
import { explainUnreachable } from './unreachable.ts';

export type { Page } from './pages.ts';
export type { RequestLane } from './rate-limiter.ts';
export type { RequestClock, RequestTimes } from './request.ts';
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

export interface DocumentAnswer extends RequestTimes {
  document: unknown;
  /** To be called once the document is committed or dismissed. */
  done(): void;
}

export interface Client {
  /** Reads a collection to its end; `from` and `to` are days. */
  documents(
    resource: Pick<Resource, 'path'>,
    query: {
      token: string;
      from?: string | undefined;
      to?: string | undefined;
      lane?: RequestLane | undefined;
      releaseWhile?: ReleaseWhile | undefined;
      signal?: AbortSignal | undefined;
      /** The digests of an earlier reading of the same range: pages that are the same are not parsed. Without it pages have no digest. */
      known?: readonly string[] | undefined;
    },
  ): AsyncGenerator<Page, void, undefined>;
  document(
    resource: Pick<Resource, 'path'>,
    id: string,
    query: {
      token: string;
      lane?: RequestLane | undefined;
      releaseWhile?: ReleaseWhile | undefined;
      signal?: AbortSignal | undefined;
      /** Called as each attempt is sent, before its moment. */
      onSend?: (() => void) | undefined;
    },
  ): Promise<DocumentAnswer>;
  /** Whether the document route of a resource has ever answered 200 at this service: only then, or where 4.1 lists it, a 404 means gone. */
  hasDocumentRoute(resource: Pick<Resource, 'path'>): boolean;
  /** Reads heart rate; `from` and `to` are date-times with offset. */
  heartRate(query: {
    token: string;
    from: string;
    to: string;
    releaseWhile?: ReleaseWhile | undefined;
    signal?: AbortSignal | undefined;
    /** The digests of an earlier reading of the same range: pages that are the same are not parsed. */
    known?: readonly string[] | undefined;
  }): AsyncGenerator<Page, void, undefined>;
  /** What tells one text from all others, as it does answers. */
  digestOf: Digest;
  /** Undefined where the service does not offer it. */
  personalInfo(token: string, signal?: AbortSignal): Promise<unknown>;
  /** Asks for one day of a base collection and throws what that gives: is the token dead, or does it lack one scope? */
  probe(token: string, signal?: AbortSignal): Promise<void>;
  /** How many attempts were sent. */
  readonly requests: number;
  /** The base address. */
  readonly address: string;
  /** How many attempts somebody has answered at the address, whatever the answer. */
  readonly answers: number;
  /**
   * For how long nobody could be reached at the address, and why; undefined after an answer. `mayEnd`: there is a connection on which an
   * answer may still come, as it does of a service that is slow.
   */
  findSilence(): { ms: number; why: string; mayEnd: boolean } | undefined;
  /** Whether any route of the service has ever answered 200. */
  hasAnswered(): boolean;
  /** Where heart rate is read; undefined until it is known. */
  readonly heartRatePath: string | undefined;
  /** Stops what is under way and closes the connections. */
  close(): Promise<void>;
}

const COLLECTIONS = '/v2/usercollection';
const documentRoute = ({ path }: Pick<Resource, 'path'>) => `${COLLECTIONS}/${path}/{document_id}`;
const probed = resources.find(resource => resource.dated && resource.specified.includes('collection'))!;

/** Makes the client of one service. */
export function createClient(options: ClientOptions): Client {
  const { clock, now = steadyNow, heartRatePath = 'auto' } = options;
  const heartRateSetting = heartRatePath === 'auto' ? 'auto' : parsePath(heartRatePath, 'RINGNECK_HEART_RATE_PATH');
  const address = parseBaseUrl(options.baseUrl);
  const transport = createTransport(address, {
    deadlineMs: options.deadlineMs ?? 60_000,
    maxResponseBytes: options.maxResponseBytes ?? 64 * 1024 * 1024,
    connections: options.connections ?? 128,
  });
  const routes = options.routes ?? createRouteMemory(options.wallNow);
  const wallNow = options.wallNow ?? Date.now;
  const serviceClock = options.serviceClock ?? createServiceClock(wallNow);
  const sleep = options.sleep ?? ((ms: number, signal: AbortSignal) => sleepFor(ms, undefined, { signal }));
  let requests = 0;
  let answers = 0;
  /** Since the first request that reached nobody, and what the last one came to. */
  let silence: { since: number; code: string; isLate: boolean } | undefined;
  let awaited = 0;
  const ask = createSend({
    transport,
    clock,
    routes,
    serviceClock,
    now,
    wallNow,
    limiter:
      options.limiter ??
      createRateLimiter({
        now,
        ...(options.requestsPerToken && { requestsPerToken: options.requestsPerToken }),
        ...(options.reservedForLive && { reservedForLive: options.reservedForLive }),
      }),
    retries: options.retries ?? 3,
    maxWaitMs: options.maxWaitMs ?? 60_000,
    random: options.random ?? Math.random,
    sleep,
    onWait: options.onWait ?? (() => {}),
    onReached() {
      answers += 1;
      silence = undefined;
    },
    onUnreached(code, sentMs) {
      silence = { since: Math.min(silence?.since ?? sentMs, sentMs), code, isLate: silence?.isLate || code === LATE };
    },
    onAwaited(change) {
      awaited += change;
    },
    onRequest() {
      requests += 1;
      options.onRequest?.();
    },
  });
  const digestOf = createDigest(options.digestKey ?? randomUUID);
  const readPages = createReadPages(ask, clock, routes, digestOf, {
    maxPages: options.maxPages ?? 10_000,
    maxEmptyPages: options.maxEmptyPages ?? 1_000,
  });
  const heartRate = createHeartRateReader(heartRateSetting, readPages, routes, now, sleep);
  const aborts = createAbortRegistry();

  async function* stoppable(signal: AbortSignal | undefined, pages: (signal: AbortSignal) => AsyncGenerator<Page, void, undefined>) {
    const read = aborts.open(signal);
    try {
      yield* pages(read.signal);
    } finally {
      read.leave();
    }
  }

  async function askOnce(
    request: Pick<ServiceRequest<Identified>, 'route' | 'path' | 'token' | 'lane' | 'releaseWhile' | 'onSend'>,
    signal: AbortSignal | undefined,
  ): Promise<OkResponse<Identified>> {
    const read = aborts.open(signal);
    try {
      return await ask({ ...request, accept: acceptIdentified }, read.signal);
    } finally {
      read.leave();
    }
  }

  return {
    documents(resource, { token, from, to, lane, releaseWhile, signal, known }) {
      const parameters = { ...(from !== undefined && { start_date: from }), ...(to !== undefined && { end_date: to }) };
      return stoppable(signal, stop =>
        readPages({ route: `${COLLECTIONS}/${resource.path}`, parameters, token, lane, releaseWhile, known }, stop),
      );
    },
    async document(resource, id, { token, lane, releaseWhile, signal, onSend }) {
      const route = documentRoute(resource);
      if (!isAskable(id)) throw new ServiceError('invalid_request', route, 'not asked: no document can have this identifier');
      const { value, ...moments } = await askOnce(
        { route, path: `${COLLECTIONS}/${resource.path}/${encodeURIComponent(id)}`, token, lane, releaseWhile, onSend },
        signal,
      );
      let open = true;
      return {
        document: value,
        ...moments,
        done() {
          if (open) clock.release(moments.requestedAt);
          open = false;
        },
      };
    },
    digestOf,
    hasDocumentRoute: resource => routes.hasAnswered(`GET ${documentRoute(resource)}`),
    heartRate: query => stoppable(query.signal, stop => heartRate.read(query, stop)),
    async personalInfo(token, signal) {
      const route = `${COLLECTIONS}/personal_info`;
      try {
        const { value, requestedAt } = await askOnce({ route, path: route, token }, signal);
        clock.release(requestedAt);
        return value;
      } catch (error) {
        if (error instanceof ServiceError && error.kind === 'not_found') return undefined;
        throw error;
      }
    },
    async probe(token, signal) {
      const today = dayOfMicros(serviceClock.now() * 1000);
      const range = { token, from: today, to: today };
      for await (const _ of this.documents(probed, { ...range, signal })) return;
    },
    address: address.origin + address.path,
    findSilence: () =>
      silence && {
        ms: now() - silence.since,
        why: explainUnreachable(address, silence.code),
        mayEnd: awaited > 0 && !silence.isLate,
      },
    hasAnswered: () => routes.hasAnsweredAny(),
    get answers() {
      return answers;
    },
    get requests() {
      return requests;
    },
    get heartRatePath() {
      return heartRate.path();
    },
    async close() {
      aborts.stopAll();
      await transport.close();
    },
  };
}

/** The time of day at which the process started, carried on by a clock that nobody sets back. */
function steadyNow(): number {
  return performance.timeOrigin + performance.now();
}

interface Identified {
  id: string;
}

/** A document, or what is known of a person: an object with an identifier. */
function acceptIdentified(value: unknown): Identified | undefined {
  const { id } = (value ?? {}) as { id?: unknown };
  return typeof id === 'string' && id !== '' ? (value as Identified) : undefined;
}
