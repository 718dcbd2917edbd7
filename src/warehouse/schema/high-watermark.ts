import type { DuckDBConnection } from '@duckdb/node-api';
import type { Mapping } from '../mapping.ts';
import { qualified } from '../sql.ts';
import { readRows } from '../store/database.ts';

/** The newest moment that is stored, 0 where there is none: those of the next requests come after. */
export async function readHighWatermark(connection: DuckDBConnection, mappings: readonly Mapping[]): Promise<number> {
  const tables = mappings.map(({ table }) => `SELECT max(fetched_at) AS moment FROM ${qualified(table)}`);
  const [[moment] = []] = await readRows(
    connection,
    `SELECT max(moment) FROM (${[
      ...tables,
      'SELECT max(fetched_at) FROM heart_rate',
      'SELECT max(removed_at) FROM sync.tombstones',
      'SELECT max(fetched_at) FROM sync.rejected',
      'SELECT greatest(max(requested_at), max(committed_at)) FROM sync.windows',
      'SELECT max(since) FROM sync.accounts',
      'SELECT greatest(max(received_at), max(committed_at)) FROM sync.events',
    ].join(' UNION ALL ')})`,
  );
  return Number(moment ?? 0);
}
