import { describe, expect, test } from 'vitest';
import { rows, store } from '../support/warehouse.ts';
import { ACTIVITY } from '../support/wire.ts';
import { emptiedWarehouse, utc } from './views-setup.ts';

const warehouse = await emptiedWarehouse();

describe('daily', () => {
  test('has a row for every day from the first document to the last, and says what is missing', async () => {
    await store(warehouse, 'daily_sleep', [{ id: 'ds', day: '2025-03-01', score: 81 }]);
    await store(warehouse, 'sleep', [
      { id: 's', day: '2025-03-02', type: 'long_sleep', ...utc('2025-03-01T22:00', '2025-03-02T06:00'), average_hrv: 50 },
      { id: 'n1', day: '2025-03-02', type: 'sleep', ...utc('2025-03-02T12:00', '2025-03-02T12:30'), total_sleep_duration: 1500 },
      { id: 'n2', day: '2025-03-02', type: 'late_nap', ...utc('2025-03-01T17:30', '2025-03-01T18:15'), total_sleep_duration: 2000 },
    ]);
    await store(warehouse, 'daily_activity', [
      {
        ...ACTIVITY,
        day: '2025-03-04',
        ...{
          non_wear_time: 21600,
          resting_time: 21600,
          sedentary_time: 30000,
          low_activity_time: 10000,
          medium_activity_time: 3000,
          high_activity_time: 200,
        },
      },
    ]);
    expect(
      await rows(
        warehouse,
        `SELECT day, sleep_score, sleep_id, average_hrv, naps, nap_duration, steps, recorded_time, non_wear_share, ring_not_worn, night_missing,
         activity_missing, sessions FROM daily ORDER BY day`,
      ),
    ).toEqual(
      [
        { day: '2025-03-01', sleep_score: 81 },
        { day: '2025-03-02', sleep_id: 's', average_hrv: 50, naps: 2, nap_duration: 3500, night_missing: false },
        { day: '2025-03-03' },
        { day: '2025-03-04', steps: 10230, recorded_time: 86400, non_wear_share: 0.25, ring_not_worn: false, activity_missing: false },
      ].map(known => ({
        ...{ sleep_score: null, sleep_id: null, average_hrv: null, naps: 0, nap_duration: 0, steps: null, recorded_time: null },
        ...{ non_wear_share: null, ring_not_worn: null, night_missing: true, activity_missing: true, sessions: 0 },
        ...known,
      })),
    );
  });

  test('of a range is as of all days, whatever lies before and behind it', async () => {
    await store(warehouse, 'vo2_max', [
      { id: 'v1', day: '2021-01-01', vo2_max: 40 },
      { id: 'v2', day: '2025-03-02', vo2_max: 44 },
    ]);
    await store(
      warehouse,
      'daily_sleep',
      ['2023-06-01', '2023-06-20', '2025-03-01', '2025-03-05'].map((day, i) => ({ id: `s${i}`, day, score: 80 + i })),
    );
    const found = async (first: string, last: string) => {
      const between = await rows(warehouse, `FROM daily_between('${first}', '${last}') ORDER BY day`);
      expect(between).toEqual(await rows(warehouse, `FROM daily WHERE day BETWEEN '${first}' AND '${last}' ORDER BY day`));
      return (between as { day: string; sleep_score: number | null; vo2_max: number | null }[]).map(row => [
        row.day,
        row.sleep_score,
        row.vo2_max,
      ]);
    };
    // Within 19 days without anything, and across their end.
    expect(await found('2023-06-10', '2023-06-10')).toEqual([['2023-06-10', null, 40]]);
    expect(await found('2023-06-19', '2023-06-20')).toEqual([
      ['2023-06-19', null, 40],
      ['2023-06-20', 81, 40],
    ]);
    // 366 days after the last thing, and no further.
    expect(await found('2024-06-20', '2024-06-23')).toEqual([['2024-06-20', null, 40]]);
    expect(await found('2025-02-28', '2025-03-03')).toEqual([
      ['2025-03-01', 82, 40],
      ['2025-03-02', null, 44],
      ['2025-03-03', null, 44],
    ]);
    // Nothing is filled behind the last thing.
    expect(await found('2025-03-05', '2025-03-09')).toEqual([['2025-03-05', 83, 44]]);
    expect(await found('2025-03-06', '2025-03-09')).toEqual([]);
    expect(await found('2020-01-01', '2020-12-31')).toEqual([]);
  });

  test('brings together what the tables say of a day', async () => {
    const day = '2025-03-05';
    await store(warehouse, 'daily_sleep', [{ id: 'a', day, score: 81 }]);
    await store(warehouse, 'daily_readiness', [{ id: 'b', day, score: 72, temperature_deviation: -0.3, temperature_trend_deviation: 0.1 }]);
    await store(warehouse, 'daily_activity', [{ ...ACTIVITY, day }]);
    await store(warehouse, 'daily_stress', [{ id: 'd', day, day_summary: 'stressful', stress_high: 7200, recovery_high: 900 }]);
    await store(warehouse, 'daily_resilience', [{ id: 'e', day, level: 'solid' }]);
    await store(warehouse, 'daily_spo2', [{ id: 'f', day, spo2_percentage: { average: 96.5 }, breathing_disturbance_index: 7 }]);
    await store(warehouse, 'vo2_max', [{ id: 'g', day, vo2_max: 44 }]);
    await store(warehouse, 'session', [
      { id: 'h', day, type: 'rest' },
      { id: 'i', day, type: 'nap' },
    ]);
    expect(
      await rows(
        warehouse,
        `SELECT user_id, day, sleep_score, readiness_score, activity_score, temperature_deviation, temperature_trend_deviation, stress_summary,
         stress_high, recovery_high, resilience_level, spo2_average, breathing_disturbance_index, vo2_max, vo2_max_day, steps, total_calories,
         high_activity_time, sessions FROM daily`,
      ),
    ).toEqual([
      {
        ...{ user_id: 'ann', day, sleep_score: 81, readiness_score: 72, activity_score: 82, temperature_deviation: -0.3 },
        ...{
          temperature_trend_deviation: 0.1,
          stress_summary: 'stressful',
          stress_high: 7200,
          recovery_high: 900,
          resilience_level: 'solid',
        },
        ...{ spo2_average: 96.5, breathing_disturbance_index: 7, vo2_max: 44, vo2_max_day: day, steps: 10230, total_calories: 2480 },
        ...{ high_activity_time: 120, sessions: 2 },
      },
    ]);
  });

  test('carries the last estimate of oxygen uptake forward, from its day on', async () => {
    await store(warehouse, 'daily_sleep', [
      { id: 'a', day: '2025-03-01', score: 80 },
      { id: 'b', day: '2025-03-06', score: 80 },
    ]);
    await store(warehouse, 'vo2_max', [
      { id: 'v', day: '2025-03-02', vo2_max: 44 },
      { id: 'w', day: '2025-03-05', vo2_max: 43, timestamp: '2025-03-05T09:00:00+00:00' },
      { id: 'x', day: '2025-03-05', vo2_max: 42, timestamp: '2025-03-05T08:00:00+00:00' },
      // Without a value, later on one day, alone on the other.
      { id: 'y', day: '2025-03-02', vo2_max: null, timestamp: '2025-03-02T23:00:00+00:00' },
      { id: 'z', day: '2025-03-03', vo2_max: null, timestamp: '2025-03-03T08:00:00+00:00' },
    ]);
    expect(await rows(warehouse, 'SELECT day, vo2_max, vo2_max_day FROM daily ORDER BY day')).toEqual([
      { day: '2025-03-01', vo2_max: null, vo2_max_day: null },
      { day: '2025-03-02', vo2_max: 44, vo2_max_day: '2025-03-02' },
      { day: '2025-03-03', vo2_max: 44, vo2_max_day: '2025-03-02' },
      { day: '2025-03-04', vo2_max: 44, vo2_max_day: '2025-03-02' },
      { day: '2025-03-05', vo2_max: 43, vo2_max_day: '2025-03-05' },
      { day: '2025-03-06', vo2_max: 43, vo2_max_day: '2025-03-05' },
    ]);
  });

  test('has one row for a day of which the service has two documents: the one stored last, nulls and all', async () => {
    const day = '2025-03-05';
    await store(warehouse, 'daily_readiness', [{ id: 'old', day, score: 70, temperature_deviation: 0.5 }]);
    await store(warehouse, 'daily_readiness', [{ id: 'new', day, score: 75, temperature_deviation: null }]);
    expect(await rows(warehouse, 'SELECT day, readiness_score, temperature_deviation FROM daily')).toEqual([
      { day, readiness_score: 75, temperature_deviation: null },
    ]);
  });
});

test('a ring is not worn from half a day on, and an activity is unfinished that does not reach midnight', async () => {
  const times = { resting_time: 0, sedentary_time: 0, low_activity_time: 0, medium_activity_time: 0, high_activity_time: 0 };
  const activity = (day: string, non_wear_time: number | null, resting_time: number, items: number) => ({
    ...{ ...ACTIVITY, ...times, id: day, day, non_wear_time, resting_time },
    met: { ...ACTIVITY.met, items: new Array(items).fill(1) },
  });
  await store(warehouse, 'daily_activity', [
    activity('2025-03-01', 43200, 43200, 1440),
    activity('2025-03-02', 43199, 43201, 1440),
    // At noon, without the ring since 7, and at 23:00, without it since 11.
    activity('2025-03-03', 18000, 10800, 480),
    activity('2025-03-04', 43200, 25200, 1140),
    // A minute to midnight, and midnight.
    activity('2025-03-05', 0, 71940, 1199),
    activity('2025-03-06', 0, 72000, 1200),
    // Where a time is not known the others or the samples say it.
    activity('2025-03-07', null, 43200, 1440),
    activity('2025-03-08', null, 43200, 480),
    activity('2025-03-09', 0, 0, 0),
    activity('2025-03-11', null, 75600, 0),
  ]);
  await store(warehouse, 'daily_sleep', [{ id: 'a', day: '2025-03-10', score: 80 }]);
  expect(await rows(warehouse, 'SELECT day, recorded_time, activity_unfinished, ring_not_worn FROM daily ORDER BY day')).toEqual([
    { day: '2025-03-01', recorded_time: 86400, activity_unfinished: false, ring_not_worn: true },
    { day: '2025-03-02', recorded_time: 86400, activity_unfinished: false, ring_not_worn: false },
    { day: '2025-03-03', recorded_time: 28800, activity_unfinished: true, ring_not_worn: false },
    { day: '2025-03-04', recorded_time: 68400, activity_unfinished: true, ring_not_worn: true },
    { day: '2025-03-05', recorded_time: 71940, activity_unfinished: true, ring_not_worn: false },
    { day: '2025-03-06', recorded_time: 72000, activity_unfinished: false, ring_not_worn: false },
    { day: '2025-03-07', recorded_time: null, activity_unfinished: false, ring_not_worn: null },
    { day: '2025-03-08', recorded_time: null, activity_unfinished: true, ring_not_worn: null },
    { day: '2025-03-09', recorded_time: 0, activity_unfinished: true, ring_not_worn: null },
    { day: '2025-03-10', recorded_time: null, activity_unfinished: null, ring_not_worn: null },
    { day: '2025-03-11', recorded_time: null, activity_unfinished: false, ring_not_worn: null },
  ]);
});

test('one absurd day is a row and no years of rows: a gap of a year is filled, of a longer one the first 366 days', async () => {
  await store(warehouse, 'daily_sleep', [
    { id: 'absurd', day: '0001-01-01', score: 80 },
    { id: 'a', day: '2024-01-01', score: 81 },
    // 366 days between them: 2024 is a leap year.
    { id: 'b', day: '2025-01-02', score: 82 },
    { id: 'c', day: '9999-12-31', score: 83 },
  ]);
  expect(
    await rows(warehouse, 'SELECT year(day) AS year, count(*) AS days, max(day) AS last FROM daily GROUP BY year ORDER BY year'),
  ).toEqual([
    { year: 1, days: 365, last: '0001-12-31' },
    { year: 2, days: 2, last: '0002-01-02' },
    { year: 2024, days: 366, last: '2024-12-31' },
    { year: 2025, days: 365, last: '2025-12-31' },
    { year: 2026, days: 3, last: '2026-01-03' },
    { year: 9999, days: 1, last: '9999-12-31' },
  ]);
  expect(await rows(warehouse, `SELECT count(*) AS n, max(value) AS most FROM baselines WHERE metric = 'sleep_score'`)).toEqual([
    { n: 1102, most: 83 },
  ]);
  expect(await rows(warehouse, 'SELECT min(week) AS first, max(week) AS last FROM weekly')).toEqual([
    { first: '0001-01-01', last: '9999-12-27' },
  ]);
});
