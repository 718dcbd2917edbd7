import { z } from 'zod';
import { choice, day, identifier, integer } from '../fields.ts';
import { resource } from '../resource.ts';

export const sleepTime = resource({
  path: 'sleep_time',
  dataType: 'sleep_time',
  paragraph: '2.10',
  summary: 'Suggested bedtime.',
  scope: 'daily',
  specified: ['document'],
  endDay: 'included',
  dayOffset: ['optimal_bedtime', 'day_tz'],
  document: z.object({
    id: identifier('Identifier of the document'),
    day: day('Day the suggestion is for'),
    optimal_bedtime: z
      .object({
        day_tz: integer('Offset of the day from GMT', 's'),
        end_offset: integer('Latest suggested bedtime, from midnight', 's'),
        start_offset: integer('Earliest suggested bedtime, from midnight', 's'),
      })
      .nullish(),
    recommendation: choice(
      ['improve_efficiency', 'earlier_bedtime', 'later_bedtime', 'earlier_wake_up_time', 'later_wake_up_time', 'follow_optimal_bedtime'],
      'What the service recommends',
    ).nullish(),
    status: choice(
      ['not_enough_nights', 'not_enough_recent_nights', 'bad_sleep_quality', 'only_recommended_found', 'optimal_found'],
      'How the suggestion came about',
    ).nullish(),
  }),
});
