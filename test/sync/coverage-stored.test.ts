import { expect, test } from 'vitest';
import { addDays } from '../../schema/instant.ts';
import { WIDENED_DAYS, windowEntry } from '../../src/ledger/windows.ts';
import { planRepair } from '../../src/sync/coverage.ts';
import { account, at, pipelineOf, warehouseWith } from '../support/literal-pipeline.ts';
import { days, march, NOON, note, type Reading, store, stress, told } from '../support/literal-readings.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { rows } from '../support/warehouse.ts';
import { RING } from '../support/wire.ts';

const folder = tempFolder();

test('what came of a day is stored once the whole day was read, or nobody has begun to read it; what is wrong is told with it', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  await store(warehouse, 'daily_stress', ['2025-02-28', '2025-03-02', '2025-03-03', '2025-03-06', '2025-03-09'].map(stress));
  await note(warehouse, { days: ['2025-03-02', '2025-03-03'], outcome: 'complete', when: '2025-03-08T00:00:00Z' });
  await note(warehouse, { days: ['2025-03-03', '2025-03-03'], outcome: 'failed', when: '2025-03-09T00:00:00Z', reason: 'answered 500' });
  await note(warehouse, { days: ['2025-03-06', '2025-03-06'], outcome: 'suspicious', when: '2025-03-09T00:00:00Z', reason: 'gone' });
  await note(warehouse, { days: ['2025-03-09', '2025-03-09'], outcome: 'complete', when: '2025-03-09T20:00:00Z' });
  expect(await told(warehouse, { from: '2025-02-28' })).toEqual([
    // The first came with an event.
    '02-28 stored',
    '03-01 not_asked',
    '03-02 stored',
    '03-03 stored: failed when last read: answered 500',
    '03-04 to 03-05 not_asked',
    '03-06 suspicious: gone',
    '03-07 to 03-08 not_asked',
    '03-09 stored: last read before the day was over',
  ]);
});

const BESIDE = 'read beside other days only, and not to the end';
const ASKED = { userId: 'ada', collection: 'daily_stress', from: '2025-03-04', to: '2025-03-07' };

test.each<[name: string, reading: Pick<Reading, 'outcome' | 'when' | 'reason'>, expected: string[], repair: object[] | undefined]>([
  [
    'failed',
    { outcome: 'failed', when: '2025-03-09T00:00:00Z', reason: 'answered 500' },
    ['03-04 not_asked', '03-05 failed: answered 500', '03-06 not_asked', `03-07 not_asked: ${BESIDE}`],
    [ASKED],
  ],
  [
    'was stopped',
    { outcome: 'stopped' },
    ['03-04 not_asked', '03-05 not_asked: its run was stopped', '03-06 not_asked', `03-07 not_asked: ${BESIDE}`],
    [ASKED],
  ],
  [
    'was killed',
    { outcome: null, when: '2025-03-09T00:00:00Z' },
    ['03-04 not_asked', '03-05 pending', '03-06 not_asked', `03-07 not_asked: ${BESIDE}`],
    [ASKED],
  ],
  [
    'was refused',
    { outcome: 'not_authorised', when: '2025-03-09T00:00:00Z', reason: 'no scope' },
    ['03-04 to 03-07 not_authorised: no scope'],
    undefined,
  ],
])(
  'a day of which a part may have come before its reading %s is not stored, nor is a day beside it',
  async (_, reading, expected, repair) => {
    const warehouse = await warehouseWith(folder, [account('ada')]);
    const pipeline = await pipelineOf(warehouse, NOON, ['daily_stress']);
    await note(warehouse, { days: ['2025-03-02', '2025-03-03'], outcome: 'complete', when: '2025-03-08T00:00:00Z' });
    await store(warehouse, 'daily_stress', ['2025-03-01', '2025-03-03', '2025-03-05', '2025-03-07', '2025-03-08'].map(stress));
    await note(warehouse, { days: ['2025-03-05', '2025-03-05'], ...reading });
    const all = { from: '2025-03-01', to: '2025-03-08' };
    expect(await told(warehouse, all)).toEqual(['03-01 stored', '03-02 empty', '03-03 stored', ...expected, '03-08 stored']);
    expect((await planRepair(pipeline, { collections: ['daily_stress'], ...all })).request?.spans).toEqual(repair);
    await note(warehouse, { days: ['2025-03-04', '2025-03-07'], outcome: 'complete', when: '2025-03-09T12:00:00Z' });
    const fixed = ['03-04 empty', '03-05 stored', '03-06 empty', '03-07 to 03-08 stored'];
    expect(await told(warehouse, all)).toEqual(['03-01 stored', '03-02 empty', '03-03 stored', ...fixed]);
  },
);

test('a day that was last read to its end before it was over is not stored once a later reading of it has failed', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  const pipeline = await pipelineOf(warehouse, NOON, ['daily_stress']);
  await store(warehouse, 'daily_stress', ['2025-03-05', '2025-03-06', '2025-03-07'].map(stress));
  await note(warehouse, { days: march, outcome: 'complete', when: '2025-03-07T12:00:00Z' });
  await note(warehouse, { days: ['2025-03-06', '2025-03-07'], outcome: 'failed', when: '2025-03-09T00:00:00Z', reason: 'answered 500' });
  expect(await told(warehouse, days)).toEqual([
    '03-05 stored',
    '03-06 stored: failed when last read: answered 500',
    '03-07 failed: answered 500',
  ]);
  const { request } = await planRepair(pipeline, { collections: ['daily_stress'], ...days });
  // More may have come of the first since, which nobody has seen.
  expect(request?.spans).toEqual([{ userId: 'ada', collection: 'daily_stress', from: '2025-03-06', to: '2025-03-07' }]);
});

test('what was refused when it was last read is read by a repair once the service takes requests of it again, whatever was stored before', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  const pipeline = await pipelineOf(warehouse, NOON, ['daily_stress']);
  await store(warehouse, 'daily_stress', ['2025-03-05', '2025-03-06'].map(stress));
  await note(warehouse, { days: march, outcome: 'complete', when: '2025-03-08T00:00:00Z' });
  await note(warehouse, {
    days: ['2025-03-06', '2025-03-07'],
    outcome: 'not_authorised',
    when: '2025-03-09T00:00:00Z',
    reason: 'no scope',
  });
  const refused = ['03-05 stored', '03-06 stored: not_authorised when last read: no scope', '03-07 not_authorised: no scope'];
  expect(await told(warehouse, days)).toEqual(refused);
  expect((await planRepair(pipeline, { collections: ['daily_stress'], ...days })).request).toBeUndefined();
  await note(warehouse, { days: ['2025-03-09', '2025-03-09'], outcome: 'complete', when: '2025-03-10T01:00:00Z' });
  expect(await told(warehouse, days)).toEqual([
    '03-05 stored',
    '03-06 stored: was refused when last read, and may be asked again',
    '03-07 not_asked: was refused, and may be asked again',
  ]);
  const { request } = await planRepair(pipeline, { collections: ['daily_stress'], ...days });
  expect(request?.spans).toEqual([{ userId: 'ada', collection: 'daily_stress', from: '2025-03-06', to: '2025-03-07' }]);
});

test('a collection that is not offered has brought no part of a day: what an event brought is stored', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  await store(warehouse, 'daily_stress', ['2025-03-05', '2025-03-07'].map(stress));
  await note(warehouse, {
    days: ['2025-03-05', '2025-03-06'],
    outcome: 'not_offered',
    when: '2025-03-09T00:00:00Z',
    reason: 'answers 404',
  });
  expect(await told(warehouse, days)).toEqual([
    '03-05 stored: not_offered when last read: answers 404',
    '03-06 not_offered: answers 404',
    '03-07 stored',
  ]);
});

test('a plan of which no run has come has read nothing: what an event brought of its days is stored', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  await store(warehouse, 'daily_stress', [stress('2025-03-05')]);
  const window = { runId: 'killed', userId: 'ada', collection: 'daily_stress' };
  await warehouse.record([
    windowEntry({ ...window, startAt: at('2025-03-05T00:00:00Z'), endAt: at('2025-03-06T00:00:00Z') }, { outcome: null }),
  ]);
  expect(await told(warehouse, days)).toEqual(['03-05 stored', '03-06 to 03-07 not_asked']);
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
      requestedAt: warehouse.clock.lease(),
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

test('coverage takes as many days beside a reading for begun as documents are asked for', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  const all = Array.from({ length: 9 }, (_, i) => addDays('2025-02-01', i));
  await store(warehouse, 'daily_stress', all.map(stress));
  await note(warehouse, { days: ['2025-02-05', '2025-02-05'], outcome: 'failed', when: '2025-03-09T00:00:00Z' });
  const whole = await warehouse.read(
    `SELECT day::VARCHAR FROM sync.coverage_between('${all[0]}', '${all.at(-1)}') WHERE collection = 'daily_stress' AND state = 'stored' ORDER BY 1`,
  );
  const [first, last] = [addDays('2025-02-05', -WIDENED_DAYS), addDays('2025-02-05', WIDENED_DAYS)];
  expect(whole.flat()).toEqual(all.filter(day => day < first || day > last));
});
