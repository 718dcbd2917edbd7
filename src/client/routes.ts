/** Which routes this service is known to have. A route is `GET` and a path, with `{document_id}` for an id. */
export interface RouteMemory {
  /** Whether the route has ever answered 200 at this service; true as soon as that was noted. */
  hasAnswered(route: string): boolean;
  /** Whether any route has. */
  hasAnsweredAny(): boolean;
  /** @param isDoubtful of a 200 that anything might give: a route that has never answered otherwise has answered when it says so twice */
  note(route: string, status: number, isDoubtful?: boolean): void;
}

/** How long after the first doubtful answer another one counts. */
const CONFIRMS_AFTER_MS = 300_000;

/**
 * What a doubtful 200 of a route is worth, in milliseconds of this machine's clock.
 * @param since when the first one came, of which no 404 has come since
 * @returns since when it is doubtful now; undefined where it is proven
 */
export function doubtfulSince(since: number | undefined, nowMs: number): number | undefined {
  // A clock that was set back must not keep the second from ever counting.
  if (since === undefined || since > nowMs) return nowMs;
  return nowMs - since < CONFIRMS_AFTER_MS ? since : undefined;
}

/** A memory that lasts as long as the client. */
export function createRouteMemory(now: () => number = Date.now): RouteMemory {
  const answered = new Set<string>();
  const doubtful = new Map<string, number>();
  return {
    hasAnswered: route => answered.has(route),
    hasAnsweredAny: () => answered.size > 0,
    note(route, status, isDoubtful = false) {
      if (status === 404) doubtful.delete(route);
      if (status !== 200) return;
      const since = isDoubtful ? doubtfulSince(doubtful.get(route), now()) : undefined;
      if (since === undefined) answered.add(route);
      else doubtful.set(route, since);
    },
  };
}
