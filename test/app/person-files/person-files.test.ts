import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { resources } from '../../../schema/index.ts';
import { removePersonFiles } from '../../../src/app/person-files/folder.ts';
import { PersonFiles } from '../../../src/app/person-files/person-files.ts';
import { readSettings } from '../../../src/base/config.ts';
import { TryLaterError, UsageError } from '../../../src/base/errors.ts';
import { mapAll } from '../../../src/warehouse/mapping.ts';
import { publishedTables } from '../../../src/warehouse/snapshot/publish.ts';
import { runHere } from '../../support/run-here.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { openWarehouse, rowsOf, withDuckDB } from '../../support/warehouse.ts';
import { ADAS, placeTwoPeople } from './two-people.ts';

const folder = tempFolder();
let folders = 0;
const never = new AbortController().signal;

function surroundings() {
  const data = join(folder, `d${++folders}`);
  mkdirSync(data, { mode: 0o700 });
  const env = { RINGNECK_DATA: data, RINGNECK_LOG_LEVEL: 'silent', RINGNECK_SERVICE_URL: 'http://127.0.0.1:9' };
  const settings = readSettings(env);
  return { data, env, settings, files: new PersonFiles(settings), place: join(data, 'person-files') };
}

const withoutNulls = (row: unknown) => Object.fromEntries(Object.entries(Object(row)).filter(([, value]) => value !== null));

/** All rows of all tables, as they would be written by hand. */
const readAll = (path: string) =>
  withDuckDB(
    path,
    async connection => {
      const all: Record<string, unknown> = {};
      for (const { name } of publishedTables(mapAll(resources))) {
        const columns = await connection.runAndReadAll(`DESCRIBE ${name}`);
        const jsons = columns.getRows().filter(([, type]) => type === 'JSON');
        const texts = jsons.map(([column]) => `"${column}"::VARCHAR AS "${column}"`);
        const replaced = texts.length ? ` REPLACE (${texts.join(', ')})` : '';
        const rows = await rowsOf(connection, `SELECT *${replaced} FROM ${name}`);
        if (rows.length) all[name] = rows.map(withoutNulls);
      }
      return all;
    },
    { access_mode: 'READ_ONLY' },
  );

const EXPECTED = {
  ...ADAS,
  // What was asked for names others.
  'sync.runs': [{ run_id: 'adas-run', kind: 'backfill', state: 'complete' }],
  'sync.routes': [{ route: 'GET /v2/usercollection/sleep', last_status: 200 }],
};

test.each([
  { name: 'the snapshot', asSnapshot: true },
  { name: 'a warehouse that nobody owns', asSnapshot: false },
])('of $name the file of a person has all tables with their rows, and nothing of anybody else', async ({ asSnapshot }) => {
  const { data, files, place } = surroundings();
  await placeTwoPeople(data, { asSnapshot });
  const { path } = await files.get('ada', never);
  expect(Object.keys(EXPECTED).concat('sync.drift').toSorted()).toEqual(
    publishedTables(mapAll(resources))
      .map(({ name }) => name)
      .toSorted(),
  );
  expect(await readAll(path)).toEqual(EXPECTED);
  expect(readFileSync(path).includes('bob-zz')).toBe(false);
  expect(readFileSync(path).includes('adas wine')).toBe(true);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(statSync(place).mode & 0o777).toBe(0o700);
  expect(readdirSync(place)).toHaveLength(1);
});

test('the views and macros of a snapshot are in it, and see the person', async () => {
  const { data, files } = surroundings();
  await placeTwoPeople(data, { asSnapshot: true });
  const { path } = await files.get('ada', never);
  const named = (connection: Parameters<typeof rowsOf>[0]) =>
    rowsOf(
      connection,
      `SELECT schema_name || '.' || view_name AS name FROM duckdb_views() WHERE NOT internal AND database_name = current_database()
       UNION SELECT schema_name || '.' || function_name FROM duckdb_functions() WHERE NOT internal AND database_name = current_database() ORDER BY 1`,
    );
  const whole = await withDuckDB(join(data, 'snapshot.duckdb'), named);
  expect(whole.length).toBeGreaterThan(20);
  await withDuckDB(path, async connection => {
    expect(await named(connection)).toEqual(whole);
    expect(await rowsOf(connection, 'SELECT user_id, day, hhmm(total_sleep_duration) AS asleep FROM nights')).toEqual([
      { user_id: 'ada', day: '2025-01-15', asleep: '6:58' },
    ]);
    expect(await rowsOf(connection, `SELECT DISTINCT user_id FROM sync.coverage_between('2025-01-14', '2025-01-15')`)).toEqual([
      { user_id: 'ada' },
    ]);
    expect(await rowsOf(connection, 'SELECT taken_at, newest_sk, changed_rows FROM sync.snapshot')).toEqual([
      { taken_at: '2025-06-01 00:00:00', newest_sk: 17, changed_rows: 0 },
    ]);
  });
});

test('it is made once, and again when the snapshot was published anew', async () => {
  const { data, settings, files } = surroundings();
  await placeTwoPeople(data);
  let now = Date.parse('2025-06-01T00:00:00Z');
  const warehouse = await openWarehouse(join(data, 'warehouse.duckdb'), { now: () => now });
  const snapshot = join(data, 'snapshot.duckdb');
  const elsewhere = join(folder, `published-${folders}.duckdb`);
  await warehouse.snapshot(snapshot, 0o600);
  now += 1_000;
  await warehouse.record([{ table: 'participants', key: { user_id: 'ada' }, row: { group_name: 'another' } }]);
  await warehouse.snapshot(elsewhere, 0o600);
  await warehouse.close();
  rmSync(join(data, 'warehouse.duckdb'));

  const { path } = await files.get('ada', never);
  const { ino } = statSync(path);
  expect((await files.get('ada', never)).path).toBe(path);
  // Another process knows nothing of what this one has compared.
  await new PersonFiles(settings).get('ada', never);
  expect(statSync(path).ino).toBe(ino);

  renameSync(elsewhere, snapshot);
  await files.get('ada', never);
  expect(await readAll(path)).toMatchObject({ participants: [{ user_id: 'ada', group_name: 'another' }] });
});

test('two who ask at one moment both get a whole file, and what a killed process or a torn file left is replaced', async () => {
  const { data, settings, files, place } = surroundings();
  await placeTwoPeople(data);
  const others = new PersonFiles(settings);
  const [one, two] = await Promise.all([files.get('ada', never), others.get('ada', never)]);
  expect(one.path).toBe(two.path);
  expect(await readAll(one.path)).toEqual(EXPECTED);
  expect(readdirSync(place)).toHaveLength(1);

  truncateSync(one.path, 10_000);
  const dead = `${one.path}.4194999.0123abcd.new`;
  mkdirSync(dead);
  await files.get('ada', never);
  expect(await readAll(one.path)).toEqual(EXPECTED);
  expect(existsSync(dead)).toBe(false);
});

test('without a warehouse, or for a name that nobody has, there is no file', async () => {
  const { data, files, place } = surroundings();
  await expect(files.get('ada', never)).rejects.toThrow(
    new UsageError(
      `there is no warehouse in ${data}: to begin here, ringneck account add NAME; where yours is elsewhere, go to that folder, or set RINGNECK_DATA to it`,
    ),
  );
  await placeTwoPeople(data);
  const message = 'no account "carl" is known here: ringneck account list shows those there are';
  await expect(files.get('carl', never)).rejects.toThrow(new UsageError(message));
  expect(readdirSync(place)).toEqual([]);
});

test('who is erased while their file is made does not come back by it', async () => {
  const { data, files, place } = surroundings();
  await placeTwoPeople(data);
  const making = files.get('ada', never).catch((error: unknown) => error);
  while (!existsSync(place) || !readdirSync(place).length) await setImmediate();
  removePersonFiles(data);
  expect(await making).toBeInstanceOf(TryLaterError);
  expect(existsSync(place) ? readdirSync(place) : []).toEqual([]);
});

test('an erasing and a move remove the files, and a backup does not have them', async () => {
  const { data, env, files, place } = surroundings();
  await placeTwoPeople(data);
  await files.get('ada', never);
  const backup = join(folder, 'backup');
  expect(await runHere(['backup', backup], { env })).toMatchObject({ code: 0 });
  expect(readdirSync(backup, { recursive: true }).filter(name => String(name).includes('person'))).toEqual([]);

  expect(await runHere(['account', 'move', 'bob-zz', 'bert'], { env })).toMatchObject({ code: 0 });
  expect(existsSync(place)).toBe(false);
  await files.get('bert', never);
  await files.get('ada', never);
  expect(readdirSync(place)).toHaveLength(2);

  const erased = await runHere(['account', 'remove', 'bert', '--erase', '--yes', '--json'], { env });
  expect(JSON.parse(erased.stdout)).toMatchObject({ found: [], unsearched: [] });
  expect(existsSync(place)).toBe(false);
});
