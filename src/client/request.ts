import { type Failure, type Question, readAnswer } from './answer.ts';
import { isVerdict, ServiceError } from './error.ts';
import type { Gates, Pass } from './gate.ts';
import { findDateMs } from './retry-after.ts';
import type { RouteMemory } from './routes.ts';
import type { ServiceClock } from './service-clock.ts';
import { type Transport, TransportError } from './transport.ts';
import { codeOfRedirect, speaksTlsAlone } from './unreachable.ts';

/** The order guard of the warehouse: every moment that began must end. Moments are microseconds. */
export interface RequestClock {
  begin(): number;
  end(moment: number): void;
}

export interface RequestSettings {
  transport: Transport;
  gates: Gates;
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
export interface RequestMoments {
  /** The moment of the request clock. */
  requestedAt: number;
  /** By the clock of this machine. */
  readAt: number;
  /** By the service's: the `Date` of its answer; null where it shows none. */
  serviceAt: number | null;
}

/** A good answer. Whoever has it calls `clock.end(requestedAt)` when it has taken effect. */
export interface Good<T> extends RequestMoments {
  value: T;
}

export type Ask = <T>(question: Question<T>, signal: AbortSignal) => Promise<Good<T>>;

const FIRST_BACKOFF_MS = 500;
/** A clock may be so far ahead of ours without being doubted: less than settles a day. */
const AHEAD_MS = 60_000;

/** Asks until there is an answer, or a reason to stop asking. */
export function createAsk(settings: RequestSettings): Ask {
  const { transport, gates, clock, routes, now, sleep } = settings;

  async function attempt<T>(question: Question<T>, signal: AbortSignal): Promise<Good<T> | Failure> {
    const { route } = question;
    question.onSend?.();
    const requestedAt = clock.begin();
    const sentMs = settings.wallNow();
    const startMs = now();
    let awaited = false;
    let good = false;
    try {
      settings.onRequest();
      const answer = await transport.get(question.path, question.token, signal, () => {
        awaited = true;
        settings.onAwaited(1);
      });
      const outcome = readAnswer(question, answer, now());
      if ('error' in outcome && outcome.error.kind === 'redirected') settings.onUnreached(codeOfRedirect(answer.headers), startMs);
      else if (speaksTlsAlone(answer)) settings.onUnreached('TLS', startMs);
      else settings.onReached();
      // What a proxy answers says nothing of the route, and shows the proxy's clock.
      const isOfService = 'value' in outcome || isVerdict(outcome.error);
      if (isOfService) routes.note(`GET ${route}`, answer.status, 'value' in outcome && question.isDoubtful?.(outcome.value));
      const dateMs = findDateMs(answer.headers);
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
      if (!good) clock.end(requestedAt);
    }
  }

  async function enter({ route, token, lane }: Question<unknown>, signal: AbortSignal): Promise<Pass> {
    try {
      return await gates.enter(token, signal, lane);
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

  return async <T>(question: Question<T>, signal: AbortSignal): Promise<Good<T>> => {
    const { route, aside = wait => wait() } = question;
    if (!/^[\x21-\x7e]+$/.test(question.token)) {
      throw new ServiceError('unauthorized', route, 'not asked: the token is empty or holds characters that no header can carry');
    }
    let pass = await enter(question, signal);
    let waited = 0;
    let sleptUntil = Number.NEGATIVE_INFINITY;
    // A timer may fire a moment early; what was slept through is over all the same.
    const moment = () => Math.max(now(), sleptUntil);
    const wait = async (ms: number, reason: ServiceError) => {
      if (waited + ms > settings.maxWaitMs) throw reason;
      const end = moment() + ms;
      const sleepNow = () => sleepThrough(ms, route, signal);
      if (reason.retryAfterMs === undefined) {
        settings.onWait(ms);
        await sleepNow();
      } else {
        // The places are for asking: whoever stood in the row behind one that waits could not stand aside.
        pass.leave();
        const slept = aside(sleepNow);
        if (!slept) throw reason;
        settings.onWait(ms);
        await slept;
        pass = await enter(question, signal);
      }
      waited += ms;
      sleptUntil = end;
    };

    try {
      for (let retries = 0; ; ) {
        const closedMs = pass.closedUntil() - moment();
        if (closedMs > 0) {
          const details = { status: 429, retryAfterMs: closedMs };
          await wait(closedMs, new ServiceError('rate_limited', route, `asked to wait ${Math.ceil(closedMs / 1000)} s`, details));
          continue;
        }
        if (signal.aborted) throw stopped(route);
        const outcome = await attempt(question, signal);
        if ('value' in outcome) return outcome;
        const { error, tier } = outcome;
        if (tier) {
          pass.close(tier, moment() + error.retryAfterMs!);
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
      pass.leave();
    }
  };
}

function stopped(route: string): ServiceError {
  return new ServiceError('stopped', route, 'stopped');
}
