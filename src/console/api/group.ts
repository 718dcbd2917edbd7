import { z } from 'zod';
import { coverageFilters } from './coverage.ts';
import { day, route } from './route.ts';

const group = z.strictObject({
  metric: z.string(),
  from: day,
  to: day,
  /** Every day of the range, of which `values` has one each; null: none is known. */
  day: z.array(day),
  /** How many people match, of whom those of the page are here. */
  total: z.number(),
  page: z.number(),
  pages: z.number(),
  people: z.array(z.strictObject({ id: z.string(), values: z.array(z.number().nullable()) })),
  sql: z.string(),
});

/** A metric of many people side by side. */
export const groupRoutes = {
  'GET group': route({
    summary: 'A metric by day of each of the people whom coverage shows with the same filters',
    role: 'person',
    input: coverageFilters.extend({
      /** A name of `baselines.metric`. */
      metric: z.string().max(100),
    }),
    answer: group,
    ofSnapshot: true,
  }),
};
