import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { tempFolder } from '../support/temp-folder.ts';
import { NOW, newPath, openWarehouse, rows, store } from '../support/warehouse.ts';
import { ACTIVITY, SLEEP, SPO2, VO2_MAX } from '../support/wire.ts';

const folder = tempFolder();

describe.each(['UTC', 'America/New_York', 'Asia/Kathmandu'])('in the time zone %s', zone => {
  beforeEach(() => {
    vi.stubEnv('TZ', zone);
  });
  afterEach(() => {
    vi.unstubAllEnvs();
  });

  test('an activity is one row, and its MET samples are one row each', async () => {
    const warehouse = await openWarehouse(newPath(folder));
    expect(await store(warehouse, 'daily_activity', [ACTIVITY])).toEqual({
      stored: 1,
      unchanged: 0,
      outdated: 0,
      rejected: 0,
      undated: 0,
      removed: 0,
      samples: 4,
      changes: [{ id: 'a-1', command: 'create' }],
      came: [{ id: 'a-1', hash: expect.any(String) }],
      differing: 0,
    });
    expect(await rows(warehouse, 'SELECT * EXCLUDE (content_hash) FROM daily_activity')).toEqual([
      {
        user_id: 'ann',
        id: 'a-1',
        day: '2025-03-30',
        active_calories: 412,
        average_met_minutes: 1.53125,
        class_5_min: '0112345',
        contributors_meet_daily_targets: 60,
        contributors_move_every_hour: 78,
        contributors_recovery_time: 100,
        contributors_stay_active: 71,
        contributors_training_frequency: 96,
        contributors_training_volume: 98,
        equivalent_walking_distance: 9120,
        high_activity_met_minutes: 12,
        high_activity_time: 120,
        inactivity_alerts: 2,
        low_activity_met_minutes: 165,
        low_activity_time: 14880,
        medium_activity_met_minutes: 110,
        medium_activity_time: 1980,
        met_start: '2025-03-30 02:00:00',
        met_offset: 7200,
        met_interval: 60,
        met_count: 4,
        meters_to_target: -1120,
        non_wear_time: 1200,
        resting_time: 26880,
        score: 82,
        sedentary_met_minutes: 9,
        sedentary_time: 41340,
        steps: 10230,
        target_calories: 450,
        target_meters: 8000,
        timestamp: '2025-03-30 02:00:00',
        timestamp_offset: 7200,
        total_calories: 2480,
        extra: null,
        sk: 1,
        fetched_at: '2025-06-01 00:00:00',
      },
    ]);
    const sample = { sk: 1, user_id: 'ann', day: '2025-03-30', utc_offset: 7200 };
    expect(await rows(warehouse, 'SELECT * FROM daily_activity_met ORDER BY ts')).toEqual([
      { ...sample, ts: '2025-03-30 02:00:00', value: 0.9 },
      { ...sample, ts: '2025-03-30 02:01:00', value: null },
      { ...sample, ts: '2025-03-30 02:02:00', value: 1.25 },
      { ...sample, ts: '2025-03-30 02:03:00', value: 1.5 },
    ]);
    await warehouse.close();
  });

  test('a sleep is one row with its nested readiness; what is null or absent is null', async () => {
    const warehouse = await openWarehouse(newPath(folder));
    await store(warehouse, 'sleep', [SLEEP]);
    expect(await rows(warehouse, 'SELECT * EXCLUDE (content_hash) FROM sleep')).toEqual([
      {
        user_id: 'ann',
        id: 's-1',
        day: '2025-01-15',
        app_sleep_phase_5_min: null,
        average_breath: 14.625,
        average_heart_rate: 52.5,
        average_hrv: 61,
        awake_time: 2790,
        bedtime_end: '2025-01-15 10:35:12',
        bedtime_end_offset: -12600,
        bedtime_start: '2025-01-15 02:50:42',
        bedtime_start_offset: -12600,
        deep_sleep_duration: 5460,
        efficiency: 90,
        heart_rate_start: '2025-01-15 02:50:42',
        heart_rate_offset: -12600,
        heart_rate_interval: 300,
        heart_rate_count: 3,
        hrv_start: '2025-01-15 02:50:42',
        hrv_offset: -12600,
        hrv_interval: 300,
        hrv_count: 0,
        latency: 540,
        light_sleep_duration: 13200,
        low_battery_alert: false,
        lowest_heart_rate: 47,
        movement_30_sec: '1143222',
        period: 0,
        readiness_contributors_activity_balance: 88,
        readiness_contributors_body_temperature: null,
        readiness_contributors_hrv_balance: null,
        readiness_contributors_previous_day_activity: null,
        readiness_contributors_previous_night: null,
        readiness_contributors_recovery_index: null,
        readiness_contributors_resting_heart_rate: null,
        readiness_contributors_sleep_balance: null,
        readiness_contributors_sleep_regularity: 71,
        readiness_score: 79,
        readiness_temperature_deviation: -0.12,
        readiness_temperature_trend_deviation: null,
        readiness_score_delta: null,
        rem_sleep_duration: 6420,
        restless_periods: null,
        ring_id: 'ring-7',
        sleep_algorithm_version: 'v2',
        sleep_analysis_reason: null,
        sleep_phase_30_sec: null,
        sleep_phase_5_min: '4211123',
        sleep_score_delta: null,
        time_in_bed: 27870,
        total_sleep_duration: 25080,
        type: 'long_sleep',
        extra: null,
        sk: 1,
        fetched_at: '2025-06-01 00:00:00',
      },
    ]);
    expect(await rows(warehouse, 'SELECT * FROM sleep_heart_rate ORDER BY ts')).toEqual([
      { sk: 1, user_id: 'ann', day: '2025-01-15', ts: '2025-01-15 02:50:42', utc_offset: -12600, value: null },
      { sk: 1, user_id: 'ann', day: '2025-01-15', ts: '2025-01-15 02:55:42', utc_offset: -12600, value: 55 },
      { sk: 1, user_id: 'ann', day: '2025-01-15', ts: '2025-01-15 03:00:42', utc_offset: -12600, value: 53.5 },
    ]);
    expect(await rows(warehouse, 'SELECT * FROM sleep_hrv')).toEqual([]);
    expect(await rows(warehouse, 'SELECT * FROM sync.drift')).toEqual([]);
    await warehouse.close();
  });

  test('the oxygen saturation is a column of its own; a null object is a null column', async () => {
    const warehouse = await openWarehouse(newPath(folder));
    await store(warehouse, 'daily_spo2', [SPO2, { id: 'o-2', day: '2025-01-16', spo2_percentage: null }]);
    expect(await rows(warehouse, 'SELECT * EXCLUDE (content_hash) FROM daily_spo2 ORDER BY id')).toEqual([
      {
        user_id: 'ann',
        id: 'o-1',
        day: '2025-01-15',
        breathing_disturbance_index: 4,
        spo2_percentage_average: 97.125,
        extra: null,
        sk: 1,
        fetched_at: '2025-06-01 00:00:00',
      },
      {
        user_id: 'ann',
        id: 'o-2',
        day: '2025-01-16',
        breathing_disturbance_index: null,
        spo2_percentage_average: null,
        extra: null,
        sk: 2,
        fetched_at: '2025-06-01 00:00:00',
      },
    ]);
    await warehouse.close();
  });

  test('an oxygen uptake lies in vo2_max, its day as the service says', async () => {
    const warehouse = await openWarehouse(newPath(folder));
    await store(warehouse, 'vo2_max', [VO2_MAX]);
    expect(await rows(warehouse, 'SELECT * EXCLUDE (content_hash) FROM vo2_max')).toEqual([
      {
        user_id: 'ann',
        id: 'v-1',
        day: '2025-02-28',
        timestamp: '2025-02-28 15:29:00',
        timestamp_offset: 20700,
        vo2_max: 44,
        extra: null,
        sk: 1,
        fetched_at: '2025-06-01 00:00:00',
      },
    ]);
    await warehouse.close();
  });

  test('a heart-rate row is a row', async () => {
    const warehouse = await openWarehouse(newPath(folder));
    const requestedAt = warehouse.clock.lease();
    const counts = await warehouse.storeHeartRate({
      userId: 'ann',
      from: 1_736_899_200_000_000,
      to: 1_736_985_600_000_000,
      requestedAt,
      rows: [
        { timestamp: '2025-01-15T00:00:01.250+00:00', timestamp_unix: 1_736_899_201_250, bpm: 58, source: 'sleep' },
        { timestamp: '2025-01-15T12:30:00-05:00', timestamp_unix: 1_736_962_200_000, bpm: 71, source: 'awake' },
      ],
    });
    warehouse.clock.release(requestedAt);
    expect(counts).toMatchObject({ stored: 2, unchanged: 0, outdated: 0, rejected: 0, removed: 0, samples: 2 });
    expect(await rows(warehouse, 'SELECT * FROM heart_rate ORDER BY ts')).toEqual([
      { user_id: 'ann', ts: '2025-01-15 00:00:01.25', utc_offset: 0, bpm: 58, source: 'sleep', fetched_at: '2025-06-01 00:00:00' },
      { user_id: 'ann', ts: '2025-01-15 17:30:00', utc_offset: -18000, bpm: 71, source: 'awake', fetched_at: '2025-06-01 00:00:00' },
    ]);
    expect(await warehouse.readHeartRate('ann', { from: 1_736_899_200_000_000, to: 1_736_985_600_000_000, limit: 10 })).toEqual([
      { timestamp: '2025-01-15T00:00:01.250+00:00', timestamp_unix: 1_736_899_201_250, bpm: 58, source: 'sleep' },
      { timestamp: '2025-01-15T12:30:00.000-05:00', timestamp_unix: 1_736_962_200_000, bpm: 71, source: 'awake' },
    ]);
    expect(await rows(warehouse, 'SELECT * FROM sync.drift')).toEqual([]);
    await warehouse.close();
  });
});

test('a battery level is one row without an identifier of its own: its moment in UTC tells it from others, and gives its day', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  const level = (timestamp: string, rest: object) => ({ timestamp, timestamp_unix: Date.parse(timestamp), ...rest });
  await store(warehouse, 'ring_battery_level', [
    level('2025-03-09T23:59:59.999Z', { level: 71, charging: null, in_charger: false }),
    level('2025-03-10T01:30:00.000+02:00', { level: 72, charging: true, in_charger: true, id: 'theirs', voltage: 3.9 }),
  ]);
  const all = 'SELECT * EXCLUDE (fetched_at, content_hash) FROM ring_battery_level ORDER BY id';
  expect(await rows(warehouse, all)).toEqual([
    {
      user_id: 'ann',
      id: '2025-03-09T23:30:00.000Z',
      day: '2025-03-09',
      timestamp: '2025-03-09 23:30:00',
      timestamp_offset: 7200,
      timestamp_unix: 1741563000000,
      charging: true,
      in_charger: true,
      level: 72,
      extra: { id: 'theirs', voltage: 3.9 },
      sk: 2,
    },
    {
      user_id: 'ann',
      id: '2025-03-09T23:59:59.999Z',
      day: '2025-03-09',
      timestamp: '2025-03-09 23:59:59.999',
      timestamp_offset: 0,
      timestamp_unix: 1741564799999,
      charging: null,
      in_charger: false,
      level: 71,
      extra: null,
      sk: 1,
    },
  ]);
  const [first] = await warehouse.readDocuments('ring_battery_level', "id = '2025-03-09T23:30:00.000Z'");
  expect(first!.document).toEqual({
    timestamp: '2025-03-10T01:30:00.000+02:00',
    timestamp_unix: 1741563000000,
    charging: true,
    in_charger: true,
    level: 72,
    id: 'theirs',
    voltage: 3.9,
  });
  await warehouse.close();
});

test('of two battery levels of one moment the later one is kept, however the moment is written; one without a moment is put aside', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  const sent = [
    { timestamp: '2025-03-09T12:00:00Z', timestamp_unix: 1741521600000, level: 50 },
    { timestamp: '2025-03-09T12:00:00.000+00:00', timestamp_unix: 1741521600000, level: 50 },
    { timestamp: '2025-03-09T14:00:00.000+02:00', timestamp_unix: 1741521600000, level: 51 },
    { timestamp: '2025-03-09T12:00:00', timestamp_unix: 1741521600000, level: 52 },
    { timestamp_unix: 1741521600000, level: 53 },
    { timestamp: '2300-01-01T00:00:00Z', timestamp_unix: 1, level: 54 },
  ];
  expect(await store(warehouse, 'ring_battery_level', sent)).toMatchObject({ stored: 2, unchanged: 1, rejected: 3, undated: 3 });
  expect(await warehouse.read('SELECT id, day::VARCHAR, level FROM ring_battery_level')).toEqual([
    ['2025-03-09T12:00:00.000Z', '2025-03-09', 51],
  ]);
  expect(await warehouse.read('SELECT DISTINCT reason, day FROM sync.rejected')).toEqual([['timestamp is missing or no moment', null]]);
  await warehouse.close();
});

test('a workout is one row, whatever it is called, and the age of vessels is another', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  await store(warehouse, 'workout', [
    {
      id: 'w-1',
      activity: 'underwater_rugby',
      calories: 412.5,
      day: '2025-03-09',
      distance: null,
      end_datetime: '2025-03-09T18:45:00.000+01:00',
      intensity: 'hard',
      label: 'League',
      source: 'confirmed',
      start_datetime: '2025-03-09T17:30:00.000+01:00',
    },
  ]);
  await store(warehouse, 'daily_cardiovascular_age', [{ id: 'c-1', day: '2025-03-09', pulse_wave_velocity: 6.75, vascular_age: 37 }]);
  expect(await rows(warehouse, 'SELECT * EXCLUDE (fetched_at, content_hash) FROM workout')).toEqual([
    {
      user_id: 'ann',
      id: 'w-1',
      day: '2025-03-09',
      activity: 'underwater_rugby',
      calories: 412.5,
      distance: null,
      end_datetime: '2025-03-09 17:45:00',
      end_datetime_offset: 3600,
      intensity: 'hard',
      label: 'League',
      source: 'confirmed',
      start_datetime: '2025-03-09 16:30:00',
      start_datetime_offset: 3600,
      extra: null,
      sk: 1,
    },
  ]);
  expect(await rows(warehouse, 'SELECT * EXCLUDE (fetched_at, content_hash) FROM daily_cardiovascular_age')).toEqual([
    { user_id: 'ann', id: 'c-1', day: '2025-03-09', pulse_wave_velocity: 6.75, vascular_age: 37, extra: null, sk: 2 },
  ]);
  expect(await warehouse.read('SELECT * FROM sync.drift')).toEqual([]);
  await warehouse.close();
});

test('heart rate is read on after a row, in the order of moment and source', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  const at = (second: number, source: string, bpm: number) => ({
    timestamp: `2025-01-15T00:00:0${second}.000+00:00`,
    timestamp_unix: 1_736_899_200_000 + second * 1000,
    bpm,
    source,
  });
  const range = { from: 1_736_899_200_000_000, to: 1_736_899_209_000_000 };
  const sent = [at(1, 'workout', 90), at(1, 'awake', 89), at(0, 'rest', 60), at(2, 'rest', 61)];
  await warehouse.storeHeartRate({ userId: 'ann', ...range, requestedAt: warehouse.clock.lease(), rows: sent });
  expect(await warehouse.readHeartRate('ann', { ...range, limit: 2 })).toEqual([at(0, 'rest', 60), at(1, 'awake', 89)]);
  expect(await warehouse.readHeartRate('ann', { ...range, after: { micros: 1_736_899_201_000_000, source: 'awake' }, limit: 9 })).toEqual([
    at(1, 'workout', 90),
    at(2, 'rest', 61),
  ]);
  await warehouse.close();
});

test('the moment of a request is the machine’s clock, and never the same twice', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  expect([warehouse.clock.lease(), warehouse.clock.lease()]).toEqual([NOW * 1000, NOW * 1000 + 1]);
  await warehouse.close();
});
