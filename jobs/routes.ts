import type { RouteMemory } from '../src/client/client.ts';
import type { Warehouse } from '../src/warehouse/warehouse.ts';

const HOUR_MS = 3_600_000;

/**
 * What the service's routes answered, kept in `sync.routes`. A 404 means "gone" only on a route that has answered before.
 * @param now milliseconds since the epoch
 */
export async function openRouteMemory(warehouse: Warehouse, now: () => number, onError: (error: unknown) => void): Promise<RouteMemory> {
  const rows = await warehouse.read('SELECT route, last_status, last_200_at FROM sync.routes');
  const known = new Map(rows.map(([route, status, at]) => [route as string, { status: status as number, at: at as number | null }]));
  return {
    hasAnswered: route => known.get(route)?.at != null,
    note(route, status) {
      const before = known.get(route);
      const at = status === 200 ? now() * 1000 : (before?.at ?? null);
      // Each answer would be a commit: only what changes, or was last noted an hour ago, is written.
      const fresh = before?.status === status && (before.at ?? 0) > (now() - HOUR_MS) * 1000;
      if (fresh || (before?.status === status && status !== 200)) return;
      known.set(route, { status, at });
      const row = { last_status: status, last_200_at: at };
      warehouse.record([{ table: 'sync.routes', key: { route }, row }]).catch(onError);
    },
  };
}
