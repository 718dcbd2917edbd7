import { DuckDBInstance } from '@duckdb/node-api';
import { resources } from '../../schema/index.ts';
import { textList } from '../../src/warehouse/sql.ts';
import { Warehouse } from '../../src/warehouse/warehouse.ts';
import { performTask } from '../task.ts';

export interface FillJob {
  path: string;
  people: number;
  days: number;
  /** The collections of which the ledger says that all of it was read long after its last day. */
  settled?: string[];
}

const FROM = '2024-01-01';

/** Activity with its MET minutes and heart rate of many people, as a backfill of all side by side leaves them: month by month. By SQL, which takes a minute for what takes the pipeline ten. */
performTask(async ({ path, people, days, settled = [] }: FillJob): Promise<{ samples: number }> => {
  await (await Warehouse.open({ path, resources })).close();
  const instance = await DuckDBInstance.create(path, { threads: '2' });
  const connection = await instance.connect();
  for (const sql of [
    `CREATE TEMP TABLE documents AS SELECT 'user-' || u AS user_id, DATE '${FROM}' + d::INTEGER AS day, row_number() OVER (ORDER BY d // 30, u, d) AS sk
     FROM range(${people}) people(u), range(${days}) days(d)`,
    `INSERT INTO daily_activity (user_id, id, day, sk, fetched_at, content_hash, score, steps, met_start, met_offset, met_interval, met_count)
     SELECT user_id, 'activity-' || user_id || '-' || day, day, sk, TIMESTAMP '2026-01-01' + to_microseconds(sk), md5(sk::VARCHAR)[:22], sk % 100,
       sk % 20000, day + INTERVAL 4 HOUR, 0, 60, 1440 FROM documents ORDER BY sk`,
    `INSERT INTO daily_activity_met (sk, user_id, day, ts, utc_offset, value)
     SELECT sk, user_id, day, day + INTERVAL 4 HOUR + to_minutes(n), 0, 0.9 + (hash(sk, n) % 40)::INTEGER / 10 FROM documents, range(1440) minutes(n) ORDER BY sk, n`,
    `INSERT INTO heart_rate (user_id, ts, utc_offset, bpm, source, fetched_at)
     SELECT user_id, day + to_seconds(n * 220), 0, 50 + hash(sk, n) % 60, 'awake', TIMESTAMP '2026-01-01' + to_microseconds(sk)
     FROM documents, range(390) minutes(n) ORDER BY sk, n`,
    `INSERT INTO sync.windows (run_id, user_id, collection, start_at, end_at, requested_at, read_at, committed_at, requests, documents, removed, outcome, rejected)
     SELECT 'filled', 'user-' || u, unnest([${textList(settled)}]::VARCHAR[]), DATE '${FROM}', DATE '${FROM}' + ${days}, TIMESTAMP '2026-01-01', TIMESTAMP '2026-01-01',
       TIMESTAMP '2026-01-01', 1, ${days}, 0, 'complete', 0 FROM range(${people}) people(u)`,
    'CHECKPOINT',
  ]) {
    await connection.run(sql);
  }
  const [[samples]] = (
    await connection.runAndReadAll('SELECT (SELECT count(*) FROM daily_activity_met) + (SELECT count(*) FROM heart_rate)')
  ).getRows() as [[bigint]];
  connection.closeSync();
  instance.closeSync();
  return { samples: Number(samples) };
});
