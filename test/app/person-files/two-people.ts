import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { quoteName, quoteText } from '../../../src/warehouse/sql.ts';
import { openWarehouse, placeWarehouse, withDuckDB } from '../../support/warehouse.ts';

/** A row without its columns that are null. */
type Rows = Record<string, Record<string, string | number | boolean>[]>;

const ada = (row: Rows[string][number]) => [{ user_id: 'ada', ...row }];
const at = '2025-01-15 06:00:00';
const day = '2025-01-15';

/** What is known of one of two people, in every table of a snapshot; the moments as DuckDB writes them. */
export const ADAS: Rows = {
  daily_readiness: ada({ id: 'r-1', day, score: 77, extra: '{"new":"adas"}', sk: 1, fetched_at: at }),
  daily_sleep: ada({ id: 'd-1', day, score: 84, sk: 2 }),
  daily_activity: ada({ id: 'a-1', day, steps: 10230, met_start: at, met_interval: 60.5, met_count: 1, sk: 3 }),
  daily_activity_met: ada({ sk: 3, day, ts: at, utc_offset: 3600, value: 1.25 }),
  daily_spo2: ada({ id: 'o-1', day, spo2_percentage_average: 97.125, sk: 4 }),
  vo2_max: ada({ id: 'v-1', day, vo2_max: 44, sk: 5 }),
  ring_configuration: ada({ id: 'ring-7', color: 'titanium', sk: 6 }),
  daily_resilience: ada({ id: 'e-1', day, level: 'solid', sk: 7 }),
  sleep_time: ada({ id: 'b-1', day, status: 'optimal_found', sk: 8 }),
  daily_stress: ada({ id: 't-1', day, day_summary: 'normal', sk: 9 }),
  sleep: ada({
    id: 's-1',
    day,
    type: 'long_sleep',
    bedtime_start: '2025-01-14 22:00:00',
    bedtime_start_offset: 3600,
    bedtime_end: at,
    bedtime_end_offset: 3600,
    total_sleep_duration: 25080,
    sk: 10,
  }),
  sleep_heart_rate: ada({ sk: 10, day, ts: at, utc_offset: 3600, value: 55.5 }),
  sleep_hrv: ada({ sk: 10, day, ts: at, utc_offset: 3600, value: 61.5 }),
  session: ada({ id: 'm-1', day, type: 'breathing', sk: 11 }),
  session_heart_rate: ada({ sk: 11, day, ts: at, value: 60.5 }),
  session_heart_rate_variability: ada({ sk: 11, day, ts: at, value: 40.5 }),
  session_motion_count: ada({ sk: 11, day, ts: at, value: 3.5 }),
  daily_cardiovascular_age: ada({ id: 'c-1', day, vascular_age: 31, sk: 12 }),
  enhanced_tag: ada({ id: 'g-1', start_day: day, comment: 'adas wine', sk: 13 }),
  rest_mode_period: ada({ id: 'p-1', start_day: day, sk: 14 }),
  rest_mode_period_episodes: ada({ sk: 14, day, position: 1, tags: '["adas tag"]' }),
  ring_battery_level: ada({ id: 'l-1', day, level: 80, sk: 15 }),
  workout: ada({ id: 'w-1', day, activity: 'running', label: 'adas lap', sk: 16 }),
  personal_info: ada({ id: 'adas-id', age: 41, email: 'ada@example.org', sk: 17 }),
  heart_rate: ada({ ts: at, utc_offset: 3600, bpm: 61, source: 'rest' }),
  participants: ada({ group_name: 'adas group', birth_year: 1984 }),
  'sync.windows': ada({ run_id: 'adas-run', collection: 'sleep', start_at: '2025-01-14 00:00:00', outcome: 'complete', documents: 1 }),
  'sync.events': ada({ received_at: at, event_type: 'create', service_user_id: 'adas-id', outcome: 'stored' }),
  'sync.missed_events': ada({ found_at: at, collection: 'sleep', id: 's-0' }),
  'sync.rejected': ada({ collection: 'sleep', id: 's-9', reason: 'adas reason' }),
  'sync.tombstones': ada({ collection: 'sleep', id: 's-8', removed_at: at }),
  'sync.accounts': ada({ service_user_id: 'adas-id', state: 'active', since: at }),
  'sync.consents': ada({ at, scopes: 'daily', language: 'de' }),
};

/** What is of nobody, or of more than one. */
const SHARED: Rows = {
  'sync.runs': [
    { run_id: 'adas-run', kind: 'backfill', state: 'complete', request: '{"users":["ada","bob-zz"]}' },
    { run_id: 'bob-zz-run', kind: 'nightly', state: 'complete', request: '{"users":["bob-zz"]}' },
  ],
  'sync.routes': [{ route: 'GET /v2/usercollection/sleep', last_status: 200 }],
  'sync.drift': [{ collection: 'sleep', path: '$.bob-zz', kind: 'unknown field' }],
  'sync.suspicions': [{ user_id: 'bob-zz', collection: 'sleep', kind: 'missing' }],
};

/** Columns of which we know all values. */
const WORDS = ['type', 'state', 'outcome', 'event_type', 'collection'];

/** The same of the other one, whose every text says so. */
const BOBS: Rows = Object.fromEntries(
  Object.entries(ADAS).map(([table, rows]) => [
    table,
    rows.map(row =>
      Object.fromEntries(
        Object.entries(row).map(([column, value]) => {
          if (typeof value === 'number') return [column, value + 1000];
          if (typeof value === 'boolean' || /^\d{4}-\d\d-\d\d/.test(value) || WORDS.includes(column)) return [column, value];
          if (/^[{[]/.test(value)) return [column, '{"is":"bob-zz"}'];
          return [column, column === 'user_id' ? 'bob-zz' : `bob-zz ${value}`];
        }),
      ),
    ),
  ]),
);

/** Makes a warehouse with all of them; where asked for, its snapshot alone is left, or lies beside it. */
export async function placeTwoPeople(data: string, { asSnapshot = false }: { asSnapshot?: boolean | 'beside' } = {}): Promise<void> {
  const path = join(data, 'warehouse.duckdb');
  placeWarehouse(path);
  await withDuckDB(path, async connection => {
    for (const [table, rows] of [ADAS, BOBS, SHARED].flatMap(Object.entries<Rows[string]>)) {
      for (const row of rows) {
        const values = Object.values(row).map(value => (typeof value === 'string' ? quoteText(value) : value));
        await connection.run(`INSERT INTO ${table} (${Object.keys(row).map(quoteName).join(', ')}) VALUES (${values.join(', ')})`);
      }
    }
  });
  if (!asSnapshot) return;
  const warehouse = await openWarehouse(path);
  await warehouse.snapshot(join(data, 'snapshot.duckdb'), 0o600);
  await warehouse.close();
  if (asSnapshot === true) rmSync(path);
}
