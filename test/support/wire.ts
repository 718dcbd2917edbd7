// Documents as section 2 of the specification lists them, typed by hand, for the tests of the warehouse.

export const ACTIVITY = {
  id: 'a-1',
  active_calories: 412,
  average_met_minutes: 1.53125,
  class_5_min: '0112345',
  contributors: {
    meet_daily_targets: 60,
    move_every_hour: 78,
    recovery_time: 100,
    stay_active: 71,
    training_frequency: 96,
    training_volume: 98,
  },
  day: '2025-03-30',
  equivalent_walking_distance: 9120,
  high_activity_met_minutes: 12,
  high_activity_time: 120,
  inactivity_alerts: 2,
  low_activity_met_minutes: 165,
  low_activity_time: 14880,
  medium_activity_met_minutes: 110,
  medium_activity_time: 1980,
  met: { interval: 60, items: [0.9, null, 1.25, 1.5], timestamp: '2025-03-30T04:00:00.000+02:00' },
  meters_to_target: -1120,
  non_wear_time: 1200,
  resting_time: 26880,
  score: 82,
  sedentary_met_minutes: 9,
  sedentary_time: 41340,
  steps: 10230,
  target_calories: 450,
  target_meters: 8000,
  timestamp: '2025-03-30T04:00:00.000+02:00',
  total_calories: 2480,
};

export const SLEEP = {
  id: 's-1',
  average_breath: 14.625,
  average_heart_rate: 52.5,
  average_hrv: 61,
  awake_time: 2790,
  bedtime_end: '2025-01-15T07:05:12.000-03:30',
  bedtime_start: '2025-01-14T23:20:42.000-03:30',
  day: '2025-01-15',
  deep_sleep_duration: 5460,
  efficiency: 90,
  heart_rate: { interval: 300, items: [null, 55, 53.5], timestamp: '2025-01-14T23:20:42.000-03:30' },
  hrv: { interval: 300, items: [], timestamp: '2025-01-14T23:20:42.000-03:30' },
  latency: 540,
  light_sleep_duration: 13200,
  low_battery_alert: false,
  lowest_heart_rate: 47,
  movement_30_sec: '1143222',
  period: 0,
  readiness: {
    contributors: { activity_balance: 88, hrv_balance: null, sleep_regularity: 71 },
    score: 79,
    temperature_deviation: -0.12,
  },
  rem_sleep_duration: 6420,
  ring_id: 'ring-7',
  sleep_algorithm_version: 'v2',
  sleep_phase_5_min: '4211123',
  time_in_bed: 27870,
  total_sleep_duration: 25080,
  type: 'long_sleep',
};

export const SPO2 = { id: 'o-1', breathing_disturbance_index: 4, day: '2025-01-15', spo2_percentage: { average: 97.125 } };

export const VO2_MAX = { id: 'v-1', day: '2025-02-28', timestamp: '2025-02-28T21:14:00.000+05:45', vo2_max: 44 };

export const STRESS = { id: 't-1', day: '2025-01-15', day_summary: 'normal' };

export const RING = { id: 'ring-7', color: 'titanium', design: 'horizon', hardware_type: 'gen4' };

export const READINESS = {
  id: 'r-1',
  contributors: { activity_balance: 80, body_temperature: 99 },
  day: '2025-01-15',
  score: 77,
  timestamp: '2025-01-15T00:00:00.000+01:00',
};

export const SESSION = {
  id: 'm-1',
  day: '2025-01-15',
  start_datetime: '2025-01-15T12:00:00.000+01:00',
  end_datetime: '2025-01-15T12:10:00.000+01:00',
  heart_rate: { interval: 5, items: [60, 61, null], timestamp: '2025-01-15T12:00:00.000+01:00' },
  type: 'breathing',
};

export const RESILIENCE = {
  id: 'e-1',
  day: '2025-01-15',
  contributors: { sleep_recovery: 61.5, daytime_recovery: 40, stress: 72.25 },
  level: 'solid',
};

export const SLEEP_TIME = {
  id: 'b-1',
  day: '2025-01-15',
  optimal_bedtime: { day_tz: 3600, end_offset: -900, start_offset: -3600 },
  recommendation: 'follow_optimal_bedtime',
  status: 'optimal_found',
};

export const DAILY_SLEEP = {
  id: 'd-1',
  contributors: { deep_sleep: 90, efficiency: 91, latency: 80, rem_sleep: 77, restfulness: 65, timing: 100, total_sleep: 88 },
  day: '2025-01-15',
  score: 84,
  timestamp: '2025-01-15T00:00:00.000+01:00',
};
