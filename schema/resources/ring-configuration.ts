import { z } from 'zod';
import { choice, identifier, instant, integer, text } from '../fields.ts';
import { resource } from '../resource.ts';

const COLORS = [
  'brushed_silver',
  'glossy_black',
  'glossy_gold',
  'glossy_white',
  'gucci',
  'matt_gold',
  'rose',
  'silver',
  'stealth_black',
  'titanium',
  'titanium_and_gold',
  'cloud',
  'petal',
  'midnight',
  'tide',
  'deep_rose',
];

export const ringConfiguration = resource({
  path: 'ring_configuration',
  dataType: 'ring_configuration',
  paragraph: '2.8',
  summary: 'A ring that a person wears or wore.',
  scope: 'personal',
  specified: ['document'],
  endDay: 'included',
  namedBy: { resource: 'sleep', field: 'ring_id' },
  document: z.object({
    id: identifier('Identifier of the ring, named by ring_id of a sleep'),
    color: choice(COLORS, 'Colour of the ring').nullish(),
    design: choice(['heritage', 'balance', 'balance_diamond', 'horizon', 'ceramic'], 'Design of the ring').nullish(),
    firmware_version: text('Firmware version of the ring').nullish(),
    hardware_type: choice(['gen1', 'gen2', 'gen2m', 'gen3', 'gen4', 'or5'], 'Hardware generation').nullish(),
    set_up_at: instant('When the ring was set up').nullish(),
    size: integer('Size of the ring', 'US ring size').nullish(),
  }),
});
