import { expect, onTestFinished, test } from 'vitest';
import { accountEntry } from '../../src/ledger/accounts.ts';
import { type CoverageSelection, readCoverage } from '../../src/sync/coverage.ts';
import { COLLECTIONS, DATED_COLLECTIONS } from '../support/declared.ts';
import { account, collections, knownClock, warehouseWith } from '../support/literal-pipeline.ts';
import { NOON, note, store, stress } from '../support/literal-readings.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse, rows } from '../support/warehouse.ts';

const folder = tempFolder();

test('without days those from the first planned one to yesterday (UTC), the same of every account; removed ones only when named', async () => {
  const warehouse = await warehouseWith(folder, [account('dee', { state: 'removed' }), account('ben'), account('ada')]);
  await note(warehouse, { user: 'dee', days: ['2025-01-01', '2025-01-01'], outcome: 'complete', when: '2025-03-09T00:00:00Z' });
  const read = (selection: CoverageSelection) =>
    readCoverage({ warehouse, collections, serviceClock: knownClock(() => NOON) }, { collections: ['daily_stress'], ...selection });
  expect(await read({})).toMatchObject({ from: '2025-03-09', to: '2025-03-09', runs: [{ user_id: 'ada' }, { user_id: 'ben' }] });
  await note(warehouse, { days: ['2025-03-03', '2025-03-08'], outcome: 'complete', when: '2025-03-09T00:00:00Z' });
  await note(warehouse, { collection: 'sleep', days: ['2025-03-02', '2025-03-12'], outcome: 'failed', when: '2025-03-09T00:00:00Z' });
  expect(await read({})).toEqual({
    from: '2025-03-02',
    to: '2025-03-09',
    over: '2025-03-09',
    runs: [
      { user_id: 'ada', collection: 'daily_stress', from: '2025-03-02', to: '2025-03-02', state: 'not_asked', reason: null },
      { user_id: 'ada', collection: 'daily_stress', from: '2025-03-03', to: '2025-03-08', state: 'empty', reason: null },
      { user_id: 'ada', collection: 'daily_stress', from: '2025-03-09', to: '2025-03-09', state: 'not_asked', reason: null },
      { user_id: 'ben', collection: 'daily_stress', from: '2025-03-02', to: '2025-03-09', state: 'not_asked', reason: null },
    ],
  });
  expect((await read({ users: ['dee'] })).from).toBe('2025-01-01');
  const named = await read({ users: ['dee'], from: '2025-01-01', to: '2025-01-02' });
  expect(named.runs.map(({ user_id, state, reason }) => [user_id, state, reason])).toEqual([
    ['dee', 'empty', null],
    ['dee', 'not_asked', 'the account is removed'],
  ]);
  // Accounts in their order, of each the collections in that of the specification.
  const all = await readCoverage({ warehouse, collections, serviceClock: knownClock(() => NOON) }, {});
  expect(all.runs.map(({ user_id, collection }) => `${user_id} ${collection}`).filter((place, i, list) => place !== list[i - 1])).toEqual(
    ['ada', 'ben'].flatMap(user => collections.map(({ name }) => `${user} ${name}`)),
  );
  await expect(read({ users: ['adda'] })).rejects.toThrow('no account "adda": there are ada, ben, dee');
  await expect(read({ collections: ['naps'] })).rejects.toThrow('no collection "naps": there are daily_readiness, ');
  await expect(read({ from: '0001-01-01', to: '9999-12-31' })).rejects.toThrow(
    '0001-01-01 to 9999-12-31 is more than 100 years: name days that are nearer to each other with --from and --to',
  );
  await expect(read({ from: '2025-03-10' })).rejects.toThrow('--from 2025-03-10 is after yesterday (UTC), 2025-03-09');
  await expect(read({ from: '2025-03-02', to: '2025-03-01' })).rejects.toThrow('--from 2025-03-02 is after --to 2025-03-01');
});

test('what was read in ten years of five accounts is told by the memory that storing has', async () => {
  const users = ['ada', 'ben', 'cleo', 'dee', 'eve'];
  const path = newPath(folder);
  const written = await openWarehouse(path);
  await written.record(users.map(name => accountEntry(account(name))));
  for (const user of users) {
    for (const { name } of collections) {
      const read = { user, collection: name, outcome: 'complete', when: '2025-03-09T00:00:00Z' } as const;
      if (name === 'ring_configuration') await note(written, { ...read, days: null });
      else
        for (const year of [2015, 2017, 2019, 2021, 2023]) await note(written, { ...read, days: [`${year}-01-01`, `${year + 1}-12-31`] });
    }
  }
  // One that has written has more.
  await written.close();
  const warehouse = await openWarehouse(path);
  onTestFinished(() => warehouse.close());
  const { runs } = await readCoverage(
    { warehouse, collections, serviceClock: knownClock(() => NOON) },
    { from: '2014-12-31', to: '2025-01-01' },
  );
  const known = (user: string, collection: string) => runs.filter(run => run.user_id === user && run.collection === collection);
  expect(known('eve', 'daily_stress')).toEqual([
    { user_id: 'eve', collection: 'daily_stress', from: '2014-12-31', to: '2014-12-31', state: 'not_asked', reason: null },
    { user_id: 'eve', collection: 'daily_stress', from: '2015-01-01', to: '2024-12-31', state: 'empty', reason: null },
    { user_id: 'eve', collection: 'daily_stress', from: '2025-01-01', to: '2025-01-01', state: 'not_asked', reason: null },
  ]);
  expect(known('ada', 'ring_configuration')).toEqual([
    { user_id: 'ada', collection: 'ring_configuration', from: null, to: null, state: 'empty', reason: null },
  ]);
  expect(runs).toHaveLength(5 * (DATED_COLLECTIONS * 3 + 1));
});

test('of a hundred accounts beside many that were removed each stretch of days is read once', async () => {
  const users = Array.from({ length: 100 }, (_, n) => `u${n}`);
  const gone = Array.from({ length: 210 }, (_, n) => account(`gone${n}`, { state: 'removed' }));
  const warehouse = await warehouseWith(folder, [...users.map(name => account(name)), ...gone]);
  await note(warehouse, { user: 'u7', days: ['2024-01-01', '2024-12-31'], outcome: 'complete', when: '2025-03-09T00:00:00Z' });
  await note(warehouse, { user: 'gone7', days: ['2024-01-01', '2024-12-31'], outcome: 'complete', when: '2025-03-09T00:00:00Z' });
  let read = 0;
  const counted = {
    readKept: (table: string, sql: string) => warehouse.readKept(table, sql),
    read: async (sql: string) => {
      const found = await warehouse.read(sql);
      if (sql.includes('coverage_between')) read += found.length;
      return found;
    },
  } as typeof warehouse;
  const { runs } = await readCoverage(
    { warehouse: counted, collections, serviceClock: knownClock(() => NOON) },
    { from: '2024-01-01', to: '2024-12-31' },
  );
  // All year the same of each.
  expect(runs).toHaveLength(100 * COLLECTIONS.length);
  expect(read).toBe(100 * COLLECTIONS.length);
  expect(runs.filter(({ state }) => state !== 'not_asked')).toEqual([
    { user_id: 'u7', collection: 'daily_stress', from: '2024-01-01', to: '2024-12-31', state: 'empty', reason: null },
  ]);
});

test('the view has the days from the first planned one to yesterday, without removed accounts, and says what its columns mean', async () => {
  const warehouse = await warehouseWith(folder, [account('ada'), account('dee', { state: 'removed' })]);
  const yesterday = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
  await note(warehouse, { days: ['2025-03-05', '2025-03-06'], outcome: 'complete', when: '2025-03-06T12:00:00Z' });
  await store(warehouse, 'daily_stress', [stress('2025-03-05')]);
  expect(
    await rows(warehouse, `SELECT * FROM sync.coverage WHERE collection = 'daily_stress' AND day < '2025-03-07' ORDER BY day`),
  ).toEqual([
    {
      user_id: 'ada',
      collection: 'daily_stress',
      day: '2025-03-05',
      state: 'stored',
      reason: null,
      documents: 1,
      read_at: '2025-03-06 12:00:00',
    },
    {
      user_id: 'ada',
      collection: 'daily_stress',
      day: '2025-03-06',
      state: 'not_asked',
      reason: 'last read before the day was over',
      documents: 0,
      read_at: '2025-03-06 12:00:00',
    },
  ]);
  expect(
    await rows(
      warehouse,
      'SELECT min(day) AS first, max(day) AS last, count(DISTINCT collection) AS names, count(DISTINCT user_id) AS users FROM sync.coverage',
    ),
  ).toEqual([{ first: '2025-03-05', last: yesterday, names: COLLECTIONS.length, users: 1 }]);
  expect(
    await rows(
      warehouse,
      `SELECT table_name, column_name FROM duckdb_columns() WHERE schema_name = 'sync' AND comment IS NULL AND NOT internal
       UNION ALL SELECT view_name, NULL FROM duckdb_views() WHERE schema_name = 'sync' AND comment IS NULL
       UNION ALL SELECT function_name, NULL FROM duckdb_functions() WHERE schema_name = 'sync' AND comment IS NULL`,
    ),
  ).toEqual([]);
});
