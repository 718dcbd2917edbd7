/** Which routes this service is known to have. A route is `GET` and a path, with `{document_id}` for an id. */
export interface RouteMemory {
  /** Whether the route has ever answered 200 at this service; true as soon as that was noted. */
  hasAnswered(route: string): boolean;
  /** Whether any route has. */
  hasAnsweredAny(): boolean;
  note(route: string, status: number): void;
}

/** A memory that lasts as long as the client. */
export function createRouteMemory(): RouteMemory {
  const answered = new Set<string>();
  return {
    hasAnswered: route => answered.has(route),
    hasAnsweredAny: () => answered.size > 0,
    note(route, status) {
      if (status === 200) answered.add(route);
    },
  };
}
