import type { RouteMemory } from '../src/client/client.ts';
import type { LedgerEntry } from '../src/warehouse/literals.ts';
import type { Warehouse } from '../src/warehouse/warehouse.ts';

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
  const rows = await warehouse.read('SELECT service, route, last_status, last_200_at FROM sync.routes');
  const nobodys = rows.filter(([owner]) => owner === null);
  const ours = rows.filter(([owner]) => owner === service);
  const known = new Map(
    [...nobodys, ...ours].map(([, route, status, at]) => [route as string, { status: status as number, at: at as number | null }]),
  );
  const entryOf = (route: string): LedgerEntry => {
    const { status, at } = known.get(route)!;
    return { table: 'sync.routes', key: { service, route }, row: { last_status: status, last_200_at: at } };
  };
  if (nobodys.length) {
    const leaving = nobodys.map(([, route]) => ({ table: 'sync.routes', key: { service: null, route: route as string } }));
    await warehouse.record([...leaving, ...[...known.keys()].map(entryOf)]);
  }
  return {
    hasAnswered: route => known.get(route)?.at != null,
    hasAnsweredAny: () => [...known.values()].some(({ at }) => at !== null),
    note(route, status) {
      const before = known.get(route);
      const at = status === 200 ? now() * 1000 : (before?.at ?? null);
      // Each answer would be a commit: only what changes, or was last noted an hour ago, is written.
      const fresh = before?.status === status && (before.at ?? 0) > (now() - HOUR_MS) * 1000;
      if (fresh || (before?.status === status && status !== 200)) return;
      known.set(route, { status, at });
      warehouse.record([entryOf(route)]).catch(onError);
    },
  };
}
