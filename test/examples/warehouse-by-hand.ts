import { join } from 'node:path';
import { openWarehouse, placeWarehouse, withDuckDB } from '../support/warehouse.ts';

/** ada's HRV of the first sixteen days of March 2025, a night of 7 hours each; the sixth has none. */
const HRV = [60, 62, 60, 62, 60, null, 62, 60, 62, 60, 62, 60, 62, 60, 62, 40];
const STRESS = ['stressful', 'stressful', 'normal', 'restored', 'normal'];

const march = (day: number) => `2025-03-${String(day).padStart(2, '0')}`;

/**
 * The snapshot of ada, whose last night is unusual, and of ben, who has one night and a day that could not be read. ada's stress is known from the
 * third to the seventh and from the tenth to the fourteenth of March.
 */
export async function placeExamples(data: string): Promise<void> {
  const path = join(data, 'warehouse.duckdb');
  placeWarehouse(path);
  let sk = 0;
  const night = (user: string, day: number, hrv: number) =>
    `('${user}', 's-${day}', '${march(day)}', 'long_sleep', '${march(day)} 00:00:00', 3600, '${march(day)} 08:00:00', 3600, 28800, 25200, ${hrv},
      47, '4211', ${++sk})`;
  const stress = [3, 4, 5, 6, 7].map((day, index) => `('ada', 't-${day}', '${march(day)}', '${STRESS[index]}', ${++sk})`);
  const calm = [10, 11, 12, 13, 14].map(day => `('ada', 't-${day}', '${march(day)}', 'normal', ${++sk})`);
  const window = (user: string, from: string, end: string, rest: string) => `('r-1', '${user}', 'sleep', '${from}', '${end}', ${rest})`;
  await withDuckDB(path, async connection => {
    for (const sql of [
      `INSERT INTO sync.accounts (user_id, state, since) VALUES ('ada', 'active', '2025-03-01'), ('ben', 'active', '2025-03-01')`,
      `INSERT INTO sync.runs (run_id, kind, started_at, ended_at, state, request) VALUES
         ('r-1', 'backfill', '2025-03-17 06:00:00', '2025-03-17 06:10:00', 'failed', '{}')`,
      `INSERT INTO sync.windows (run_id, user_id, collection, start_at, end_at, requested_at, read_at, committed_at, outcome, reason) VALUES
         ${window('ada', march(1), march(17), `'2025-03-17 06:01:00', '2025-03-17 06:01:00', '2025-03-17 06:01:01', 'complete', NULL`)},
         ${window('ben', march(15), march(16), `'2025-03-17 06:01:00', '2025-03-17 06:01:00', '2025-03-17 06:01:01', 'complete', NULL`)},
         ${window('ben', march(16), march(17), `NULL, NULL, '2025-03-17 06:03:00', 'failed', 'the request was refused (400)'`)}`,
      `INSERT INTO sleep (user_id, id, day, type, bedtime_start, bedtime_start_offset, bedtime_end, bedtime_end_offset, time_in_bed,
         total_sleep_duration, average_hrv, lowest_heart_rate, sleep_phase_5_min, sk) VALUES
         ${[...HRV.flatMap((hrv, index) => (hrv === null ? [] : [night('ada', index + 1, hrv)])), night('ben', 15, 50)].join(', ')}`,
      `INSERT INTO daily_stress (user_id, id, day, day_summary, sk) VALUES ${[...stress, ...calm].join(', ')}`,
      `INSERT INTO daily_activity (user_id, id, day, non_wear_time, resting_time, sedentary_time, low_activity_time, medium_activity_time,
         high_activity_time, sk) VALUES
         ('ada', 'a-6', '${march(6)}', 43200, 43200, 0, 0, 0, 0, ${++sk}), ('ada', 'a-7', '${march(7)}', 0, 86400, 0, 0, 0, 0, ${++sk}),
         ('ben', 'a-16', '${march(16)}', 0, 86400, 0, 0, 0, 0, ${++sk})`,
    ]) {
      await connection.run(sql);
    }
  });
  const warehouse = await openWarehouse(path);
  await warehouse.snapshot(join(data, 'snapshot.duckdb'), 0o600);
  await warehouse.close();
}
