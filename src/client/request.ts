import { isVerdict, ServiceError } from './error.ts';
import type { Permit, RateLimiter } from './rate-limiter.ts';
import { type Failure, readResponse, type ServiceRequest } from './response.ts';
import { findDateMs } from './retry-after.ts';
import type { RouteMemory } from './routes.ts';
import type { ServiceClock } from './service-clock.ts';
import { type Transport, TransportError } from './transport.ts';
import { codeOfRedirect, speaksTlsAlone } from './unreachable.ts';

/** The order guard of the warehouse: every moment that began must end. Moments are microseconds. */
export interface RequestClock {
  lease(): number;
  release(moment: number): void;
}

export interface RequestSettings {
  transport: Transport;
  limiter: RateLimiter;
  clock: RequestClock;
  routes: RouteMemory;
  serviceClock: Pick<ServiceClock, 'note' | 'aheadMs'>;
  /** Attempts after the first. */
  retries: number;
  /** What one request may wait in all before it gives way. */
  maxWaitMs: number;
  now: () => number;
  /** The time of day, in milliseconds; may be set, forward and back. */
  wallNow: () => number;
  random: () => number;
  sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  onRequest: () => void;
  /** What became of each attempt: an answer of somebody who speaks HTTP there, or what kept one away since `sentMs`, by `now`. */
  onReached: () => void;
  onUnreached: (code: string, sentMs: number) => void;
  /** One more attempt has a connection and no answer yet, or one fewer. */
  onAwaited: (change: 1 | -1) => void;
  onWait: (ms: number) => void;
}

/** When a request was sent, in microseconds. The first is an order and no time; what is reckoned with are the other two. */
export interface RequestTimes {
  /** The moment of the request clock. */
  requestedAt: number;
  /** By the clock of this machine. */
  readAt: number;
  /** By the service's: the `Date` of its answer; null where it shows none. */
  serviceAt: number | null;
}

/** A good answer. Whoever has it calls `clock.end(requestedAt)` when it has taken effect. */
export interface OkResponse<T> extends RequestTimes {
  value: T;
}

export type Send = <T>(request: ServiceRequest<T>, signal: AbortSignal) => Promise<OkResponse<T>>;

const FIRST_BACKOFF_MS = 500;
/** A clock may be so far ahead of ours without being doubted: less than settles a day. */
const AHEAD_MS = 60_000;

/** Asks until there is an answer, or a reason to stop asking. */
export function createSend(settings: RequestSettings): Send {
  const { transport, limiter, clock, routes, now, sleep } = settings;

  async function attempt<T>(request: ServiceRequest<T>, signal: AbortSignal): Promise<OkResponse<T> | Failure> {
    const { route } = request;
    request.onSend?.();
    const requestedAt = clock.lease();
    const sentMs = settings.wallNow();
    const startMs = now();
    let awaited = false;
    let good = false;
    try {
      settings.onRequest();
      const response = await transport.get(request.path, request.token, signal, () => {
        awaited = true;
        settings.onAwaited(1);
      });
      const outcome = readResponse(request, response, now());
      if ('error' in outcome && outcome.error.kind === 'redirected') settings.onUnreached(codeOfRedirect(response.headers), startMs);
      else if (speaksTlsAlone(response)) settings.onUnreached('TLS', startMs);
      else settings.onReached();
      // What a proxy answers says nothing of the route, and shows the proxy's clock.
      const isOfService = 'value' in outcome || isVerdict(outcome.error);
      if (isOfService) routes.note(`GET ${route}`, response.status, 'value' in outcome && request.isDoubtful?.(outcome.value));
      const dateMs = findDateMs(response.headers);
      // A single answer that is ahead of all others settles no day that they do not know yet.
      const knownMs = settings.wallNow() + Math.max(0, settings.serviceClock.aheadMs ?? 0) + AHEAD_MS;
      if (isOfService) settings.serviceClock.note(dateMs, { sentMs, receivedMs: settings.wallNow() });
      if (!('value' in outcome)) return outcome;
      good = true;
      return {
        value: outcome.value,
        requestedAt,
        readAt: Math.floor(sentMs * 1000),
        serviceAt: dateMs === undefined ? null : Math.min(dateMs, knownMs) * 1000,
      };
    } catch (error) {
      if (!(error instanceof TransportError)) throw error;
      if (error.code !== undefined) settings.onUnreached(error.code, startMs);
      return { error: new ServiceError(error.kind, route, error.message), again: error.again };
    } finally {
      if (awaited) settings.onAwaited(-1);
      if (!good) clock.release(requestedAt);
    }
  }

  async function enter({ route, token, lane }: ServiceRequest<unknown>, signal: AbortSignal): Promise<Permit> {
    try {
      return await limiter.acquire(token, signal, lane);
    } catch (error) {
      throw signal.aborted ? stopped(route) : error;
    }
  }

  async function sleepThrough(ms: number, route: string, signal: AbortSignal): Promise<void> {
    try {
      await sleep(ms, signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    if (signal.aborted) throw stopped(route);
  }

  return async <T>(request: ServiceRequest<T>, signal: AbortSignal): Promise<OkResponse<T>> => {
    const { route, releaseWhile = wait => wait() } = request;
    if (!/^[\x21-\x7e]+$/.test(request.token)) {
      throw new ServiceError('unauthorized', route, 'not asked: the token is empty or holds characters that no header can carry');
    }
    let permit = await enter(request, signal);
    let waited = 0;
    let sleptUntil = Number.NEGATIVE_INFINITY;
    // A timer may fire a moment early; what was slept through is over all the same.
    const moment = () => Math.max(now(), sleptUntil);
    const wait = async (ms: number, reason: ServiceError) => {
      if (waited + ms > settings.maxWaitMs) throw reason;
      const release = moment() + ms;
      const sleepNow = () => sleepThrough(ms, route, signal);
      if (reason.retryAfterMs === undefined) {
        settings.onWait(ms);
        await sleepNow();
      } else {
        // The places are for asking: whoever stood in the row behind one that waits could not stand aside.
        permit.release();
        const slept = releaseWhile(sleepNow);
        if (!slept) throw reason;
        settings.onWait(ms);
        await slept;
        permit = await enter(request, signal);
      }
      waited += ms;
      sleptUntil = release;
    };

    try {
      for (let retries = 0; ; ) {
        const closedMs = permit.closedUntil() - moment();
        if (closedMs > 0) {
          const details = { status: 429, retryAfterMs: closedMs };
          await wait(closedMs, new ServiceError('rate_limited', route, `asked to wait ${Math.ceil(closedMs / 1000)} s`, details));
          continue;
        }
        if (signal.aborted) throw stopped(route);
        const outcome = await attempt(request, signal);
        if ('value' in outcome) return outcome;
        const { error, tier } = outcome;
        if (tier) {
          permit.close(tier, moment() + error.retryAfterMs!);
          continue;
        }
        if (!outcome.again) throw error;
        if (retries === settings.retries) {
          if (retries > 0) error.message += `, after ${retries + 1} attempts`;
          throw error;
        }
        const backoffMs = FIRST_BACKOFF_MS * 2 ** retries * (0.5 + settings.random() / 2);
        retries += 1;
        await wait(Math.max(backoffMs, error.retryAfterMs ?? 0), error);
      }
    } finally {
      permit.release();
    }
  };
}

function stopped(route: string): ServiceError {
  return new ServiceError('stopped', route, 'stopped');
}
