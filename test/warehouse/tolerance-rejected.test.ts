import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Warehouse } from '../../src/warehouse/warehouse.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse, store } from '../support/warehouse.ts';
import { ACTIVITY, STRESS } from '../support/wire.ts';
import { rejected, rejectedTexts } from './tolerance.ts';

const folder = tempFolder();
let warehouse: Warehouse;

beforeEach(async () => {
  warehouse = await openWarehouse(newPath(folder));
});

afterEach(() => warehouse.close());

const { id: _id, ...WITHOUT_ID } = STRESS;
const { day: _day, ...WITHOUT_DAY } = STRESS;

test.each([
  ['no id', WITHOUT_ID, 'sha256:mWc2Gfamj0Gb083kRQBYjK', 'id is missing or no text'],
  ['a null id', { ...STRESS, id: null }, 'sha256:D6f-vXmozl3YBr0ioFFBhf', 'id is missing or no text'],
  ['an empty id', { ...STRESS, id: '' }, 'sha256:-XxBCIGK-ygfxvBoeGECfi', 'id is missing or no text'],
  ['a number for an id', { ...STRESS, id: 7 }, 'sha256:B-hoLPoCLVy7RoysYe921W', 'id is missing or no text'],
  ['no day', WITHOUT_DAY, 't-1', 'day is missing or not a calendar day'],
  ['a null day', { ...STRESS, day: null }, 't-1', 'day is missing or not a calendar day'],
  ['a day that is none', { ...STRESS, day: '2025-02-30' }, 't-1', 'day is missing or not a calendar day'],
  ['a date-time for a day', { ...STRESS, day: '2025-02-03T00:00:00Z' }, 't-1', 'day is missing or not a calendar day'],
  ['a number for a day', { ...STRESS, day: 20250203 }, 't-1', 'day is missing or not a calendar day'],
])('a document with %s is rejected whole; its neighbours are stored', async (_, bad, id, reason) => {
  const counts = await store(warehouse, 'daily_stress', [{ ...STRESS, id: 'before' }, bad, { ...STRESS, id: 'after' }]);
  expect(counts).toMatchObject({ stored: 2, unchanged: 0, outdated: 0, rejected: 1, removed: 0, samples: 0 });
  expect(await rejected(warehouse)).toEqual([{ user_id: 'ann', collection: 'daily_stress', id, reason, document: bad }]);
  expect(await warehouse.read('SELECT id FROM daily_stress ORDER BY id')).toEqual([['after'], ['before']]);
});

test.each([
  ['text', 'document', 'sha256:ZKyOYVUgzRrkOrDUfPyedQ'],
  ['a number', 7, 'sha256:eQJpm-Qsio5G-7tFAXJlF-'],
  ['null', null, 'sha256:dCNOmK_nSY-12vHzasLXis'],
  ['a list', [STRESS], 'sha256:XMsbuXsDEB81Gk1KuCwLB9'],
])('%s for a document is rejected', async (_, bad, id) => {
  await store(warehouse, 'daily_stress', [bad, { ...STRESS, id: 'after' }]);
  expect(await rejected(warehouse)).toEqual([{ user_id: 'ann', collection: 'daily_stress', id, reason: 'not an object', document: bad }]);
  expect(await warehouse.read('SELECT id FROM daily_stress')).toEqual([['after']]);
});

test('a rejected document leaves its row when a good version comes, and has one row only', async () => {
  await store(warehouse, 'daily_activity', [{ ...ACTIVITY, day: 'Monday' }]);
  await store(warehouse, 'daily_activity', [{ ...ACTIVITY, day: 'Tuesday' }]);
  expect((await rejected(warehouse)).map(row => (row as { document: { day: unknown } }).document.day)).toEqual(['Tuesday']);
  await store(warehouse, 'daily_activity', [ACTIVITY]);
  expect(await rejected(warehouse)).toEqual([]);
  expect(await warehouse.read('SELECT id, steps FROM daily_activity')).toEqual([['a-1', 10230]]);
});

test('a bad version keeps the good one that is stored, and stands beside it', async () => {
  await store(warehouse, 'daily_activity', [ACTIVITY]);
  await store(warehouse, 'daily_activity', [{ ...ACTIVITY, day: 'Monday' }]);
  expect(await rejected(warehouse)).toHaveLength(1);
  expect(await warehouse.read('SELECT id, steps FROM daily_activity')).toEqual([['a-1', 10230]]);
});

test('a document that was rejected and is then gone leaves no row behind', async () => {
  await store(warehouse, 'daily_activity', [{ ...ACTIVITY, day: 'Monday' }]);
  await store(warehouse, 'daily_activity', [], ['a-1']);
  expect(await rejected(warehouse)).toEqual([]);
});

test('a document nested thousands of levels deep is rejected, its neighbours stored', async () => {
  const deep = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`);
  const counts = await store(warehouse, 'daily_stress', [
    { ...STRESS, deep },
    { ...STRESS, id: 'after' },
  ]);
  expect(counts).toMatchObject({ stored: 1, rejected: 1 });
  expect(await rejected(warehouse)).toEqual([
    { user_id: 'ann', collection: 'daily_stress', id: 't-1', reason: 'nested too deeply to be kept', document: null },
  ]);
});

const DAY = 86_400_000_000;
const JANUARY_10 = 1_736_467_200_000_000;

/** One answer that is all of a range of days of January 2025, the last one excluded. */
async function readRange(from: number, to: number, documents: readonly unknown[], isComplete = true) {
  const requestedAt = warehouse.clock.lease();
  try {
    return await warehouse.storeDocuments({
      userId: 'ann',
      resource: warehouse.mapping('daily_stress').resource,
      requestedAt,
      documents,
      range: { startAt: JANUARY_10 + (from - 10) * DAY, endAt: JANUARY_10 + (to - 10) * DAY },
      ...(isComplete ? { completes: { since: requestedAt, days: { from: `2025-01-${from}`, to: `2025-01-${to - 1}` } } } : {}),
    });
  } finally {
    warehouse.clock.release(requestedAt);
  }
}

test('documents without an id are each kept whole, and once, however often they come', async () => {
  const many = Array.from({ length: 108 }, (_, n) => ({ n }));
  expect(await readRange(10, 20, many)).toMatchObject({ rejected: 108, undated: 108 });
  expect(await rejectedTexts(warehouse)).toHaveLength(108);
  expect(await readRange(10, 20, many)).toMatchObject({ rejected: 108, undated: 108 });
  expect(await rejectedTexts(warehouse)).toHaveLength(108);
});

test('what was rejected and does not come again leaves with a complete reading of its days, or of the range that brought it', async () => {
  await readRange(10, 20, [
    { n: 1 },
    { ...WITHOUT_ID, day: '2025-01-12' },
    { ...WITHOUT_ID, day: '2025-01-18' },
    { ...WITHOUT_DAY, id: 't-9' },
  ]);
  await readRange(10, 20, [], false);
  expect(await rejectedTexts(warehouse)).toHaveLength(4);
  // What has no day may belong to a day beside these.
  await readRange(11, 15, []);
  expect(await rejectedTexts(warehouse)).toEqual([
    '{"day":"2025-01-18","day_summary":"normal"}',
    '{"id":"t-9","day_summary":"normal"}',
    '{"n":1}',
  ]);
  await readRange(10, 20, [{ n: 1 }, { n: 2 }]);
  expect(await rejectedTexts(warehouse)).toEqual(['{"n":1}', '{"n":2}']);
});

test('an older reading takes nothing away that a newer one has rejected', async () => {
  const older = warehouse.clock.lease();
  await readRange(10, 20, [{ n: 1 }]);
  await warehouse.storeDocuments({
    userId: 'ann',
    resource: warehouse.mapping('daily_stress').resource,
    requestedAt: older,
    documents: [],
    range: { startAt: JANUARY_10, endAt: JANUARY_10 + 10 * DAY },
    completes: { since: older, days: { from: '2025-01-10', to: '2025-01-19' } },
  });
  warehouse.clock.release(older);
  expect(await rejectedTexts(warehouse)).toEqual(['{"n":1}']);
});

test('what another, newer answer has rejected too is missing from the older one all the same', async () => {
  const older = warehouse.clock.lease();
  await readRange(10, 20, [{ n: 1 }]);
  const { resource } = warehouse.mapping('daily_stress');
  expect(await warehouse.storeDocuments({ userId: 'ann', resource, requestedAt: older, documents: [{ n: 1 }] })).toMatchObject({
    rejected: 0,
    outdated: 1,
    undated: 1,
  });
  warehouse.clock.release(older);
});
