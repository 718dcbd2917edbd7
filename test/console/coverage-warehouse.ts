import { join } from 'node:path';
import { openWarehouse, placeWarehouse, withDuckDB } from '../support/warehouse.ts';

/**
 * The snapshot of four people and the first four days of 2025: ada was read, one night of hers is not there; ben's last reading failed, and his
 * last day was never asked for; cleo is parked; dora's run has not come to her yet. `more` is SQL for others.
 */
export async function placeCoverage(data: string, more: readonly string[] = []): Promise<void> {
  const path = join(data, 'warehouse.duckdb');
  placeWarehouse(path);
  const night = (user: string, day: string, sk: number) =>
    `('${user}', 's-${sk}', '${day}', 'long_sleep', '${day} 00:00:00', '${day} 07:00:00', 3600, 3600, 25200, ${sk})`;
  const window = (run: string, user: string, first: string, end: string, rest: string) =>
    `('${run}', '${user}', 'sleep', '2025-01-${first}', '2025-01-${end}', ${rest})`;
  await withDuckDB(path, async connection => {
    for (const sql of [
      `INSERT INTO sync.accounts (user_id, state, reason, since) VALUES
         ('ada', 'active', NULL, '2025-01-01'), ('ben', 'active', NULL, '2025-01-01'),
         ('cleo', 'parked', 'sign in again: ringneck account login cleo', '2025-01-01'), ('dora', 'active', NULL, '2025-01-01')`,
      `INSERT INTO sync.runs (run_id, kind, started_at, ended_at, state, request) VALUES
         ('r-1', 'backfill', '2025-01-05 06:00:00', '2025-01-05 06:10:00', 'failed', '{}'),
         ('r-2', 'nightly', '2025-01-06 03:30:00', NULL, 'running', '{}')`,
      `INSERT INTO sync.windows (run_id, user_id, collection, start_at, end_at, requested_at, read_at, committed_at, outcome, reason) VALUES
         ${window('r-1', 'ada', '01', '05', `'2025-01-05 06:01:00', '2025-01-05 06:01:00', '2025-01-05 06:01:01', 'complete', NULL`)},
         ${window('r-1', 'ben', '01', '03', `'2025-01-05 06:02:00', '2025-01-05 06:02:00', '2025-01-05 06:02:01', 'complete', NULL`)},
         ${window('r-1', 'ben', '02', '04', `NULL, NULL, '2025-01-05 06:03:00', 'failed', 'the request was refused (400)'`)},
         ${window('r-2', 'dora', '01', '05', 'NULL, NULL, NULL, NULL, NULL')}`,
      `INSERT INTO sleep (user_id, id, day, type, bedtime_start, bedtime_end, bedtime_start_offset, bedtime_end_offset, total_sleep_duration, sk) VALUES
         ${[night('ada', '2025-01-01', 1), night('ada', '2025-01-02', 2), night('ada', '2025-01-04', 3), night('ben', '2025-01-02', 4)].join(', ')}`,
      `INSERT INTO daily_activity (user_id, id, day, non_wear_time, resting_time, sedentary_time, low_activity_time, medium_activity_time, high_activity_time, sk) VALUES
         ('ada', 'a-1', '2025-01-01', 3600, 82800, 0, 0, 0, 0, 5), ('ada', 'a-2', '2025-01-02', 32400, 54000, 0, 0, 0, 0, 6)`,
      ...more,
    ]) {
      await connection.run(sql);
    }
  });
  const warehouse = await openWarehouse(path);
  await warehouse.snapshot(join(data, 'snapshot.duckdb'), 0o600);
  await warehouse.close();
}
