import type { DuckDBConnection } from '@duckdb/node-api';
import { readRows } from './database.ts';
import type { LedgerEntry } from './literals.ts';
import type { Drift } from './parse-document.ts';

/** Adds what was observed to the counts in `sync.drift`. Paths only: a value would be health data. */
export async function driftEntries(
  connection: DuckDBConnection,
  observed: readonly { collection: string; drift: readonly Drift[] }[],
  now: number,
): Promise<LedgerEntry[]> {
  const counts = new Map<string, number>();
  for (const { collection, drift } of observed) {
    for (const { path, kind } of drift) {
      const key = JSON.stringify([collection, path, kind]);
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
  }
  if (!counts.size) return [];
  const known = new Map(
    (await readRows(connection, 'SELECT collection, path, kind, documents, first_seen_at FROM sync.drift')).map(
      ([collection, path, kind, documents, first]) => [
        JSON.stringify([collection, path, kind]),
        { documents: documents as number, first: first as number },
      ],
    ),
  );
  return [...counts].map(([key, count]) => {
    const [collection, path, kind] = JSON.parse(key) as [string, string, string];
    const before = known.get(key);
    return {
      table: 'sync.drift',
      key: { collection, path, kind },
      row: { documents: (before?.documents ?? 0) + count, first_seen_at: before?.first ?? now, last_seen_at: now },
    };
  });
}
