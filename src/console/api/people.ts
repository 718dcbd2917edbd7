import { z } from 'zod';
import { day, instant, route } from './route.ts';

const person = z.strictObject({
  id: z.string(),
  /** The freshest night; null: none is stored. */
  night: z
    .strictObject({
      day,
      asleep: z.number().nullable(),
      start: instant.nullable(),
      start_offset: z.number().nullable(),
      end: instant,
      end_offset: z.number().nullable(),
    })
    .nullable(),
});

const people = z.strictObject({
  /** The answer of the screen in a sentence or two. */
  sentence: z.string(),
  /** How many match. */
  total: z.number(),
  people: z.array(person),
});

/** Everybody at a glance. */
export const peopleRoutes = {
  'GET people': route({
    summary: 'Everybody, with the freshest night of each',
    role: 'person',
    input: z.strictObject({ q: z.string().max(200).optional() }),
    answer: people,
    ofSnapshot: true,
  }),
};
