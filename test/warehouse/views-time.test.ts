import { expect, test } from 'vitest';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse, rows, store } from '../support/warehouse.ts';
import { ACTIVITY } from '../support/wire.ts';

// Every expected row is worked out by hand from the documents: local times first, then UTC.

const folder = tempFolder();

const NIGHT = { type: 'long_sleep', period: 0, low_battery_alert: false };

async function answer(resource: string, documents: readonly unknown[], sql: string): Promise<unknown[]> {
  const warehouse = await openWarehouse(newPath(folder));
  try {
    expect(await store(warehouse, resource, documents)).toMatchObject({ stored: documents.length, rejected: 0 });
    return await rows(warehouse, sql);
  } finally {
    await warehouse.close();
  }
}

const HOURS = `SELECT day, bedtime_start, bedtime_end, bedtime_start_local, bedtime_end_local, midpoint_local, offset_change, time_in_bed FROM nights ORDER BY day`;

test('a night in which clocks go back is as long as it was, and its ends are what the clocks showed', async () => {
  const night = { id: 's', day: '2025-10-26', bedtime_start: '2025-10-25T23:00:00+02:00', bedtime_end: '2025-10-26T06:30:00+01:00' };
  expect(await answer('sleep', [{ ...NIGHT, ...night, time_in_bed: 30600 }], HOURS)).toEqual([
    {
      day: '2025-10-26',
      bedtime_start: '2025-10-25 21:00:00',
      bedtime_end: '2025-10-26 05:30:00',
      bedtime_start_local: '2025-10-25 23:00:00',
      bedtime_end_local: '2025-10-26 06:30:00',
      midpoint_local: '2025-10-26 02:15:00',
      offset_change: -3600,
      time_in_bed: 30600,
    },
  ]);
});

test('a night in which clocks go forward', async () => {
  const night = { id: 's', day: '2025-03-30', bedtime_start: '2025-03-29T23:30:00+01:00', bedtime_end: '2025-03-30T07:10:00+02:00' };
  expect(await answer('sleep', [{ ...NIGHT, ...night, time_in_bed: 24000 }], HOURS)).toEqual([
    {
      day: '2025-03-30',
      bedtime_start: '2025-03-29 22:30:00',
      bedtime_end: '2025-03-30 05:10:00',
      bedtime_start_local: '2025-03-29 23:30:00',
      bedtime_end_local: '2025-03-30 07:10:00',
      midpoint_local: '2025-03-30 03:50:00',
      offset_change: 3600,
      time_in_bed: 24000,
    },
  ]);
});

test('nights on flights westward, eastward and over the date line', async () => {
  const westward = { id: 'w', day: '2025-05-11', bedtime_start: '2025-05-10T22:00:00+02:00', bedtime_end: '2025-05-11T01:00:00-04:00' };
  const eastward = { id: 'e', day: '2025-05-18', bedtime_start: '2025-05-17T20:00:00-04:00', bedtime_end: '2025-05-18T12:30:00+02:00' };
  const dateLine = { id: 'd', day: '2025-07-01', bedtime_start: '2025-07-01T22:00:00+12:00', bedtime_end: '2025-07-01T08:00:00-10:00' };
  const documents = [
    { ...NIGHT, ...westward, time_in_bed: 32400 },
    { ...NIGHT, ...eastward, time_in_bed: 37800 },
    { ...NIGHT, ...dateLine, time_in_bed: 28800 },
  ];
  expect(await answer('sleep', documents, HOURS)).toEqual([
    {
      day: '2025-05-11',
      bedtime_start: '2025-05-10 20:00:00',
      bedtime_end: '2025-05-11 05:00:00',
      bedtime_start_local: '2025-05-10 22:00:00',
      bedtime_end_local: '2025-05-11 01:00:00',
      midpoint_local: '2025-05-10 20:30:00',
      offset_change: -21600,
      time_in_bed: 32400,
    },
    {
      day: '2025-05-18',
      bedtime_start: '2025-05-18 00:00:00',
      bedtime_end: '2025-05-18 10:30:00',
      bedtime_start_local: '2025-05-17 20:00:00',
      bedtime_end_local: '2025-05-18 12:30:00',
      midpoint_local: '2025-05-18 07:15:00',
      offset_change: 21600,
      time_in_bed: 37800,
    },
    {
      day: '2025-07-01',
      bedtime_start: '2025-07-01 10:00:00',
      bedtime_end: '2025-07-01 18:00:00',
      bedtime_start_local: '2025-07-01 22:00:00',
      bedtime_end_local: '2025-07-01 08:00:00',
      midpoint_local: '2025-07-01 04:00:00',
      offset_change: -79200,
      time_in_bed: 28800,
    },
  ]);
});

test('the stages of a night in which clocks go back follow one another in UTC, under the offset of its start', async () => {
  const night = { id: 's', day: '2025-10-26', bedtime_start: '2025-10-26T02:50:00+02:00', bedtime_end: '2025-10-26T02:14:20+01:00' };
  // 24 min 20 s: the fifth 5 minutes are cut short.
  const stages = `SELECT ts, local(ts, utc_offset) AS local_ts, utc_offset, seconds, stage FROM sleep_stages ORDER BY ts`;
  expect(await answer('sleep', [{ ...NIGHT, ...night, time_in_bed: 1460, sleep_phase_5_min: '42113' }], stages)).toEqual([
    { ts: '2025-10-26 00:50:00', local_ts: '2025-10-26 02:50:00', utc_offset: 7200, seconds: 300, stage: 'awake' },
    { ts: '2025-10-26 00:55:00', local_ts: '2025-10-26 02:55:00', utc_offset: 7200, seconds: 300, stage: 'light' },
    { ts: '2025-10-26 01:00:00', local_ts: '2025-10-26 03:00:00', utc_offset: 7200, seconds: 300, stage: 'deep' },
    { ts: '2025-10-26 01:05:00', local_ts: '2025-10-26 03:05:00', utc_offset: 7200, seconds: 300, stage: 'deep' },
    { ts: '2025-10-26 01:10:00', local_ts: '2025-10-26 03:10:00', utc_offset: 7200, seconds: 260, stage: 'rem' },
  ]);
});

test('a nap that ends at 17:59:30 belongs to its day, one that ends at 18:00 to the next, as night_of says too', async () => {
  const documents = [
    {
      id: 'before',
      day: '2025-06-10',
      type: 'sleep',
      bedtime_start: '2025-06-10T17:20:00+02:00',
      bedtime_end: '2025-06-10T17:59:30+02:00',
    },
    { id: 'at', day: '2025-06-11', type: 'late_nap', bedtime_start: '2025-06-10T17:20:30+02:00', bedtime_end: '2025-06-10T18:00:00+02:00' },
  ];
  const sql = 'SELECT sleep_id, day, night_of(bedtime_end, bedtime_end_offset) AS night, bedtime_end_local FROM naps ORDER BY day';
  expect(await answer('sleep', documents, sql)).toEqual([
    { sleep_id: 'before', day: '2025-06-10', night: '2025-06-10', bedtime_end_local: '2025-06-10 17:59:30' },
    { sleep_id: 'at', day: '2025-06-11', night: '2025-06-11', bedtime_end_local: '2025-06-10 18:00:00' },
  ]);
});

test('03:59 belongs to the activity of the day before, 04:00 to that of the day', async () => {
  const documents = [
    { id: 'a', day: '2025-06-10', type: 'rest', start_datetime: '2025-06-10T03:59:59-07:00', end_datetime: '2025-06-10T04:10:00-07:00' },
    { id: 'b', day: '2025-06-10', type: 'rest', start_datetime: '2025-06-10T04:00:00-07:00', end_datetime: '2025-06-10T04:10:00-07:00' },
  ];
  const sql = 'SELECT id, start_datetime, activity_day_of(start_datetime, start_datetime_offset) AS day FROM session ORDER BY id';
  expect(await answer('session', documents, sql)).toEqual([
    { id: 'a', start_datetime: '2025-06-10 10:59:59', day: '2025-06-09' },
    { id: 'b', start_datetime: '2025-06-10 11:00:00', day: '2025-06-10' },
  ]);
});

// From 4 a.m. to 4 a.m. of the next day, over the change of the clock in Berlin.
const SPRING = {
  ...ACTIVITY,
  id: 'spring',
  day: '2025-03-29',
  timestamp: '2025-03-29T04:00:00+01:00',
  class_5_min: `${'1'.repeat(275)}5`,
  met: { interval: 60, items: [...new Array(1379).fill(1), 3.5], timestamp: '2025-03-29T04:00:00+01:00' },
  ...{ non_wear_time: 0, resting_time: 82500, sedentary_time: 0, low_activity_time: 0, medium_activity_time: 0, high_activity_time: 300 },
};
const AUTUMN = {
  ...ACTIVITY,
  id: 'autumn',
  day: '2025-10-25',
  timestamp: '2025-10-25T04:00:00+02:00',
  class_5_min: `${'0'.repeat(150)}${'2'.repeat(149)}4`,
  met: { interval: 60, items: [...new Array(1499).fill(1), null], timestamp: '2025-10-25T04:00:00+02:00' },
  ...{
    non_wear_time: 45000,
    resting_time: 0,
    sedentary_time: 44700,
    low_activity_time: 0,
    medium_activity_time: 300,
    high_activity_time: 0,
  },
};

test('the days of 23 and of 25 hours have 276 and 300 classes, and end where the next day starts', async () => {
  const sql = `SELECT day, count(*) AS classes, sum(seconds)::BIGINT AS seconds, min(ts) AS first, max(ts) AS last, max_by(class, ts) AS last_class,
    min(activity_day_of(ts, utc_offset)) AS first_day FROM activity_classes GROUP BY day ORDER BY day`;
  expect(await answer('daily_activity', [SPRING, AUTUMN], sql)).toEqual([
    {
      day: '2025-03-29',
      classes: 276,
      seconds: 82800,
      first: '2025-03-29 03:00:00',
      last: '2025-03-30 01:55:00',
      last_class: 'high',
      first_day: '2025-03-29',
    },
    {
      day: '2025-10-25',
      classes: 300,
      seconds: 90000,
      first: '2025-10-25 02:00:00',
      last: '2025-10-26 02:55:00',
      last_class: 'medium',
      first_day: '2025-10-25',
    },
  ]);
});

test('their minutes are 1380 and 1500, each with the class of its 5 minutes', async () => {
  const sql = `SELECT day, count(*) AS minutes, count(met) AS known, sum(met_minutes) AS met_minutes, max(ts) AS last, max_by(class, ts) AS last_class,
    count(*) FILTER (WHERE class IN ('high', 'medium')) AS active FROM met_minutes GROUP BY day ORDER BY day`;
  expect(await answer('daily_activity', [SPRING, AUTUMN], sql)).toEqual([
    { day: '2025-03-29', minutes: 1380, known: 1380, met_minutes: 1382.5, last: '2025-03-30 01:59:00', last_class: 'high', active: 5 },
    { day: '2025-10-25', minutes: 1500, known: 1499, met_minutes: 1499, last: '2025-10-26 02:59:00', last_class: 'medium', active: 5 },
  ]);
});

test('the share of such a day without the ring is of its own length', async () => {
  const sql = `SELECT day, recorded_time, non_wear_share, ring_not_worn FROM daily WHERE NOT activity_missing ORDER BY day`;
  expect(await answer('daily_activity', [SPRING, AUTUMN], sql)).toEqual([
    { day: '2025-03-29', recorded_time: 82800, non_wear_share: 0, ring_not_worn: false },
    { day: '2025-10-25', recorded_time: 90000, non_wear_share: 0.5, ring_not_worn: true },
  ]);
});

test('the samples of a night over the change of the clock keep the offset of their start, also in heart_rate_all and hrv_nights', async () => {
  const samples = (items: (number | null)[]) => ({ interval: 300, items, timestamp: '2025-10-25T23:50:00+02:00' });
  const night = { id: 's', day: '2025-10-26', bedtime_start: '2025-10-25T23:50:00+02:00', bedtime_end: '2025-10-26T06:00:00+01:00' };
  const warehouse = await openWarehouse(newPath(folder));
  await store(warehouse, 'sleep', [{ ...NIGHT, ...night, heart_rate: samples([55, null, 53.5]), hrv: samples([40, 60, null]) }]);
  expect(
    await rows(warehouse, 'SELECT day, ts, local(ts, utc_offset) AS local_ts, bpm, source, origin FROM heart_rate_all ORDER BY ts'),
  ).toEqual([
    { day: '2025-10-25', ts: '2025-10-25 21:50:00', local_ts: '2025-10-25 23:50:00', bpm: 55, source: 'sleep', origin: 'sleep' },
    { day: '2025-10-26', ts: '2025-10-25 22:00:00', local_ts: '2025-10-26 00:00:00', bpm: 53.5, source: 'sleep', origin: 'sleep' },
  ]);
  expect(
    await rows(warehouse, 'SELECT day, samples, samples_with_value, mean_hrv, first_half_hrv, second_half_hrv FROM hrv_nights'),
  ).toEqual([{ day: '2025-10-26', samples: 3, samples_with_value: 2, mean_hrv: 50, first_half_hrv: 50, second_half_hrv: null }]);
  await warehouse.close();
});
