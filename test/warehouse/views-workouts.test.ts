import { expect, test } from 'vitest';
import { personalInfo } from '../../schema/resources/personal-info.ts';
import { rows, store } from '../support/warehouse.ts';
import { emptiedWarehouse, utc } from './views-setup.ts';

const warehouse = await emptiedWarehouse();

const RUN = {
  id: 'run',
  activity: 'running',
  calories: 310.5,
  day: '2025-03-09',
  distance: 4800,
  end_datetime: '2025-03-09T18:06:00+01:00',
  intensity: 'hard',
  source: 'confirmed',
  start_datetime: '2025-03-09T18:00:30+01:00',
};

/** Rows of heart rate of the evening of 9 March 2025, as clock in UTC and beats. */
async function measure(...beats: [clock: string, bpm: number, source?: string][]): Promise<void> {
  const requestedAt = warehouse.clock.lease();
  await warehouse.storeHeartRate({
    ...{ userId: 'ann', from: Date.UTC(2025, 2, 9) * 1000, to: Date.UTC(2025, 2, 10) * 1000, requestedAt },
    rows: beats.map(([clock, bpm, source = 'workout']) => ({
      timestamp: `2025-03-09T${clock}+00:00`,
      timestamp_unix: Date.parse(`2025-03-09T${clock}Z`),
      bpm,
      source,
    })),
  });
  warehouse.clock.release(requestedAt);
}

test('a workout has each of its minutes once, its zones by the age of the person, and the night after it', async () => {
  await store(warehouse, 'workout', [RUN]);
  await warehouse.storeDocuments({
    ...{ userId: 'ann', resource: personalInfo, requestedAt: warehouse.clock.lease() },
    documents: [{ id: 'p', age: 40 }],
  });
  await measure(
    // Before its start, and at its end: of neither anything counts.
    ['17:00:29.000', 200],
    ['17:06:00.000', 200],
    // 208 − 0.7 × 40 = 180: from 90, 108, 126, 144 and 162 on.
    ['17:00:30.000', 89],
    ['17:01:30.000', 80],
    ['17:01:45.000', 100],
    ['17:02:29.999', 90],
    ['17:02:30.000', 143],
    ['17:02:30.000', 110, 'awake'],
    ['17:03:30.000', 162],
    ['17:05:59.000', 144],
  );
  await store(warehouse, 'sleep', [
    { id: 'before', day: '2025-03-09', type: 'long_sleep', ...utc('2025-03-08T22:00', '2025-03-09T06:00'), average_hrv: 40 },
    {
      ...{ id: 'after', day: '2025-03-10', type: 'long_sleep', ...utc('2025-03-09T22:00', '2025-03-10T06:00'), average_hrv: 50 },
      ...{ total_sleep_duration: 27000, deep_sleep_duration: 5400, lowest_heart_rate: 52 },
    },
  ]);
  expect(await rows(warehouse, 'FROM workouts')).toEqual([
    {
      user_id: 'ann',
      day: '2025-03-09',
      workout_id: 'run',
      activity: 'running',
      intensity: 'hard',
      source: 'confirmed',
      label: null,
      start_datetime: '2025-03-09 17:00:30',
      start_datetime_offset: 3600,
      end_datetime: '2025-03-09 17:06:00',
      end_datetime_offset: 3600,
      start_local: '2025-03-09 18:00:30',
      end_local: '2025-03-09 18:06:00',
      minutes: 5.5,
      calories: 310.5,
      distance: 4800,
      measured_minutes: 5,
      // 89, 90, 143, 162 and 144.
      average_heart_rate: 125.6,
      highest_heart_rate: 162,
      max_heart_rate: 180,
      max_heart_rate_from: 'personal_info.age',
      zone_1_minutes: 1,
      zone_2_minutes: 0,
      zone_3_minutes: 1,
      zone_4_minutes: 1,
      zone_5_minutes: 1,
      // 1 + 3 + 4 + 5.
      load: 13,
      night_day: '2025-03-10',
      night_sleep_id: 'after',
      night_total_sleep_duration: 27000,
      night_deep_sleep_duration: 5400,
      night_lowest_heart_rate: 52,
      night_average_hrv: 50,
    },
  ]);
});

const ZONES = `SELECT workout_id, minutes, measured_minutes, average_heart_rate, max_heart_rate, zone_1_minutes, zone_5_minutes, load, night_day
  FROM workouts ORDER BY workout_id`;

test('without an age there are no zones, however high the heart rate was; without heart rate or an end nothing is made up', async () => {
  await store(warehouse, 'workout', [RUN, { ...RUN, id: 'endless', end_datetime: null }]);
  await measure(['17:01:00.000', 190]);
  const nothing = {
    measured_minutes: 0,
    average_heart_rate: null,
    max_heart_rate: null,
    zone_1_minutes: null,
    zone_5_minutes: null,
    load: null,
  };
  expect(await rows(warehouse, ZONES)).toEqual([
    { workout_id: 'endless', minutes: null, ...nothing, night_day: null },
    { workout_id: 'run', minutes: 5.5, ...nothing, measured_minutes: 1, average_heart_rate: 190, night_day: null },
  ]);
});

test('zones are of the maximum heart rate in participants, else of the birth year, else of the age that the service knows', async () => {
  const later = { start_datetime: '2026-01-01T18:00:30+01:00', end_datetime: '2026-01-01T18:06:00+01:00' };
  await store(warehouse, 'workout', [RUN, { ...RUN, id: 'year later', day: '2026-01-01', ...later }]);
  await warehouse.storeDocuments({
    ...{ userId: 'ann', resource: personalInfo, requestedAt: warehouse.clock.lease() },
    documents: [{ id: 'p', age: 40 }],
  });
  await measure(['17:01:00.000', 150], ['17:02:00.000', 155], ['17:03:00.000', 162], ['17:04:00.000', 180]);
  const zonesWith = async (row: Record<string, string | number>) => {
    await warehouse.record([{ table: 'participants', key: { user_id: 'ann' }, row }]);
    return rows(
      warehouse,
      'SELECT day, max_heart_rate AS max, max_heart_rate_from AS source, zone_4_minutes AS four, zone_5_minutes AS five, load FROM workouts ORDER BY day',
    );
  };
  const none = { four: null, five: null, load: null };
  // 90 % of 200 are 180, 80 % 160; of 175.1 157.59 and 140.08; of 174.4 156.96; of 180 162 and 144.
  expect(await zonesWith({ max_heart_rate: 200, birth_year: 1978 })).toEqual([
    { day: '2025-03-09', max: 200, source: 'participants.max_heart_rate', four: 1, five: 1, load: 15 },
    { day: '2026-01-01', max: 200, source: 'participants.max_heart_rate', ...none },
  ]);
  expect(await zonesWith({ birth_year: 1978 })).toEqual([
    { day: '2025-03-09', max: 175.1, source: 'participants.birth_year', four: 2, five: 2, load: 18 },
    { day: '2026-01-01', max: 174.4, source: 'participants.birth_year', ...none },
  ]);
  const others: Record<string, string | number>[] = [{ group_name: 'a' }, { birth_year: 2025 }];
  for (const row of others) {
    expect((await zonesWith(row))[0]).toEqual({ day: '2025-03-09', max: 180, source: 'personal_info.age', four: 2, five: 2, load: 18 });
  }
  await warehouse.record([{ table: 'participants', key: { user_id: 'ann' } }]);
});

test('a night that begins more than a day later is not the night after', async () => {
  await store(warehouse, 'workout', [
    RUN,
    { ...RUN, id: 'early', end_datetime: '2025-03-09T17:00:00+01:00', start_datetime: '2025-03-09T16:00:00+01:00' },
  ]);
  await store(warehouse, 'sleep', [{ id: 'late', day: '2025-03-11', type: 'long_sleep', ...utc('2025-03-10T16:30', '2025-03-11T01:00') }]);
  expect(await rows(warehouse, 'SELECT workout_id, night_day FROM workouts ORDER BY workout_id')).toEqual([
    { workout_id: 'early', night_day: null },
    { workout_id: 'run', night_day: '2025-03-11' },
  ]);
});

test('a workout of years counts for a day', async () => {
  await store(warehouse, 'workout', [{ ...RUN, end_datetime: '2099-03-09T18:06:00+01:00' }]);
  expect(await rows(warehouse, 'SELECT minutes FROM workouts')).toEqual([{ minutes: 1440 }]);
});

test('a measurement in a workout says which; of two at once the one that began last', async () => {
  await store(warehouse, 'workout', [
    RUN,
    { ...RUN, id: 'sprint', start_datetime: '2025-03-09T18:02:00+01:00', end_datetime: '2025-03-09T18:03:00+01:00' },
  ]);
  await measure(
    ['17:00:29.000', 80, 'awake'],
    ['17:01:00.000', 120],
    ['17:02:00.000', 150],
    ['17:03:00.000', 140],
    ['17:06:00.000', 90, 'awake'],
  );
  expect(await rows(warehouse, 'SELECT bpm, workout_id FROM heart_rate_all ORDER BY ts')).toEqual([
    { bpm: 80, workout_id: null },
    { bpm: 120, workout_id: 'run' },
    { bpm: 150, workout_id: 'sprint' },
    { bpm: 140, workout_id: 'run' },
    { bpm: 90, workout_id: null },
  ]);
});

test('daily counts workouts and their time', async () => {
  await store(warehouse, 'workout', [RUN, { ...RUN, id: 'endless', end_datetime: null }, { ...RUN, id: 'next', day: '2025-03-11' }]);
  expect(await rows(warehouse, 'SELECT day, workouts, workout_duration FROM daily ORDER BY day')).toEqual([
    { day: '2025-03-09', workouts: 2, workout_duration: 330 },
    { day: '2025-03-10', workouts: 0, workout_duration: 0 },
    { day: '2025-03-11', workouts: 1, workout_duration: 330 },
  ]);
});
