import { z } from 'zod';
import { choice, day, identifier, integer } from '../fields.ts';
import { resource } from '../resource.ts';

export const dailyStress = resource({
  path: 'daily_stress',
  dataType: 'daily_stress',
  paragraph: '2.11',
  summary: 'Stress and recovery while awake.',
  scope: 'daily',
  specified: ['document', 'collection'],
  specifiedWithoutPages: true,
  endDay: 'included',
  comesInBackground: true,
  document: z.object({
    id: identifier('Identifier of the document'),
    day: day('Day the stress belongs to'),
    day_summary: choice(['restored', 'normal', 'stressful'], 'The day in one word').nullish(),
    recovery_high: integer('Time of high recovery', 's').nullish(),
    stress_high: integer('Time of high stress', 's').nullish(),
  }),
});
