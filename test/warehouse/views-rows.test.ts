import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import type { Warehouse } from '../../src/warehouse/warehouse.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse, rows, store } from '../support/warehouse.ts';
import { ACTIVITY } from '../support/wire.ts';

const folder = tempFolder();
let warehouse: Warehouse;

const DOCUMENT_TABLES = [
  'sleep',
  'daily_sleep',
  'daily_readiness',
  'daily_activity',
  'daily_stress',
  'daily_resilience',
  'daily_spo2',
  'vo2_max',
  'session',
];

// One warehouse for all tests, empty before each of them.
beforeEach(async () => {
  warehouse ??= await openWarehouse(newPath(folder));
  for (const table of DOCUMENT_TABLES) {
    const ids = (await warehouse.read(`SELECT id FROM ${table}`)).map(([id]) => id as string);
    if (ids.length) await store(warehouse, table, [], ids);
  }
});

afterAll(() => warehouse.close());

const utc = (from: string, to: string) => ({ bedtime_start: `${from}:00+00:00`, bedtime_end: `${to}:00+00:00` });

describe('nights', () => {
  const DAY = '2025-03-11';
  const which = async (...documents: object[]) => {
    await store(
      warehouse,
      'sleep',
      documents.map(document => ({ day: DAY, period: 0, low_battery_alert: false, ...document })),
    );
    return {
      night: (await rows(warehouse, 'SELECT sleep_id FROM nights')).map(row => (row as { sleep_id: string }).sleep_id),
      naps: (await rows(warehouse, 'SELECT sleep_id FROM naps ORDER BY sleep_id')).map(row => (row as { sleep_id: string }).sleep_id),
    };
  };
  const long = { type: 'long_sleep', ...utc('2025-03-10T22:00', '2025-03-11T06:00'), time_in_bed: 28800 };
  const nap = { type: 'sleep', ...utc('2025-03-11T13:00', '2025-03-11T14:00'), time_in_bed: 3600, total_sleep_duration: 3000 };

  test('the longest long_sleep of a day is its night, other sleeps are naps, deleted and rest are neither', async () => {
    expect(
      await which(
        { ...long, id: 'shorter', ...utc('2025-03-10T14:00', '2025-03-10T21:59'), total_sleep_duration: 20000 },
        { ...long, id: 'longer', total_sleep_duration: 20001 },
        { ...nap, id: 'nap' },
        { ...long, id: 'deleted', type: 'deleted', total_sleep_duration: 40000 },
        { ...long, id: 'rest', type: 'rest', total_sleep_duration: 40000 },
      ),
    ).toEqual({ night: ['longer'], naps: ['nap', 'shorter'] });
  });

  test('a long_sleep comes before anything else, however long that was', async () => {
    expect(
      await which(
        { ...long, id: 'long', time_in_bed: 11000, total_sleep_duration: 10900 },
        { ...long, id: 'untyped', type: null, ...utc('2025-03-11T06:00', '2025-03-11T13:59'), total_sleep_duration: 25000 },
        { ...long, id: 'late', type: 'late_nap', ...utc('2025-03-10T14:00', '2025-03-10T22:00'), total_sleep_duration: 26000 },
      ),
    ).toEqual({ night: ['long'], naps: ['late', 'untyped'] });
  });

  test('a day with naps alone has no night', async () => {
    const late = { ...nap, id: 'late', type: 'late_nap', ...utc('2025-03-10T14:00', '2025-03-10T18:30'), time_in_bed: 16200 };
    expect(await which({ ...nap, id: 'nap' }, late)).toEqual({ night: [], naps: ['late', 'nap'] });
  });

  test('a short sleep in the night is the night where there is no longer one', async () => {
    expect(
      await which(
        { ...nap, id: 'short night', ...utc('2025-03-11T02:00', '2025-03-11T04:30'), time_in_bed: 9000, total_sleep_duration: 2000 },
        { ...nap, id: 'nap' },
      ),
    ).toEqual({ night: ['short night'], naps: ['nap'] });
  });

  test.each([
    ['2025-03-10T20:29', '2025-03-10T21:29', false],
    ['2025-03-10T20:30', '2025-03-10T21:30', true],
    ['2025-03-11T08:29', '2025-03-11T09:29', true],
    ['2025-03-11T08:30', '2025-03-11T09:30', false],
  ])('in the night means that the middle lies between 21:00 and 9:00: from %s to %s %s', async (from, to, isNight) => {
    expect((await which({ ...nap, id: 'x', ...utc(from, to) })).night).toEqual(isNight ? ['x'] : []);
  });

  test('without a kind, more than three hours in bed make a night, at any time of the day', async () => {
    expect(
      await which(
        { id: 'day sleeper', ...utc('2025-03-11T09:00', '2025-03-11T15:00'), time_in_bed: 21600 },
        { id: 'three hours', ...utc('2025-03-11T15:00', '2025-03-11T18:00'), time_in_bed: 10800, total_sleep_duration: 10000 },
      ),
    ).toEqual({ night: ['day sleeper'], naps: ['three hours'] });
  });

  test('what overlaps the main sleep is the same night again and no nap, what touches it is one', async () => {
    expect(
      await which(
        { ...long, id: 'old', total_sleep_duration: 27000 },
        { ...long, id: 'edited', ...utc('2025-03-10T22:10', '2025-03-11T06:00'), total_sleep_duration: 27001 },
        { ...nap, id: 'within', ...utc('2025-03-11T02:00', '2025-03-11T03:00') },
        { ...nap, id: 'into its end', ...utc('2025-03-11T05:59', '2025-03-11T07:00') },
        { ...nap, id: 'into its start', type: 'late_nap', ...utc('2025-03-10T17:00', '2025-03-10T22:11') },
        { ...nap, id: 'around it', ...utc('2025-03-10T22:00', '2025-03-11T06:30') },
        { ...nap, id: 'after', ...utc('2025-03-11T06:00', '2025-03-11T06:45') },
        { ...nap, id: 'before', type: 'late_nap', ...utc('2025-03-10T21:00', '2025-03-10T22:10'), total_sleep_duration: 600 },
      ),
    ).toEqual({ night: ['edited'], naps: ['after', 'before'] });
    expect(await rows(warehouse, 'SELECT sleep_id, naps, nap_duration FROM daily')).toEqual([
      { sleep_id: 'edited', naps: 2, nap_duration: 3600 },
    ]);
    expect(await rows(warehouse, 'SELECT main, nap, count(*) AS sleeps FROM counted_sleeps GROUP BY ALL ORDER BY ALL')).toEqual([
      { main: false, nap: false, sleeps: 5 },
      { main: false, nap: true, sleeps: 2 },
      { main: true, nap: false, sleeps: 1 },
    ]);
  });

  test('of two documents of one night, alike in all, the one stored last is it', async () => {
    await store(warehouse, 'sleep', [{ day: DAY, period: 0, low_battery_alert: false, ...long, id: 'a', total_sleep_duration: 20000 }]);
    expect(await which({ ...long, id: 'b', total_sleep_duration: 20000 })).toEqual({ night: ['b'], naps: [] });
    expect(await which({ ...long, id: 'a', total_sleep_duration: 20000, efficiency: 90 })).toEqual({ night: ['a'], naps: [] });
  });

  test('of equals the longer in bed, then the earlier is the night', async () => {
    expect(
      await which(
        { ...long, id: 'b', total_sleep_duration: 20000, time_in_bed: 25000 },
        { ...long, id: 'c', total_sleep_duration: 20000, ...utc('2025-03-10T21:59', '2025-03-11T06:00') },
        { ...long, id: 'e', total_sleep_duration: 20000, ...utc('2025-03-10T21:58', '2025-03-11T06:00') },
        { ...long, id: 'a', total_sleep_duration: null, time_in_bed: 30000 },
      ),
    ).toMatchObject({ night: ['e'] });
  });

  test('a sleep that goes on is neither night nor nap, and has its stages so far', async () => {
    expect(
      await which(
        { ...long, id: 'going on', bedtime_end: null, sleep_phase_5_min: '42', total_sleep_duration: 300 },
        { ...nap, id: 'nap' },
      ),
    ).toEqual({ night: [], naps: ['nap'] });
    expect(await rows(warehouse, 'SELECT ts, seconds, stage FROM sleep_stages ORDER BY ts')).toEqual([
      { ts: '2025-03-10 22:00:00', seconds: 300, stage: 'awake' },
      { ts: '2025-03-10 22:05:00', seconds: 300, stage: 'light' },
    ]);
  });
});

describe('stages and movement', () => {
  const sleep = {
    id: 's',
    day: '2025-03-11',
    type: 'long_sleep',
    bedtime_start: '2025-03-11T00:00:00+01:00',
    bedtime_end: '2025-03-11T00:03:20+01:00',
    sleep_phase_5_min: '1',
    sleep_phase_30_sec: '4421197',
    movement_30_sec: '1234905',
  };
  const head = { user_id: 'ann', day: '2025-03-11', sleep_id: 's', utc_offset: 3600 };

  test('are rows of 30 seconds, the last one as long as the sleep, what is unknown without a label', async () => {
    await store(warehouse, 'sleep', [sleep, { ...sleep, id: 'x', type: 'deleted' }, { ...sleep, id: 'y', type: 'rest' }]);
    expect(await rows(warehouse, 'SELECT * FROM sleep_stages ORDER BY ts')).toEqual([
      { ...head, position: 0, ts: '2025-03-10 23:00:00', seconds: 30, stage: 'awake', code: '4' },
      { ...head, position: 1, ts: '2025-03-10 23:00:30', seconds: 30, stage: 'awake', code: '4' },
      { ...head, position: 2, ts: '2025-03-10 23:01:00', seconds: 30, stage: 'light', code: '2' },
      { ...head, position: 3, ts: '2025-03-10 23:01:30', seconds: 30, stage: 'deep', code: '1' },
      { ...head, position: 4, ts: '2025-03-10 23:02:00', seconds: 30, stage: 'deep', code: '1' },
      { ...head, position: 5, ts: '2025-03-10 23:02:30', seconds: 30, stage: null, code: '9' },
      { ...head, position: 6, ts: '2025-03-10 23:03:00', seconds: 20, stage: null, code: '7' },
    ]);
    expect(await rows(warehouse, 'SELECT ts, seconds, movement, code FROM sleep_movement ORDER BY ts')).toEqual([
      { ts: '2025-03-10 23:00:00', seconds: 30, movement: 'none', code: '1' },
      { ts: '2025-03-10 23:00:30', seconds: 30, movement: 'restless', code: '2' },
      { ts: '2025-03-10 23:01:00', seconds: 30, movement: 'tossing', code: '3' },
      { ts: '2025-03-10 23:01:30', seconds: 30, movement: 'active', code: '4' },
      { ts: '2025-03-10 23:02:00', seconds: 30, movement: null, code: '9' },
      { ts: '2025-03-10 23:02:30', seconds: 30, movement: null, code: '0' },
      { ts: '2025-03-10 23:03:00', seconds: 20, movement: null, code: '5' },
    ]);
  });

  test('neighbours of one stage are one span, from the start of the first to the end of the last', async () => {
    await store(warehouse, 'sleep', [sleep, { ...sleep, id: 'x', type: 'deleted' }]);
    expect(await rows(warehouse, 'SELECT * FROM sleep_stage_spans ORDER BY ts')).toEqual([
      { ...head, span: 1, ts: '2025-03-10 23:00:00', seconds: 60, stage: 'awake', code: '4' },
      { ...head, span: 2, ts: '2025-03-10 23:01:00', seconds: 30, stage: 'light', code: '2' },
      { ...head, span: 3, ts: '2025-03-10 23:01:30', seconds: 60, stage: 'deep', code: '1' },
      { ...head, span: 4, ts: '2025-03-10 23:02:30', seconds: 30, stage: null, code: '9' },
      { ...head, span: 5, ts: '2025-03-10 23:03:00', seconds: 20, stage: null, code: '7' },
    ]);
  });

  test('come in 5 minutes where those of 30 seconds are missing; none at all are no rows', async () => {
    await store(warehouse, 'sleep', [
      { ...sleep, sleep_phase_30_sec: null, sleep_phase_5_min: '33', bedtime_end: '2025-03-11T00:09:00+01:00' },
      { ...sleep, id: 'none', sleep_phase_30_sec: null, sleep_phase_5_min: null, movement_30_sec: null },
      { ...sleep, id: 'empty', sleep_phase_30_sec: '', sleep_phase_5_min: '', movement_30_sec: '' },
    ]);
    expect(await rows(warehouse, 'SELECT sleep_id, ts, seconds, stage FROM sleep_stages ORDER BY ts')).toEqual([
      { sleep_id: 's', ts: '2025-03-10 23:00:00', seconds: 300, stage: 'rem' },
      { sleep_id: 's', ts: '2025-03-10 23:05:00', seconds: 240, stage: 'rem' },
    ]);
    expect(await rows(warehouse, 'SELECT sleep_id, ts, seconds, stage FROM sleep_stage_spans')).toEqual([
      { sleep_id: 's', ts: '2025-03-10 23:00:00', seconds: 540, stage: 'rem' },
    ]);
    expect(await rows(warehouse, 'SELECT DISTINCT sleep_id FROM sleep_movement')).toEqual([{ sleep_id: 's' }]);
    await store(warehouse, 'daily_activity', [{ ...ACTIVITY, class_5_min: '' }]);
    expect(await rows(warehouse, 'SELECT code FROM activity_classes')).toEqual([]);
  });

  test('a string that is longer than the sleep keeps its rows, without a length', async () => {
    await store(warehouse, 'sleep', [{ ...sleep, bedtime_end: '2025-03-11T00:01:10+01:00', sleep_phase_30_sec: '44221' }]);
    expect(await rows(warehouse, 'SELECT position, seconds, stage FROM sleep_stages ORDER BY position')).toEqual([
      { position: 0, seconds: 30, stage: 'awake' },
      { position: 1, seconds: 30, stage: 'awake' },
      { position: 2, seconds: 10, stage: 'light' },
      { position: 3, seconds: 0, stage: 'light' },
      { position: 4, seconds: 0, stage: 'deep' },
    ]);
    expect(await rows(warehouse, 'SELECT span, seconds, stage FROM sleep_stage_spans ORDER BY span')).toEqual([
      { span: 1, seconds: 60, stage: 'awake' },
      { span: 2, seconds: 10, stage: 'light' },
      { span: 3, seconds: 0, stage: 'deep' },
    ]);
  });
});

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

describe('baselines', () => {
  const nights = (values: Record<string, number | null>) =>
    Object.entries(values).map(([day, average_hrv]) => ({
      ...{ id: day, day, type: 'long_sleep', average_hrv },
      ...{ bedtime_start: `${day}T01:00:00+00:00`, bedtime_end: `${day}T07:00:00+00:00` },
    }));
  const hrv = (columns: string) =>
    rows(warehouse, `SELECT day, value, ${columns} FROM baselines WHERE metric = 'average_hrv' ORDER BY day`);

  test('an absurd value of one person counts as missing and does not end the query of everybody', async () => {
    await store(warehouse, 'daily_readiness', [
      { id: 'a', day: '2025-03-01', temperature_deviation: 1e300 },
      { id: 'b', day: '2025-03-02', temperature_deviation: -1e300 },
    ]);
    for (const [i, value] of [0.1, 0.3, 0.1, 0.3].entries()) {
      await store(warehouse, 'daily_readiness', [{ id: `c${i}`, day: `2025-03-0${3 + i}`, temperature_deviation: value }]);
    }
    expect(
      await rows(
        warehouse,
        `SELECT day, value, days_7, round(mean_7, 6) AS mean_7 FROM baselines
         WHERE metric = 'temperature_deviation' AND day IN ('2025-03-01', '2025-03-06') ORDER BY day`,
      ),
    ).toEqual([
      { day: '2025-03-01', value: 1e300, days_7: 0, mean_7: null },
      { day: '2025-03-06', value: 0.3, days_7: 4, mean_7: 0.2 },
    ]);
  });

  test('over 7 days: of calendar days, with 4 values at least, and the day itself not in its own z-score', async () => {
    // Nothing on the 5th and the 6th. On the 4th: mean 50, squares 0 + 16 + 16 + 0, by 3: deviation 3.265986.
    await store(
      warehouse,
      'sleep',
      nights({
        '2025-03-01': 50,
        '2025-03-02': 54,
        '2025-03-03': 46,
        '2025-03-04': 50,
        '2025-03-07': 60,
        '2025-03-08': 54,
        '2025-03-09': 46,
      }),
    );
    const found = await hrv('days_7, round(mean_7, 6) AS mean_7, round(sd_7, 6) AS sd_7, round(z_7, 6) AS z_7');
    expect(found).toEqual([
      { day: '2025-03-01', value: 50, days_7: 1, mean_7: null, sd_7: null, z_7: null },
      { day: '2025-03-02', value: 54, days_7: 2, mean_7: null, sd_7: null, z_7: null },
      { day: '2025-03-03', value: 46, days_7: 3, mean_7: null, sd_7: null, z_7: null },
      { day: '2025-03-04', value: 50, days_7: 4, mean_7: 50, sd_7: 3.265986, z_7: null },
      { day: '2025-03-05', value: null, days_7: 4, mean_7: 50, sd_7: 3.265986, z_7: null },
      { day: '2025-03-06', value: null, days_7: 4, mean_7: 50, sd_7: 3.265986, z_7: null },
      // 60 less 50, by 3.265986. Then 50, 54, 46, 50, 60: mean 52, squares 4 + 4 + 36 + 4 + 64 = 112, by 4: root of 28.
      { day: '2025-03-07', value: 60, days_7: 5, mean_7: 52, sd_7: 5.291503, z_7: 3.061862 },
      // 54 less 52, by 5.291503. The 1st has left: 54, 46, 50, 60, 54: mean 52.8, squares 1.44 + 46.24 + 7.84 + 51.84 + 1.44 = 108.8, by 4.
      { day: '2025-03-08', value: 54, days_7: 5, mean_7: 52.8, sd_7: 5.215362, z_7: 0.377964 },
      // 46 less 52.8, by 5.215362. 46, 50, 60, 54, 46: mean 51.2, squares 27.04 + 1.44 + 77.44 + 7.84 + 27.04 = 140.8, by 4.
      { day: '2025-03-09', value: 46, days_7: 5, mean_7: 51.2, sd_7: 5.932959, z_7: -1.30384 },
    ]);
  });

  test('over 28 and 90 days with 14 and 45 values at least; where nothing ever varies there is no z-score', async () => {
    const days = Array.from({ length: 46 }, (_, i) => new Date(Date.UTC(2025, 0, 1 + i)).toISOString().slice(0, 10));
    await store(warehouse, 'sleep', nights(Object.fromEntries(days.map((day, i) => [day, i % 2 ? 60 : 40]))));
    await store(
      warehouse,
      'daily_sleep',
      days.map(day => ({ id: day, day, score: 80 })),
    );
    const found = await hrv('days_28, mean_28, round(sd_28, 6) AS sd_28, round(z_28, 6) AS z_28, days_90, mean_90, round(z_90, 6) AS z_90');
    // 14 values of 40 and 60 in turn: squares 14 × 100, by 13, the root: 10.377490. On the 15th day 40 less 50.
    expect(found[12]).toMatchObject({ day: '2025-01-13', days_28: 13, mean_28: null, z_28: null });
    expect(found[13]).toMatchObject({ day: '2025-01-14', days_28: 14, mean_28: 50, sd_28: 10.37749, z_28: null });
    expect(found[14]).toMatchObject({ day: '2025-01-15', value: 40, days_28: 15, z_28: -0.963624 });
    // From the 28th day on 28 values: 28 × 100, by 27, the root: 10.183502. On the 30th 60 less 50.
    expect(found[29]).toMatchObject({ day: '2025-01-30', value: 60, days_28: 28, mean_28: 50, sd_28: 10.183502, z_28: 0.981981 });
    expect(found[43]).toMatchObject({ days_90: 44, mean_90: null });
    // 45 values, 23 of 40 and 22 of 60: mean 2240 / 45, deviation the root of (4500 - 45 × 0.2222²) / 44 = 10.110501. Then 60 less the mean.
    expect(found[44]).toMatchObject({ days_90: 45, mean_90: 49.77777777777778, z_90: null });
    expect(found[45]).toMatchObject({ day: '2025-02-15', value: 60, days_90: 46, z_90: 1.01105 });
    expect(
      await rows(
        warehouse,
        `SELECT DISTINCT value, mean_28, sd_28, z_28, unit FROM baselines WHERE metric = 'sleep_score' AND days_28 > 20`,
      ),
    ).toEqual([{ value: 80, mean_28: 80, sd_28: 0, z_28: null, unit: 'score' }]);
  });

  test('every metric is a column of daily, with a row for each of its days', async () => {
    await store(warehouse, 'daily_sleep', [
      { id: 'a', day: '2025-03-01', score: 80 },
      { id: 'b', day: '2025-03-03', score: 80 },
    ]);
    const named = `SELECT metric, count(*) AS days, bool_and(metric IN (SELECT column_name FROM duckdb_columns() WHERE table_name = 'daily')) AS known
      FROM baselines GROUP BY metric`;
    const found = (await rows(warehouse, named)) as { metric: string; days: number; known: boolean }[];
    expect(found.map(({ days, known }) => [days, known])).toEqual(new Array(16).fill([3, true]));
  });
});

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

test.each([
  ['hhmm(25500)', '7:05'],
  ['hhmm(0)', '0:00'],
  ['hhmm(29)', '0:00'],
  ['hhmm(30)', '0:01'],
  ['hhmm(3599)', '1:00'],
  ['hhmm(90000)', '25:00'],
  ['hhmm(360000)', '100:00'],
  ['hhmm(-29)', '0:00'],
  ['hhmm(-60)', '-0:01'],
  ['hhmm(-5430)', '-1:31'],
  ['hhmm(NULL)', null],
  [`local(TIMESTAMP '2025-01-01 00:30:00', -12600)`, '2024-12-31 21:00:00'],
  [`local(TIMESTAMP '2025-01-01 00:30:00.25', 20700)`, '2025-01-01 06:15:00.25'],
  [`local(NULL, 3600)`, null],
  [`local(TIMESTAMP '2025-01-01 00:30:00', NULL)`, null],
  [`night_of(TIMESTAMP '2025-01-01 16:59:59.999', 3600)`, '2025-01-01'],
  [`night_of(TIMESTAMP '2025-01-01 17:00:00', 3600)`, '2025-01-02'],
  [`night_of(TIMESTAMP '2025-01-01 00:00:00', 3600)`, '2025-01-01'],
  [`activity_day_of(TIMESTAMP '2025-01-01 02:59:59.999', 3600)`, '2024-12-31'],
  [`activity_day_of(TIMESTAMP '2025-01-01 03:00:00', 3600)`, '2025-01-01'],
  [`activity_day_of(NULL, 3600)`, null],
])('%s is %s', async (expression, value) => {
  expect(await rows(warehouse, `SELECT CAST(${expression} AS VARCHAR) AS value`)).toEqual([{ value }]);
});
