import { z } from 'zod';
import { day, identifier, instant, integer, integerBetween, number, sample, text } from '../fields.ts';
import { resource } from '../resource.ts';

const share = (what: string) => integerBetween(1, 100, `Contribution of ${what} to the activity score`, 'score, 1 to 100').nullish();

export const dailyActivity = resource({
  path: 'daily_activity',
  dataType: 'daily_activity',
  // The specification's example (2.15) says `activity` where live services say `daily_activity`.
  dataTypeAlias: 'activity',
  paragraph: '2.5',
  summary: 'Movement over the 24 hours that start at 4 a.m. local time.',
  scope: 'daily',
  specified: ['document', 'collection'],
  endDay: 'excluded',
  startsAt: 'timestamp',
  grows: true,
  comesInBackground: true,
  bringsHeartRate: true,
  document: z.object({
    id: identifier('Identifier of the document'),
    active_calories: integer('Energy spent by moving', 'kcal'),
    average_met_minutes: number('Average metabolic equivalent over the day; MET, not MET minutes, whatever its name says', 'MET'),
    class_5_min: text(
      'One digit for each 5 minutes from 4 a.m.: 0 non-wear, 1 rest, 2 inactive, 3 low, 4 medium, 5 high activity',
    ).nullish(),
    contributors: z.object({
      meet_daily_targets: share('meeting the daily targets'),
      move_every_hour: share('moving every hour'),
      recovery_time: share('recovery time'),
      stay_active: share('staying active'),
      training_frequency: share('training frequency'),
      training_volume: share('training volume'),
    }),
    day: day('Day on which the 24 hours start'),
    equivalent_walking_distance: integer('Distance on foot that would cost the same energy', 'm'),
    high_activity_met_minutes: integer('MET minutes of high activity', 'MET min'),
    high_activity_time: integer('Time of high activity', 's'),
    inactivity_alerts: integer('Number of inactivity alerts', 'count'),
    low_activity_met_minutes: integer('MET minutes of low activity', 'MET min'),
    low_activity_time: integer('Time of low activity', 's'),
    medium_activity_met_minutes: integer('MET minutes of medium activity', 'MET min'),
    medium_activity_time: integer('Time of medium activity', 's'),
    met: sample('Metabolic equivalent through the day', 'MET'),
    meters_to_target: integer('Distance remaining to the target; negative once it is passed', 'm'),
    non_wear_time: integer('Time the ring was not worn', 's'),
    resting_time: integer('Time of rest', 's'),
    score: integerBetween(1, 100, 'Activity score', 'score, 1 to 100').nullish(),
    sedentary_met_minutes: integer('MET minutes of inactivity', 'MET min'),
    sedentary_time: integer('Time of inactivity', 's'),
    steps: integer('Steps', 'count'),
    target_calories: integer('Target of the day for active calories', 'kcal'),
    target_meters: integer('Target of the day for equivalent walking distance', 'm'),
    timestamp: instant('Start of the 24 hours, 4 a.m. local time'),
    total_calories: integer('Energy spent in all', 'kcal'),
  }),
});
