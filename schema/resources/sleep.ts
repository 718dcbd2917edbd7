import { z } from 'zod';
import { choice, day, flag, identifier, instant, instantOrNull, integer, integerBetween, number, sample, text } from '../fields.ts';
import { resource } from '../resource.ts';
import { readinessContributors } from './contributors.ts';

const PHASES = '1 deep, 2 light, 3 REM, 4 awake';

const TYPES = {
  deleted: 'sleep deleted by the user',
  sleep: 'user-confirmed sleep or nap, 15 minutes to 3 hours, contributes to daily scores',
  late_nap:
    'user-confirmed sleep or nap, at least 15 minutes, ended after the sleep-day change at 6 pm, contributes to the next day’s scores',
  long_sleep: 'sleep longer than 3 hours, contributes to daily scores automatically',
  rest: 'falsely detected sleep or nap, rejected by the user',
};

export const sleep = resource({
  path: 'sleep',
  dataType: 'sleep',
  paragraph: '2.12',
  summary: 'A sleep period. A day can have several.',
  scope: 'daily',
  specified: ['collection'],
  endDay: 'excluded',
  startsAt: 'bedtime_start',
  bringsHeartRate: true,
  document: z.object({
    id: identifier('Identifier of the document'),
    app_sleep_phase_5_min: text(`Sleep phases as the app shows them, one digit for each 5 minutes: ${PHASES}`).nullish(),
    average_breath: number('Average breathing rate', 'breaths/min').nullish(),
    average_heart_rate: number('Average heart rate', 'beats/min').nullish(),
    average_hrv: integer('Average heart rate variability, rMSSD', 'ms').nullish(),
    awake_time: integer('Time awake', 's').nullish(),
    bedtime_end: instantOrNull('End of the time in bed; null while the sleep goes on'),
    bedtime_start: instant('Start of the time in bed'),
    day: day('Day of waking'),
    deep_sleep_duration: integer('Time of deep sleep', 's').nullish(),
    efficiency: integerBetween(0, 100, 'Share of time in bed spent asleep', '%').nullish(),
    heart_rate: sample('Heart rate during the sleep', 'beats/min').nullish(),
    hrv: sample('Heart rate variability during the sleep, rMSSD', 'ms').nullish(),
    latency: integer('Time needed to fall asleep', 's').nullish(),
    light_sleep_duration: integer('Time of light sleep', 's').nullish(),
    low_battery_alert: flag('Whether a low-battery alert occurred'),
    lowest_heart_rate: integer('Lowest heart rate', 'beats/min').nullish(),
    movement_30_sec: text('Movement, one digit for each 30 seconds: 1 none, 2 restless, 3 tossing, 4 active').nullish(),
    period: integer('Sleep period identifier'),
    readiness: z
      .object({
        contributors: readinessContributors,
        score: integerBetween(1, 100, 'Readiness score of this sleep', 'score, 1 to 100').nullish(),
        temperature_deviation: number('Deviation of the skin temperature from the person’s usual', '°C').nullish(),
        temperature_trend_deviation: number('Deviation of the skin temperature trend over three days', '°C').nullish(),
      })
      .nullish(),
    readiness_score_delta: integer('Effect of this sleep on the readiness score', 'score').nullish(),
    rem_sleep_duration: integer('Time of REM sleep', 's').nullish(),
    restless_periods: integer('Number of restless periods', 'count').nullish(),
    ring_id: text('Ring that recorded the sleep, an id of ring_configuration').nullish(),
    sleep_algorithm_version: choice(['v1', 'v2'], 'Sleep algorithm: v1 original, v2 latest').nullish(),
    sleep_analysis_reason: choice(
      ['foreground_sleep_analysis', 'bedtime_edit', 'background_sleep_analysis', 'background_created_foreground_updated'],
      'Why the sleep was analysed',
    ).nullish(),
    sleep_phase_30_sec: text(`Sleep phases, one digit for each 30 seconds: ${PHASES}`).nullish(),
    sleep_phase_5_min: text(`Sleep phases, one digit for each 5 minutes: ${PHASES}`).nullish(),
    sleep_score_delta: integer('Effect of this sleep on the sleep score', 'score').nullish(),
    time_in_bed: integer('Time in bed', 's'),
    total_sleep_duration: integer('Time asleep', 's').nullish(),
    type: choice(
      Object.keys(TYPES),
      `Kind of sleep. ${Object.entries(TYPES)
        .map(([value, meaning]) => `${value}: ${meaning}`)
        .join('; ')}`,
    ).nullish(),
  }),
});
