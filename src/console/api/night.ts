import { z } from 'zod';
import { columns, day, givenDay, instant, route } from './route.ts';

/** Words of an answer, and what they are: plain, the answer itself, or what is unusual. */
export const sentence = z.array(z.strictObject({ text: z.string(), tone: z.enum(['plain', 'answer', 'unusual']) }));

/** Samples at equal distances, null where there is none. */
const series = z.strictObject({ start: instant, interval: z.number(), values: z.array(z.number().nullable()) });

const sleep = z.strictObject({
  sleep_id: z.string(),
  type: z.string().nullable(),
  is_main: z.boolean(),
  start: instant,
  start_offset: z.number(),
  end: instant,
  end_offset: z.number(),
  asleep: z.number().nullable(),
  in_bed: z.number().nullable(),
  latency: z.number().nullable(),
  efficiency: z.number().nullable(),
  average_heart_rate: z.number().nullable(),
  lowest_heart_rate: z.number().nullable(),
  average_hrv: z.number().nullable(),
  average_breath: z.number().nullable(),
  /** Stretches of one stage; null: a stage that the specification does not name. */
  stages: columns({ start: z.array(instant), seconds: z.array(z.number()), stage: z.array(z.string().nullable()) }),
  heart_rate: series.nullable(),
  hrv: series.nullable(),
  /** A digit for each 30 s, from `start` on: 1 none, 2 restless, 3 tossing, 4 active. */
  movement: z.string(),
});

/** A metric of a day against the 28 days before. */
const usual = z.strictObject({
  metric: z.string(),
  value: z.number().nullable(),
  median: z.number().nullable(),
  /** The band is so much to either side of the median. */
  spread: z.number().nullable(),
  z: z.number().nullable(),
  /** How many of the 28 days before have a value. */
  nights: z.number(),
  /** Why z is null, in words. */
  note: z.string(),
});

const night = z.strictObject({
  id: z.string(),
  day,
  first_day: day,
  last_day: day,
  newest_night: day.nullable(),
  sentence,
  sleeps: z.array(sleep),
  /** Why there is no main sleep; null where there is one. */
  missing: z.string().nullable(),
  usual: z.array(usual),
  /** The metrics that are called unusual. */
  unusual: z.array(z.string()),
  sql: z.strictObject({ night: z.string(), usual: z.string() }),
});

export const person = z.string().min(1).max(200);

/** A day, or the one of the newest night. */
export const dayOrNewest = z.union([givenDay, z.literal('newest')]);

/** One night of one person. */
export const nightRoutes = {
  'GET people/:id/night/:day': route({
    summary: 'The sleeps of a day, and how they are against what is usual for the person',
    role: 'person',
    input: z.strictObject({ id: person, day: dayOrNewest }),
    answer: night,
    ofSnapshot: true,
  }),
};
