import { cpSync } from 'node:fs';
import { DuckDBConnection } from '@duckdb/node-api';
import { afterEach, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { day, identifier, instant, integer, number, sample, text } from '../../schema/fields.ts';
import { resources } from '../../schema/index.ts';
import type { Resource } from '../../schema/resource.ts';
import { resource } from '../../schema/resource.ts';
import { Warehouse } from '../../src/warehouse/warehouse.ts';
import { normalise } from '../support/equal-in-meaning.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { NOW, newPath, store } from '../support/warehouse.ts';
import { someOf } from '../support/whole.ts';

const folder = tempFolder();

afterEach(() => {
  vi.restoreAllMocks();
});

const declare = (shape: z.ZodRawShape): Resource =>
  resource({
    path: 'Nap',
    dataType: 'nap',
    paragraph: '9.9',
    summary: 'A fabricated resource.',
    scope: 'daily',
    specified: ['collection'],
    endDay: 'included',
    document: z.object({ id: identifier('Identifier'), day: day('Day'), ...shape }),
  });

const FIRST = declare({ depth: integer('Depth'), inner: z.object({ a: integer('A').nullish() }).nullish() });
const LATER = declare({
  depth: integer('Depth'),
  inner: z.object({ a: integer('A').nullish(), b: number('B', 's').nullish() }).nullish(),
  mood: text('Mood').nullish(),
  woken: instant('Woken').nullish(),
  pulse: sample('Pulse', 'beats/min').nullish(),
});

const open = (path: string, declaration: Resource) => Warehouse.open({ path, resources: [...resources, declaration], now: () => NOW });

const DOCUMENTS = [
  {
    id: 'a',
    day: '2025-01-15',
    depth: 1,
    inner: { a: 1, b: 2.5, c: 'stays' },
    mood: 'good',
    woken: '2025-01-15T14:00:00+01:00',
    pulse: { interval: 60, items: [50, null, 52], timestamp: '2025-01-15T13:00:00+01:00', note: 1 },
    other: [1],
  },
  { id: 'b', day: '2025-01-15', depth: 2, mood: 7, pulse: { interval: 60, items: [50, 'x'], timestamp: '2025-01-15T13:00:00+01:00' } },
  { id: 'c', day: '2025-01-15', depth: 3 },
];

test('a field that the schema learns later fills its column from extra, and a sample its series; what does not fit stays', async () => {
  const path = newPath(folder);
  const before = await open(path, FIRST);
  await store(before, 'nap', DOCUMENTS);
  await before.close();
  const after = await open(path, LATER);
  expect(
    await after.read('SELECT id, inner_a, inner_b, mood, woken, woken_offset, pulse_count, extra::VARCHAR FROM nap ORDER BY id'),
  ).toEqual([
    ['a', 1, 2.5, 'good', 1_736_946_000_000_000, 3600, 3, '{"inner":{"c":"stays"},"other":[1],"pulse":{"note":1}}'],
    ['b', null, null, null, null, null, 2, '{"mood":7,"pulse":{"interval":60,"items":[50,"x"],"timestamp":"2025-01-15T13:00:00+01:00"}}'],
    ['c', null, null, null, null, null, null, null],
  ]);
  expect(await after.read('SELECT day, ts, utc_offset, value FROM nap_pulse ORDER BY ts')).toEqual([
    ['2025-01-15', 1_736_942_400_000_000, 3600, 50],
    ['2025-01-15', 1_736_942_400_000_000, 3600, 50],
    ['2025-01-15', 1_736_942_460_000_000, 3600, null],
    ['2025-01-15', 1_736_942_460_000_000, 3600, null],
    ['2025-01-15', 1_736_942_520_000_000, 3600, 52],
  ]);
  const stored = await after.readDocuments('nap', 'true ORDER BY id');
  expect(stored.map(({ document }) => normalise(document))).toEqual(DOCUMENTS.map(normalise));
  // Learning is no new answer: the moment stays, and the same documents are unchanged.
  expect(await after.read('SELECT DISTINCT fetched_at FROM nap')).toEqual([[NOW * 1000]]);
  expect(await store(after, 'nap', DOCUMENTS)).toMatchObject({ stored: 0, unchanged: 3 });
  await after.close();
});

test('a document that has none of the learned fields is not written again', async () => {
  const path = newPath(folder);
  const before = await open(path, FIRST);
  await store(before, 'nap', [DOCUMENTS[2], { ...DOCUMENTS[2], id: 'd', elsewhere: 1 }]);
  await before.close();
  const after = await open(path, LATER);
  expect(await after.read('SELECT id, sk FROM nap ORDER BY id')).toEqual([
    ['c', 1],
    ['d', 2],
  ]);
  expect(await store(after, 'nap', [DOCUMENTS[2]])).toMatchObject({ stored: 0, unchanged: 1 });
  await after.close();
});

test('drift is not counted again when a document is read again', async () => {
  const path = newPath(folder);
  const before = await open(path, FIRST);
  await store(before, 'nap', DOCUMENTS);
  const drift = await before.read('SELECT path, kind, documents FROM sync.drift ORDER BY ALL');
  await before.close();
  const after = await open(path, LATER);
  expect(await after.read('SELECT path, kind, documents FROM sync.drift ORDER BY ALL')).toEqual(drift);
  await after.close();
});

test('learning that was broken off is done at the next start, wherever it broke off', async () => {
  const made = newPath(folder);
  const before = await open(made, FIRST);
  await store(
    before,
    'nap',
    Array.from({ length: 450 }, (_, i) => ({ ...DOCUMENTS[0], id: `n-${i}` })),
  );
  await before.close();
  /** Opens a copy of which the nth commit fails, and then again. Returns how many commits the first time took. */
  const learn = async (nth: number) => {
    const path = newPath(folder);
    cpSync(made, path);
    let commits = 0;
    const run = DuckDBConnection.prototype.run;
    vi.spyOn(DuckDBConnection.prototype, 'run').mockImplementation(async function (this: DuckDBConnection, ...parameters) {
      // The halves that the writer tries again fail with it.
      if (parameters[0] === 'COMMIT' && ++commits >= nth) throw new Error('IO Error: simulated');
      return run.apply(this, parameters);
    });
    const broken = await open(path, LATER).catch((error: Error) => error.message);
    vi.restoreAllMocks();
    if (typeof broken !== 'string') await broken.close();
    else expect(broken).toMatch(/IO Error: simulated$/);
    const after = await open(path, LATER);
    expect(await after.read('SELECT count(*), count(DISTINCT id), count(mood), count(pulse_count) FROM nap')).toEqual([
      [450, 450, 450, 450],
    ]);
    expect(await after.read('SELECT count(*), count(DISTINCT sk) FROM nap_pulse')).toEqual([[1350, 450]]);
    await after.close();
    return commits;
  };
  const count = await learn(Number.POSITIVE_INFINITY);
  expect(count).toBeGreaterThan(3);
  const steps = Array.from({ length: count }, (_, i) => i + 1);
  for (const nth of someOf(steps, { always: [count], more: 1 })) await learn(nth);
});

test('what an earlier version rejected is tried again by one that reads it', async () => {
  const path = newPath(folder);
  const before = await open(path, FIRST);
  const refused = { id: 'x', day: '2025-01-15', depth: 'deep', serial: 'SERIAL' };
  await rejectAsBefore(before, JSON.stringify(refused).replace('"SERIAL"', '12345678901234567890'));
  await store(before, 'nap', [{ id: 'y', day: 'never', depth: 1 }]);
  expect(await before.read('SELECT id FROM sync.rejected ORDER BY id')).toEqual([['x'], ['y']]);
  await before.close();
  const same = await open(path, FIRST);
  expect(await same.read('SELECT id FROM nap')).toEqual([]);
  await same.close();
  const later = await open(path, LATER_INNER);
  expect(await later.read('SELECT id, depth, extra::VARCHAR, fetched_at FROM nap')).toEqual([
    ['x', null, '{"depth":"deep","serial":12345678901234567890}', NOW * 1000],
  ]);
  expect(await later.read('SELECT id FROM sync.rejected')).toEqual([['y']]);
  await later.close();
});

const LATER_INNER = declare({ depth: integer('Depth').nullish(), inner: z.object({ a: integer('A').nullish() }).nullish() });

/** A required field of a wrong type once refused a document. */
const rejectAsBefore = (warehouse: Warehouse, document: string, fetchedAt = NOW * 1000) =>
  warehouse.record([
    {
      table: 'sync.rejected',
      key: { user_id: 'ann', collection: 'nap', id: 'x' },
      row: { reason: 'depth is required and has a wrong type', document, fetched_at: fetchedAt, day: '2025-01-15' },
    },
  ]);

test('a rejected version that is newer than the stored one takes its place once it can be read', async () => {
  const path = newPath(folder);
  const before = await open(path, FIRST);
  await store(before, 'nap', [{ id: 'x', day: '2025-01-15', depth: 1 }]);
  await rejectAsBefore(before, '{"id":"x","day":"2025-01-15","depth":"deep"}', NOW * 1000 + 1);
  await before.close();
  const after = await open(path, LATER_INNER);
  expect(await after.read('SELECT id, depth, extra::VARCHAR FROM nap')).toEqual([['x', null, '{"depth":"deep"}']]);
  await after.close();
});

test('a rejected version that is older than the stored one does not take its place once it can be read', async () => {
  const path = newPath(folder);
  const before = await open(path, FIRST);
  await store(before, 'nap', [{ id: 'x', day: '2025-01-15', depth: 1 }]);
  await rejectAsBefore(before, '{"id":"x","day":"2025-01-15","depth":"deep"}', NOW * 1000 - 1);
  await before.close();
  const after = await open(path, LATER_INNER);
  expect(await after.read('SELECT id, depth, extra::VARCHAR FROM nap')).toEqual([['x', 1, null]]);
  await after.close();
});

test('a rejected version that is older than the removal of its document does not bring it back', async () => {
  const path = newPath(folder);
  const before = await open(path, FIRST);
  await store(before, 'nap', [{ id: 'x', day: '2025-01-15', depth: 1 }]);
  await store(before, 'nap', [], ['x']);
  await rejectAsBefore(before, '{"id":"x","day":"2025-01-15","depth":"deep"}', NOW * 1000 - 1);
  await before.close();
  const after = await open(path, LATER_INNER);
  expect(await after.read('SELECT id FROM nap')).toEqual([]);
  await after.close();
});

test('an undated resource with a sample is stored, replaced and read back', async () => {
  const undated = resource({
    path: 'ring_test',
    dataType: 'ring_test',
    paragraph: '9.9',
    summary: 'A fabricated resource without a day.',
    scope: 'daily',
    specified: ['document'],
    endDay: 'included',
    document: z.object({ id: identifier('Identifier'), charge: sample('Charge', '%').nullish() }),
  });
  const path = newPath(folder);
  const warehouse = await open(path, undated);
  const document = { id: 'r', charge: { interval: 3600, items: [100, null, 80], timestamp: '2025-01-15T00:00:00+00:00' } };
  await store(warehouse, 'ring_test', [{ ...document, charge: { ...document.charge, items: [1, 2] } }]);
  await store(warehouse, 'ring_test', [document]);
  expect(await warehouse.read('SELECT sk, day, value FROM ring_test_charge ORDER BY ts')).toEqual([
    [2, null, 100],
    [2, null, null],
    [2, null, 80],
  ]);
  expect(normalise((await warehouse.readDocuments('ring_test', 'true'))[0]!.document)).toEqual(normalise(document));
  await warehouse.close();
});
