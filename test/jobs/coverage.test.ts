import { expect, test } from 'vitest';
import { accountEntry } from '../../jobs/accounts.ts';
import { type CoverageSelection, readCoverage } from '../../jobs/coverage.ts';
import type { Outcome } from '../../jobs/outcome.ts';
import { windowEntry } from '../../jobs/windows.ts';
import type { Warehouse } from '../../src/warehouse/warehouse.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { resourceNamed, rows } from '../support/warehouse.ts';
import { RING, STRESS } from '../support/wire.ts';
import { account, at, collections, warehouseWith } from './literal-pipeline.ts';

const folder = tempFolder();
const NOON = Date.parse('2025-03-10T12:00:00Z');

interface Reading {
  collection?: string;
  user?: string;
  run?: string;
  /** Days, both included; null where the collection has none. */
  days: [from: string, to: string] | null;
  outcome: Outcome | null;
  /** When it was asked and committed. */
  when?: string;
  reason?: string;
  rowsByDay?: number[];
  rejects?: { rejected: number; undated: number };
}

let runs = 0;

async function note(warehouse: Warehouse, { collection = 'daily_stress', user = 'ada', days, when, ...rest }: Reading): Promise<void> {
  const runId = rest.run ?? `run-${++runs}`;
  const startAt = days && at(`${days[0]}T00:00:00Z`);
  const endAt = days && at(`${days[1]}T00:00:00Z`) + 86_400_000_000;
  const settled = rest.outcome !== null && rest.outcome !== 'stopped' && when ? { committedAt: at(when) } : {};
  const asked = rest.outcome === 'complete' && when ? { requestedAt: at(when) } : {};
  await warehouse.record([
    {
      table: 'sync.runs',
      key: { run_id: runId },
      row: { kind: 'backfill', started_at: at(when ?? '2025-03-01T00:00:00Z'), state: 'running' },
    },
    windowEntry({ runId, number: 0, userId: user, collection, startAt, endAt }, { ...rest, ...settled, ...asked }),
  ]);
}

const store = (warehouse: Warehouse, name: string, documents: object[], removed: string[] = []) =>
  warehouse.storeDocuments({ userId: 'ada', resource: resourceNamed(name), requestedAt: warehouse.moments.begin(), documents, removed });

const stress = (day: string) => ({ ...STRESS, id: `t-${day}`, day });

/** As `from–to state: reason`. */
async function told(warehouse: Warehouse, selection: CoverageSelection = {}): Promise<string[]> {
  const report = await readCoverage({ warehouse, collections, now: () => NOON }, { collections: ['daily_stress'], ...selection });
  return report.runs.map(({ from, to, state, reason }) => {
    const days = from === null ? 'no day' : from === to ? from.slice(5) : `${from.slice(5)} to ${to!.slice(5)}`;
    return `${days} ${state}${reason === null ? '' : `: ${reason}`}`;
  });
}

const march: [string, string] = ['2025-03-05', '2025-03-07'];
const days = { from: '2025-03-05', to: '2025-03-07' };

test.each<[name: string, readings: Reading[], expected: string[]]>([
  ['nothing was asked', [], ['03-05 to 03-07 not_asked']],
  ['a complete reading', [{ days: march, outcome: 'complete', when: '2025-03-09T00:00:00Z' }], ['03-05 to 03-07 empty']],
  [
    'a reading that began before the last day was over, and one that began as it ended',
    [
      { days: march, outcome: 'complete', when: '2025-03-07T23:59:59Z' },
      { days: ['2025-03-05', '2025-03-06'], outcome: 'complete', when: '2025-03-07T00:00:00Z' },
    ],
    ['03-05 to 03-06 empty', '03-07 not_asked: last read before the day was over'],
  ],
  [
    'a reading that failed after a complete one of a part',
    [
      { days: ['2025-03-05', '2025-03-05'], outcome: 'complete', when: '2025-03-08T00:00:00Z' },
      { days: ['2025-03-06', '2025-03-07'], outcome: 'failed', when: '2025-03-08T00:00:01Z', reason: 'answered 500' },
    ],
    ['03-05 empty', '03-06 to 03-07 failed: answered 500'],
  ],
  [
    'a complete reading after one that failed',
    [
      { days: march, outcome: 'failed', when: '2025-03-08T00:00:00Z', reason: 'answered 500' },
      { days: march, outcome: 'complete', when: '2025-03-08T00:00:01Z' },
    ],
    ['03-05 to 03-07 empty'],
  ],
  [
    'a reading that failed over days that were read before: the latest decides',
    [
      { days: march, outcome: 'complete', when: '2025-03-08T00:00:00Z' },
      { days: march, outcome: 'failed', when: '2025-03-09T00:00:00Z', reason: 'answered 500' },
    ],
    ['03-05 to 03-07 failed: answered 500'],
  ],
  [
    'a planned window after one that failed',
    [
      { days: march, outcome: 'failed', when: '2025-03-08T00:00:00Z', reason: 'answered 500' },
      { days: ['2025-03-06', '2025-03-07'], outcome: null, when: '2025-03-09T00:00:00Z' },
    ],
    ['03-05 failed: answered 500', '03-06 to 03-07 pending: failed before: answered 500'],
  ],
  [
    'a planned window whose days another run has read since, and one whose days had been read before',
    [
      { days: ['2025-03-05', '2025-03-05'], outcome: null, when: '2025-03-08T00:00:00Z' },
      { days: ['2025-03-05', '2025-03-05'], outcome: 'complete', when: '2025-03-08T12:00:00Z' },
      { days: ['2025-03-06', '2025-03-06'], outcome: 'complete', when: '2025-03-08T12:00:00Z' },
      { days: ['2025-03-06', '2025-03-07'], outcome: null, when: '2025-03-09T00:00:00Z' },
    ],
    ['03-05 to 03-06 empty', '03-07 pending'],
  ],
  ['a run that was stopped', [{ days: march, outcome: 'stopped' }], ['03-05 to 03-07 not_asked: its run was stopped']],
  [
    'a collection that is not offered',
    [{ days: march, outcome: 'not_offered', when: '2025-03-09T00:00:00Z', reason: 'answered 404' }],
    ['03-05 to 03-07 not_offered: answered 404'],
  ],
  [
    'a collection that is refused: also the days that nobody asked for since',
    [{ days: ['2025-03-05', '2025-03-05'], outcome: 'not_authorised', when: '2025-03-09T00:00:00Z', reason: 'no scope' }],
    ['03-05 to 03-07 not_authorised: no scope'],
  ],
  [
    'a suspicious answer',
    [{ days: march, outcome: 'suspicious', when: '2025-03-09T00:00:00Z', reason: '12 are missing' }],
    ['03-05 to 03-07 suspicious: 12 are missing'],
  ],
  [
    'a reading that brought what could not be stored: while its day is unknown no day is empty',
    [
      {
        days: ['2025-03-05', '2025-03-06'],
        outcome: 'complete',
        when: '2025-03-09T00:00:00Z',
        rejects: { rejected: 3, undated: 1 },
      },
      {
        days: ['2025-03-07', '2025-03-07'],
        outcome: 'complete',
        when: '2025-03-09T00:00:00Z',
        rejects: { rejected: 3, undated: 0 },
      },
    ],
    ['03-05 to 03-06 failed: what came could not be stored, and its day is unknown (sync.rejected)', '03-07 empty'],
  ],
  [
    'a reading without such a document after one with it, and one that is planned',
    [
      { days: march, outcome: 'complete', when: '2025-03-09T00:00:00Z', rejects: { rejected: 1, undated: 1 } },
      {
        days: ['2025-03-05', '2025-03-05'],
        outcome: 'complete',
        when: '2025-03-09T00:00:01Z',
        rejects: { rejected: 0, undated: 0 },
      },
      { days: ['2025-03-07', '2025-03-07'], outcome: null, when: '2025-03-09T00:00:02Z' },
    ],
    ['03-05 empty', '03-06 failed: what came could not be stored, and its day is unknown (sync.rejected)', '03-07 pending'],
  ],
  ['a window that lay in the future when it was its turn', [{ days: march, outcome: 'complete' }], ['03-05 to 03-07 not_asked']],
])('%s', async (_, readings, expected) => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  for (const reading of readings) await note(warehouse, reading);
  expect(await told(warehouse, days)).toEqual(expected);
});

test('what is stored is never called missing, and what is wrong about its last reading is told with it', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  await store(warehouse, 'daily_stress', ['2025-03-01', '2025-03-02', '2025-03-03', '2025-03-04', '2025-03-05', '2025-03-09'].map(stress));
  await note(warehouse, { days: ['2025-03-02', '2025-03-02'], outcome: 'complete', when: '2025-03-09T00:00:00Z' });
  await note(warehouse, { days: ['2025-03-03', '2025-03-03'], outcome: 'failed', when: '2025-03-09T00:00:00Z', reason: 'answered 500' });
  await note(warehouse, { days: ['2025-03-04', '2025-03-04'], outcome: null, when: '2025-03-09T00:00:00Z' });
  await note(warehouse, { days: ['2025-03-05', '2025-03-05'], outcome: 'suspicious', when: '2025-03-09T00:00:00Z', reason: 'gone' });
  await note(warehouse, { days: ['2025-03-09', '2025-03-09'], outcome: 'complete', when: '2025-03-09T20:00:00Z' });
  expect(await told(warehouse, { from: '2025-03-01' })).toEqual([
    // The first came with an event.
    '03-01 to 03-02 stored',
    '03-03 stored: failed when last read: answered 500',
    '03-04 stored',
    '03-05 suspicious: gone',
    '03-06 to 03-08 not_asked',
    '03-09 stored: last read before the day was over',
  ]);
});

test('a document that is gone leaves an empty day, one that could not be stored a failed one', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  await store(warehouse, 'daily_stress', [stress('2025-03-05')]);
  await note(warehouse, { days: march, outcome: 'complete', when: '2025-03-09T00:00:00Z' });
  expect(await told(warehouse, days)).toEqual(['03-05 stored', '03-06 to 03-07 empty']);
  await store(warehouse, 'daily_stress', [{ ...stress('2025-03-06'), day_summary: 7, id: 9 }], ['t-2025-03-05']);
  expect(await told(warehouse, days)).toEqual([
    '03-05 empty',
    '03-06 failed: what came could not be stored (sync.rejected)',
    '03-07 empty',
  ]);
});

test('heart rate is known by the counts of its windows; only where an older window has none its rows are counted', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  const only = { collections: ['heart_rate'], from: '2025-03-01', to: '2025-03-06' };
  await note(warehouse, {
    collection: 'heart_rate',
    days: ['2025-03-01', '2025-03-03'],
    outcome: 'complete',
    when: '2025-03-08T00:00:00Z',
    rowsByDay: [1200, 0, 7],
  });
  await note(warehouse, {
    collection: 'heart_rate',
    days: ['2025-03-04', '2025-03-05'],
    outcome: 'complete',
    when: '2025-03-08T00:00:00Z',
  });
  const row = (timestamp: string) => ({ timestamp, timestamp_unix: Date.parse(timestamp), bpm: 60, source: 'awake' });
  let counted: readonly number[] = [];
  await warehouse.storeHeartRate(
    {
      userId: 'ada',
      from: at('2025-03-04T00:00:00Z'),
      to: at('2025-03-06T09:00:00Z'),
      requestedAt: warehouse.moments.begin(),
      // The second is another day in UTC, the last one lies outside.
      rows: [
        '2025-03-05T00:00:00.000+00:00',
        '2025-03-05T00:30:00.000+01:00',
        '2025-03-05T23:59:59.999+00:00',
        '2025-03-06T09:00:00.000+00:00',
      ].map(row),
    },
    {
      ledger: rowsByDay => {
        counted = rowsByDay;
        return [];
      },
    },
  );
  expect(counted).toEqual([1, 2, 0]);
  expect(await told(warehouse, only)).toEqual(['03-01 stored', '03-02 empty', '03-03 to 03-05 stored', '03-06 not_asked']);
  expect(
    await rows(
      warehouse,
      `SELECT day, documents FROM sync.coverage_between('2025-03-01', '2025-03-06') WHERE collection = 'heart_rate' ORDER BY day`,
    ),
  ).toEqual([
    { day: '2025-03-01', documents: 1200 },
    { day: '2025-03-02', documents: 0 },
    { day: '2025-03-03', documents: 7 },
    { day: '2025-03-04', documents: 1 },
    { day: '2025-03-05', documents: 2 },
    { day: '2025-03-06', documents: 0 },
  ]);
  // A reading that failed since takes nothing from what was read.
  await note(warehouse, {
    collection: 'heart_rate',
    days: ['2025-03-01', '2025-03-02'],
    outcome: 'failed',
    when: '2025-03-09T00:00:00Z',
    reason: 'no',
  });
  expect((await told(warehouse, only)).slice(0, 2)).toEqual(['03-01 stored: failed when last read: no', '03-02 failed: no']);
});

test('rings belong to no day', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  const only = { collections: ['ring_configuration'] };
  expect(await told(warehouse, only)).toEqual(['no day not_asked']);
  await note(warehouse, {
    collection: 'ring_configuration',
    days: null,
    outcome: 'not_offered',
    when: '2025-03-08T00:00:00Z',
    reason: 'answered 404',
  });
  expect(await told(warehouse, only)).toEqual(['no day not_offered: answered 404']);
  await note(warehouse, { collection: 'ring_configuration', days: null, outcome: 'complete', when: '2025-03-09T00:00:00Z' });
  expect(await told(warehouse, only)).toEqual(['no day empty']);
  const rejects = { rejected: 1, undated: 1 };
  await note(warehouse, { collection: 'ring_configuration', days: null, outcome: 'complete', when: '2025-03-09T00:00:01Z', rejects });
  expect(await told(warehouse, only)).toEqual(['no day failed: what came could not be stored (sync.rejected)']);
  await store(warehouse, 'ring_configuration', [RING]);
  expect(await told(warehouse, only)).toEqual(['no day stored']);
});

test.each<[name: string, state: Parameters<typeof account>[1], expected: string[]]>([
  [
    'paused',
    { state: 'paused', reason: 'paused by command' },
    ['03-05 empty', '03-06 to 03-07 not_asked: the account is paused: paused by command'],
  ],
  [
    'parked',
    { state: 'parked', reason: 'forbidden: lapsed' },
    ['03-05 empty', '03-06 to 03-07 not_authorised: the account is parked: forbidden: lapsed'],
  ],
])('the days that nobody asked for of an account that is %s', async (_, state, expected) => {
  const warehouse = await warehouseWith(folder, [account('ada', state)]);
  await note(warehouse, { days: ['2025-03-05', '2025-03-05'], outcome: 'complete', when: '2025-03-09T00:00:00Z' });
  expect(await told(warehouse, days)).toEqual(expected);
});

test('a refusal holds until the account has a new token or was resumed', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  await note(warehouse, { days: march, outcome: 'not_authorised', when: '2025-03-09T00:00:00Z', reason: 'no scope' });
  expect(await told(warehouse, days)).toEqual(['03-05 to 03-07 not_authorised: no scope']);
  await warehouse.record([accountEntry(account('ada', { since: at('2025-03-09T00:00:01Z') }))]);
  expect(await told(warehouse, days)).toEqual(['03-05 to 03-07 not_asked: was refused, and may be asked again']);
});

test('without days those from the first planned one to yesterday (UTC), the same of every account; removed ones only when named', async () => {
  const warehouse = await warehouseWith(folder, [account('dee', { state: 'removed' }), account('ben'), account('ada')]);
  await note(warehouse, { user: 'dee', days: ['2025-01-01', '2025-01-01'], outcome: 'complete', when: '2025-03-09T00:00:00Z' });
  const read = (selection: CoverageSelection) =>
    readCoverage({ warehouse, collections, now: () => NOON }, { collections: ['daily_stress'], ...selection });
  expect(await read({})).toMatchObject({ from: '2025-03-09', to: '2025-03-09', runs: [{ user_id: 'ada' }, { user_id: 'ben' }] });
  await note(warehouse, { days: ['2025-03-03', '2025-03-08'], outcome: 'complete', when: '2025-03-09T00:00:00Z' });
  await note(warehouse, { collection: 'sleep', days: ['2025-03-02', '2025-03-12'], outcome: 'failed', when: '2025-03-09T00:00:00Z' });
  expect(await read({})).toEqual({
    from: '2025-03-02',
    to: '2025-03-09',
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
  const all = await readCoverage({ warehouse, collections, now: () => NOON }, {});
  expect(all.runs.map(({ user_id, collection }) => `${user_id} ${collection}`).filter((place, i, list) => place !== list[i - 1])).toEqual(
    ['ada', 'ben'].flatMap(user => collections.map(({ name }) => `${user} ${name}`)),
  );
  await expect(read({ users: ['adda'] })).rejects.toThrow('no account "adda": there are ada, ben, dee');
  await expect(read({ collections: ['naps'] })).rejects.toThrow('no resource "naps": there are daily_readiness, ');
  await expect(read({ from: '0001-01-01', to: '9999-12-31' })).rejects.toThrow(
    '0001-01-01 to 9999-12-31 is more than 100 years: name days that are nearer to each other with --from and --to',
  );
  await expect(read({ from: '2025-03-10' })).rejects.toThrow('--from 2025-03-10 is after yesterday (UTC), 2025-03-09');
  await expect(read({ from: '2025-03-02', to: '2025-03-01' })).rejects.toThrow('--from 2025-03-02 is after --to 2025-03-01');
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
  ).toEqual([{ first: '2025-03-05', last: yesterday, names: 12, users: 1 }]);
  expect(
    await rows(
      warehouse,
      `SELECT table_name, column_name FROM duckdb_columns() WHERE schema_name = 'sync' AND comment IS NULL AND NOT internal
       UNION ALL SELECT view_name, NULL FROM duckdb_views() WHERE schema_name = 'sync' AND comment IS NULL
       UNION ALL SELECT function_name, NULL FROM duckdb_functions() WHERE schema_name = 'sync' AND comment IS NULL`,
    ),
  ).toEqual([]);
});
