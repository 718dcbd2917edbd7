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

/** One gate for each token and one for the application. */
export interface Gates {
  /** Waits for one of the token's places, first come, first served. Rejects when the signal aborts. */
  enter(token: string, signal: AbortSignal): Promise<Pass>;
}

interface TokenGate {
  closedUntil: number;
  places: number;
  row: (() => void)[];
}

/** Makes the gates. A request that waits at a closed one keeps its place, so that at most so many ask again when it opens. */
export function createGates(options: { requestsPerToken?: number; now: () => number }): Gates {
  const { requestsPerToken = 4, now } = options;
  const gates = new Map<string, TokenGate>();
  let applicationClosedUntil = Number.NEGATIVE_INFINITY;

  function ensureGate(token: string): TokenGate {
    const known = gates.get(token);
    if (known) return known;
    forgetIdle();
    const gate: TokenGate = { closedUntil: Number.NEGATIVE_INFINITY, places: requestsPerToken, row: [] };
    gates.set(token, gate);
    return gate;
  }

  /** Tokens are replaced every day: one that nobody uses is not kept in memory. */
  function forgetIdle(): void {
    for (const [token, gate] of gates) {
      if (gate.places === requestsPerToken && gate.closedUntil <= now()) gates.delete(token);
    }
  }

  function takePlace(gate: TokenGate, signal: AbortSignal): Promise<void> | undefined {
    if (gate.places > 0) {
      gate.places -= 1;
      return undefined;
    }
    return new Promise((resolve, reject) => {
      const called = () => {
        signal.removeEventListener('abort', stopped);
        resolve();
      };
      const stopped = () => {
        gate.row.splice(gate.row.indexOf(called), 1);
        reject(signal.reason);
      };
      signal.addEventListener('abort', stopped, { once: true });
      gate.row.push(called);
    });
  }

  return {
    async enter(token, signal) {
      signal.throwIfAborted();
      const gate = ensureGate(token);
      await takePlace(gate, signal);
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
          const next = gate.row.shift();
          if (next) next();
          else gate.places += 1;
        },
      };
    },
  };
}
