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

interface TokenLimit {
  closedUntil: number;
  inside: Record<RequestLane, number>;
  rows: Record<RequestLane, (() => void)[]>;
}

/**
 * A limit for each token and one for the application. A request that waits for a closed limit to open releases its permit and acquires
 * another: at most so many ask again when it opens.
 */
export class RateLimiter {
  readonly #places: number;
  readonly #bulkPlaces: number;
  readonly #now: () => number;
  readonly #limits = new Map<string, TokenLimit>();
  #applicationClosedUntil = Number.NEGATIVE_INFINITY;

  /** @param options.reservedForLive places of each token that bulk requests leave free, but for one: a long page must not hold up an event */
  constructor(options: { requestsPerToken?: number | undefined; reservedForLive?: number | undefined; now: () => number }) {
    this.#places = options.requestsPerToken || 4;
    this.#bulkPlaces = Math.max(1, this.#places - (options.reservedForLive ?? 0));
    this.#now = options.now;
  }

  /** Waits for one of the token's places, in each lane first come, first served. Rejects when the signal aborts. */
  async acquire(token: string, signal: AbortSignal, lane: RequestLane = 'bulk'): Promise<Permit> {
    signal.throwIfAborted();
    const limit = this.#ensureLimit(token);
    await this.#acquirePlace(limit, signal, lane);
    let inside = true;
    return {
      closedUntil: () => Math.max(limit.closedUntil, this.#applicationClosedUntil),
      close: (tier, until) => {
        if (tier === 'application') this.#applicationClosedUntil = Math.max(this.#applicationClosedUntil, until);
        else limit.closedUntil = Math.max(limit.closedUntil, until);
      },
      release: () => {
        if (!inside) return;
        inside = false;
        limit.inside[lane]--;
        this.#callNext(limit);
      },
    };
  }

  #hasPlace(limit: TokenLimit, lane: RequestLane): boolean {
    return countInside(limit) < this.#places && (lane === 'live' || limit.inside.bulk < this.#bulkPlaces);
  }

  #ensureLimit(token: string): TokenLimit {
    const known = this.#limits.get(token);
    if (known) return known;
    this.#forgetIdle();
    const limit: TokenLimit = { closedUntil: Number.NEGATIVE_INFINITY, inside: { live: 0, bulk: 0 }, rows: { live: [], bulk: [] } };
    this.#limits.set(token, limit);
    return limit;
  }

  /** Tokens are replaced every day: one that nobody uses is not kept in memory. */
  #forgetIdle(): void {
    for (const [token, limit] of this.#limits) {
      if (countInside(limit) === 0 && limit.closedUntil <= this.#now()) this.#limits.delete(token);
    }
  }

  #acquirePlace(limit: TokenLimit, signal: AbortSignal, lane: RequestLane): Promise<void> | undefined {
    if (this.#hasPlace(limit, lane)) {
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

  #callNext(limit: TokenLimit): void {
    for (const lane of ['live', 'bulk'] as const) {
      while (limit.rows[lane].length && this.#hasPlace(limit, lane)) limit.rows[lane].shift()?.();
    }
  }
}

const countInside = ({ inside }: TokenLimit) => inside.live + inside.bulk;
