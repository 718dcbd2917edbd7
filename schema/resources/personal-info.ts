import { z } from 'zod';
import { identifier, integer, number, text } from '../fields.ts';
import { resource } from '../resource.ts';

/**
 * Who a person is: one object of each account at its own path, in no list and in no event. Only its identifier is asked for, unless
 * somebody says that all of it may be kept.
 */
export const personalInfo = resource({
  path: 'personal_info',
  summary: 'Who the person is, one row an account; empty unless RINGNECK_PERSONAL_INFO is 1.',
  scope: 'personal',
  specified: [],
  endDay: 'included',
  document: z.object({
    id: identifier('The service’s own identifier of the person, the user_id of webhook events'),
    age: integer('Age when it was read', 'years').nullish(),
    biological_sex: text('Biological sex').nullish(),
    email: text('Address of the person').nullish(),
    height: number('Height', 'm').nullish(),
    weight: number('Weight', 'kg').nullish(),
  }),
});
