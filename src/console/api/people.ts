import { z } from 'zod';
import { sentence } from './night.ts';
import { columns, day, instant, route } from './route.ts';

/** How somebody is doing; the first is the most in need of a look. */
export const personStates = ['parked', 'failed', 'unusual', 'long_missing', 'empty', 'waiting', 'paused', 'usual'] as const;

/** What is drawn of a metric: the days of `days`, with the band of what is usual. */
const spark = z.strictObject({
  metric: z.enum(['average_hrv', 'lowest_heart_rate', 'temperature_deviation']),
  /** Of the last night; null: it has not come, or has none. */
  value: z.number().nullable(),
  is_unusual: z.boolean(),
  ...columns({
    day: z.array(day),
    values: z.array(z.number().nullable()),
    median: z.array(z.number().nullable()),
    spread: z.array(z.number().nullable()),
  }).shape,
});

const person = z.strictObject({
  id: z.string(),
  state: z.enum(personStates),
  /** The state in words: `as usual`, `no night yet`. */
  says: z.string(),
  /** The newest night; null: none is stored. */
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
  /** Whether that is the one that ended today, by their clock. */
  is_last_night: z.boolean(),
  /** 14 days to today: minutes from midnight of the day of waking, by their clock; null: no night. */
  nights: columns({ day: z.array(day), start: z.array(z.number().nullable()), end: z.array(z.number().nullable()) }),
  sparks: z.array(spark),
  unusual: z.array(z.strictObject({ metric: z.string(), z: z.number() })),
});

const people = z.strictObject({
  greeting: z.string(),
  /** The moment of the answer, by the clock that most people have. */
  at: instant,
  offset: z.number(),
  /** The answer of the screen in a sentence or two. */
  sentence,
  /** How many are followed, and how many match. */
  everybody: z.number(),
  total: z.number(),
  page: z.number(),
  pages: z.number(),
  people: z.array(person),
  /** At most five. */
  needs_a_look: z.array(z.strictObject({ id: z.string(), text: z.string() })),
  /** How many more there are. */
  more: z.number(),
  /**
   * Where nobody can be shown: how many are followed, who wait for the first snapshot, and how the first person signs in; `can_invite`: a link
   * can be made here, too, by the action `invite`.
   */
  first_run: z.strictObject({ followed: z.number(), text: z.string(), command: z.string(), can_invite: z.boolean() }).nullable(),
  sql: z.string(),
});

export const sorts = ['attention', 'name', 'freshest'] as const;

/** Everybody at a glance. */
export const peopleRoutes = {
  'GET people': route({
    summary: 'Everybody, with the freshest night of each',
    role: 'person',
    input: z.strictObject({
      q: z.string().max(200).optional(),
      sort: z.enum(sorts).default('attention'),
      page: z.coerce.number().int().min(1).max(100_000).default(1),
    }),
    answer: people,
  }),
};
