import { expect, test } from 'vitest';
import { rows, store } from '../support/warehouse.ts';
import { ACTIVITY } from '../support/wire.ts';
import { emptiedWarehouse } from './views-setup.ts';

const warehouse = await emptiedWarehouse();

test('activity classes are labelled rows of 5 minutes, what is unknown without a label', async () => {
  await store(warehouse, 'daily_activity', [{ ...ACTIVITY, class_5_min: '0123457' }]);
  const found = await rows(
    warehouse,
    'SELECT user_id, activity_id, position, ts, utc_offset, seconds, class, code FROM activity_classes ORDER BY ts',
  );
  expect(found[0]).toEqual({
    ...{ user_id: 'ann', activity_id: 'a-1', position: 0, ts: '2025-03-30 02:00:00', utc_offset: 7200 },
    ...{ seconds: 300, class: 'non_wear', code: '0' },
  });
  expect(found.map(row => (row as { class: string }).class)).toEqual(['non_wear', 'rest', 'inactive', 'low', 'medium', 'high', null]);
  expect(await rows(warehouse, 'SELECT ts, met, met_minutes, class FROM met_minutes ORDER BY ts')).toEqual([
    { ts: '2025-03-30 02:00:00', met: 0.9, met_minutes: 0.9, class: 'non_wear' },
    { ts: '2025-03-30 02:01:00', met: null, met_minutes: null, class: 'non_wear' },
    { ts: '2025-03-30 02:02:00', met: 1.25, met_minutes: 1.25, class: 'non_wear' },
    { ts: '2025-03-30 02:03:00', met: 1.5, met_minutes: 1.5, class: 'non_wear' },
  ]);
});

test('without a timestamp an activity begins with its MET samples, in both of its views', async () => {
  const met = { interval: 60, items: [1, 1, 1, 1, 1, 2], timestamp: '2025-03-30T04:00:00+02:00' };
  await store(warehouse, 'daily_activity', [{ ...ACTIVITY, timestamp: null, class_5_min: '15', met }]);
  expect(await rows(warehouse, 'SELECT ts, class FROM activity_classes ORDER BY ts')).toEqual([
    { ts: '2025-03-30 02:00:00', class: 'rest' },
    { ts: '2025-03-30 02:05:00', class: 'high' },
  ]);
  expect(
    await rows(warehouse, 'SELECT class, count(*) AS minutes, max(ts) AS last FROM met_minutes GROUP BY class ORDER BY class'),
  ).toEqual([
    { class: 'high', minutes: 1, last: '2025-03-30 02:05:00' },
    { class: 'rest', minutes: 5, last: '2025-03-30 02:04:00' },
  ]);
});

test('a minute that two activities tell is that of the one that starts later, what only one tells is there', async () => {
  // From New York to Berlin: 4 a.m. comes 18 hours later. The later one has come in for 2 minutes so far.
  const day = (id: string, date: string, timestamp: string, items: (number | null)[]) => ({
    ...ACTIVITY,
    ...{ id, day: date, timestamp, class_5_min: '3', met: { interval: 60, items, timestamp } },
  });
  const first = day('flight', '2025-05-14', '2025-05-14T04:00:00-04:00', [...Array(1080).fill(1), 1.5, 1.6, 1.7]);
  await store(warehouse, 'daily_activity', [day('landed', '2025-05-15', '2025-05-15T04:00:00+02:00', [2, null]), first]);
  const last = 'SELECT day, ts, met FROM met_minutes ORDER BY ts DESC LIMIT 4';
  expect(await rows(warehouse, last)).toEqual([
    { day: '2025-05-14', ts: '2025-05-15 02:02:00', met: 1.7 },
    { day: '2025-05-15', ts: '2025-05-15 02:01:00', met: null },
    { day: '2025-05-15', ts: '2025-05-15 02:00:00', met: 2 },
    { day: '2025-05-14', ts: '2025-05-15 01:59:00', met: 1 },
  ]);
  expect(await rows(warehouse, 'SELECT count(*) AS n FROM met_minutes')).toEqual([{ n: 1083 }]);
  // Of two of one day, alike in their start, it is the one stored last.
  await store(warehouse, 'daily_activity', [day('again', '2025-05-15', '2025-05-15T04:00:00+02:00', [3])]);
  expect(await rows(warehouse, "SELECT met FROM met_minutes WHERE day = '2025-05-15' ORDER BY ts")).toEqual([{ met: 3 }, { met: null }]);
});
