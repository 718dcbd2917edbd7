import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Warehouse } from '../../src/warehouse/warehouse.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse, store } from '../support/warehouse.ts';
import { RING, STRESS } from '../support/wire.ts';
import { drift, extraOf } from './tolerance.ts';

const folder = tempFolder();
let warehouse: Warehouse;

beforeEach(async () => {
  warehouse = await openWarehouse(newPath(folder));
});

afterEach(() => warehouse.close());

test('text with a NUL does not fit a column; it stays in extra', async () => {
  await store(warehouse, 'daily_stress', [{ ...STRESS, day_summary: 'a\u0000b' }]);
  expect(await warehouse.read('SELECT day_summary FROM daily_stress')).toEqual([[null]]);
  expect(await extraOf(warehouse, 'daily_stress')).toEqual([['t-1', { day_summary: 'a\u0000b' }]]);
});

test('a lone surrogate, which no JSON of DuckDB can hold, becomes U+FFFD wherever it came', async () => {
  const text = `{"id":"t-1","day":"2025-01-15","day_summary":"x\\ud800","\\udfff":1,"note":"back\\\\ud800slash \\ud83d\\ude00"}`;
  await store(warehouse, 'daily_stress', [JSON.parse(text), JSON.parse(text.replace('2025', '20x5').replace('t-1', 't-2'))]);
  expect(await extraOf(warehouse, 'daily_stress')).toEqual([['t-1', { day_summary: 'x\ufffd', note: 'back\\ud800slash 😀', '\ufffd': 1 }]]);
  expect(await warehouse.read('SELECT json_valid(extra), json_keys(extra)[1] FROM daily_stress')).toEqual([[true, 'day_summary']]);
  expect(await warehouse.read(`SELECT id, document->>'note' FROM sync.rejected`)).toEqual([['t-2', 'back\\ud800slash 😀']]);
  expect(await drift(warehouse)).toEqual([
    ['daily_stress', 'day_summary', 'bad format', 1],
    ['daily_stress', 'note', 'unknown field', 1],
    ['daily_stress', '\ufffd', 'unknown field', 1],
  ]);
});

test('a NUL in a key, in an id and in the id of a removed document harms nothing', async () => {
  const counts = await store(
    warehouse,
    'daily_stress',
    [
      { ...STRESS, 'a\u0000b': 1 },
      { ...STRESS, id: 'x\u0000' },
      { ...STRESS, id: 'lone\ud800' },
    ],
    ['y\u0000', '\udc00'],
  );
  expect(counts).toMatchObject({ stored: 1, unchanged: 0, outdated: 0, rejected: 2, removed: 0, samples: 0 });
  expect(await drift(warehouse)).toEqual([['daily_stress', 'a\ufffdb', 'unknown field', 1]]);
  expect(await warehouse.read('SELECT id, reason FROM sync.rejected ORDER BY id')).toEqual([
    ['sha256:1E82pKck2v4T1vXfAb-PTM', 'id is missing or no text'],
    ['sha256:NfVu5Vmo7lj2J-1mDTMdUr', 'id is missing or no text'],
  ]);
});

test('quotes, line breaks and other scripts in ids and text are kept', async () => {
  const id = `it's "x"\n; DROP TABLE sleep -- 眠り`;
  await store(warehouse, 'ring_configuration', [{ ...RING, id, color: `o'clock\\n` }]);
  await store(warehouse, 'ring_configuration', [{ ...RING, id, color: `o'clock\\n`, size: 9 }]);
  expect(await warehouse.read('SELECT id, color, size FROM ring_configuration')).toEqual([[id, `o'clock\\n`, 9]]);
});
