import { z } from 'zod';
import { day, identifier, instant, integerBetween } from '../fields.ts';
import { resource } from '../resource.ts';

const share = (what: string) => integerBetween(1, 100, `Contribution of ${what} to the sleep score`, 'score, 1 to 100').nullish();

export const dailySleep = resource({
  path: 'daily_sleep',
  dataType: 'daily_sleep',
  paragraph: '2.4',
  summary: 'The sleep score of a day, over all sleep periods that end on it.',
  scope: 'daily',
  specified: ['document'],
  endDay: 'included',
  startsAt: 'timestamp',
  document: z.object({
    id: identifier('Identifier of the document'),
    contributors: z.object({
      deep_sleep: share('deep sleep'),
      efficiency: share('the share of time in bed spent asleep'),
      latency: share('the time needed to fall asleep'),
      rem_sleep: share('REM sleep'),
      restfulness: share('undisturbed sleep'),
      timing: share('the time of sleeping'),
      total_sleep: share('the total sleep time'),
    }),
    day: day('Day of waking'),
    score: integerBetween(1, 100, 'Sleep score', 'score, 1 to 100').nullish(),
    timestamp: instant('Start of the day the document belongs to'),
  }),
});
