import { afterEach, beforeEach, expect, test } from 'vitest';
import { parseJson } from '../../src/base/json.ts';
import type { Warehouse } from '../../src/warehouse/warehouse.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse, store } from '../support/warehouse.ts';
import { ACTIVITY, STRESS } from '../support/wire.ts';

const folder = tempFolder();
let warehouse: Warehouse;

beforeEach(async () => {
  warehouse = await openWarehouse(newPath(folder));
});

afterEach(() => warehouse.close());

const ids = async () => (await warehouse.read('SELECT id FROM daily_stress ORDER BY id')).map(([id]) => id);
const rejectedSizes = () => warehouse.read(`SELECT id, reason, length(document::VARCHAR) FROM sync.rejected ORDER BY id`);

test('a list nested 100,000 deep where a document belongs is rejected, its neighbours stored', async () => {
  const deep = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`);
  const counts = await store(warehouse, 'daily_stress', [{ ...STRESS, id: 'before' }, deep, { ...STRESS, id: 'after' }]);
  expect(counts).toMatchObject({ stored: 2, rejected: 1 });
  expect(await ids()).toEqual(['after', 'before']);
  expect(await warehouse.read('SELECT reason, document::VARCHAR FROM sync.rejected')).toEqual([['nested too deeply to be kept', 'null']]);
});

test('beside a document that is nested 100,000 deep numbers of many digits stay as they were written', async () => {
  const good = (id: string) => JSON.stringify({ ...STRESS, id, serial: 'SERIAL' }).replace('"SERIAL"', '12345678901234567890');
  const deep = `{"id":"deep","day":"2025-02-03","note":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
  const page = parseJson(`[${good('before')},${deep},${good('after')}]`) as unknown[];
  expect(await store(warehouse, 'daily_stress', page)).toMatchObject({ stored: 2, rejected: 1 });
  expect(await warehouse.read('SELECT id, extra::VARCHAR FROM daily_stress ORDER BY id')).toEqual([
    ['after', '{"serial":12345678901234567890}'],
    ['before', '{"serial":12345678901234567890}'],
  ]);
});

test('a document with 150,000 unknown keys is stored with them, as its neighbours are', async () => {
  const many = Object.fromEntries(Array.from({ length: 150_000 }, (_, n) => [`unknown_${n}`, n]));
  const counts = await store(warehouse, 'daily_stress', [
    { ...STRESS, id: 'before' },
    { ...STRESS, id: 'odd', ...many },
    { ...STRESS, id: 'after' },
  ]);
  expect(counts).toMatchObject({ stored: 3, rejected: 0 });
  expect(await ids()).toEqual(['after', 'before', 'odd']);
  expect(await warehouse.read(`SELECT len(json_keys(extra)), extra->>'unknown_149999' FROM daily_stress WHERE id = 'odd'`)).toEqual([
    [150_000, '149999'],
  ]);
});

test('a rejected document of 11 MB is kept whole, its neighbours stored', async () => {
  const large = { id: 'large', day: 'no day', note: 'x'.repeat(11 * 1024 * 1024) };
  const counts = await store(warehouse, 'daily_stress', [{ ...STRESS, id: 'before' }, large, { ...STRESS, id: 'after' }]);
  expect(counts).toMatchObject({ stored: 2, rejected: 1 });
  expect(await ids()).toEqual(['after', 'before']);
  expect(await rejectedSizes()).toEqual([['large', 'day is missing or not a calendar day', 11_534_375]]);
});

test.each([
  ['x', 16],
  ['"', 7],
  ['\u0001', 2],
  ['é', 7],
])('of %j a rejected document holds as much as can be kept, %i MB', async (character, megabytes) => {
  const large = { id: 'large', note: character.repeat(megabytes * 1024 * 1024 - 100) };
  expect(await store(warehouse, 'daily_stress', [{ ...STRESS, id: 'before' }, large])).toMatchObject({ stored: 1, rejected: 1 });
  const [[document]] = (await warehouse.read('SELECT document::VARCHAR FROM sync.rejected')) as [[string]];
  expect(JSON.parse(document)).toEqual(large);
});

test('a rejected document of 40 MB is told of without its text, its neighbours stored', async () => {
  const large = { id: 'large', note: 'x'.repeat(40 * 1024 * 1024) };
  expect(await store(warehouse, 'daily_stress', [{ ...STRESS, id: 'before' }, large])).toMatchObject({ stored: 1, rejected: 1 });
  expect(await warehouse.read('SELECT id, reason, document::VARCHAR FROM sync.rejected')).toEqual([
    ['large', 'day is missing or not a calendar day; its 41943064 bytes are too many to be kept', 'null'],
  ]);
});

test('unknown fields of 11 MB are stored with their document, those of 40 MB refuse it', async () => {
  const odd = (id: string, megabytes: number) => ({ ...STRESS, id, note: 'x'.repeat(megabytes * 1024 * 1024) });
  await store(warehouse, 'daily_stress', [{ ...STRESS, id: 'before' }, odd('odd', 11), odd('odder', 40)]);
  expect(await ids()).toEqual(['before', 'odd']);
  expect(await warehouse.read(`SELECT length(extra->>'note') FROM daily_stress WHERE id = 'odd'`)).toEqual([[11_534_336]]);
  expect(await warehouse.read('SELECT id, reason FROM sync.rejected')).toEqual([
    ['odder', 'too much of it has no column; its 41943106 bytes are too many to be kept'],
  ]);
});

test('an identifier of 2,000 characters is unusable, one of 1,024 is not', async () => {
  await store(warehouse, 'daily_stress', [
    { ...STRESS, id: 'x'.repeat(2_000) },
    { ...STRESS, id: 'y'.repeat(1_024) },
  ]);
  expect(await ids()).toEqual(['y'.repeat(1_024)]);
  expect(await warehouse.read('SELECT reason FROM sync.rejected')).toEqual([['id is longer than 1024 characters']]);
});

test('of one document 100 paths are counted as drift, the others together', async () => {
  const many = Object.fromEntries(Array.from({ length: 250 }, (_, n) => [`unknown_${n}`, n]));
  await store(warehouse, 'daily_stress', [{ ...STRESS, ...many }]);
  expect(await warehouse.read(`SELECT count(*) FROM sync.drift WHERE path LIKE 'unknown_%' AND documents = 1`)).toEqual([[100]]);
  expect(await warehouse.read(`SELECT collection, kind, documents, example FROM sync.drift WHERE path = '*'`)).toEqual([
    ['daily_stress', 'unknown field', 1, '$'],
  ]);
});

test('of one collection 1,000 paths are counted as drift, the others together', async () => {
  for (let n = 0; n < 12; n++) {
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`unknown_${n}_${i}`, n]));
    await store(warehouse, 'daily_stress', [{ ...STRESS, id: `odd-${n}`, ...many }]);
  }
  await store(warehouse, 'daily_stress', [{ ...STRESS, id: 'again', unknown_0_7: 1, unknown_11_7: 1 }]);
  expect(await warehouse.read(`SELECT count(*) FROM sync.drift WHERE path <> '*'`)).toEqual([[1_000]]);
  expect(await warehouse.read(`SELECT path, documents FROM sync.drift WHERE path IN ('unknown_0_7', '*') ORDER BY 1`)).toEqual([
    ['*', 201],
    ['unknown_0_7', 2],
  ]);
});

test('a key of a million characters is counted under its beginning', async () => {
  await store(warehouse, 'daily_stress', [{ ...STRESS, ['k'.repeat(1_000_000)]: 1 }]);
  expect(await warehouse.read('SELECT path, kind, example FROM sync.drift')).toEqual([[`${'k'.repeat(200)}…`, 'unknown field', '$']]);
});

test('heart-rate rows that are nested deeply or have 150,000 keys leave their neighbours alone', async () => {
  const deep = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`);
  const row = (second: string) => ({
    timestamp: `2025-01-10T00:00:${second}Z`,
    timestamp_unix: 1_736_467_200_000 + Number(second) * 1000,
    bpm: 60,
    source: 'awake',
  });
  const many = Object.fromEntries(Array.from({ length: 150_000 }, (_, n) => [`unknown_${n}`, n]));
  const requestedAt = warehouse.clock.lease();
  const from = 1_736_467_200_000_000;
  const counts = await warehouse.storeHeartRate({
    userId: 'ann',
    from,
    to: from + 60_000_000,
    requestedAt,
    rows: [row('01'), deep, { ...row('02'), ...many }, row('03')],
  });
  warehouse.clock.release(requestedAt);
  expect(counts).toMatchObject({ stored: 3, rejected: 1 });
  expect(await warehouse.read('SELECT bpm FROM heart_rate')).toEqual([[60], [60], [60]]);
});

test('a whole number that is written with sixteen digits and more fills its column', async () => {
  await store(warehouse, 'daily_activity', [parseJson(JSON.stringify(ACTIVITY).replace('"steps":10230', '"steps":10230.00000000000000'))]);
  expect(await warehouse.read('SELECT steps, extra FROM daily_activity')).toEqual([[10230, null]]);
  const requestedAt = warehouse.clock.lease();
  const from = 1_736_467_200_000_000;
  const row = '{"timestamp":"2025-01-10T00:00:01Z","timestamp_unix":1736467201000.0000,"bpm":72.00000000000000,"source":"awake"}';
  await warehouse.storeHeartRate({ userId: 'ann', from, to: from + 60_000_000, requestedAt, rows: [parseJson(row)] });
  warehouse.clock.release(requestedAt);
  expect(await warehouse.read('SELECT bpm FROM heart_rate')).toEqual([[72]]);
  expect(await warehouse.read('SELECT * FROM sync.drift')).toEqual([]);
});
