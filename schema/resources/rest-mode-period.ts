import { z } from 'zod';
import { day, identifier, instant, objects, texts } from '../fields.ts';
import { resource } from '../resource.ts';

export const restModePeriod = resource({
  path: 'rest_mode_period',
  dataType: 'rest_mode_period',
  summary: 'Days in which a person had the service in rest mode, as when ill.',
  scope: 'daily',
  specified: [],
  endDay: 'included',
  dayField: 'start_day',
  startsAt: 'start_time',
  endsAt: 'end_day',
  document: z.object({
    id: identifier('Identifier of the document'),
    end_day: day('Day on which it ended; null while it goes on').nullish(),
    end_time: instant('When it ended; null while it goes on').nullish(),
    episodes: objects(
      'What the person noted in that time',
      z.object({
        tags: texts('Words of the service or of the person'),
        timestamp: instant('When it was noted'),
      }),
    ),
    start_day: day('Day on which it began'),
    start_time: instant('When it began').nullish(),
  }),
});
