import { z } from 'zod';
import { choice, day, identifier, instant, sample } from '../fields.ts';
import { resource } from '../resource.ts';

export const session = resource({
  path: 'session',
  dataType: 'session',
  paragraph: '2.13',
  summary: 'A guided or tracked moment.',
  scope: 'session',
  specified: ['collection'],
  endDay: 'excluded',
  startsAt: 'start_datetime',
  document: z.object({
    id: identifier('Identifier of the document'),
    day: day('Date the session occurred'),
    end_datetime: instant('When the moment ended'),
    heart_rate: sample('Heart rate during the moment', 'beats/min').nullish(),
    heart_rate_variability: sample('Heart rate variability during the moment, rMSSD', 'ms').nullish(),
    mood: choice(['bad', 'worse', 'same', 'good', 'great'], 'Mood the person chose').nullish(),
    motion_count: sample('Movements during the moment', 'count').nullish(),
    start_datetime: instant('When the moment started'),
    type: choice(['breathing', 'meditation', 'nap', 'relaxation', 'rest', 'body_status'], 'Kind of moment'),
  }),
});
