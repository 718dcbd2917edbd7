import { z } from 'zod';
import { dayOrNewest, person } from './night.ts';
import { columns, day, instant, route } from './route.ts';

const number = z.array(z.number().nullable());

const wholeDay = z.strictObject({
  id: z.string(),
  day,
  /** From midnight to midnight of the person's own clock: 23 to 30 hours. */
  start: instant,
  end: instant,
  /** Since when the clock has been which; the first one from `start` on. More than one: the clock moved. */
  clocks: z.array(z.strictObject({ start: instant, offset: z.number() })),
  /** False: no document tells an offset, and the clock is UTC. */
  is_clock_known: z.boolean(),
  /** Until when something can have come: the end of the day, or of a day that is not over now, or the last measurement where that is later. */
  until: instant,
  /** By 5 minutes; those without a measurement have no row. */
  heart_rate: columns({
    start: z.array(instant),
    lowest: number,
    median: number,
    highest: number,
    measurements: number,
    source: z.array(z.string().nullable()),
  }),
  /** By 5 minutes. */
  met: columns({ start: z.array(instant), met: number }),
  non_wear: columns({ start: z.array(instant), seconds: z.array(z.number()) }),
  events: z.array(
    z.strictObject({
      kind: z.enum(['sleep', 'workout', 'session', 'tag', 'rest_mode']),
      start: instant,
      end: instant.nullable(),
      name: z.string(),
      detail: z.string().nullable(),
    }),
  ),
  /** For zones; null: none is known. */
  maximum: z.strictObject({ heart_rate: z.number(), origin: z.string() }).nullable(),
  sql: z.string(),
});

/** One day of one person. */
export const dayRoutes = {
  'GET people/:id/day/:day': route({
    summary: 'A day from midnight to midnight of the person’s clock',
    role: 'person',
    input: z.strictObject({ id: person, day: dayOrNewest }),
    answer: wholeDay,
    ofSnapshot: true,
  }),
};
