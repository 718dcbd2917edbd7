import type { DuckDBConnection } from '@duckdb/node-api';
import type { Mapping } from '../mapping.ts';
import { readRows } from '../store/database.ts';

/** The newest number of a version and the newest moment that are stored: those of the next versions and requests come after. 0 where there are none. */
export async function readHighWatermark(
  connection: DuckDBConnection,
  mappings: readonly Mapping[],
): Promise<{ sk: number; moment: number }> {
  const tables = mappings.map(({ table }) => `SELECT max(sk) AS sk, max(fetched_at) AS moment FROM "${table}"`);
  const [row] = await readRows(
    connection,
    `SELECT max(sk), max(moment) FROM (${[
      ...tables,
      'SELECT NULL, max(fetched_at) FROM heart_rate',
      'SELECT NULL, max(removed_at) FROM sync.tombstones',
      'SELECT NULL, max(fetched_at) FROM sync.rejected',
      'SELECT NULL, greatest(max(requested_at), max(committed_at)) FROM sync.windows',
      'SELECT NULL, max(since) FROM sync.accounts',
      'SELECT NULL, greatest(max(received_at), max(committed_at)) FROM sync.events',
    ].join(' UNION ALL ')})`,
  );
  return { sk: (row?.[0] as number | null) ?? 0, moment: (row?.[1] as number | null) ?? 0 };
}
