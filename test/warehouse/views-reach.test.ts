import { DuckDBInstance } from '@duckdb/node-api';
import { beforeAll, expect, test } from 'vitest';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse, rowsOf, withDuckDB } from '../support/warehouse.ts';

const folder = tempFolder();
let path: string;

// Three people of 40 days each, in every table: what DuckDB plans follows from what it finds.
beforeAll(async () => {
  path = newPath(folder);
  await (await openWarehouse(path)).close();
  await withDuckDB(path, async connection => {
    const tables = await rowsOf(
      connection,
      `SELECT table_name AS name, list(column_name) AS columns FROM duckdb_columns() c JOIN duckdb_tables() t USING (schema_name, table_name)
       WHERE schema_name = 'main' GROUP BY ALL`,
    );
    const given: Record<string, string> = {
      user_id: `'u' || person`,
      id: `concat('d', person, '-', n)`,
      day: `DATE '2025-01-01' + n::INTEGER`,
      sk: '1000 * person + n',
      ts: `TIMESTAMP '2025-01-01 02:00:00' + to_days(n::INTEGER)`,
      utc_offset: '3600',
      value: '1.5',
      bpm: '60',
      source: `'rest'`,
      type: `'long_sleep'`,
      bedtime_start: `TIMESTAMP '2024-12-31 22:00:00' + to_days(n::INTEGER)`,
      bedtime_start_offset: '3600',
      bedtime_end: `TIMESTAMP '2025-01-01 06:00:00' + to_days(n::INTEGER)`,
      bedtime_end_offset: '3600',
      sleep_phase_30_sec: `'112234'`,
      movement_30_sec: `'1234'`,
      class_5_min: `'012345'`,
      met_start: `TIMESTAMP '2025-01-01 03:00:00' + to_days(n::INTEGER)`,
      met_interval: '60',
      met_count: '1440',
      vo2_max: '44',
      age: '40',
      start_datetime: `TIMESTAMP '2025-01-01 02:00:00' + to_days(n::INTEGER)`,
      end_datetime: `TIMESTAMP '2025-01-01 03:00:00' + to_days(n::INTEGER)`,
      timestamp: `TIMESTAMP '2025-01-01 03:00:00' + to_days(n::INTEGER)`,
    };
    for (const { name, columns } of tables as { name: string; columns: string[] }[]) {
      const known = columns.filter(column => Object.hasOwn(given, column));
      await connection.run(
        `INSERT INTO ${name} (${known.join(', ')}) SELECT ${known.map(column => given[column]).join(', ')} FROM range(1, 4) a(person), range(40) b(n)`,
      );
    }
  });
});

interface Node {
  name: string;
  children?: Node[];
  extra_info: { Table?: string; Filters?: string | string[]; Projections?: string | string[]; Expression?: string };
}

interface Scan {
  table: string;
  /** What is asked of each row when it is read, or right afterwards. */
  filters: string;
  columns: string[];
}

/** Every reading of a table that DuckDB plans for a question. */
async function scansOf(question: string): Promise<Scan[]> {
  const instance = await DuckDBInstance.create(path, { access_mode: 'READ_ONLY' });
  const connection = await instance.connect();
  const [row] = (await connection.runAndReadAll(`EXPLAIN (FORMAT JSON) ${question}`)).getRows();
  connection.closeSync();
  instance.closeSync();
  const scans: Scan[] = [];
  const visit = (node: Node, above: string) => {
    const { Table, Filters = [], Projections = [], Expression } = node.extra_info;
    const name = node.name.trim();
    if (Table) {
      scans.push({ table: Table.replace(/^.*\.|"/g, ''), filters: [above, Filters].flat().join(' AND '), columns: [Projections].flat() });
    }
    for (const child of node.children ?? []) visit(child, name === 'FILTER' ? (Expression ?? '') : '');
  };
  for (const node of JSON.parse(row![1] as string) as Node[]) visit(node, '');
  return scans;
}

const MONTH = `user_id = 'u2' AND day BETWEEN '2025-01-05' AND '2025-01-20'`;
const OF_USER = /user_id ?= ?'u2'/;
const OF_DAYS = /day>='2025-01-05'::DATE AND day<='2025-01-20'::DATE/;

test.each([
  ['nights', ['sleep']],
  ['naps', ['sleep']],
  ['counted_sleeps', ['sleep']],
  ['sleep_stages', ['sleep']],
  ['sleep_stage_spans', ['sleep']],
  ['sleep_movement', ['sleep']],
  ['activity_classes', ['daily_activity']],
  ['hrv_nights', ['sleep', 'sleep_hrv']],
])('a filter on user and day reaches every table that %s reads', async (view, tables) => {
  const scans = await scansOf(`SELECT * FROM ${view} WHERE ${MONTH}`);
  expect(scans.map(({ table }) => table).sort()).toEqual(tables);
  for (const { filters } of scans) {
    expect(filters).toMatch(OF_USER);
    expect(filters).toMatch(OF_DAYS);
  }
});

test('met_minutes reads of other days nothing but when their samples start and end', async () => {
  const scans = await scansOf(`SELECT * FROM met_minutes WHERE ${MONTH}`);
  for (const { filters } of scans) expect(filters).toMatch(OF_USER);
  const ofDays = scans.filter(({ filters }) => OF_DAYS.test(filters)).map(({ table }) => table);
  expect(ofDays.sort()).toEqual(['daily_activity', 'daily_activity_met']);
  const rest = scans.filter(({ filters }) => !OF_DAYS.test(filters));
  expect(rest.map(({ columns }) => columns.sort())).toEqual([['day', 'met_count', 'met_interval', 'met_start', 'sk', 'user_id']]);
});

test('a filter on user and moment reaches every series of heart_rate_sources, and one on the day is asked right where they are read', async () => {
  const scans = await scansOf(
    `SELECT * FROM heart_rate_sources WHERE user_id = 'u2' AND ts >= '2025-01-05' AND ts < '2025-01-06' AND day = '2025-01-05'`,
  );
  expect(scans.map(({ table }) => table).sort()).toEqual(['heart_rate', 'session', 'session_heart_rate', 'sleep', 'sleep_heart_rate']);
  for (const { filters } of scans.filter(({ table }) => table.endsWith('heart_rate'))) {
    expect(filters).toMatch(OF_USER);
    expect(filters).toMatch(/ts>='2025-01-05 00:00:00'::TIMESTAMP AND ts<'2025-01-06 00:00:00'::TIMESTAMP/);
    expect(filters).toMatch(/AS DATE\) = '2025-01-05'::DATE/);
  }
});

test('a filter on user and moment reaches every series of heart_rate_all; what may win over a sample is looked for in the user’s own rows', async () => {
  const scans = await scansOf(`SELECT * FROM heart_rate_all WHERE user_id = 'u2' AND ts >= '2025-01-05' AND ts < '2025-01-06'`);
  for (const { filters } of scans) expect(filters).toMatch(OF_USER);
  const ofMoments = scans.filter(({ filters }) =>
    /ts>='2025-01-05 00:00:00'::TIMESTAMP AND ts<'2025-01-06 00:00:00'::TIMESTAMP/.test(filters),
  );
  expect(ofMoments.map(({ table }) => table).sort()).toEqual(['heart_rate', 'session_heart_rate', 'sleep_heart_rate']);
  expect(
    scans
      .filter(scan => !ofMoments.includes(scan))
      .map(({ table }) => table)
      .sort(),
  ).toEqual(['heart_rate', 'session', 'sleep', 'workout']);
});

test('daily reads of other days nothing but which there are, and the estimates that it carries forward', async () => {
  const scans = await scansOf(`SELECT * FROM daily WHERE ${MONTH}`);
  for (const { filters } of scans) expect(filters).toMatch(OF_USER);
  const ofDays = scans.filter(({ filters }) => OF_DAYS.test(filters)).map(({ table }) => table);
  expect(ofDays.sort()).toEqual([
    'daily_activity',
    'daily_readiness',
    'daily_resilience',
    'daily_sleep',
    'daily_spo2',
    'daily_stress',
    'session',
    'sleep',
    'sleep',
    'workout',
  ]);
  const rest = scans.filter(({ filters }) => !OF_DAYS.test(filters));
  expect(rest.filter(({ columns }) => columns.some(column => column !== 'user_id' && column !== 'day')).map(({ table }) => table)).toEqual([
    'vo2_max',
  ]);
});

test('workouts reads of other days the nights and the heart rate of the user alone', async () => {
  const scans = await scansOf(`SELECT * FROM workouts WHERE ${MONTH}`);
  for (const { filters } of scans) expect(filters).toMatch(OF_USER);
  expect([...new Set(scans.map(({ table }) => table))].sort()).toEqual(['heart_rate', 'participants', 'personal_info', 'sleep', 'workout']);
});

test.each(['baselines', 'weekly'])('%s, which looks at other days too, reads the documents of one user', async view => {
  const scans = await scansOf(`SELECT * FROM ${view} WHERE user_id = 'u2'`);
  expect(scans.length).toBeGreaterThan(9);
  for (const { filters } of scans) expect(filters).toMatch(OF_USER);
});

test('a macro around a column keeps the filter on the user where it is', async () => {
  const scans = await scansOf(
    `SELECT sum(met_minutes) FROM met_minutes WHERE user_id = 'u2' AND activity_day_of(ts, utc_offset) = DATE '2025-01-07'`,
  );
  expect(scans).toHaveLength(3);
  for (const { filters } of scans) expect(filters).toMatch(OF_USER);
  const nights = await scansOf(
    `SELECT hhmm(time_in_bed) FROM nights WHERE user_id = 'u2' AND night_of(bedtime_start, 3600) = DATE '2025-01-07'`,
  );
  expect(nights.map(({ table, filters }) => [table, OF_USER.test(filters)])).toEqual([['sleep', true]]);
});

test('several users at once are a filter of every table too', async () => {
  const scans = await scansOf(`SELECT * FROM daily WHERE user_id IN ('u1', 'u2')`);
  expect(scans.length).toBeGreaterThan(9);
  for (const { filters } of scans.filter(({ table }) => table !== 'vo2_max')) expect(filters).toMatch(/user_id IN \('u1', 'u2'\)/);
});

test('no view reads a series that it is not about', async () => {
  const scans = await scansOf('SELECT * FROM daily JOIN baselines USING (user_id, day)');
  expect(scans.filter(({ table }) => /heart_rate|hrv|_met$|motion/.test(table))).toEqual([]);
});
