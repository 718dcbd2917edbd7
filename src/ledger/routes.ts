import type { RouteMemory } from '../client/client.ts';
import { doubtfulSince } from '../client/routes.ts';
import { number, orNull, type Readable, type Row, readRows, readValue, text } from '../warehouse/rows.ts';
import type { LedgerEntry } from '../warehouse/sql.ts';
import { quoteText } from '../warehouse/sql.ts';
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
  const rows = await readRows(warehouse, ROUTE, 'SELECT service, route, last_status, last_200_at, doubtful_since FROM sync.routes');
  const nobodys = rows.filter(row => row.service === null);
  const ours = rows.filter(row => row.service === service);
  const known = new Map([...nobodys, ...ours].map(({ route, status, at, since }) => [route, { status, at, since }]));
  const entryOf = (route: string, { status, at, since }: Omit<Noted, 'service' | 'route'>): LedgerEntry => ({
    table: 'sync.routes',
    key: { service, route },
    row: { last_status: status, last_200_at: at, doubtful_since: since },
  });
  const note = (route: string, noted: Omit<Noted, 'service' | 'route'>) => {
    known.set(route, noted);
    warehouse.record([entryOf(route, noted)]).catch(onError);
  };
  if (nobodys.length) {
    const leaving = nobodys.map(({ route }) => ({ table: 'sync.routes', key: { service: null, route } }));
    await warehouse.record([...leaving, ...[...known].map(([route, noted]) => entryOf(route, noted))]);
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
          note(route, { status, at: null, since });
          return;
        }
      }
      const at = status === 200 ? now() * 1000 : (before?.at ?? null);
      // Each answer would be a commit: only what changes, or was last noted an hour ago, is written.
      const fresh = before?.status === status && (before.at ?? 0) > (now() - HOUR_MS) * 1000;
      if (fresh || (before?.status === status && status !== 200)) return;
      const since = status === 200 || status === 404 ? null : (before?.since ?? null);
      note(route, { status, at, since });
    },
  };
}

const ROUTE = { service: orNull(text), route: text, status: number, at: orNull(number), since: orNull(number) };

type Noted = Row<typeof ROUTE>;

/** Which heart-rate path last answered: the sandbox one only where the plain one never did. */
export async function readHeartRatePath(warehouse: Readable, service: string | undefined): Promise<string | null> {
  const route = await readValue(
    warehouse,
    text,
    `SELECT route FROM sync.routes WHERE route LIKE '%/heartrate' AND last_200_at IS NOT NULL
     AND coalesce(service = ${quoteText(service ?? '')}, true) ORDER BY last_200_at DESC LIMIT 1`,
  );
  return route?.replace(/^GET /, '') ?? null;
}
