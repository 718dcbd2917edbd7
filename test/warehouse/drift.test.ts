import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Warehouse } from '../../src/warehouse/warehouse.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse, rows, store } from '../support/warehouse.ts';
import { ACTIVITY, SLEEP, STRESS } from '../support/wire.ts';

const folder = tempFolder();
let now = Date.parse('2025-06-01T00:00:00Z');
let warehouse: Warehouse;

beforeAll(async () => {
  warehouse = await openWarehouse(newPath(folder), { now: () => now });
});
afterAll(() => warehouse.close());

const examples = (collection: string) =>
  rows(warehouse, `SELECT path, kind, documents, example FROM sync.drift WHERE collection = '${collection}' ORDER BY path, kind`);

test('drift names a place where it was seen, never a value', async () => {
  await store(warehouse, 'daily_activity', [
    { ...ACTIVITY, contributors: { ...ACTIVITY.contributors, new_one: 'secret', 'with a space': 'secret' }, 'tab"le': 'secret' },
  ]);
  await store(warehouse, 'sleep', [{ ...SLEEP, hrv: { ...SLEEP.hrv, items: [1, null, 'secret', 2] } }]);
  expect(await examples('daily_activity')).toEqual([
    { path: 'contributors.new_one', kind: 'unknown field', documents: 1, example: '$.contributors.new_one' },
    { path: 'contributors.with a space', kind: 'unknown field', documents: 1, example: '$.contributors."with a space"' },
    { path: 'tab"le', kind: 'unknown field', documents: 1, example: '$."tab"le"' },
  ]);
  expect(await examples('sleep')).toEqual([{ path: 'hrv', kind: 'wrong type', documents: 1, example: '$.hrv.items[2]' }]);
  // What has no column is found by it.
  expect(
    await rows(
      warehouse,
      `SELECT path, a.extra->>example AS found FROM sync.drift d, daily_activity a
       WHERE d.collection = 'daily_activity' AND path NOT LIKE '%"%' ORDER BY path`,
    ),
  ).toEqual([
    { path: 'contributors.new_one', found: 'secret' },
    { path: 'contributors.with a space', found: 'secret' },
  ]);
  expect(await rows(warehouse, `SELECT extra->>example AS found FROM sync.drift, sleep WHERE collection = 'sleep'`)).toEqual([
    { found: 'secret' },
  ]);
});

test('of what is seen again, the first moment and the first example stay', async () => {
  now = Date.parse('2025-06-02T00:00:00Z');
  await store(warehouse, 'daily_stress', [{ ...STRESS, day_summary: 'blissful' }]);
  now = Date.parse('2025-06-05T00:00:00Z');
  await store(warehouse, 'daily_stress', [
    { ...STRESS, id: 't-2', day_summary: 'dull' },
    { ...STRESS, id: 't-3', day_summary: 'dull' },
  ]);
  expect(
    await rows(
      warehouse,
      `SELECT path, kind, documents, first_seen_at::DATE AS first, last_seen_at::DATE AS last, example FROM sync.drift WHERE collection = 'daily_stress'`,
    ),
  ).toEqual([
    { path: 'day_summary', kind: 'unknown value', documents: 3, first: '2025-06-02', last: '2025-06-05', example: '$.day_summary' },
  ]);
});

test('of a heart-rate row too', async () => {
  const range = { userId: 'ann', from: 0, to: Date.parse('2025-06-01T00:00:00Z') * 1000, requestedAt: warehouse.clock.lease() };
  const row = { timestamp: '2025-01-01T00:00:00.000+00:00', timestamp_unix: 1, bpm: 60, source: 'dancing', quality: 3 };
  await warehouse.storeHeartRate({ ...range, rows: [row] });
  expect(await examples('heart_rate')).toEqual([
    { path: 'quality', kind: 'unknown field', documents: 1, example: '$.quality' },
    { path: 'source', kind: 'unknown value', documents: 1, example: '$.source' },
    { path: 'timestamp_unix', kind: 'disagreement', documents: 1, example: '$.timestamp_unix' },
  ]);
});
