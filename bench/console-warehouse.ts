import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { resources } from '../schema/index.ts';
import { Warehouse } from '../src/warehouse/warehouse.ts';
import { defineTask } from './task.ts';

/** Of whom the warehouse is, and its last day. */
export const LAST_DAY = '2025-12-31';
export const personNamed = (n: number) => `user-${String(n).padStart(3, '0')}`;

export interface FillConsoleJob {
  data: string;
  people: number;
  days: number;
}

/** 90 minutes of sleep, in steps of 30 seconds. */
const CYCLE = "repeat('2', 40) || repeat('1', 50) || repeat('2', 50) || repeat('3', 34) || repeat('4', 6)";

/** Nights of eight hours with their stages and samples, days with MET minutes and a heart rate, and their scores: by SQL, since only looking is measured. */
export const fillConsole = defineTask(
  import.meta.url,
  'fillConsole',
  async ({ data, people, days }: FillConsoleJob): Promise<{ samples: number }> => {
    const path = join(data, 'warehouse.duckdb');
    await (await Warehouse.open({ path, resources })).close();
    const instance = await DuckDBInstance.create(path, { threads: '2', memory_limit: '2GB' });
    const connection = await instance.connect();
    for (let person = 0; person < people; person++) for (const sql of statementsOf(person, days)) await connection.run(sql);
    await connection.run(`INSERT INTO sync.runs (run_id, kind, started_at, ended_at, state, request)
      VALUES ('filled', 'backfill', '${LAST_DAY} 23:00:00', '${LAST_DAY} 23:10:00', 'ended', '{}')`);
    const [[samples]] = (
      await connection.runAndReadAll(
        `SELECT ${['daily_activity_met', 'heart_rate', 'sleep_heart_rate', 'sleep_hrv'].map(table => `(SELECT count(*) FROM ${table})`).join(' + ')}`,
      )
    ).getRows() as [[bigint]];
    await connection.run('CHECKPOINT');
    connection.closeSync();
    instance.closeSync();
    const warehouse = await Warehouse.open({ path, resources });
    await warehouse.snapshot(join(data, 'snapshot.duckdb'), 0o600);
    await warehouse.close();
    return { samples: Number(samples) };
  },
);

function statementsOf(person: number, days: number): string[] {
  const user = `'${personNamed(person)}'`;
  const day = `(DATE '${LAST_DAY}' - ${days - 1} + n::INTEGER)`;
  const sk = `${person * days} + n + 1`;
  const head = `${user} AS user_id, printf('d-%d-%d', ${person}, n) AS id, ${day} AS day, ${sk} AS sk`;
  const each = `range(${days}) AS days(n)`;
  const random = (salt: string, below: number) => `(hash(${person}, n, '${salt}') % ${below})::BIGINT`;
  const bedtime = `(${day} - INTERVAL 2 HOUR + to_minutes(${random('bed', 90)}))`;
  /** Rows of samples: \`i\` counts them within the day. */
  const samples = (table: string, start: string, seconds: number, count: number, value: string) =>
    `INSERT INTO ${table} BY NAME SELECT ${sk} AS sk, ${user} AS user_id, ${day} AS day, ${start} + to_seconds(i * ${seconds}) AS ts, 3600 AS utc_offset, ${value} AS value
     FROM ${each}, range(${count}) AS samples(i) ORDER BY n, i`;
  return [
    `INSERT INTO sync.accounts (user_id, state, since) VALUES (${user}, 'active', '2023-01-01')`,
    `INSERT INTO daily_activity BY NAME SELECT ${head}, 3000 + ${random('steps', 9000)} AS steps, 300 + ${random('steps', 300)} AS active_calories, 60 + ${random('score', 40)} AS score,
       repeat('012345', 48) AS class_5_min, 60 AS met_interval, 1440 AS met_count, ${day} + INTERVAL 3 HOUR AS timestamp, 3600 AS timestamp_offset, timestamp AS met_start,
       3600 AS met_offset, 3600 AS non_wear_time, 30000 AS resting_time, 40000 AS sedentary_time, 9000 AS low_activity_time, 3000 AS medium_activity_time, 800 AS high_activity_time FROM ${each}`,
    `INSERT INTO daily_sleep BY NAME SELECT ${head}, 60 + ${random('sleep', 35)} AS score FROM ${each}`,
    `INSERT INTO daily_readiness BY NAME SELECT ${head}, 60 + ${random('ready', 35)} AS score, ${random('warm', 100)} / 100 - 0.5 AS temperature_deviation FROM ${each}`,
    `INSERT INTO daily_stress BY NAME SELECT ${head}, ${random('stress', 90)} * 60 AS stress_high, ${random('calm', 90)} * 60 AS recovery_high FROM ${each}`,
    `INSERT INTO daily_spo2 BY NAME SELECT ${head}, 95 + ${random('spo2', 40)} / 10 AS spo2_percentage_average FROM ${each}`,
    `INSERT INTO sleep BY NAME SELECT ${head}, 'long_sleep' AS type, 40 + ${random('hrv', 30)} AS average_hrv, 50 + ${random('low', 12)} AS lowest_heart_rate, 58.5 AS average_heart_rate,
       14 + ${random('breath', 20)} / 10 AS average_breath, 80 + ${random('eff', 18)} AS efficiency, 600 AS latency, 24000 + ${random('asleep', 60)} * 60 AS total_sleep_duration, 28800 AS time_in_bed,
       5000 AS deep_sleep_duration, 6000 AS rem_sleep_duration, 13000 AS light_sleep_duration, 2400 AS awake_time,
       ${bedtime} AS bedtime_start, 3600 AS bedtime_start_offset, bedtime_start + INTERVAL 8 HOUR AS bedtime_end, 3600 AS bedtime_end_offset,
       substr(repeat(${CYCLE}, 7), 1 + ${random('cycle', 180)}, 960) AS sleep_phase_30_sec, repeat('1112111311', 96) AS movement_30_sec,
       bedtime_start AS heart_rate_start, 3600 AS heart_rate_offset, 300 AS heart_rate_interval, 96 AS heart_rate_count,
       bedtime_start AS hrv_start, 3600 AS hrv_offset, 300 AS hrv_interval, 96 AS hrv_count FROM ${each}`,
    samples('daily_activity_met', `${day} + INTERVAL 3 HOUR`, 60, 1440, '0.9 + (hash(n, i) % 40)::INTEGER / 10'),
    samples('sleep_heart_rate', bedtime, 300, 96, 'CASE WHEN i % 37 <> 5 THEN 50 + hash(n, i) % 20 END'),
    samples('sleep_hrv', bedtime, 300, 96, 'CASE WHEN i % 41 <> 7 THEN 30 + hash(n, i) % 50 END'),
    `INSERT INTO heart_rate (user_id, ts, utc_offset, bpm, source)
     SELECT ${user}, ${day} + INTERVAL 7 HOUR + to_seconds(i * 240), 0, 55 + hash(n, i) % 60, 'awake' FROM ${each}, range(225) AS samples(i) ORDER BY n, i`,
    `INSERT INTO sync.windows (run_id, user_id, collection, start_at, end_at, requested_at, read_at, committed_at, requests, documents, removed, outcome, rejected)
     SELECT 'filled', ${user}, unnest(['daily_activity', 'sleep', 'daily_sleep', 'daily_readiness', 'daily_stress', 'daily_spo2', 'heart_rate']), DATE '${LAST_DAY}' - ${days - 1},
       DATE '${LAST_DAY}' + 1, '${LAST_DAY} 23:00:00', '${LAST_DAY} 23:00:00', '${LAST_DAY} 23:00:00', 1, ${days}, 0, 'complete', 0`,
  ];
}
