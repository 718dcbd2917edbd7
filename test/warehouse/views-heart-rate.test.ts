import { expect, test } from 'vitest';
import { rows, store } from '../support/warehouse.ts';
import { emptiedWarehouse } from './views-setup.ts';

const warehouse = await emptiedWarehouse();

test('heart_rate_sources has the rows of heart_rate and the samples of sleeps and sessions that have a value', async () => {
  const samples = { interval: 60, items: [61, null, 63], timestamp: '2025-03-11T12:00:00+01:00' };
  await store(warehouse, 'session', [{ id: 'm', day: '2025-03-11', type: 'rest', heart_rate: samples }]);
  const requestedAt = warehouse.clock.lease();
  await warehouse.storeHeartRate({
    ...{ userId: 'ann', from: 1_741_651_200_000_000, to: 1_741_737_600_000_000, requestedAt },
    rows: [{ timestamp: '2025-03-11T11:01:30.000+00:00', timestamp_unix: 1_741_690_890_000, bpm: 62, source: 'awake' }],
  });
  warehouse.clock.release(requestedAt);
  expect(
    await rows(
      warehouse,
      'SELECT user_id, day, ts, utc_offset, bpm, source, origin, sk IS NULL AS of_no_document, seconds FROM heart_rate_sources ORDER BY ts',
    ),
  ).toEqual([
    ...[
      {
        user_id: 'ann',
        day: '2025-03-11',
        ts: '2025-03-11 11:00:00',
        utc_offset: 3600,
        bpm: 61,
        source: 'session',
        origin: 'session',
        of_no_document: false,
        seconds: 60,
      },
    ],
    ...[
      {
        user_id: 'ann',
        day: '2025-03-11',
        ts: '2025-03-11 11:01:30',
        utc_offset: 0,
        bpm: 62,
        source: 'awake',
        origin: 'heart_rate',
        of_no_document: true,
        seconds: null,
      },
    ],
    ...[
      {
        user_id: 'ann',
        day: '2025-03-11',
        ts: '2025-03-11 11:02:00',
        utc_offset: 3600,
        bpm: 63,
        source: 'session',
        origin: 'session',
        of_no_document: false,
        seconds: 60,
      },
    ],
  ]);
});

test('in heart_rate_all each moment is there once: a row of heart_rate wins over a sample in whose interval it lies', async () => {
  const at = (time: string) => ({
    ...{ timestamp: `2025-03-20T${time}+00:00`, timestamp_unix: Date.parse(`2025-03-20T${time}Z`), bpm: 70, source: 'sleep' },
  });
  const requestedAt = warehouse.clock.lease();
  await warehouse.storeHeartRate({
    ...{ userId: 'ann', from: Date.UTC(2025, 2, 20) * 1000, to: Date.UTC(2025, 2, 21) * 1000, requestedAt },
    // At the first moment of a sample, at the last of another, and before all of them.
    rows: [
      at('00:59:59.000'),
      at('01:05:00.000'),
      at('01:14:59.999'),
      at('02:30:00.000'),
      { ...at('02:30:00.000'), bpm: 90, source: 'workout' },
      { ...at('02:30:00.000'), bpm: 75, source: 'awake' },
    ],
  });
  warehouse.clock.release(requestedAt);
  const sleep = { type: 'long_sleep', bedtime_start: '2025-03-20T01:00:00+00:00', bedtime_end: '2025-03-20T03:00:00+00:00' };
  const samples = (from: string, interval: number, ...items: (number | null)[]) => ({
    ...{ interval, items, timestamp: `2025-03-20T${from}+00:00` },
  });
  await store(warehouse, 'sleep', [
    { ...sleep, id: 'a', day: '2025-03-20', heart_rate: samples('01:00:00', 300, 50, 51, 52, 53, null, 55) },
    // An hour and a half to each sample: the first holds the row of 2:30, the second none.
    { ...sleep, id: 'b', day: '2025-03-20', type: 'rest', heart_rate: samples('01:30:00', 5400, 60, 61) },
  ]);
  // The nap was edited: what is stored last is shown.
  await store(warehouse, 'sleep', [{ ...sleep, id: 'c', day: '2025-03-20', type: 'sleep', heart_rate: samples('12:00:00', 300, 65, 66) }]);
  await store(warehouse, 'session', [{ id: 'd', day: '2025-03-20', type: 'rest', heart_rate: samples('12:05:00', 5, 67, 68) }]);
  const day = `user_id = 'ann' AND ts BETWEEN '2025-03-20' AND '2025-03-21'`;
  expect(await rows(warehouse, `SELECT ts, bpm, origin, seconds FROM heart_rate_all WHERE ${day} ORDER BY ts`)).toEqual([
    { ts: '2025-03-20 00:59:59', bpm: 70, origin: 'heart_rate', seconds: null },
    { ts: '2025-03-20 01:00:00', bpm: 50, origin: 'sleep', seconds: 300 },
    { ts: '2025-03-20 01:05:00', bpm: 70, origin: 'heart_rate', seconds: null },
    { ts: '2025-03-20 01:14:59.999', bpm: 70, origin: 'heart_rate', seconds: null },
    { ts: '2025-03-20 01:15:00', bpm: 53, origin: 'sleep', seconds: 300 },
    { ts: '2025-03-20 01:25:00', bpm: 55, origin: 'sleep', seconds: 300 },
    { ts: '2025-03-20 02:30:00', bpm: 90, origin: 'heart_rate', seconds: null },
    { ts: '2025-03-20 03:00:00', bpm: 61, origin: 'sleep', seconds: 5400 },
    { ts: '2025-03-20 12:00:00', bpm: 65, origin: 'sleep', seconds: 300 },
    { ts: '2025-03-20 12:05:00', bpm: 67, origin: 'session', seconds: 5 },
    { ts: '2025-03-20 12:05:05', bpm: 68, origin: 'session', seconds: 5 },
  ]);
  expect(
    await rows(warehouse, `SELECT origin, count(*) AS rows FROM heart_rate_sources WHERE ${day} GROUP BY origin ORDER BY origin`),
  ).toEqual([
    { origin: 'heart_rate', rows: 6 },
    { origin: 'session', rows: 2 },
    { origin: 'sleep', rows: 9 },
  ]);
  // A filter does not change what wins: the row of 1:14:59.999 is not asked for.
  const until = `SELECT ts FROM heart_rate_all WHERE user_id = 'ann' AND ts BETWEEN '2025-03-20 01:06:00' AND '2025-03-20 01:12:00'`;
  expect(await rows(warehouse, until)).toEqual([]);
});

test('a moment of somebody else takes nothing away, and an interval of years costs no more than one of a day', async () => {
  const sleep = { type: 'long_sleep', bedtime_start: '2025-03-25T01:00:00+00:00', bedtime_end: '2025-03-25T03:00:00+00:00' };
  const timestamp = '2025-03-25T01:00:00+00:00';
  await store(warehouse, 'sleep', [
    { ...sleep, id: 'a', day: '2025-03-25', heart_rate: { interval: 1e8, items: [50], timestamp } },
    { ...sleep, id: 'b', day: '2025-03-26', heart_rate: { interval: 0.001, items: [51], timestamp: '2025-03-26T01:00:00+00:00' } },
  ]);
  const requestedAt = warehouse.clock.lease();
  await warehouse.storeHeartRate({
    ...{ userId: 'bob', from: Date.UTC(2025, 2, 25) * 1000, to: Date.UTC(2025, 2, 27) * 1000, requestedAt },
    rows: [{ timestamp, timestamp_unix: Date.parse(timestamp), bpm: 70, source: 'sleep' }],
  });
  warehouse.clock.release(requestedAt);
  expect(await rows(warehouse, `SELECT user_id, ts, bpm FROM heart_rate_all WHERE ts > '2025-03-24' ORDER BY ALL`)).toEqual([
    { user_id: 'ann', ts: '2025-03-25 01:00:00', bpm: 50 },
    { user_id: 'ann', ts: '2025-03-26 01:00:00', bpm: 51 },
    { user_id: 'bob', ts: '2025-03-25 01:00:00', bpm: 70 },
  ]);
});

test('hrv_nights sums up the samples of the main sleep, and says when there are none', async () => {
  const samples = { interval: 300, items: [20, 30, null, 70], timestamp: '2025-03-11T00:00:00+00:00' };
  const night = { type: 'long_sleep', bedtime_start: '2025-03-11T00:00:00+00:00', bedtime_end: '2025-03-11T00:20:00+00:00' };
  await store(warehouse, 'sleep', [
    { ...night, id: 's', day: '2025-03-11', hrv: samples, average_hrv: 41, time_in_bed: 1200 },
    { ...night, id: 'nap', type: 'late_nap', day: '2025-03-11', hrv: samples },
    { ...night, id: 't', day: '2025-03-12', hrv: null },
  ]);
  const found = await rows(
    warehouse,
    `SELECT sleep_id, average_hrv, samples, samples_with_value, mean_hrv, median_hrv, round(sd_hrv, 6) AS sd_hrv, lowest_hrv, highest_hrv,
     first_half_hrv, second_half_hrv FROM hrv_nights ORDER BY day`,
  );
  // 20, 30, 70: mean 40, squares 400 + 100 + 900, by 2: root of 700.
  expect(found).toEqual([
    {
      ...{ sleep_id: 's', average_hrv: 41, samples: 4, samples_with_value: 3, mean_hrv: 40, median_hrv: 30, sd_hrv: 26.457513 },
      ...{ lowest_hrv: 20, highest_hrv: 70, first_half_hrv: 25, second_half_hrv: 70 },
    },
    {
      ...{ sleep_id: 't', average_hrv: null, samples: 0, samples_with_value: 0, mean_hrv: null, median_hrv: null, sd_hrv: null },
      ...{ lowest_hrv: null, highest_hrv: null, first_half_hrv: null, second_half_hrv: null },
    },
  ]);
});

test('an absurd sample counts as missing in the deviation of its night and does not end the query of everybody', async () => {
  const night = { type: 'long_sleep', bedtime_start: '2025-03-11T00:00:00+00:00', bedtime_end: '2025-03-11T00:20:00+00:00' };
  const hrv = (...items: number[]) => ({ interval: 300, items, timestamp: '2025-03-11T00:00:00+00:00' });
  await store(warehouse, 'sleep', [
    { ...night, id: 's', day: '2025-03-11', hrv: hrv(20, 1e300, 30, -1e300, 70) },
    { ...night, id: 't', day: '2025-03-12', hrv: hrv(20, 30, 70) },
  ]);
  // As above: 20, 30, 70.
  expect(
    await rows(warehouse, 'SELECT sleep_id, samples_with_value, round(sd_hrv, 6) AS sd_hrv, highest_hrv FROM hrv_nights ORDER BY day'),
  ).toEqual([
    { sleep_id: 's', samples_with_value: 5, sd_hrv: 26.457513, highest_hrv: 1e300 },
    { sleep_id: 't', samples_with_value: 3, sd_hrv: 26.457513, highest_hrv: 70 },
  ]);
});
