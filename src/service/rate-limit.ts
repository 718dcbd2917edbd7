import { Problem } from './problem.ts';

/** So many requests in so many seconds. */
export interface RateLimit {
  requests: number;
  seconds: number;
}

/** One limit with a window for each key. */
export interface RateCounter {
  /** Throws 429 when the window of `key` is used up; counts nothing. */
  check(key: string): void;
  count(key: string): void;
}

const MOST_WINDOWS = 100_000;

/**
 * Counts in fixed windows that start with their first request. rate-limiter-flexible reads `Date.now` and sets timers of its own, so
 * it cannot follow the injected clock. Of very many keys the window that began first is forgotten. Undefined where the limit is off.
 */
export function createRateCounter(
  limit: RateLimit | 'off',
  tier: 'token' | 'application' | 'address',
  clock: () => Date,
): RateCounter | undefined {
  if (limit === 'off') return undefined;
  const windows = new Map<string, { start: number; requests: number }>();
  const length = limit.seconds * 1000;

  /** A window that starts in the future is one from before the clock was set back. */
  function currentWindow(key: string): { start: number; requests: number } {
    const now = clock().getTime();
    const known = windows.get(key);
    if (known && known.start <= now && now < known.start + length) return known;
    const fresh = { start: now, requests: 0 };
    windows.delete(key);
    windows.set(key, fresh);
    const [oldest = key] = windows.keys();
    if (windows.size > MOST_WINDOWS) windows.delete(oldest);
    return fresh;
  }

  return {
    check(key) {
      const window = currentWindow(key);
      if (window.requests < limit.requests) return;
      const end = window.start + length;
      throw new Problem(429, `Rate limit exceeded: ${limit.requests} requests in ${limit.seconds} seconds for each ${tier}.`, {
        'Retry-After': String(Math.max(1, Math.ceil((end - clock().getTime()) / 1000))),
        'X-RateLimit-Limit': String(limit.requests),
        'X-RateLimit-Window': String(limit.seconds),
        'X-RateLimit-Reset': String(Math.ceil(end / 1000)),
        'X-RateLimit-Tier': tier,
      });
    },
    count(key) {
      currentWindow(key).requests += 1;
    },
  };
}
