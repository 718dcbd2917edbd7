import type { DuckDBConnection } from '@duckdb/node-api';
import type { Row } from '../rows.ts';
import { number, orNull, text } from '../rows.ts';
import type { LedgerEntry } from '../sql.ts';
import { textList } from '../sql.ts';
import { select } from '../store/database.ts';
import { type Drift, OTHER_PATHS } from './parse-document.ts';

/** Told apart in one collection: a service that names its fields by chance must not fill the ledger. */
const MOST_PATHS = 1000;

/** What is counted: drift of one kind at one path of a collection. */
interface Counted {
  collection: string;
  path: string;
  kind: Drift['kind'];
  documents: number;
  example: string;
}

const keyOf = ({ collection, path, kind }: { collection: string; path: string; kind: string }) => JSON.stringify([collection, path, kind]);

class Counts extends Map<string, Counted> {
  count(drift: Counted): void {
    const key = keyOf(drift);
    const before = this.get(key);
    if (before) before.documents += drift.documents;
    else this.set(key, drift);
  }
}

/** Adds what was observed to the counts in `sync.drift`. Paths only: a value would be health data. */
export async function driftEntries(
  connection: DuckDBConnection,
  observed: readonly { collection: string; drift: readonly Drift[] }[],
  now: number,
): Promise<LedgerEntry[]> {
  const seen = new Counts();
  for (const { collection, drift } of observed) {
    for (const { path, kind, example } of drift) seen.count({ collection, path, kind, documents: 1, example });
  }
  if (!seen.size) return [];
  const known = new Map((await readKnown(connection, [...seen.values()])).map(row => [keyOf(row), row]));
  const sizes = new Map((await select(connection, SIZE, SIZES)).map(({ collection, paths }) => [collection, paths]));
  for (const [key, drift] of [...seen]) {
    const { collection, path } = drift;
    if (known.has(key) || path === OTHER_PATHS) continue;
    const size = sizes.get(collection) ?? 0;
    if (size < MOST_PATHS) sizes.set(collection, size + 1);
    else {
      seen.delete(key);
      seen.count({ ...drift, path: OTHER_PATHS });
    }
  }
  return [...seen].map(([key, { collection, path, kind, documents, example }]) => {
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

const KNOWN = { collection: text, path: text, kind: text, documents: number, first: number, example: orNull(text) };

/** What is counted already of these paths, and of what is too various. */
function readKnown(connection: DuckDBConnection, counted: readonly Counted[]): Promise<Row<typeof KNOWN>[]> {
  const wanted = counted.map(({ collection, path, kind }) => `(${textList([collection, path, kind])})`);
  return select(
    connection,
    KNOWN,
    `SELECT collection, path, kind, documents, first_seen_at, example FROM sync.drift
     SEMI JOIN (VALUES ${wanted.join(', ')}) wanted (collection, path, kind) USING (collection, path, kind)
     UNION ALL SELECT collection, path, kind, documents, first_seen_at, example FROM sync.drift WHERE path = '${OTHER_PATHS}'`,
  );
}

const SIZE = { collection: text, paths: number };
const SIZES = 'SELECT collection, count(*) FROM sync.drift GROUP BY collection';
