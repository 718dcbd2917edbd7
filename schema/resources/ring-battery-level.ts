import { z } from 'zod';
import { flag, instant, integer, integerBetween } from '../fields.ts';
import { resource } from '../resource.ts';

export const ringBatteryLevel = resource({
  path: 'ring_battery_level',
  summary: 'How full the battery of the ring was, one row for each reading of it.',
  scope: 'personal',
  specified: [],
  endDay: 'excluded',
  identifiedBy: 'timestamp',
  document: z.object({
    timestamp: instant('Moment of the reading'),
    timestamp_unix: integer('The same moment, since the Unix epoch', 'ms'),
    charging: flag('Whether the battery was being charged').nullish(),
    in_charger: flag('Whether the ring was in its charger').nullish(),
    level: integerBetween(0, 100, 'How full the battery was', '%'),
  }),
});
