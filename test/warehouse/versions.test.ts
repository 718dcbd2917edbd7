import { expect, test } from 'vitest';
import { randomAnswers } from '../support/random-answers.ts';
import { below, pick, randomFrom } from '../support/random-documents.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse, store } from '../support/warehouse.ts';
import { ACTIVITY, SLEEP } from '../support/wire.ts';

const folder = tempFolder();

const withItems = (count: number, id = 'a-1') => ({
  ...ACTIVITY,
  id,
  met: { ...ACTIVITY.met, items: Array.from({ length: count }, (_, i) => i / 4) },
});

test('replacing a document removes the samples of the old version, and of no other', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  await store(warehouse, 'daily_activity', [withItems(4), withItems(3, 'a-2')]);
  await store(warehouse, 'daily_activity', [withItems(2)]);
  expect(await warehouse.read('SELECT id, sk, met_count FROM daily_activity ORDER BY id')).toEqual([
    ['a-1', 3, 2],
    ['a-2', 2, 3],
  ]);
  expect(await warehouse.read('SELECT sk, count(*) FROM daily_activity_met GROUP BY sk ORDER BY sk')).toEqual([
    [2, 3],
    [3, 2],
  ]);
  await warehouse.close();
});

test('replacing a document that moved to another day removes its samples of the day before', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  await store(warehouse, 'sleep', [SLEEP]);
  await store(warehouse, 'sleep', [{ ...SLEEP, day: '2025-01-16' }]);
  expect(await warehouse.read('SELECT id, day, sk FROM sleep')).toEqual([['s-1', '2025-01-16', 2]]);
  expect(await warehouse.read('SELECT DISTINCT sk, day FROM sleep_heart_rate')).toEqual([[2, '2025-01-16']]);
  await warehouse.close();
});

test('the numbers of versions go on after a restart', async () => {
  const path = newPath(folder);
  const first = await openWarehouse(path);
  await store(first, 'daily_activity', [withItems(1), withItems(1, 'a-2')]);
  await first.close();
  const second = await openWarehouse(path);
  await store(second, 'sleep', [SLEEP]);
  expect(await second.read('SELECT sk FROM sleep')).toEqual([[3]]);
  await second.close();
});

test('a sample of 5,000 items fills several chunks, nulls in each, in its order', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  const items = Array.from({ length: 5000 }, (_, i) => (i % 2049 === 5 ? null : i / 8));
  await store(warehouse, 'daily_activity', [{ ...ACTIVITY, met: { ...ACTIVITY.met, items } }]);
  expect(
    await warehouse.read(
      'SELECT count(*), count(value), min(ts), max(ts), sum(value), sum(sk), count(DISTINCT ts) FROM daily_activity_met',
    ),
  ).toEqual([[5000, 4997, 1_743_300_000_000_000, 1_743_599_940_000_000, 1_561_417.25, 5000, 5000]]);
  const [stored] = await warehouse.readDocuments('daily_activity', 'true');
  expect((stored!.document.met as { items: unknown[] }).items).toEqual(items);
  await warehouse.close();
});

test('3,000 documents of one answer fill two chunks, nulls in both', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  const documents = Array.from({ length: 3000 }, (_, i) => ({
    id: `o-${i}`,
    day: '2025-01-15',
    breathing_disturbance_index: i % 3 ? i % 100 : null,
    spo2_percentage: i % 5 ? { average: 90 + (i % 10) / 8 } : null,
  }));
  await store(warehouse, 'daily_spo2', documents);
  expect(
    await warehouse.read(
      'SELECT count(*), count(DISTINCT id), count(breathing_disturbance_index), count(spo2_percentage_average), count(extra) FROM daily_spo2',
    ),
  ).toEqual([[3000, 3000, 2000, 2400, 0]]);
  const stored = await warehouse.readDocuments('daily_spo2', 'true ORDER BY sk');
  expect(stored.map(({ document }) => document.id)).toEqual(documents.map(({ id }) => id));
  expect(stored[2999]!.document).toEqual({
    id: 'o-2999',
    day: '2025-01-15',
    breathing_disturbance_index: 99,
    spo2_percentage: { average: 91.125 },
  });
  expect(stored[2998]!.document).toEqual({
    id: 'o-2998',
    day: '2025-01-15',
    breathing_disturbance_index: 98,
    spo2_percentage: { average: 91 },
  });
  await warehouse.close();
});

test('a count of nothing is not the same as no sample', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  await store(warehouse, 'sleep', [SLEEP, { ...SLEEP, id: 's-2', hrv: null }]);
  expect(await warehouse.read('SELECT id, hrv_count, hrv_interval FROM sleep ORDER BY id')).toEqual([
    ['s-1', 0, 300],
    ['s-2', null, null],
  ]);
  const stored = await warehouse.readDocuments('sleep', 'true ORDER BY id');
  expect(stored.map(({ document }) => document.hrv)).toEqual([
    { interval: 300, items: [], timestamp: '2025-01-14T23:20:42.000-03:30' },
    undefined,
  ]);
  await warehouse.close();
});

test('after hundreds of random answers, with days that change, every id is there once and every sample belongs to one', () =>
  randomAnswers(newPath(folder), { seed: 11, rounds: 8 }));

test('after 600 random ranges of heart rate, overlapping and out of order, the newest answer holds at every moment', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  const random = randomFrom(13);
  const T = 1_736_899_200;
  // For each user and second: the newest request that covered it, and what it had there.
  const newest = new Map<string, { moment: number; rows: string[] }>();
  for (let round = 0; round < 60; round++) {
    const requests = Array.from({ length: 10 }, () => ({
      userId: pick(random, ['ann', 'ben']),
      from: below(random, 90),
      length: 1 + below(random, 30),
      requestedAt: warehouse.clock.lease(),
    }));
    const writes = requests
      .sort(() => random() - 0.5)
      .map(({ userId, from, length, requestedAt }) => {
        const sent: { timestamp: string; timestamp_unix: number; bpm: number; source: string }[] = [];
        for (let second = from; second < from + length; second++) {
          const rows: string[] = [];
          for (const source of ['awake', 'rest']) {
            if (random() < 0.5) continue;
            const bpm = 60 + below(random, 3);
            rows.push(`${source} ${bpm}`);
            sent.push({ timestamp: new Date((T + second) * 1000).toISOString(), timestamp_unix: (T + second) * 1000, bpm, source });
          }
          const key = `${userId} ${second}`;
          if ((newest.get(key)?.moment ?? 0) < requestedAt) newest.set(key, { moment: requestedAt, rows });
        }
        return warehouse
          .storeHeartRate({ userId, from: (T + from) * 1_000_000, to: (T + from + length) * 1_000_000, requestedAt, rows: sent })
          .finally(() => warehouse.clock.release(requestedAt));
      });
    await Promise.all(writes);
  }
  const expected = [...newest].flatMap(([key, { rows }]) => rows.map(row => `${key} ${row}`)).sort();
  const stored = await warehouse.read(`SELECT user_id || ' ' || (epoch(ts)::BIGINT - ${T}) || ' ' || source || ' ' || bpm FROM heart_rate`);
  expect(stored.map(([row]) => row as string).sort()).toEqual(expected);
  await warehouse.close();
});
