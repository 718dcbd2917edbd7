import { expect, test } from 'vitest';
import { formatDay } from '../../schema/instant.ts';
import type { RunRequest } from '../../src/ledger/runs.ts';
import { planRepair } from '../../src/sync/coverage.ts';
import { planWindows } from '../../src/sync/runs/plan-windows.ts';
import { account, collections, pipelineOf, warehouseWith } from '../support/literal-pipeline.ts';
import { note, store, stress, told } from '../support/literal-readings.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
const NOON = Date.parse('2025-03-10T12:00:00Z');
const NAMES = ['sleep', 'ring_configuration', 'heart_rate'];
const dayOf = (micros: number | null) => (micros === null ? null : formatDay(micros / 86_400_000_000));

const spans = [
  { userId: 'ada', collection: 'sleep', from: '2025-01-01', to: '2025-04-05' },
  { userId: 'ada', collection: 'ring_configuration', from: '2025-01-01', to: '2025-04-05' },
  { userId: 'ben', collection: 'heart_rate', from: '2025-01-25', to: '2025-02-22' },
  { userId: 'ben', collection: 'heart_rate', from: '2025-03-01', to: '2025-03-01' },
];
const request: RunRequest = {
  kind: 'backfill',
  from: '2025-01-01',
  to: '2025-04-05',
  refresh: true,
  users: ['ada', 'ben'],
  collections: NAMES,
  spans,
};

const EXACTLY = [
  ['ada', 'ring_configuration', null, null],
  ['ada', 'sleep', '2025-01-01', '2025-04-01'],
  ['ada', 'sleep', '2025-04-01', '2025-04-06'],
  ['ben', 'heart_rate', '2025-01-25', '2025-02-22'],
  ['ben', 'heart_rate', '2025-02-22', '2025-02-23'],
  ['ben', 'heart_rate', '2025-03-01', '2025-03-02'],
];

test('of spans exactly these days are planned, each collection in its own windows', async () => {
  const warehouse = await warehouseWith(folder, [account('ada'), account('ben')]);
  const { windows, skipped } = await planWindows({ warehouse, collections, settledDays: 14 }, request);
  expect(windows.map(({ userId, collection, startAt, endAt }) => [userId, collection, dayOf(startAt), dayOf(endAt)]).sort()).toEqual(
    EXACTLY,
  );
  expect(skipped).toBe(0);
});

test('a run of spans is taken up after a crash, and the same one asked for again joins it', async () => {
  const warehouse = await warehouseWith(folder, [account('ada'), account('ben')]);
  const crashed = await pipelineOf(warehouse, NOON, NAMES);
  const run = await crashed.runs.start(request);
  const again = await pipelineOf(warehouse, Date.parse('2025-04-10T12:00:00Z'), NAMES);
  const resumed = again.runs.find(run.id)!;
  expect(resumed.request).toEqual(request);
  expect(resumed.progress.windows).toEqual({ planned: 6, done: 0, skipped: 0, failed: 0 });
  expect(await again.runs.start(structuredClone(request))).toBe(resumed);
  const rows = await warehouse.read(
    'SELECT user_id, collection, start_at::DATE::VARCHAR, end_at::DATE::VARCHAR FROM sync.windows ORDER BY ALL',
  );
  expect(rows.sort()).toEqual(EXACTLY.toSorted());
  // It reads all that is missing of these days: nothing of them is planned twice.
  const repair = await planRepair(again, { collections: ['sleep'], users: ['ada'], from: '2025-01-01', to: '2025-04-07' });
  expect(repair.request?.spans).toEqual([{ userId: 'ada', collection: 'sleep', from: '2025-04-06', to: '2025-04-07' }]);
  expect(await planRepair(again, { collections: ['sleep'], users: ['ada'], from: '2025-01-01', to: '2025-04-05' })).toEqual({
    skipped: [],
  });
});

test('of days that are still to come nothing is missing', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  const pipeline = await pipelineOf(warehouse, NOON, NAMES);
  const only = { users: ['ada'], collections: ['sleep'] };
  const repair = await planRepair(pipeline, { ...only, from: '2025-03-08', to: '2031-01-01' });
  expect(repair.request?.spans).toEqual([{ userId: 'ada', collection: 'sleep', from: '2025-03-08', to: '2025-03-10' }]);
  expect(await planRepair(pipeline, { ...only, from: '2025-03-11', to: '2031-01-01' })).toEqual({ skipped: [] });
});

test('a past day that was last read before it was over is read again whatever is stored of it; one that goes on is not', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  const pipeline = await pipelineOf(warehouse, NOON, ['daily_stress']);
  await store(warehouse, 'daily_stress', ['2025-03-06', '2025-03-08', '2025-03-09', '2025-03-10', '2025-03-11'].map(stress));
  await store(warehouse, 'daily_stress', [{ ...stress('2025-03-08'), day_summary: 7, id: 9 }]);
  // What came with events was not read at all.
  await note(warehouse, { days: ['2025-03-08', '2025-03-08'], outcome: 'complete', when: '2025-03-08T20:00:00Z' });
  await note(warehouse, { days: ['2025-03-09', '2025-03-11'], outcome: 'complete', when: '2025-03-09T20:00:00Z' });
  await note(warehouse, { days: ['2025-03-07', '2025-03-07'], outcome: 'complete', when: '2025-03-09T00:00:00Z' });
  const early = 'last read before the day was over';
  const all = { from: '2025-03-06', to: '2025-03-11' };
  expect(await told(warehouse, all)).toEqual([
    '03-06 stored',
    '03-07 empty',
    `03-08 stored: ${early}; not all that came could be stored (sync.rejected)`,
    `03-09 to 03-11 stored: ${early}`,
  ]);
  const asked = { userId: 'ada', collection: 'daily_stress', from: '2025-03-08', to: '2025-03-09' };
  expect((await planRepair(pipeline, { collections: ['daily_stress'], ...all })).request?.spans).toEqual([asked]);
  await note(warehouse, { days: ['2025-03-08', '2025-03-09'], outcome: 'complete', when: '2025-03-10T12:00:00Z' });
  expect(await told(warehouse, all)).toEqual([
    '03-06 stored',
    '03-07 empty',
    '03-08 stored: not all that came could be stored (sync.rejected)',
    '03-09 stored',
    `03-10 to 03-11 stored: ${early}`,
  ]);
  expect(await planRepair(pipeline, { collections: ['daily_stress'], ...all })).toEqual({ skipped: [] });
});
