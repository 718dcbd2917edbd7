import { z } from 'zod';
import { choice, day, identifier, numberBetween } from '../fields.ts';
import { resource } from '../resource.ts';

const share = (what: string) => numberBetween(0, 100, `Contribution of ${what} to the resilience`, 'score, 0 to 100');

export const dailyResilience = resource({
  path: 'daily_resilience',
  dataType: 'daily_resilience',
  paragraph: '2.9',
  summary: 'How well a person has borne and recovered from stress lately.',
  scope: 'daily',
  specified: ['collection'],
  specifiedWithoutPages: true,
  specifiedWithDatesOnly: true,
  endDay: 'included',
  document: z.object({
    id: identifier('Identifier of the document'),
    day: day('Day the resilience belongs to'),
    contributors: z.object({
      sleep_recovery: share('recovery by sleep'),
      daytime_recovery: share('recovery by day'),
      stress: share('stress'),
    }),
    level: choice(['limited', 'adequate', 'solid', 'strong', 'exceptional'], 'Resilience level'),
  }),
});
