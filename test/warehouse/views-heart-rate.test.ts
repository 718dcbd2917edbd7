import { expect, test } from 'vitest';
import { rows, store } from '../support/warehouse.ts';
import { emptiedWarehouse } from './views-setup.ts';

const warehouse = await emptiedWarehouse();

test('heart_rate_all has the rows of heart_rate and the samples of sleeps and sessions that have a value', async () => {
  const samples = { interval: 60, items: [61, null, 63], timestamp: '2025-03-11T12:00:00+01:00' };
  await store(warehouse, 'session', [{ id: 'm', day: '2025-03-11', type: 'rest', heart_rate: samples }]);
  const requestedAt = warehouse.moments.begin();
  await warehouse.storeHeartRate({
    ...{ userId: 'ann', from: 1_741_651_200_000_000, to: 1_741_737_600_000_000, requestedAt },
    rows: [{ timestamp: '2025-03-11T11:01:30.000+00:00', timestamp_unix: 1_741_690_890_000, bpm: 62, source: 'awake' }],
  });
  warehouse.moments.end(requestedAt);
  expect(
    await rows(
      warehouse,
      'SELECT user_id, day, ts, utc_offset, bpm, source, origin, sk IS NULL AS of_no_document FROM heart_rate_all ORDER BY ts',
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
      },
    ],
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
