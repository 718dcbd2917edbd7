import { z } from 'zod';
import { dayOrNewest, person } from './night.ts';
import { columns, day, route } from './route.ts';

const number = z.array(z.number().nullable());

const trend = z.strictObject({
  metric: z.string(),
  /** One for each day of `daily` in the range; other days have no row. `part` is what an unfinished day has come to, which is no value of it. */
  ...columns({ day: z.array(day), value: number, part: number, median: number, spread: number, z: number }).shape,
});

/** Metrics of one person over many days. */
export const trendRoutes = {
  'GET people/:id/trends': route({
    summary: 'Metrics by day, each against the 28 days before it',
    role: 'person',
    input: z.strictObject({
      id: person,
      /** Names of `baselines.metric`, with commas between. */
      metrics: z
        .string()
        .regex(/^[a-z0-9_]+(,[a-z0-9_]+){0,15}$/, 'names of metrics, as average_hrv,steps')
        .max(400),
      /** Lies in the range, which is one of those of that length that follow each other back from the last day of the person. */
      day: dayOrNewest,
      days: z.coerce.number().int().min(1),
    }),
    answer: z.strictObject({ from: day, to: day, trends: z.array(trend), sql: z.string() }),
    ofSnapshot: true,
  }),
};
