import type { DuckDBConnection } from '@duckdb/node-api';
import type { Column, Mapping } from '../mapping.ts';
import { RequestClock } from '../request-clock.ts';
import { qualified } from '../sql.ts';
import { readRows } from '../store/database.ts';
import type { Store } from '../store/store.ts';
import { listTables } from '../tables.ts';
import { ensureTables } from './ensure.ts';
import { columnsOfKnown, describeSchema, type KnownSchema } from './known-schema.ts';
import { dateReadings, nameRoutes } from './upgrade.ts';
import { ensureViews } from './views.ts';

export interface PreparedSchema {
  /** The columns of each table in the order in which they lie there. */
  columns: ReadonlyMap<string, readonly Column[]>;
  schema: KnownSchema;
  /** Whether it was known before, and was what this version makes. */
  isKnown: boolean;
  /** Ahead of all that is stored. */
  clock: RequestClock;
  /** Whether generated heart rate may lie beside what is real. */
  isUnclear: boolean;
}

/**
 * Makes what is missing in a store, and brings up to date what earlier versions have left in it.
 * @param options.known what is there, where that is known
 */
export async function prepareSchema(
  store: Pick<Store, 'transaction' | 'commentsOnAll'>,
  connection: DuckDBConnection,
  mappings: readonly Mapping[],
  {
    now,
    known,
    beforeUpgrade,
  }: { now: (() => number) | undefined; known: KnownSchema | undefined; beforeUpgrade: Parameters<typeof ensureTables>[3] },
): Promise<PreparedSchema> {
  const tables = listTables(mappings);
  const readClock = async () => new RequestClock(await readHighWatermark(connection, mappings), now);
  const knownColumns = columnsOfKnown(known, mappings, tables);
  if (known && knownColumns) {
    return { columns: knownColumns, schema: known, isKnown: true, clock: await readClock(), isUnclear: false };
  }
  const columns = await ensureTables(store, connection, tables, beforeUpgrade);
  const schema = describeSchema(mappings, columns, await ensureViews(store, connection, tables));
  const clock = await readClock();
  await dateReadings(store, connection, clock.wall());
  return { columns, schema, isKnown: false, clock, isUnclear: await nameRoutes(store, connection, clock.wall()) };
}

/** The newest moment that is stored, 0 where there is none: those of the next requests come after. */
async function readHighWatermark(connection: DuckDBConnection, mappings: readonly Mapping[]): Promise<number> {
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
