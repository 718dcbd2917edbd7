import { z } from 'zod';
import { sentence } from './night.ts';
import { columns, day, givenDay, instant, route } from './route.ts';

const raster = z.strictObject({
  id: z.string(),
  from: day,
  to: day,
  sentence,
  /** Finished sleeps, naps too, in the order of their beginning. */
  sleeps: columns({
    day: z.array(day),
    is_main: z.array(z.boolean()),
    start: z.array(instant),
    end: z.array(instant),
    /** Seconds east of UTC at its beginning, and at its end. */
    offset: z.array(z.number()),
    end_offset: z.array(z.number()),
    /** How many of the stretches below are of it. */
    stretches: z.array(z.number()),
  }),
  /** Stretches without a break, sleep after sleep: seconds, and a letter for each: deep, light, rem, awake, or ? for not known. */
  stages: z.strictObject({ seconds: z.array(z.number()), letters: z.string() }),
  scores: columns({ day: z.array(day), score: z.array(z.number()) }),
  sql: z.strictObject({ raster: z.string(), scores: z.string() }),
});

/** Many nights, one below the other. */
export const rasterRoutes = {
  'GET people/:id/raster': route({
    summary: 'The nights of a person and their stages, and the sleep scores',
    role: 'person',
    input: z.strictObject({ id: z.string().min(1).max(300), from: givenDay.optional(), to: givenDay.optional() }),
    answer: raster,
    ofSnapshot: true,
  }),
};
