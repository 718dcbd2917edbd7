import { afterEach, beforeEach, expect, test } from 'vitest';
import { HeartRateAnswer } from '../../src/warehouse/heart-rate-answer.ts';
import type { Warehouse } from '../../src/warehouse/warehouse.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse } from '../support/warehouse.ts';
import { drift, rejected, rejectedTexts } from './tolerance.ts';

const folder = tempFolder();
let warehouse: Warehouse;

beforeEach(async () => {
  warehouse = await openWarehouse(newPath(folder));
});

afterEach(() => warehouse.close());

test('heart-rate rows without a usable moment, rate or source are rejected whole, the others stored', async () => {
  const good = { timestamp: '2025-01-15T00:00:00+00:00', timestamp_unix: 1_736_899_200_000, bpm: 58, source: 'sleep' };
  const bad = [
    { ...good, timestamp: '2025-01-15T00:00:01' },
    { ...good, timestamp: '2025-01-15T00:00:02+00:00', bpm: 61.5 },
    { ...good, timestamp: '2025-01-15T00:00:03+00:00', source: null },
  ];
  const counts = await warehouse.storeHeartRate({
    userId: 'ann',
    from: 1_736_899_200_000_000,
    to: 1_736_985_600_000_000,
    requestedAt: warehouse.clock.lease(),
    rows: [...bad, good, { ...good, timestamp: 'lone \ud800 and \u0000' }, 'text'],
  });
  expect(counts).toMatchObject({ stored: 1, unchanged: 0, outdated: 0, rejected: 5, removed: 0, samples: 1 });
  expect(await rejected(warehouse)).toEqual([
    {
      user_id: 'ann',
      collection: 'heart_rate',
      id: '2025-01-15T00:00:01',
      reason: 'timestamp is missing or no date-time with offset',
      document: bad[0],
    },
    {
      user_id: 'ann',
      collection: 'heart_rate',
      id: '2025-01-15T00:00:02+00:00',
      reason: 'bpm is missing or no whole number',
      document: bad[1],
    },
    { user_id: 'ann', collection: 'heart_rate', id: '2025-01-15T00:00:03+00:00', reason: 'source is missing or no text', document: bad[2] },
    {
      user_id: 'ann',
      collection: 'heart_rate',
      id: 'sha256:Hh0PJR06dvorG_yBFkB4Vy',
      reason: 'timestamp is missing or no date-time with offset',
      document: 'text',
    },
    {
      user_id: 'ann',
      collection: 'heart_rate',
      id: 'sha256:m7ZwemN4vTAujXzABI_8aH',
      reason: 'timestamp is missing or no date-time with offset',
      document: { ...good, timestamp: 'lone \ufffd and \u0000' },
    },
  ]);
});

test('heart-rate rows with a new source, another Unix time or an unknown field are stored, and drift', async () => {
  const good = { timestamp: '2025-01-15T00:00:00+00:00', timestamp_unix: 1_736_899_200_000, bpm: 58, source: 'sleep' };
  const { timestamp_unix: _, ...without } = good;
  const sent = [
    { ...good, source: 'sauna' },
    { ...good, timestamp_unix: 1 },
    { ...without, timestamp: '2025-01-15T00:00:01+00:00' },
    { ...good, timestamp: '2025-01-15T00:00:02+00:00', timestamp_unix: 1_736_899_202_000, quality: 'good' },
  ];
  const range = { userId: 'ann', from: 1_736_899_200_000_000, to: 1_736_985_600_000_000 };
  await warehouse.storeHeartRate({ ...range, requestedAt: warehouse.clock.lease(), rows: sent });
  await warehouse.storeHeartRate({ ...range, requestedAt: warehouse.clock.lease(), rows: sent });
  expect(await warehouse.read('SELECT count(*) FROM heart_rate')).toEqual([[4]]);
  // What the unknown field held is nowhere: the rows have no other columns.
  expect(await warehouse.read(`SELECT column_name FROM duckdb_columns() WHERE table_name = 'heart_rate' AND schema_name = 'main'`)).toEqual(
    ['user_id', 'ts', 'utc_offset', 'bpm', 'source', 'fetched_at'].map(name => [name]),
  );
  expect(await drift(warehouse)).toEqual([
    ['heart_rate', 'quality', 'unknown field', 1],
    ['heart_rate', 'source', 'unknown value', 1],
    ['heart_rate', 'timestamp_unix', 'disagreement', 1],
    ['heart_rate', 'timestamp_unix', 'missing', 1],
  ]);
});

test('a rejected heart-rate row leaves when its range comes again without it', async () => {
  const range = { userId: 'ann', from: 1_736_899_200_000_000, to: 1_736_985_600_000_000 };
  const good = { timestamp: '2025-01-15T00:00:00+00:00', timestamp_unix: 1_736_899_200_000, bpm: 58, source: 'sleep' };
  const older = warehouse.clock.lease();
  await warehouse.storeHeartRate({ ...range, requestedAt: warehouse.clock.lease(), rows: [{ ...good, bpm: 'x' }] });
  expect(await rejected(warehouse)).toHaveLength(1);
  await warehouse.storeHeartRate({ ...range, requestedAt: warehouse.clock.lease(), rows: [good] });
  expect(await rejected(warehouse)).toEqual([]);
  await warehouse.storeHeartRate({ ...range, requestedAt: older, rows: [{ ...good, bpm: 'y' }] });
  expect(await rejected(warehouse)).toEqual([]);
  warehouse.clock.release(older);
});

test('of an answer of several pages the last row of a moment and source counts, whatever page it came with', async () => {
  const row = (second: number, bpm: unknown) => ({
    timestamp: `2025-01-15T00:00:0${second}+00:00`,
    timestamp_unix: 1_736_899_200_000 + second * 1000,
    bpm,
    source: 'rest',
  });
  const rows = new HeartRateAnswer();
  rows.add([row(1, 60), row(3, 61), row(5, 'x')]);
  rows.add([row(4, 63), row(3, 62), row(2, 64), row(5, 'x')]);
  expect(rows.length).toBe(7);
  const counts = await warehouse.storeHeartRate({ ...WEEK, requestedAt: warehouse.clock.lease(), rows });
  expect(counts).toMatchObject({ stored: 4, rejected: 1 });
  expect(await warehouse.read(`SELECT second(ts), bpm FROM heart_rate ORDER BY ts`)).toEqual([
    [1, 60],
    [2, 64],
    [3, 62],
    [4, 63],
  ]);
});

const WEEK = { userId: 'ann', from: 1_736_899_200_000_000, to: 1_737_504_000_000_000 };

test('heart-rate rows of no moment are each kept once, and leave when the range comes again without them', async () => {
  const read = (rows: readonly unknown[], range = WEEK) =>
    warehouse.storeHeartRate({ ...range, requestedAt: warehouse.clock.lease(), rows });
  const rows = [
    { bpm: 60, source: 'rest' },
    { bpm: 61, source: 'rest' },
    // Two of one moment.
    { timestamp: '2025-01-15T00:00:02+00:00', bpm: 'x', source: 'rest' },
    { timestamp: '2025-01-15T00:00:02+00:00', bpm: 'x', source: 'awake' },
  ];
  expect(await read(rows)).toMatchObject({ stored: 0, rejected: 4, undated: 2 });
  expect(await read(rows)).toMatchObject({ stored: 0, rejected: 4, undated: 2 });
  expect(await rejectedTexts(warehouse)).toHaveLength(4);
  // They may belong to the rest of the week.
  await read([], { ...WEEK, to: WEEK.from + 86_400_000_000 });
  expect(await warehouse.read('SELECT day, document::VARCHAR FROM sync.rejected ORDER BY 2')).toEqual([
    [null, '{"bpm":60,"source":"rest"}'],
    [null, '{"bpm":61,"source":"rest"}'],
    ['2025-01-15', '{"timestamp":"2025-01-15T00:00:02+00:00","bpm":"x","source":"awake"}'],
  ]);
  await read([{ bpm: 61, source: 'rest' }]);
  expect(await rejectedTexts(warehouse)).toEqual(['{"bpm":61,"source":"rest"}']);
});

test('of heart-rate rows that cannot be stored a thousand are kept of an account; all are counted', async () => {
  const rows = Array.from({ length: 1_200 }, (_, n) => ({
    timestamp: new Date(1_736_899_200_000 + n * 300_000).toISOString(),
    bpm: 61.5,
    source: 'rest',
  }));
  const read = (some: readonly unknown[]) => warehouse.storeHeartRate({ ...WEEK, requestedAt: warehouse.clock.lease(), rows: some });
  // The ledger does not tell the day of those that are not kept.
  expect(await read(rows)).toMatchObject({ stored: 0, rejected: 1_200, undated: 200 });
  expect(await rejectedTexts(warehouse)).toHaveLength(1_000);
  expect(await read(rows.slice(0, 1_001))).toMatchObject({ rejected: 1_001, undated: 1 });
  expect(await rejectedTexts(warehouse)).toHaveLength(1_000);
  expect(await read(rows.slice(0, 10))).toMatchObject({ rejected: 10, undated: 0 });
  expect(await rejectedTexts(warehouse)).toHaveLength(10);
});

test('sources of any length come back as they were', async () => {
  const sources = ['a', 'twelve bytes', 'thirteen byte', '眠り', '眠り眠り', 'sleep', 'a source that is longer than any that is known'];
  await warehouse.storeHeartRate({
    userId: 'ann',
    from: 1_736_899_200_000_000,
    to: 1_736_985_600_000_000,
    requestedAt: warehouse.clock.lease(),
    rows: sources.map((source, i) => ({
      timestamp: `2025-01-15T00:00:0${i}Z`,
      timestamp_unix: 1_736_899_200_000 + i * 1000,
      bpm: 50,
      source,
    })),
  });
  expect(
    (await warehouse.read('SELECT source, length(source) FROM heart_rate ORDER BY ts')).map(([source, length]) => [source, Number(length)]),
  ).toEqual([
    ['a', 1],
    ['twelve bytes', 12],
    ['thirteen byte', 13],
    ['眠り', 2],
    ['眠り眠り', 4],
    ['sleep', 5],
    ['a source that is longer than any that is known', 46],
  ]);
});
