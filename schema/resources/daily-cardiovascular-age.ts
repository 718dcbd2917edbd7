import { z } from 'zod';
import { day, identifier, integerBetween, number } from '../fields.ts';
import { resource } from '../resource.ts';

export const dailyCardiovascularAge = resource({
  path: 'daily_cardiovascular_age',
  dataType: 'daily_cardiovascular_age',
  summary: 'Estimated age of the blood vessels.',
  scope: 'daily',
  specified: [],
  endDay: 'included',
  document: z.object({
    id: identifier('Identifier of the document'),
    day: day('Day the estimate belongs to'),
    pulse_wave_velocity: number('Speed of the pulse wave in the vessels', 'm/s').nullish(),
    vascular_age: integerBetween(18, 100, 'Age that vessels like these usually have', 'years').nullish(),
  }),
});
