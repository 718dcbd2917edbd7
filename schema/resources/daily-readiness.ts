import { z } from 'zod';
import { day, identifier, instant, integerBetween, number } from '../fields.ts';
import { resource } from '../resource.ts';
import { readinessContributors } from './contributors.ts';

export const dailyReadiness = resource({
  path: 'daily_readiness',
  dataType: 'daily_readiness',
  paragraph: '2.3',
  summary: 'How ready for effort a person is, one document a day.',
  scope: 'daily',
  specified: ['document', 'collection'],
  endDay: 'included',
  startsAt: 'timestamp',
  document: z.object({
    id: identifier('Identifier of the document'),
    contributors: readinessContributors,
    day: day('Day the readiness belongs to'),
    score: integerBetween(1, 100, 'Readiness score', 'score, 1 to 100').nullish(),
    temperature_deviation: number('Deviation of the skin temperature from the person’s usual', '°C').nullish(),
    temperature_trend_deviation: number('Deviation of the skin temperature trend over three days', '°C').nullish(),
    timestamp: instant('Start of the day the document belongs to'),
  }),
});
