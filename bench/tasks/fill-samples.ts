import { DuckDBInstance } from '@duckdb/node-api';
import { resources } from '../../schema/index.ts';
import { Warehouse } from '../../src/warehouse/warehouse.ts';
import { performTask } from '../task.ts';

export interface FillJob {
  path: string;
  years: number;
  /** How the samples lie: as a snapshot sorts them, or as days come in. */
  order: 'user' | 'day';
}

const DAYS = 365;

/** Makes a warehouse of so many user-years, a night and the MET samples of each day: by SQL, since only asking is measured. */
performTask(async ({ path, years, order }: FillJob) => {
  await (await Warehouse.open({ path, resources })).close();
  const instance = await DuckDBInstance.create(path, { threads: '2', memory_limit: '1GB' });
  const connection = await instance.connect();
  const days = `range(${years}) AS people(person), range(${DAYS}) AS days(n)`;
  const head = `printf('user-%03d', person) AS user_id, printf('d-%d-%d', person, n) AS id, DATE '2025-01-01' + n::INTEGER AS day, person * ${DAYS} + n AS sk`;
  await connection.run(`INSERT INTO daily_activity BY NAME
    SELECT ${head}, 5000 + (n * 37 + person) % 9000 AS steps, repeat('012345', 48) AS class_5_min, 60 AS met_interval, 1440 AS met_count,
      TIMESTAMP '2025-01-01 04:00:00' + to_days(n::INTEGER) AS timestamp, 0 AS timestamp_offset, timestamp AS met_start, 0 AS met_offset
    FROM ${days}`);
  await connection.run(`INSERT INTO sleep BY NAME
    SELECT ${head}, 'long_sleep' AS type, 40 + (n * 13 + person) % 30 AS average_hrv, 25000 AS total_sleep_duration, 28800 AS time_in_bed,
      TIMESTAMP '2024-12-31 22:00:00' + to_days(n::INTEGER) AS bedtime_start, 0 AS bedtime_start_offset,
      TIMESTAMP '2025-01-01 06:00:00' + to_days(n::INTEGER) AS bedtime_end, 0 AS bedtime_end_offset FROM ${days}`);
  // In steps, each in the order in which its rows shall lie: nothing is sorted, and memory stays small.
  const steps = order === 'user' ? years : DAYS;
  for (let step = 0; step < steps; step++) {
    const [person, day] = order === 'user' ? [String(step), 'i // 1440'] : ['i // 1440', String(step)];
    await connection.run(`INSERT INTO daily_activity_met BY NAME
      SELECT ${person} * ${DAYS} + ${day} AS sk, printf('user-%03d', ${person}) AS user_id, DATE '2025-01-01' + (${day})::INTEGER AS day,
        TIMESTAMP '2025-01-01 04:00:00' + to_minutes(1440 * (${day}) + i % 1440) AS ts, 0 AS utc_offset, 0.9 + (i * 7919) % 60 / 10 AS value
      FROM range(1440 * ${order === 'user' ? DAYS : years}) AS samples(i)`);
  }
  await connection.run('CHECKPOINT');
  connection.closeSync();
  instance.closeSync();
  return { samples: years * DAYS * 1440 };
});
