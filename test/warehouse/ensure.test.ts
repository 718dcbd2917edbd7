import { DuckDBConnection } from '@duckdb/node-api';
import { afterEach, expect, test, vi } from 'vitest';
import { resources } from '../../schema/index.ts';
import { FORMAT } from '../../src/warehouse/format.ts';
import { mapResource } from '../../src/warehouse/mapping.ts';
import { listTables } from '../../src/warehouse/tables.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse, rows, rowsOf, store, withDuckDB } from '../support/warehouse.ts';
import { SLEEP, STRESS } from '../support/wire.ts';

const folder = tempFolder();

afterEach(() => {
  vi.restoreAllMocks();
});

async function newFile(): Promise<string> {
  const path = newPath(folder);
  const warehouse = await openWarehouse(path);
  await store(warehouse, 'daily_stress', [STRESS]);
  await warehouse.close();
  return path;
}

const CATALOGUE = `SELECT schema_name, table_name, comment, NULL AS column_name, NULL AS data_type, NULL AS column_comment FROM duckdb_tables()
  UNION ALL SELECT schema_name, table_name, NULL, column_name, data_type, comment FROM duckdb_columns() WHERE NOT internal
  ORDER BY ALL`;

test('opening a second time changes nothing', async () => {
  const path = await newFile();
  const statements: string[] = [];
  const run = DuckDBConnection.prototype.run;
  vi.spyOn(DuckDBConnection.prototype, 'run').mockImplementation(function (this: DuckDBConnection, ...parameters) {
    statements.push(parameters[0]);
    return run.apply(this, parameters);
  });
  const warehouse = await openWarehouse(path);
  await warehouse.close();
  expect(statements.filter(statement => !/^SELECT /.test(statement))).toEqual([]);
});

test('a table and columns that are missing are added, comments brought up to date, data kept', async () => {
  const path = await newFile();
  const before = await withDuckDB(path, connection => rowsOf(connection, CATALOGUE));
  await withDuckDB(path, async connection => {
    await connection.run('DROP TABLE sync.drift');
    await connection.run('ALTER TABLE daily_stress DROP COLUMN stress_high');
    await connection.run('ALTER TABLE sleep_hrv DROP COLUMN utc_offset');
    await connection.run(`COMMENT ON COLUMN daily_stress.day_summary IS 'old words'`);
    await connection.run(`COMMENT ON TABLE sleep IS NULL`);
  });
  const warehouse = await openWarehouse(path);
  expect(await rows(warehouse, 'SELECT id, day_summary, stress_high FROM daily_stress')).toEqual([
    { id: 't-1', day_summary: 'normal', stress_high: null },
  ]);
  // Added columns lie at the end: what is written must find its place all the same.
  await store(warehouse, 'daily_stress', [{ ...STRESS, stress_high: 7200, recovery_high: 60 }]);
  await store(warehouse, 'sleep', [
    { id: 's', day: '2025-01-15', hrv: { interval: 5, items: [40], timestamp: '2025-01-15T00:00:00+01:00' } },
  ]);
  expect(await warehouse.read('SELECT recovery_high, stress_high, user_id, sk FROM daily_stress')).toEqual([[60, 7200, 'ann', 2]]);
  expect(await rows(warehouse, 'SELECT * FROM sleep_hrv')).toEqual([
    { sk: 3, user_id: 'ann', day: '2025-01-15', ts: '2025-01-14 23:00:00', value: 40, utc_offset: 3600 },
  ]);
  await warehouse.close();
  expect(await withDuckDB(path, connection => rowsOf(connection, CATALOGUE))).toEqual(before);
});

test.each([
  ['a column of another type', 'ALTER TABLE sleep ALTER period TYPE DOUBLE', 'sleep.period is DOUBLE, not BIGINT'],
  ['a column more', 'ALTER TABLE daily_spo2 ADD COLUMN mine INTEGER', 'daily_spo2.mine is no column of ours'],
  ['a column in other letters', 'ALTER TABLE sleep RENAME period TO "Period"', 'sleep.Period is no column of ours'],
  ['an index', 'CREATE INDEX quick ON daily_stress (id)', 'an index lies on daily_stress'],
  ['a constraint', 'ALTER TABLE daily_spo2 ALTER day SET NOT NULL', 'a constraint lies on daily_spo2'],
  ['a key', 'ALTER TABLE sync.meta ADD PRIMARY KEY (key)', 'a constraint lies on sync.meta'],
  ['a default', `ALTER TABLE session ALTER type SET DEFAULT 'nap'`, 'a default lies on session'],
  [
    'a view with the name of a table of ours',
    'DROP TABLE sleep_time; CREATE VIEW sleep_time AS SELECT 1 AS one',
    'a view has the name sleep_time',
  ],
  [
    'a view with such a name in other letters',
    'DROP TABLE sleep_time; CREATE VIEW "Sleep_Time" AS SELECT 1 AS one',
    'a view has the name sleep_time',
  ],
])('%s in a table of ours is refused, named, and nothing is changed', async (_, statement, problem) => {
  const path = await newFile();
  const before = await withDuckDB(path, async connection => {
    await connection.run(statement);
    return rowsOf(connection, CATALOGUE);
  });
  await expect(openWarehouse(path)).rejects.toThrow(problem);
  expect(await withDuckDB(path, connection => rowsOf(connection, CATALOGUE))).toEqual(before);
});

test('a table of somebody else under a name of ours is refused, whatever the letters', async () => {
  const path = newPath(folder);
  await (await openWarehouse(path)).close();
  await withDuckDB(path, connection => connection.run('DROP TABLE sleep; CREATE TABLE "SLEEP" (hours INTEGER)'));
  await expect(openWarehouse(path)).rejects.toThrow('sleep.hours is no column of ours');
});

test('every difference is named at once, and what to do', async () => {
  const path = await newFile();
  await withDuckDB(path, async connection => {
    await connection.run('ALTER TABLE sleep ALTER period TYPE DOUBLE');
    await connection.run('ALTER TABLE sleep ADD COLUMN mine INTEGER');
    await connection.run('CREATE INDEX quick ON daily_stress (id)');
  });
  await expect(openWarehouse(path)).rejects.toThrow(
    'the warehouse has tables that Ringneck did not make so: an index lies on daily_stress; sleep.period is DOUBLE, not BIGINT; ' +
      'sleep.mine is no column of ours. Rename or undo them, or use another data folder',
  );
});

test('a file of before there were workouts, tags and rest modes gains their tables and views, and keeps what it has', async () => {
  const path = newPath(folder);
  const before = await openWarehouse(path);
  await store(before, 'sleep', [SLEEP]);
  await before.close();
  const added = ['workout', 'daily_cardiovascular_age', 'enhanced_tag', 'rest_mode_period', 'rest_mode_period_episodes', 'personal_info'];
  await withDuckDB(path, connection =>
    connection.run(
      `DROP VIEW workouts; ${added.map(name => `DROP TABLE ${name}`).join('; ')};
       UPDATE sync.meta SET value = json_merge_patch(value, '{"hash":"of an earlier version"}') WHERE key = 'views';
       UPDATE sync.meta SET value = 'of an earlier version' WHERE key = 'declarations'`,
    ),
  );
  const warehouse = await openWarehouse(path);
  for (const name of [...added, 'workouts']) expect(await warehouse.read(`SELECT count(*) FROM ${name}`)).toEqual([[0]]);
  await store(warehouse, 'workout', [
    { id: 'w', day: '2025-01-14', start_datetime: '2025-01-14T18:00:00-03:30', end_datetime: '2025-01-14T18:45:00-03:30' },
  ]);
  expect(await warehouse.read('SELECT minutes, night_sleep_id FROM workouts')).toEqual([[45, 's-1']]);
  expect(await warehouse.read('SELECT day, night_missing, workouts FROM daily ORDER BY day')).toEqual([
    ['2025-01-14', true, 1],
    ['2025-01-15', false, 0],
  ]);
  await warehouse.close();
});

test('tables, views, macros and schemas of others are left alone', async () => {
  const path = await newFile();
  const before = await withDuckDB(path, async connection => {
    await connection.run('CREATE TABLE mine (id INTEGER PRIMARY KEY, note VARCHAR DEFAULT 3)');
    await connection.run('CREATE INDEX on_mine ON mine (note)');
    await connection.run('CREATE VIEW my_nights AS SELECT * FROM sleep');
    await connection.run('CREATE SCHEMA lab; CREATE TABLE lab.sleep (x INTEGER NOT NULL); CREATE TABLE sync.notes (n INTEGER)');
    await connection.run('CREATE MACRO local_time(ts, seconds) AS ts + to_seconds(seconds)');
    await connection.run('INSERT INTO mine VALUES (1, 2)');
    return rowsOf(connection, CATALOGUE);
  });
  const warehouse = await openWarehouse(path);
  await store(warehouse, 'daily_stress', [{ ...STRESS, id: 't-2' }]);
  await warehouse.close();
  expect(await withDuckDB(path, connection => rowsOf(connection, CATALOGUE))).toEqual(before);
  expect(await withDuckDB(path, connection => rowsOf(connection, 'SELECT * FROM mine'))).toEqual([{ id: 1, note: '2' }]);
  expect(await withDuckDB(path, connection => rowsOf(connection, 'SELECT count(*) AS n FROM my_nights'))).toEqual([{ n: 0 }]);
});

test('a file of a newer program is refused, before anything else about it', async () => {
  const path = await newFile();
  await withDuckDB(path, async connection => {
    await connection.run(`UPDATE sync.meta SET value = '5' WHERE key = 'format'`);
    await connection.run('ALTER TABLE sleep ADD COLUMN of_the_future INTEGER');
  });
  await expect(openWarehouse(path)).rejects.toThrow('the warehouse has format 5, this program knows 4 at most: update Ringneck');
});

test.each(['1', '2'])(
  'a file of format %s gets the columns of this program, and its format: an earlier one refuses it in plain words',
  async format => {
    const path = await newFile();
    const before = await withDuckDB(path, async connection => {
      const catalogue = await rowsOf(connection, CATALOGUE);
      await connection.run(
        `INSERT INTO sync.windows (run_id, user_id, collection, outcome) VALUES ('r', 'ann', 'daily_stress', 'complete')`,
      );
      for (const column of ['pages', 'rejected', 'rejected_undated'])
        await connection.run(`ALTER TABLE sync.windows DROP COLUMN ${column}`);
      await connection.run(`UPDATE sync.meta SET value = '${format}' WHERE key = 'format'`);
      return catalogue;
    });
    await (await openWarehouse(path)).close();
    await withDuckDB(path, async connection => {
      expect(await rowsOf(connection, CATALOGUE)).toEqual(before);
      expect(await rowsOf(connection, `SELECT value FROM sync.meta WHERE key = 'format'`)).toEqual([{ value: '4' }]);
      expect(await rowsOf(connection, 'SELECT run_id, outcome, pages, rejected FROM sync.windows')).toEqual([
        { run_id: 'r', outcome: 'complete', pages: null, rejected: null },
      ]);
    });
  },
);

const LEDGER = {
  format: 4,
  'sync.runs': 'run_id kind started_at ended_at state request',
  'sync.windows':
    'run_id user_id collection start_at end_at requested_at read_at service_at route committed_at requests documents removed outcome reason ' +
    'rows_by_day pages rejected rejected_undated',
  'sync.events':
    'received_at event_time event_type data_type object_id service_user_id user_id outcome reason committed_at settled_at account_since',
  'sync.missed_events': 'found_at read_before_at user_id collection id event_type missed_at noted_at',
  'sync.subscriptions': 'event_type data_type id callback_url state reason since renewed_at expiration_time',
  'sync.rejected': 'user_id collection id reason document fetched_at day start_at end_at',
  'sync.tombstones': 'user_id collection id removed_at',
  'sync.suspicions': 'user_id collection kind object_id first_seen_at',
  'sync.drift': 'collection path kind documents first_seen_at last_seen_at example',
  'sync.routes': 'route last_status last_200_at service doubtful_since',
  'sync.accounts': 'user_id service_user_id state reason since',
  'sync.consents': 'user_id at scopes text_hash language withdrawn_at',
  'sync.links': 'secret_hash kind user_id created_at expires_at problem service_user_id',
  'sync.meta': 'key value',
};

test('another column of the ledger is another format: who adds one raises it', () => {
  const ledger = listTables(resources.map(mapResource)).filter(({ name }) => name.startsWith('sync.'));
  const columns = Object.fromEntries(ledger.map(table => [table.name, table.columns.map(({ name }) => name).join(' ')]));
  expect({ format: FORMAT, ...columns }).toEqual(LEDGER);
});

test('an unknown column of the ledger may be of a newer program: updating is the first thing that is named', async () => {
  const path = await newFile();
  await withDuckDB(path, async connection => {
    await connection.run('ALTER TABLE sync.windows ADD COLUMN of_the_future INTEGER');
    await connection.run('ALTER TABLE sleep ADD COLUMN mine INTEGER');
  });
  await expect(openWarehouse(path)).rejects.toThrow(
    'the warehouse has tables that Ringneck did not make so: sleep.mine is no column of ours; sync.windows.of_the_future is no column of ' +
      'ours. A newer Ringneck may have made what is in sync.*: update Ringneck; if none did, rename or undo them, or use another data folder',
  );
});

test('a sync.meta of somebody else is named as a difference', async () => {
  const path = newPath(folder);
  await (await openWarehouse(path)).close();
  await withDuckDB(path, connection => connection.run('DROP TABLE sync.meta; CREATE TABLE sync.meta (x INTEGER)'));
  await expect(openWarehouse(path)).rejects.toThrow('sync.meta.x is no column of ours');
});

test('a file that is no database is refused in one line', async () => {
  const path = await newFile();
  const { writeFileSync } = await import('node:fs');
  writeFileSync(path, 'nonsense'.repeat(10_000));
  await expect(openWarehouse(path)).rejects.toThrow(new RegExp(`^cannot open ${path}: .*[^\\n]$`));
});
