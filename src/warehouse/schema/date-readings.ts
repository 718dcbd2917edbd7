import type { DuckDBConnection } from '@duckdb/node-api';
import { readRows } from '../store/database.ts';
import type { Store } from '../store/store.ts';

const DATED = 'readings_dated_at';

/**
 * Once for each file: the readings of earlier versions, which noted only their place in the order of requests, get the time at which they
 * were made. That place is ahead of the time where a clock was ahead once; a reading was over when its run was, by the time of day, and
 * before now. What is later than that has a time that nobody knows: it settles nothing, and its days are read again.
 * @param nowMicros the time of day
 */
export async function dateReadings(store: Pick<Store, 'transaction'>, connection: DuckDBConnection, nowMicros: number): Promise<void> {
  const [dated] = await readRows(connection, `SELECT 1 FROM sync.meta WHERE key = '${DATED}'`);
  if (dated) return;
  await store.transaction(connection, async () => {
    await connection.run(
      `UPDATE sync.windows AS w SET read_at = d.moment
       FROM (SELECT w.rowid AS number, least(w.requested_at, r.ended_at) AS moment
             FROM sync.windows w LEFT JOIN sync.runs r USING (run_id)
             WHERE w.requested_at IS NOT NULL AND w.read_at IS NULL AND w.service_at IS NULL) d
       WHERE d.number = w.rowid AND d.moment <= make_timestamp(${nowMicros}::BIGINT)`,
    );
    await connection.run(`INSERT INTO sync.meta (key, value) VALUES ('${DATED}', '${nowMicros}')`);
  });
}
