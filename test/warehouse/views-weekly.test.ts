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
    mean_stress_high, mean_recovery_high, activity_days, steps, mean_steps, active_calories, training_minutes, non_wear_share`;
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
      ...{ activity_days: 1, steps: 1000, mean_steps: 1000, active_calories: 100, training_minutes: 10, non_wear_share: 0 },
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
      ...{ activity_days: 2, steps: 6000, mean_steps: 3000, active_calories: 200, training_minutes: 60, non_wear_share: 0 },
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
