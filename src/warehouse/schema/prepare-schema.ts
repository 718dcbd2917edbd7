import type { DuckDBConnection } from '@duckdb/node-api';
import type { Column, Mapping } from '../mapping.ts';
import { RequestClock } from '../request-clock.ts';
import type { Store } from '../store/store.ts';
import { listTables } from '../tables.ts';
import { dateReadings } from './date-readings.ts';
import { ensureTables } from './ensure.ts';
import { readHighWatermark } from './high-watermark.ts';
import { nameRoutes } from './name-routes.ts';
import { ensureViews } from './views.ts';

export interface PreparedSchema {
  /** The columns of each table in the order in which they lie there. */
  columns: ReadonlyMap<string, readonly Column[]>;
  /** Ahead of all that is stored. */
  clock: RequestClock;
  /** Whether generated heart rate may lie beside what is real. */
  isUnclear: boolean;
}

/** Makes what is missing in a store, and brings up to date what earlier versions have left in it. */
export async function prepareSchema(
  store: Pick<Store, 'transaction'>,
  connection: DuckDBConnection,
  mappings: readonly Mapping[],
  now: (() => number) | undefined,
): Promise<PreparedSchema> {
  const tables = listTables(mappings);
  const columns = await ensureTables(store, connection, tables);
  await ensureViews(store, connection, tables);
  const clock = new RequestClock(await readHighWatermark(connection, mappings), now);
  await dateReadings(store, connection, clock.wall());
  return { columns, clock, isUnclear: await nameRoutes(store, connection, clock.wall()) };
}
