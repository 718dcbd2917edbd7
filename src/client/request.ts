import { messageOf } from '../base/errors.ts';
import { isVerdict, ServiceError } from './error.ts';
import type { Permit, RateLimiter, Tier } from './rate-limiter.ts';
import { type FailedResponse, readResponse, type ServiceRequest } from './response.ts';
import { findDateMs } from './retry-after.ts';
import type { RouteMemory } from './routes.ts';
import type { ServiceClock } from './service-clock.ts';
import { codeOfRedirect, type ServiceResponse, speaksTlsAlone, type Transport, TransportError } from './transport.ts';

/** The order guard of the warehouse: every moment that began must end. Moments are microseconds. */
export interface RequestClock {
  lease(): number;
  release(moment: number): void;
}

/** Whoever keeps tokens alive: one that is asked with may be of before. What it throws is no word of the service's. */
export interface TokenRenewal {
  /** The token to ask with. */
  current(token: string): Promise<string>;
  /** The service has taken it. */
  accepted(token: string): void;
  /** The service calls it expired: whether there is another one now. */
  renewRefused(token: string): Promise<boolean>;
}

export interface RequestSettings {
  transport: Transport;
  renewal: TokenRenewal | undefined;
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
  /** The status of each answer, whoever gave it; undefined where none came. */
  onAnswer: (status: number | undefined) => void;
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

/** A good answer. Whoever has it calls `done`, once, when it has taken effect. */
export interface OkResponse<T> extends RequestTimes {
  value: T;
  done(): void;
}

const FIRST_BACKOFF_MS = 500;
/** A clock may be so far ahead of ours without being doubted: less than settles a day. */
const AHEAD_MS = 60_000;

/** Asks until there is an answer, or a reason to stop asking. */
export class RequestSender {
  readonly #settings: RequestSettings;

  constructor(settings: RequestSettings) {
    this.#settings = settings;
  }

  async send<T>(request: ServiceRequest<T>, signal: AbortSignal): Promise<OkResponse<T>> {
    const { route, token } = request;
    if (!/^[\x21-\x7e]+$/.test(token)) {
      throw new ServiceError('unauthorized', route, 'not asked: the token is empty or holds characters that no header can carry');
    }
    const turn = new Turn(this.#settings, request, signal);
    await turn.enter();
    try {
      for (let retries = 0, isRenewed = false; ; ) {
        if (await turn.waitForLimits()) continue;
        if (signal.aborted) throw stopped(route);
        const outcome = await this.#attemptRenewed(request, signal);
        if ('value' in outcome) return outcome;
        if (outcome.error.expired && !isRenewed) {
          isRenewed = true;
          if (await this.#renew(request)) continue;
        }
        const { error, again, tier } = outcome;
        if (tier) {
          turn.close(tier, error.retryAfterMs ?? 0);
          continue;
        }
        if (!again) throw error;
        if (retries === this.#settings.retries) {
          if (retries > 0) error.message += `, after ${retries + 1} attempts`;
          throw error;
        }
        const backoffMs = FIRST_BACKOFF_MS * 2 ** retries * (0.5 + this.#settings.random() / 2);
        retries += 1;
        await turn.wait(Math.max(backoffMs, error.retryAfterMs ?? 0), error);
      }
    } finally {
      turn.leave();
    }
  }

  /** Asks with what the token has become. */
  async #attemptRenewed<T>(request: ServiceRequest<T>, signal: AbortSignal): Promise<OkResponse<T> | FailedResponse> {
    const { renewal } = this.#settings;
    if (!renewal) return this.#attempt(request, signal);
    let token: string;
    try {
      token = await renewal.current(request.token);
    } catch (error) {
      return { error: new ServiceError('unavailable', request.route, messageOf(error)), again: false };
    }
    const outcome = await this.#attempt({ ...request, token }, signal);
    if ('value' in outcome || (isVerdict(outcome.error) && outcome.error.kind !== 'unauthorized')) renewal.accepted(token);
    return outcome;
  }

  async #renew({ token, route }: ServiceRequest<unknown>): Promise<boolean> {
    try {
      return (await this.#settings.renewal?.renewRefused(token)) ?? false;
    } catch (error) {
      throw new ServiceError('unavailable', route, `answered 401, and ${messageOf(error)}`, { status: 401 });
    }
  }

  async #attempt<T>(request: ServiceRequest<T>, signal: AbortSignal): Promise<OkResponse<T> | FailedResponse> {
    const { transport, clock, now, wallNow, onRequest, onAnswer, onAwaited, onUnreached } = this.#settings;
    request.onSend?.();
    const requestedAt = clock.lease();
    const sentMs = wallNow();
    const startMs = now();
    let awaited = false;
    let good = false;
    try {
      onRequest();
      const response = await transport.get(request.path, request.token, signal, () => {
        awaited = true;
        onAwaited(1);
      });
      onAnswer(response.status);
      const outcome = readResponse(request, response, now());
      const serviceAt = this.#learn(request, response, outcome, { sentMs, startMs });
      if (!('value' in outcome)) return outcome;
      good = true;
      return { value: outcome.value, requestedAt, readAt: Math.floor(sentMs * 1000), serviceAt, done: () => clock.release(requestedAt) };
    } catch (error) {
      if (!(error instanceof TransportError)) throw error;
      onAnswer(undefined);
      if (error.code !== undefined) onUnreached(error.code, startMs);
      return { error: new ServiceError(error.kind, request.route, error.message), again: error.again };
    } finally {
      if (awaited) onAwaited(-1);
      if (!good) clock.release(requestedAt);
    }
  }

  /** Takes from an answer what it shows of the service: that it is reached, its routes and its clock. Gives when the answer was made. */
  #learn<T>(
    { route, isDoubtful }: ServiceRequest<T>,
    response: ServiceResponse,
    outcome: { value: T } | FailedResponse,
    { sentMs, startMs }: { sentMs: number; startMs: number },
  ): number | null {
    const { routes, serviceClock, wallNow, onReached, onUnreached } = this.#settings;
    if ('error' in outcome && outcome.error.kind === 'redirected') onUnreached(codeOfRedirect(response.headers), startMs);
    else if (speaksTlsAlone(response)) onUnreached('TLS', startMs);
    else onReached();
    // What a proxy answers says nothing of the route, and shows the proxy's clock.
    const isOfService = 'value' in outcome || isVerdict(outcome.error);
    if (isOfService) routes.note(`GET ${route}`, response.status, 'value' in outcome && isDoubtful?.(outcome.value));
    const dateMs = findDateMs(response.headers);
    // A single answer that is ahead of all others settles no day that they do not know yet.
    const knownMs = wallNow() + Math.max(0, serviceClock.aheadMs ?? 0) + AHEAD_MS;
    if (isOfService) serviceClock.note(dateMs, { sentMs, receivedMs: wallNow() });
    return dateMs === undefined ? null : Math.min(dateMs, knownMs) * 1000;
  }
}

/** One request's place among those of its token, and what it has waited. */
class Turn {
  readonly #settings: Pick<RequestSettings, 'limiter' | 'maxWaitMs' | 'now' | 'sleep' | 'onWait'>;
  readonly #request: Pick<ServiceRequest<unknown>, 'route' | 'token' | 'lane' | 'releaseWhile'>;
  readonly #signal: AbortSignal;
  #permit: Permit | undefined;
  #waited = 0;
  #sleptUntil = Number.NEGATIVE_INFINITY;

  constructor(settings: RequestSettings, request: Omit<ServiceRequest<never>, 'accept' | 'recognize' | 'isDoubtful'>, signal: AbortSignal) {
    this.#settings = settings;
    this.#request = request;
    this.#signal = signal;
  }

  async enter(): Promise<void> {
    const { route, token, lane } = this.#request;
    try {
      this.#permit = await this.#settings.limiter.acquire(token, this.#signal, lane);
    } catch (error) {
      throw this.#signal.aborted ? stopped(route) : error;
    }
  }

  leave(): void {
    this.#permit?.release();
  }

  close(tier: Tier, ms: number): void {
    this.#permit?.close(tier, this.#moment() + ms);
  }

  /** Whether a limit was closed, and was waited for. */
  async waitForLimits(): Promise<boolean> {
    const closedMs = this.#permit ? this.#permit.closedUntil() - this.#moment() : 0;
    if (closedMs <= 0) return false;
    const message = `asked to wait ${Math.ceil(closedMs / 1000)} s`;
    await this.wait(closedMs, new ServiceError('rate_limited', this.#request.route, message, { status: 429, retryAfterMs: closedMs }));
    return true;
  }

  /** @param reason is thrown where the request must give way instead */
  async wait(ms: number, reason: ServiceError): Promise<void> {
    const { maxWaitMs, onWait } = this.#settings;
    if (this.#waited + ms > maxWaitMs) throw reason;
    const end = this.#moment() + ms;
    if (reason.retryAfterMs === undefined) {
      onWait(ms);
      await this.#sleep(ms);
    } else {
      const { releaseWhile = wait => wait() } = this.#request;
      // The places are for asking: whoever stood in the row behind one that waits could not stand aside.
      this.leave();
      const slept = releaseWhile(() => this.#sleep(ms));
      if (!slept) throw reason;
      onWait(ms);
      await slept;
      await this.enter();
    }
    this.#waited += ms;
    this.#sleptUntil = end;
  }

  /** A timer may fire a moment early; what was slept through is over all the same. */
  #moment(): number {
    return Math.max(this.#settings.now(), this.#sleptUntil);
  }

  async #sleep(ms: number): Promise<void> {
    try {
      await this.#settings.sleep(ms, this.#signal);
    } catch (error) {
      if (!this.#signal.aborted) throw error;
    }
    if (this.#signal.aborted) throw stopped(this.#request.route);
  }
}

function stopped(route: string): ServiceError {
  return new ServiceError('stopped', route, 'stopped');
}
