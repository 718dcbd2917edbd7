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
  const seen = new Map<string, { documents: number; example: string }>();
  for (const { collection, drift } of observed) {
    for (const { path, kind, example } of drift) {
      const key = JSON.stringify([collection, path, kind]);
      const before = seen.get(key);
      if (before) before.documents++;
      else seen.set(key, { documents: 1, example });
    }
  }
  if (!seen.size) return [];
  const known = new Map(
    (await readRows(connection, 'SELECT collection, path, kind, documents, first_seen_at, example FROM sync.drift')).map(
      ([collection, path, kind, documents, first, example]) => [
        JSON.stringify([collection, path, kind]),
        { documents: documents as number, first: first as number, example: example as string | null },
      ],
    ),
  );
  return [...seen].map(([key, { documents, example }]) => {
    const [collection, path, kind] = JSON.parse(key) as [string, string, string];
    const before = known.get(key);
    return {
      table: 'sync.drift',
      key: { collection, path, kind },
      row: {
        documents: (before?.documents ?? 0) + documents,
        first_seen_at: before?.first ?? now,
        last_seen_at: now,
        example: before?.example ?? example,
      },
    };
  });
}
