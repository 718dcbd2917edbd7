import { cpSync, readdirSync, readFileSync } from 'node:fs';
import { DuckDBConnection } from '@duckdb/node-api';
import { afterEach, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { integer } from '../../schema/fields.ts';
import { resources } from '../../schema/index.ts';
import { inOrder } from '../../src/warehouse/schema/views.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse, resourceNamed, rows, rowsOf, store, withDuckDB } from '../support/warehouse.ts';
import { SLEEP } from '../support/wire.ts';

const folder = tempFolder();

afterEach(() => {
  vi.restoreAllMocks();
});

const NIGHTS = 'SELECT user_id, day, total_sleep_duration FROM nights';
const THE_NIGHT = [{ user_id: 'ann', day: '2025-01-15', total_sleep_duration: 25080 }];
const COMMENTS = `SELECT view_name AS name, comment FROM duckdb_views() WHERE NOT internal
  UNION ALL SELECT concat_ws('.', schema_name, table_name, column_name), comment FROM duckdb_columns() WHERE NOT internal
  UNION ALL SELECT function_name, comment FROM duckdb_functions() WHERE NOT internal ORDER BY ALL`;

test('what every script in schema/views makes is in a new warehouse', async () => {
  const views = new URL('../../schema/views/', import.meta.url);
  const made = readdirSync(views).flatMap(file => {
    const created = readFileSync(new URL(file, views), 'utf8').matchAll(/^CREATE OR REPLACE (?:VIEW|MACRO) (?:(\w+)\.)?(\w+)/gm);
    return [...created].map(([, schema = 'main', name]) => `${schema}.${name}`);
  });
  const warehouse = await openWarehouse(newPath(folder));
  const there = await warehouse.read(
    `SELECT schema_name || '.' || view_name FROM duckdb_views() UNION SELECT schema_name || '.' || function_name FROM duckdb_functions()`,
  );
  expect(made.filter(name => !there.flat().includes(name))).toEqual([]);
  expect(made.length).toBeGreaterThan(10);
  await warehouse.close();
});

let made: string | undefined;

/** A closed warehouse with one night in it, a copy of the one that is made first. */
async function newFile(): Promise<string> {
  if (!made) {
    made = newPath(folder);
    const warehouse = await openWarehouse(made);
    await store(warehouse, 'sleep', [SLEEP]);
    await warehouse.close();
  }
  const path = newPath(folder);
  cpSync(made, path);
  return path;
}

/** Whatever is done to the file by somebody else, the next start leaves the views as the first one made them. */
async function expectMended(path: string, statements: string) {
  const before = await withDuckDB(path, connection => rowsOf(connection, COMMENTS));
  await withDuckDB(path, connection => connection.run(statements));
  const warehouse = await openWarehouse(path);
  expect(await rows(warehouse, NIGHTS)).toEqual(THE_NIGHT);
  await warehouse.close();
  expect(await withDuckDB(path, connection => rowsOf(connection, COMMENTS))).toEqual(before);
}

test('every view, column of a view and macro has a comment', async () => {
  const path = await newFile();
  const found = await withDuckDB(path, async connection => ({
    views: await rowsOf(connection, 'SELECT view_name AS name FROM duckdb_views() WHERE NOT internal'),
    macros: await rowsOf(connection, 'SELECT function_name AS name FROM duckdb_functions() WHERE NOT internal'),
    mute: await rowsOf(connection, `SELECT name FROM (${COMMENTS}) WHERE coalesce(trim(comment), '') = ''`),
  }));
  expect(found.mute).toEqual([]);
  expect(found.views).toEqual(
    expect.arrayContaining(
      ['daily', 'nights', 'naps', 'sleep_stages', 'sleep_stage_spans', 'sleep_movement', 'activity_classes', 'heart_rate_all']
        .concat(['hrv_nights', 'met_minutes', 'baselines', 'weekly', 'workouts', 'coverage'])
        .map(name => ({ name })),
    ),
  );
  expect(found.macros).toEqual(expect.arrayContaining(['local', 'hhmm', 'night_of', 'activity_day_of'].map(name => ({ name }))));
});

/** Comments of columns as the file has them. */
const commentsOn = (path: string, ...columns: string[]) =>
  withDuckDB(path, async connection => {
    const places = `SELECT concat_ws('.', table_name, column_name) AS name, comment FROM duckdb_columns() WHERE schema_name = 'main'`;
    const found = (await rowsOf(connection, places)) as { name: string; comment: string | null }[];
    return columns.map(column => found.find(({ name }) => name === column)?.comment);
  });

test('a view’s column without a comment has the one of the column that it is, through other views and under another name', async () => {
  expect(
    await commentsOn(await newFile(), 'nights.efficiency', 'naps.user_id', 'naps.temperature_deviation', 'heart_rate_all.user_id'),
  ).toEqual([
    'Share of time in bed spent asleep [%]',
    'The account, as named by `account add`',
    'Deviation of the skin temperature from the person’s usual, of the readiness of this sleep [°C]',
    'The account, as named by `account add`',
  ]);
});

test('a comment of a table that a later version words otherwise is so in the views too', async () => {
  const path = newPath(folder);
  const shape = { ...resourceNamed('sleep').document.shape, efficiency: integer('Of an earlier version', '%').nullish() };
  const earlier = { ...resourceNamed('sleep'), document: z.object(shape) };
  await (await openWarehouse(path, { resources: resources.map(one => (one.name === 'sleep' ? earlier : one)) })).close();
  expect(await commentsOn(path, 'nights.efficiency')).toEqual(['Of an earlier version [%]']);
  await (await openWarehouse(path)).close();
  expect(await commentsOn(path, 'nights.efficiency')).toEqual(['Share of time in bed spent asleep [%]']);
});

test('each script comes after those that its first line names', () => {
  const script = (name: string, after?: string) => ({ name, sql: `${after ? `-- after: ${after}\n` : ''}SELECT 1` });
  const names = (scripts: ReturnType<typeof inOrder>) => scripts.map(({ name }) => name);
  expect(names(inOrder([script('a', 'c, d'), script('b'), script('c', 'd'), script('d')]))).toEqual(['b', 'd', 'c', 'a']);
  expect(() => inOrder([script('a', 'b'), script('b', 'a'), script('c')])).toThrow('a.sql, b.sql: after a script that is not there');
  expect(() => inOrder([script('a', 'z')])).toThrow('a.sql: after a script that is not there, or after each other');
});

test('a number in a view has a unit in its comment, or is a number of something', async () => {
  const path = await newFile();
  const unitless = await withDuckDB(path, connection =>
    rowsOf(
      connection,
      `SELECT table_name, column_name FROM duckdb_columns() c JOIN duckdb_views() v ON v.view_name = c.table_name AND v.schema_name = c.schema_name
       WHERE NOT v.internal AND c.schema_name = 'main' AND data_type IN ('BIGINT', 'INTEGER', 'DOUBLE', 'HUGEINT')
       AND NOT regexp_matches(c.comment, '\\[[^\\]]+\\]') AND column_name NOT IN ('sk') AND NOT starts_with(column_name, 'z_')`,
    ),
  );
  expect(unitless).toEqual([]);
});

test('no column is a HUGEINT, which other tools read as a float or not at all', async () => {
  const path = await newFile();
  const huge = `SELECT table_name, column_name FROM duckdb_columns() WHERE NOT internal AND data_type IN ('HUGEINT', 'UHUGEINT')`;
  expect(await withDuckDB(path, connection => rowsOf(connection, huge))).toEqual([]);
});

test('a warehouse from before the views gets them', async () => {
  await expectMended(
    await newFile(),
    `DROP VIEW workouts; DROP VIEW nights; DROP VIEW counted_sleeps; DROP VIEW ranked_sleeps; DROP VIEW weekly; DROP MACRO local; DROP MACRO hhmm; DROP MACRO TABLE baselines_between; DROP MACRO TABLE usual_between; DROP MACRO TABLE measured_between; DROP MACRO TABLE daily_between; DROP MACRO TABLE facts_between; DROP MACRO metric_at; DROP MACRO robust_z; DELETE FROM sync.meta WHERE key = 'views'`
      .concat(`; DROP VIEW naps; DROP VIEW sleep_stages; DROP VIEW sleep_stage_spans; DROP VIEW sleep_movement; DROP VIEW activity_classes`)
      .concat(
        `; DROP VIEW heart_rate_all; DROP VIEW heart_rate_sources; DROP VIEW hrv_nights; DROP VIEW met_minutes; DROP VIEW daily; DROP VIEW baselines`,
      )
      .concat(
        `; DROP MACRO night_of; DROP MACRO activity_day_of; DROP VIEW sync.coverage; DROP MACRO TABLE sync.coverage_between; DROP MACRO sync.over_at`,
      )
      .concat(`; DROP VIEW sync.collections; DROP VIEW sync.document_days`),
  );
});

test.each([
  ['a view that somebody replaced', 'CREATE OR REPLACE VIEW nights AS SELECT 1 AS one'],
  ['a view that somebody dropped', 'DROP VIEW nights'],
  ['a macro that somebody replaced', 'CREATE OR REPLACE MACRO hhmm(x, y) AS 1'],
  ['a macro that somebody replaced by one of the same form', 'CREATE OR REPLACE MACRO local(ts, utc_offset) AS ts'],
  ['a comment that somebody changed', `COMMENT ON COLUMN nights.efficiency IS 'good'`],
  [
    'a start that was cut off while they were made',
    `UPDATE sync.meta SET value = json_merge_patch(value, '{"hash":""}') WHERE key = 'views'`,
  ],
])('%s is fixed at the next start', async (_, statements) => {
  await expectMended(await newFile(), statements);
});

test('where they are there nothing is written, also beside a view of somebody else that works no more', async () => {
  const path = await newFile();
  await withDuckDB(path, connection =>
    connection.run(
      'CREATE TABLE t (a INTEGER); CREATE VIEW broken AS SELECT a FROM t; DROP TABLE t; CREATE VIEW my_nights AS SELECT day FROM nights',
    ),
  );
  const statements: string[] = [];
  const run = DuckDBConnection.prototype.run;
  vi.spyOn(DuckDBConnection.prototype, 'run').mockImplementation(function (this: DuckDBConnection, ...parameters) {
    statements.push(parameters[0]);
    return run.apply(this, parameters);
  });
  await (await openWarehouse(path)).close();
  expect(statements.filter(statement => /VIEW|MACRO|sync\.meta/.test(statement) && !/^\s*SELECT/.test(statement))).toEqual([]);
});

test('a view and a macro that this version no longer has are dropped, those of others stay', async () => {
  const path = await newFile();
  await withDuckDB(path, connection =>
    connection.run(
      `CREATE VIEW of_old AS SELECT 1 AS one; CREATE MACRO of_old_too(x) AS x; CREATE TABLE of_old_three AS SELECT 3 AS three;
       CREATE VIEW mine AS SELECT day FROM nights; CREATE MACRO of_mine(x) AS x;
       UPDATE sync.meta SET value = json_object('ours', list_concat(json_extract_string(value, '$.ours[*]'),
         ['view of_old', 'macro of_old_too', 'view of_old_three', 'view long_gone']), 'hash', 'of an earlier version') WHERE key = 'views'`,
    ),
  );
  const warehouse = await openWarehouse(path);
  const named = `SELECT view_name AS name FROM duckdb_views() UNION ALL SELECT function_name FROM duckdb_functions() WHERE NOT internal
    UNION ALL SELECT table_name FROM duckdb_tables()`;
  expect(await rows(warehouse, `SELECT name FROM (${named}) WHERE name LIKE 'of_%' OR name = 'mine' ORDER BY name`)).toEqual([
    { name: 'mine' },
    { name: 'of_mine' },
    { name: 'of_old_three' },
  ]);
  expect(await rows(warehouse, 'SELECT day FROM mine')).toEqual([{ day: '2025-01-15' }]);
  await warehouse.close();
});

test.each([
  ['a table', 'CREATE TABLE Daily (x INTEGER)', 'the table daily'],
  ['a view', 'CREATE VIEW daily AS SELECT 1 AS one', 'the view daily'],
  ['a macro', 'CREATE MACRO hhmm(x) AS x', 'the macro hhmm'],
])('%s of somebody else under a name of ours is refused and named, and nothing is changed', async (_, statement, named) => {
  const path = await newFile();
  const everything = `${COMMENTS.replace('ORDER BY ALL', '')} UNION ALL SELECT key, value FROM sync.meta ORDER BY ALL`;
  const before = await withDuckDB(path, async connection => {
    await connection.run('DROP VIEW weekly; DROP VIEW baselines; DROP VIEW daily; DROP MACRO hhmm');
    // Of an earlier version that had neither of them.
    await connection.run(
      `UPDATE sync.meta SET value = json_object('ours', list_filter(json_extract_string(value, '$.ours[*]'), lambda x: x NOT IN ('view daily', 'macro hhmm')), 'hash', 'x') WHERE key = 'views'`,
    );
    await connection.run(statement);
    return rowsOf(connection, everything);
  });
  await expect(openWarehouse(path)).rejects.toThrow(
    `the warehouse has ${named}, which Ringneck did not make and whose name it needs: rename it, or use another data folder`,
  );
  expect(await withDuckDB(path, connection => rowsOf(connection, everything))).toEqual(before);
});

test('views and macros answer by their plain names, in a file that another DuckDB opens or attaches under another name', async () => {
  const path = await newFile();
  const question = `SELECT day, hhmm(total_sleep_duration) AS asleep, local(bedtime_start, bedtime_start_offset) AS bedtime FROM nights`;
  const answer = [{ day: '2025-01-15', asleep: '6:58', bedtime: '2025-01-14 23:20:42' }];
  expect(await withDuckDB(path, connection => rowsOf(connection, question))).toEqual(answer);
  const attached = await withDuckDB(':memory:', async connection => {
    await connection.run(`ATTACH '${path}' AS other (READ_ONLY)`);
    const spelled = await rowsOf(connection, 'SELECT day, steps FROM other.daily');
    await connection.run('USE other');
    return { spelled, used: await rowsOf(connection, question) };
  });
  expect(attached).toEqual({ spelled: [{ day: '2025-01-15', steps: null }], used: answer });
});
