import type { Holdings } from './literal-service.ts';

/** One document of each type, typed by hand from section 2. */
export const oneOfEach: Holdings['documents'] = {
  daily_readiness: [
    {
      id: 'readiness-1',
      contributors: { activity_balance: 80, sleep_balance: null },
      day: '2025-03-09',
      score: 77,
      temperature_deviation: -0.12,
      temperature_trend_deviation: 0.04,
      timestamp: '2025-03-09T00:00:00.000+01:00',
    },
  ],
  daily_sleep: [
    {
      id: 'daily-sleep-1',
      contributors: { deep_sleep: 91, efficiency: 88, latency: 70, rem_sleep: 65, restfulness: 74, timing: 100, total_sleep: 82 },
      day: '2025-03-09',
      score: 81,
      timestamp: '2025-03-09T00:00:00.000+01:00',
    },
  ],
  daily_activity: [
    {
      id: 'activity-1',
      active_calories: 512,
      average_met_minutes: 1.46,
      class_5_min: '1123',
      contributors: { stay_active: 60 },
      day: '2025-03-09',
      equivalent_walking_distance: 9120,
      high_activity_met_minutes: 40,
      high_activity_time: 360,
      inactivity_alerts: 1,
      low_activity_met_minutes: 190,
      low_activity_time: 15240,
      medium_activity_met_minutes: 155,
      medium_activity_time: 2400,
      met: { interval: 60, items: [0.9, null, 1.3], timestamp: '2025-03-09T04:00:00.000+01:00' },
      meters_to_target: -400,
      non_wear_time: 1800,
      resting_time: 27000,
      score: 88,
      sedentary_met_minutes: 9,
      sedentary_time: 30600,
      steps: 9405,
      target_calories: 450,
      target_meters: 8000,
      timestamp: '2025-03-09T04:00:00.000+01:00',
      total_calories: 2540,
    },
  ],
  daily_spo2: [{ id: 'spo2-1', breathing_disturbance_index: 4, day: '2025-03-09', spo2_percentage: { average: 97.2 } }],
  vO2_max: [{ id: 'vo2-1', day: '2025-03-09', timestamp: '2025-03-09T06:30:00.000+01:00', vo2_max: 44 }],
  ring_configuration: [{ id: 'ring-1', color: 'silver', design: 'heritage', hardware_type: 'gen3' }],
  daily_resilience: [
    {
      id: 'resilience-1',
      day: '2025-03-09',
      contributors: { sleep_recovery: 71.5, daytime_recovery: 40.0, stress: 88.25 },
      level: 'solid',
    },
  ],
  sleep_time: [
    {
      id: 'sleep-time-1',
      day: '2025-03-09',
      optimal_bedtime: { day_tz: 3600, end_offset: -3600, start_offset: -6300 },
      recommendation: 'earlier_bedtime',
      status: 'optimal_found',
    },
  ],
  daily_stress: [{ id: 'stress-1', day: '2025-03-09', day_summary: 'normal' }],
  sleep: [
    {
      id: 'sleep-1',
      bedtime_end: '2025-03-09T07:01:00.000+01:00',
      bedtime_start: '2025-03-08T23:05:00.000+01:00',
      day: '2025-03-09',
      heart_rate: { interval: 300, items: [52, null, 49], timestamp: '2025-03-08T23:05:00.000+01:00' },
      low_battery_alert: false,
      period: 0,
      time_in_bed: 28560,
      type: 'long_sleep',
    },
  ],
  session: [
    {
      id: 'session-1',
      day: '2025-03-09',
      end_datetime: '2025-03-09T12:20:00.000+01:00',
      heart_rate: null,
      mood: 'good',
      start_datetime: '2025-03-09T12:10:00.000+01:00',
      type: 'meditation',
    },
  ],
};

/** A day of SpO2, as small as a document gets. */
export const spo2 = (day: string, id = `spo2-${day}`) => ({ id, day, spo2_percentage: { average: 97 } });

/** A heart-rate row at a moment in UTC. */
export const beat = (timestamp: string, bpm: number, source = 'awake') => ({
  timestamp,
  timestamp_unix: Date.parse(timestamp),
  bpm,
  source,
});
