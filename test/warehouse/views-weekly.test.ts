import { expect, test } from 'vitest';
import { rows, store } from '../support/warehouse.ts';
import { ACTIVITY } from '../support/wire.ts';
import { emptiedWarehouse, utc } from './views-setup.ts';

const warehouse = await emptiedWarehouse();

test('a week is of the ISO calendar, its means are of the days that have a value, its sums of those that are there', async () => {
  const activity = { ...ACTIVITY, non_wear_time: 0, resting_time: 40000, sedentary_time: 40000, low_activity_time: 2800 };
  const active = (id: string, day: string, steps: number, medium: number, high: number) => ({
    ...{ ...activity, id, day, steps, active_calories: 100, medium_activity_time: medium, high_activity_time: high },
  });
  await store(warehouse, 'daily_activity', [
    active('a', '2024-12-29', 1000, 600, 0),
    active('b', '2024-12-30', 2000, 1200, 600),
    active('c', '2025-01-01', 4000, 0, 1800),
  ]);
  await store(warehouse, 'daily_stress', [
    { id: 'd', day: '2024-12-30', day_summary: 'stressful', stress_high: 3600, recovery_high: 0 },
    { id: 'e', day: '2024-12-31', day_summary: 'restored', stress_high: 0, recovery_high: 1800 },
    { id: 'f', day: '2025-01-02', day_summary: null, stress_high: null, recovery_high: null },
  ]);
  await store(warehouse, 'sleep', [
    {
      id: 's',
      day: '2025-01-01',
      type: 'long_sleep',
      ...utc('2024-12-31T23:00', '2025-01-01T07:00'),
      average_hrv: 40,
      lowest_heart_rate: 50,
    },
    {
      id: 't',
      day: '2025-01-02',
      type: 'long_sleep',
      ...utc('2025-01-01T23:00', '2025-01-02T07:00'),
      average_hrv: 45,
      lowest_heart_rate: null,
    },
  ]);
  const columns = `user_id, week, iso_week, days, nights, mean_average_hrv, mean_lowest_heart_rate, days_with_stress, stressful_days, restored_days,
    mean_stress_high, mean_recovery_high, activity_days, steps, mean_steps, active_calories, active_minutes, non_wear_share`;
  expect(await rows(warehouse, `SELECT ${columns} FROM weekly ORDER BY week`)).toEqual([
    {
      ...{
        user_id: 'ann',
        week: '2024-12-23',
        iso_week: '2024-W52',
        days: 1,
        nights: 0,
        mean_average_hrv: null,
        mean_lowest_heart_rate: null,
      },
      ...{ days_with_stress: 0, stressful_days: 0, restored_days: 0, mean_stress_high: null, mean_recovery_high: null },
      ...{ activity_days: 1, steps: 1000, mean_steps: 1000, active_calories: 100, active_minutes: 10, non_wear_share: 0 },
    },
    {
      ...{
        user_id: 'ann',
        week: '2024-12-30',
        iso_week: '2025-W01',
        days: 4,
        nights: 2,
        mean_average_hrv: 42.5,
        mean_lowest_heart_rate: 50,
      },
      ...{ days_with_stress: 2, stressful_days: 1, restored_days: 1, mean_stress_high: 1800, mean_recovery_high: 900 },
      ...{ activity_days: 2, steps: 6000, mean_steps: 3000, active_calories: 200, active_minutes: 60, non_wear_share: 0 },
    },
  ]);
});

test('the share of a week without the ring is over the days of which all times are known', async () => {
  const times = { resting_time: 43200, sedentary_time: 0, low_activity_time: 0, medium_activity_time: 0, high_activity_time: 0 };
  await store(warehouse, 'daily_activity', [
    { ...ACTIVITY, id: 'a', day: '2025-03-03', ...times, non_wear_time: 43200 },
    { ...ACTIVITY, id: 'b', day: '2025-03-04', ...times, resting_time: null, non_wear_time: 86400 },
  ]);
  expect(await rows(warehouse, 'SELECT week, activity_days, non_wear_share FROM weekly')).toEqual([
    { week: '2025-03-03', activity_days: 2, non_wear_share: 0.5 },
  ]);
});

test('beside each mean stands of how many days or nights it is', async () => {
  const night = (day: string, night: object) => ({
    ...{ id: day, day, type: 'long_sleep', bedtime_start: `${day}T00:00:00+00:00`, bedtime_end: `${day}T08:00:00+00:00`, ...night },
  });
  await store(warehouse, 'sleep', [
    night('2025-03-03', { total_sleep_duration: 21600, efficiency: 80, average_hrv: 40, lowest_heart_rate: 50, average_breath: 14 }),
    night('2025-03-04', { total_sleep_duration: 25200, efficiency: 90, average_hrv: 60, lowest_heart_rate: 52, average_breath: null }),
    night('2025-03-05', {
      total_sleep_duration: 28800,
      efficiency: null,
      average_hrv: null,
      lowest_heart_rate: null,
      average_breath: null,
    }),
  ]);
  await store(warehouse, 'daily_sleep', [{ id: 'a', day: '2025-03-09', score: 70 }]);
  await store(warehouse, 'daily_readiness', [
    { id: 'b', day: '2025-03-03', score: 70, temperature_deviation: 0.1 },
    { id: 'c', day: '2025-03-04', score: null, temperature_deviation: 0.3 },
  ]);
  await store(warehouse, 'daily_activity', [
    { ...ACTIVITY, id: 'd', day: '2025-03-03', steps: 4000 },
    { ...ACTIVITY, id: 'e', day: '2025-03-04', steps: 6000, score: null },
  ]);
  await store(warehouse, 'daily_stress', [
    { id: 'f', day: '2025-03-03', day_summary: null, stress_high: 600, recovery_high: null },
    { id: 'g', day: '2025-03-04', day_summary: 'normal', stress_high: 1200, recovery_high: 0 },
  ]);
  const columns = `days, nights, n_sleep_score, n_readiness_score, n_activity_score, n_total_sleep_duration, n_efficiency, n_average_hrv, mean_average_hrv,
    n_lowest_heart_rate, n_average_breath, n_temperature_deviation, mean_temperature_deviation, days_with_stress, n_stress_high, mean_stress_high,
    n_recovery_high, activity_days, unfinished_days, n_steps, mean_steps`;
  expect(await rows(warehouse, `SELECT ${columns} FROM weekly`)).toEqual([
    {
      ...{ days: 7, nights: 3, n_sleep_score: 1, n_readiness_score: 1, n_activity_score: 1, n_total_sleep_duration: 3, n_efficiency: 2 },
      ...{ n_average_hrv: 2, mean_average_hrv: 50, n_lowest_heart_rate: 2, n_average_breath: 1, n_temperature_deviation: 2 },
      ...{ mean_temperature_deviation: 0.2, days_with_stress: 1, n_stress_high: 2, mean_stress_high: 900, n_recovery_high: 1 },
      ...{ activity_days: 2, unfinished_days: 0, n_steps: 2, mean_steps: 5000 },
    },
  ]);
  const unsaid = `SELECT column_name FROM duckdb_columns() WHERE table_name = 'weekly' AND column_name LIKE 'mean_%'
    AND replace(column_name, 'mean_', 'n_') NOT IN (SELECT column_name FROM duckdb_columns() WHERE table_name = 'weekly')`;
  expect(await rows(warehouse, unsaid)).toEqual([]);
});

test('a day at noon is in no mean and no sum of the week, its night is', async () => {
  const times = { resting_time: 0, sedentary_time: 0, low_activity_time: 0, high_activity_time: 0 };
  await store(warehouse, 'daily_activity', [
    // 24 hours, 20 hours and a second less than that.
    {
      ...ACTIVITY,
      ...times,
      id: 'a',
      day: '2025-03-03',
      steps: 9000,
      active_calories: 500,
      score: 90,
      non_wear_time: 82800,
      medium_activity_time: 3600,
    },
    {
      ...ACTIVITY,
      ...times,
      id: 'b',
      day: '2025-03-04',
      steps: 7000,
      active_calories: 300,
      score: 80,
      non_wear_time: 70200,
      medium_activity_time: 1800,
    },
    {
      ...ACTIVITY,
      ...times,
      id: 'c',
      day: '2025-03-05',
      steps: 2000,
      active_calories: 100,
      score: 10,
      non_wear_time: 71399,
      medium_activity_time: 600,
    },
  ]);
  await store(
    warehouse,
    'daily_stress',
    ['2025-03-03', '2025-03-04', '2025-03-05'].map(day => ({
      id: day,
      day,
      day_summary: 'stressful',
      stress_high: Number(day.slice(-1)) * 600,
      recovery_high: 60,
    })),
  );
  const night = { id: 's', day: '2025-03-05', type: 'long_sleep', ...utc('2025-03-05T00:00', '2025-03-05T08:00') };
  await store(warehouse, 'sleep', [{ ...night, average_hrv: 40 }]);
  const columns = `days, activity_days, unfinished_days, n_steps, steps, mean_steps, active_calories, active_minutes, n_activity_score, mean_activity_score,
    days_with_stress, stressful_days, n_stress_high, mean_stress_high, n_recovery_high, round(non_wear_share, 6) AS non_wear_share, n_average_hrv`;
  expect(await rows(warehouse, `SELECT ${columns} FROM weekly`)).toEqual([
    {
      ...{
        days: 3,
        activity_days: 2,
        unfinished_days: 1,
        n_steps: 2,
        steps: 16000,
        mean_steps: 8000,
        active_calories: 800,
        active_minutes: 90,
      },
      ...{ n_activity_score: 2, mean_activity_score: 85, days_with_stress: 2, stressful_days: 2, n_stress_high: 2, mean_stress_high: 2100 },
      // 82800 and 70200 of 86400 and 72000.
      ...{ n_recovery_high: 2, non_wear_share: 0.965909, n_average_hrv: 1 },
    },
  ]);
});
