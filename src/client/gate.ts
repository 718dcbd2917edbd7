/** Which limit a 429 speaks of. */
export type Tier = 'token' | 'application';

/** The right of one request to be under way. */
export interface Pass {
  /** When both gates are open again; a moment in the past when they are. */
  closedUntil(): number;
  /** Closes one gate for everybody behind it; never opens one sooner than was said before. */
  close(tier: Tier, until: number): void;
  /** Hands the place to the next in the row. Harmless when repeated. */
  leave(): void;
}

/** Live requests (an event's, while somebody waits to see it) go before bulk ones. */
export type RequestLane = 'live' | 'bulk';

/** One gate for each token and one for the application. */
export interface Gates {
  /** Waits for one of the token's places, in each lane first come, first served. Rejects when the signal aborts. */
  enter(token: string, signal: AbortSignal, lane?: RequestLane): Promise<Pass>;
}

interface TokenGate {
  closedUntil: number;
  inside: Record<RequestLane, number>;
  rows: Record<RequestLane, (() => void)[]>;
}

/**
 * Makes the gates. A request that waits for a closed one to open leaves its place and enters again: at most so many ask again when it opens.
 * @param options.reservedForLive places of each token that bulk requests leave free, but for one: a long page must not hold up an event
 */
export function createGates(options: { requestsPerToken?: number; reservedForLive?: number; now: () => number }): Gates {
  const { requestsPerToken = 4, reservedForLive = 0, now } = options;
  const bulkPlaces = Math.max(1, requestsPerToken - reservedForLive);
  const gates = new Map<string, TokenGate>();
  let applicationClosedUntil = Number.NEGATIVE_INFINITY;

  const countInside = ({ inside }: TokenGate) => inside.live + inside.bulk;
  const hasPlace = (gate: TokenGate, lane: RequestLane) =>
    countInside(gate) < requestsPerToken && (lane === 'live' || gate.inside.bulk < bulkPlaces);

  function ensureGate(token: string): TokenGate {
    const known = gates.get(token);
    if (known) return known;
    forgetIdle();
    const gate: TokenGate = { closedUntil: Number.NEGATIVE_INFINITY, inside: { live: 0, bulk: 0 }, rows: { live: [], bulk: [] } };
    gates.set(token, gate);
    return gate;
  }

  /** Tokens are replaced every day: one that nobody uses is not kept in memory. */
  function forgetIdle(): void {
    for (const [token, gate] of gates) {
      if (countInside(gate) === 0 && gate.closedUntil <= now()) gates.delete(token);
    }
  }

  function takePlace(gate: TokenGate, signal: AbortSignal, lane: RequestLane): Promise<void> | undefined {
    if (hasPlace(gate, lane)) {
      gate.inside[lane]++;
      return undefined;
    }
    const row = gate.rows[lane];
    return new Promise((resolve, reject) => {
      const called = () => {
        signal.removeEventListener('abort', stopped);
        gate.inside[lane]++;
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

  function callNext(gate: TokenGate): void {
    for (const lane of ['live', 'bulk'] as const) {
      while (gate.rows[lane].length && hasPlace(gate, lane)) gate.rows[lane].shift()!();
    }
  }

  return {
    async enter(token, signal, lane = 'bulk') {
      signal.throwIfAborted();
      const gate = ensureGate(token);
      await takePlace(gate, signal, lane);
      let inside = true;
      return {
        closedUntil: () => Math.max(gate.closedUntil, applicationClosedUntil),
        close(tier, until) {
          if (tier === 'application') applicationClosedUntil = Math.max(applicationClosedUntil, until);
          else gate.closedUntil = Math.max(gate.closedUntil, until);
        },
        leave() {
          if (!inside) return;
          inside = false;
          gate.inside[lane]--;
          callNext(gate);
        },
      };
    },
  };
}
