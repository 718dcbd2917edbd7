import type { DuckDBConnection } from '@duckdb/node-api';
import { heartRate } from '../../../schema/resources/heart-rate.ts';
import { readRows } from '../store/database.ts';
import type { Store } from '../store/store.ts';

const hasRows = async (connection: DuckDBConnection, sql: string) => (await readRows(connection, sql)).length > 0;

/** Does work once for each warehouse, and notes that it was done. */
async function once(
  store: Pick<Store, 'transaction'>,
  connection: DuckDBConnection,
  { key, nowMicros }: { key: string; nowMicros: number },
  work: () => Promise<unknown>,
): Promise<void> {
  if (await hasRows(connection, `SELECT 1 FROM sync.meta WHERE key = '${key}'`)) return;
  await store.transaction(connection, async () => {
    await work();
    await connection.run(`INSERT INTO sync.meta (key, value) VALUES ('${key}', '${nowMicros}')`);
  });
}

/**
 * The readings of earlier versions, which noted only their place in the order of requests, get the time at which they were made. That place
 * is ahead of the time where a clock was ahead once; a reading was over when its run was, by the time of day, and before now. What is later
 * than that has a time that nobody knows: it settles nothing, and its days are read again.
 * @param nowMicros the time of day
 */
export async function dateReadings(store: Pick<Store, 'transaction'>, connection: DuckDBConnection, nowMicros: number): Promise<void> {
  await once(store, connection, { key: 'readings_dated_at', nowMicros }, () =>
    connection.run(
      `UPDATE sync.windows AS w SET read_at = d.moment
       FROM (SELECT w.rowid AS number, least(w.requested_at, r.ended_at) AS moment
             FROM sync.windows w LEFT JOIN sync.runs r USING (run_id)
             WHERE w.requested_at IS NOT NULL AND w.read_at IS NULL AND w.service_at IS NULL) d
       WHERE d.number = w.rowid AND d.moment <= make_timestamp(${nowMicros}::BIGINT)`,
    ),
  );
}

/** Windows of heart rate that were read without a note of the path. */
const UNNAMED = `collection = '${heartRate.name}' AND outcome = 'complete' AND requested_at IS NOT NULL AND route IS NULL`;

/**
 * Heart rate that an earlier version read, which did not note from where, counts as that of the sandbox path where nothing but this path had
 * answered by then.
 * @param nowMicros the time of day
 * @returns whether there is some of which nobody knows, because both paths had answered; told once
 */
export async function nameRoutes(store: Pick<Store, 'transaction'>, connection: DuckDBConnection, nowMicros: number): Promise<boolean> {
  const hasAnswered = (path: string) =>
    hasRows(connection, `SELECT 1 FROM sync.routes WHERE route = 'GET ${path}' AND last_200_at IS NOT NULL LIMIT 1`);
  let isUnclear = false;
  await once(store, connection, { key: 'routes_named_at', nowMicros }, async () => {
    if (!(await hasAnswered(heartRate.sandboxPath))) return;
    if (await hasAnswered(heartRate.plainPath))
      isUnclear = await hasRows(connection, `SELECT 1 FROM sync.windows WHERE ${UNNAMED} LIMIT 1`);
    else await connection.run(`UPDATE sync.windows SET route = '${heartRate.sandboxPath}' WHERE ${UNNAMED}`);
  });
  return isUnclear;
}
