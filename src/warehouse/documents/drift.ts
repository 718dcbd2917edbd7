import type { DuckDBConnection } from '@duckdb/node-api';
import type { LedgerEntry } from '../sql.ts';
import { quoteText } from '../sql.ts';
import { readRows } from '../store/database.ts';
import { type Drift, OTHER_PATHS } from './parse-document.ts';

/** Told apart in one collection: a service that names its fields by chance must not fill the ledger. */
const MOST_PATHS = 1000;

/** Adds what was observed to the counts in `sync.drift`. Paths only: a value would be health data. */
export async function driftEntries(
  connection: DuckDBConnection,
  observed: readonly { collection: string; drift: readonly Drift[] }[],
  now: number,
): Promise<LedgerEntry[]> {
  const seen = new Map<string, { documents: number; example: string }>();
  const count = (key: string, documents: number, example: string) => {
    const before = seen.get(key);
    if (before) before.documents += documents;
    else seen.set(key, { documents, example });
  };
  for (const { collection, drift } of observed) {
    for (const { path, kind, example } of drift) count(JSON.stringify([collection, path, kind]), 1, example);
  }
  if (!seen.size) return [];
  const { known, sizes } = await readKnown(connection, [...seen.keys()]);
  for (const [key, { documents, example }] of [...seen]) {
    const [collection, path, kind] = JSON.parse(key) as [string, string, string];
    if (known.has(key) || path === OTHER_PATHS) continue;
    const size = sizes.get(collection) ?? 0;
    if (size < MOST_PATHS) sizes.set(collection, size + 1);
    else {
      seen.delete(key);
      count(JSON.stringify([collection, OTHER_PATHS, kind]), documents, example);
    }
  }
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

interface Known {
  documents: number;
  first: number;
  example: string | null;
}

/** What is counted already of these paths and of what is too various, and how many paths each collection has. */
async function readKnown(
  connection: DuckDBConnection,
  keys: readonly string[],
): Promise<{ known: Map<string, Known>; sizes: Map<string, number> }> {
  const wanted = keys.map(key => `(${(JSON.parse(key) as string[]).map(quoteText).join(', ')})`);
  const rows = await readRows(
    connection,
    `SELECT collection, path, kind, documents, first_seen_at, example FROM sync.drift
     SEMI JOIN (VALUES ${wanted.join(', ')}) wanted (collection, path, kind) USING (collection, path, kind)
     UNION ALL SELECT collection, path, kind, documents, first_seen_at, example FROM sync.drift WHERE path = '${OTHER_PATHS}'
     UNION ALL SELECT collection, NULL, NULL, count(*), NULL, NULL FROM sync.drift GROUP BY collection`,
  );
  const known = new Map<string, Known>();
  const sizes = new Map<string, number>();
  for (const [collection, path, kind, documents, first, example] of rows) {
    if (path === null) sizes.set(collection as string, documents as number);
    else {
      known.set(JSON.stringify([collection, path, kind]), {
        documents: documents as number,
        first: first as number,
        example: example as string | null,
      });
    }
  }
  return { known, sizes };
}
