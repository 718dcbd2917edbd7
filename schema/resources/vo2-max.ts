import { z } from 'zod';
import { day, identifier, instant, integer } from '../fields.ts';
import { resource } from '../resource.ts';

export const vo2Max = resource({
  path: 'vO2_max',
  dataType: 'vo2_max',
  paragraph: '2.7',
  summary: 'Estimated maximal oxygen uptake.',
  scope: 'daily',
  specified: ['document', 'collection'],
  endDay: 'included',
  startsAt: 'timestamp',
  document: z.object({
    id: identifier('Identifier of the document'),
    day: day('Day the estimate belongs to'),
    timestamp: instant('When the estimate was created'),
    vo2_max: integer('Maximal oxygen uptake', 'ml/kg/min'),
  }),
});
