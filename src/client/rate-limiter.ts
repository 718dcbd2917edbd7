/** Which limit a 429 speaks of. */
export type Tier = 'token' | 'application';

/** The right of one request to be under way. */
export interface Permit {
  /** When both limits are open again; a moment in the past when they are. */
  closedUntil(): number;
  /** Closes one limit for everybody behind it; never opens one sooner than was said before. */
  close(tier: Tier, until: number): void;
  /** Hands the place to the next in the row. Harmless when repeated. */
  release(): void;
}

/** Live requests (an event's, while somebody waits to see it) go before bulk ones. */
export type RequestLane = 'live' | 'bulk';

/** A limit for each token and one for the application. */
export interface RateLimiter {
  /** Waits for one of the token's places, in each lane first come, first served. Rejects when the signal aborts. */
  acquire(token: string, signal: AbortSignal, lane?: RequestLane): Promise<Permit>;
}

interface TokenLimit {
  closedUntil: number;
  inside: Record<RequestLane, number>;
  rows: Record<RequestLane, (() => void)[]>;
}

/**
 * A request that waits for a closed limit to open releases its permit and acquires another: at most so many ask again when it opens.
 * @param options.reservedForLive places of each token that bulk requests leave free, but for one: a long page must not hold up an event
 */
export function createRateLimiter(options: { requestsPerToken?: number; reservedForLive?: number; now: () => number }): RateLimiter {
  const { requestsPerToken = 4, reservedForLive = 0, now } = options;
  const bulkPlaces = Math.max(1, requestsPerToken - reservedForLive);
  const limiter = new Map<string, TokenLimit>();
  let applicationClosedUntil = Number.NEGATIVE_INFINITY;

  const countInside = ({ inside }: TokenLimit) => inside.live + inside.bulk;
  const hasPlace = (limit: TokenLimit, lane: RequestLane) =>
    countInside(limit) < requestsPerToken && (lane === 'live' || limit.inside.bulk < bulkPlaces);

  function ensureLimit(token: string): TokenLimit {
    const known = limiter.get(token);
    if (known) return known;
    forgetIdle();
    const limit: TokenLimit = { closedUntil: Number.NEGATIVE_INFINITY, inside: { live: 0, bulk: 0 }, rows: { live: [], bulk: [] } };
    limiter.set(token, limit);
    return limit;
  }

  /** Tokens are replaced every day: one that nobody uses is not kept in memory. */
  function forgetIdle(): void {
    for (const [token, limit] of limiter) {
      if (countInside(limit) === 0 && limit.closedUntil <= now()) limiter.delete(token);
    }
  }

  function acquirePlace(limit: TokenLimit, signal: AbortSignal, lane: RequestLane): Promise<void> | undefined {
    if (hasPlace(limit, lane)) {
      limit.inside[lane]++;
      return undefined;
    }
    const row = limit.rows[lane];
    return new Promise((resolve, reject) => {
      const called = () => {
        signal.removeEventListener('abort', stopped);
        limit.inside[lane]++;
        resolve();
      };
      const stopped = () => {
        row.splice(row.indexOf(called), 1);
        reject(signal.reason);
      };
      signal.addEventListener('abort', stopped, { once: true });
      row.push(called);
    });
  }

  function callNext(limit: TokenLimit): void {
    for (const lane of ['live', 'bulk'] as const) {
      while (limit.rows[lane].length && hasPlace(limit, lane)) limit.rows[lane].shift()!();
    }
  }

  return {
    async acquire(token, signal, lane = 'bulk') {
      signal.throwIfAborted();
      const limit = ensureLimit(token);
      await acquirePlace(limit, signal, lane);
      let inside = true;
      return {
        closedUntil: () => Math.max(limit.closedUntil, applicationClosedUntil),
        close(tier, until) {
          if (tier === 'application') applicationClosedUntil = Math.max(applicationClosedUntil, until);
          else limit.closedUntil = Math.max(limit.closedUntil, until);
        },
        release() {
          if (!inside) return;
          inside = false;
          limit.inside[lane]--;
          callNext(limit);
        },
      };
    },
  };
}
