import { z } from 'zod';
import { day, identifier, integerBetween, number } from '../fields.ts';
import { resource } from '../resource.ts';

export const dailySpo2 = resource({
  path: 'daily_spo2',
  dataType: 'daily_spo2',
  paragraph: '2.6',
  summary: 'Oxygen saturation of the blood during sleep.',
  scope: 'spo2Daily',
  specified: ['document', 'collection'],
  endDay: 'included',
  document: z.object({
    id: identifier('Identifier of the document'),
    breathing_disturbance_index: integerBetween(0, 100, 'Breathing disturbances during sleep', 'index, 0 to 100').nullish(),
    day: day('Day of waking'),
    spo2_percentage: z.object({ average: number('Average oxygen saturation during sleep', '%') }).nullish(),
  }),
});
