import type { RouteMemory } from '../client/client.ts';
import { doubtfulSince } from '../client/routes.ts';
import type { LedgerEntry } from '../warehouse/sql.ts';
import type { Warehouse } from '../warehouse/warehouse.ts';

const HOUR_MS = 3_600_000;

/**
 * What the routes of one service answered, kept in `sync.routes`. A 404 means "gone" only on a route that has answered before. What was
 * noted before services were told apart belongs to the first that is asked.
 * @param service its base address
 * @param now milliseconds since the epoch
 */
export async function openRouteMemory(
  warehouse: Warehouse,
  service: string,
  now: () => number,
  onError: (error: unknown) => void,
): Promise<RouteMemory> {
  const rows = await warehouse.read('SELECT service, route, last_status, last_200_at, doubtful_since FROM sync.routes');
  const nobodys = rows.filter(([owner]) => owner === null);
  const ours = rows.filter(([owner]) => owner === service);
  const known = new Map(
    [...nobodys, ...ours].map(([, route, status, at, since]) => [
      route as string,
      { status: status as number, at: at as number | null, since: since as number | null },
    ]),
  );
  const entryOf = (route: string): LedgerEntry => {
    const { status, at, since } = known.get(route)!;
    return { table: 'sync.routes', key: { service, route }, row: { last_status: status, last_200_at: at, doubtful_since: since } };
  };
  if (nobodys.length) {
    const leaving = nobodys.map(([, route]) => ({ table: 'sync.routes', key: { service: null, route: route as string } }));
    await warehouse.record([...leaving, ...[...known.keys()].map(entryOf)]);
  }
  return {
    hasAnswered: route => known.get(route)?.at != null,
    hasAnsweredAny: () => [...known.values()].some(({ at }) => at !== null),
    note(route, status, isDoubtful = false) {
      const before = known.get(route);
      if (status === 200 && isDoubtful && before?.at == null) {
        const sinceMs = doubtfulSince(before?.since == null ? undefined : before.since / 1000, now());
        if (sinceMs !== undefined) {
          const since = sinceMs * 1000;
          if (since === before?.since) return;
          known.set(route, { status, at: null, since });
          warehouse.record([entryOf(route)]).catch(onError);
          return;
        }
      }
      const at = status === 200 ? now() * 1000 : (before?.at ?? null);
      // Each answer would be a commit: only what changes, or was last noted an hour ago, is written.
      const fresh = before?.status === status && (before.at ?? 0) > (now() - HOUR_MS) * 1000;
      if (fresh || (before?.status === status && status !== 200)) return;
      const since = status === 200 || status === 404 ? null : (before?.since ?? null);
      known.set(route, { status, at, since });
      warehouse.record([entryOf(route)]).catch(onError);
    },
  };
}
