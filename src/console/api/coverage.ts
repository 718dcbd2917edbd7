import { z } from 'zod';
import { columns, day, instant, route } from './route.ts';

/** How many hours of a day the ring is worn on a day that counts. */
const hours = z.coerce.number().min(1).max(24).default(16);

const person = z.strictObject({
  id: z.string(),
  /** active, paused, parked */
  account: z.string(),
  /** Why it is not active. */
  reason: z.string().nullable(),
  /** Of each day a letter: see `schema/queries/console/coverage.sql`. */
  letters: z.string(),
  /** Days of which something could be read again. */
  missing: z.number(),
  failed: z.number(),
  nights: z.number(),
  /** Worn, of what was recorded; null: nothing is known of it. */
  worn_share: z.number().nullable(),
  /** Days on which it was worn for so many hours as are asked for; null: of no day it is known how long. */
  valid_days: z.number().nullable(),
});

const coverage = z.strictObject({
  sentence: z.string(),
  from: day,
  to: day,
  /** The days that there are to ask for. */
  first: day,
  last: day,
  hours: z.number(),
  /** Those that there are to choose from. */
  collections: z.array(z.string()),
  /** How many people match, of whom those of the page are here. */
  total: z.number(),
  page: z.number(),
  pages: z.number(),
  people: z.array(person),
  /** What is known, as counts of people, collections and days. */
  reasons: z.array(z.strictObject({ state: z.string(), reason: z.string(), cells: z.number(), people: z.number() })),
  /** The queries behind the reasons, and behind nights and wear. */
  sql: z.strictObject({ reasons: z.string(), compliance: z.string() }),
});

const cell = z.strictObject({
  id: z.string(),
  day,
  sentence: z.string(),
  rows: columns({
    collection: z.array(z.string()),
    state: z.array(z.string()),
    reason: z.array(z.string().nullable()),
    documents: z.array(z.number()),
    /** When its last complete reading was asked for. */
    read_at: z.array(instant.nullable()),
    run: z.array(z.string().nullable()),
    run_kind: z.array(z.string().nullable()),
    run_state: z.array(z.string().nullable()),
  }),
});

/** Which days of which people, in which order. */
export const coverageFilters = z.strictObject({
  from: day.optional(),
  to: day.optional(),
  collection: z.string().max(100).optional(),
  state: z.string().max(100).optional(),
  reason: z.string().max(1000).optional(),
  sort: z.enum(['missing', 'name']).default('missing'),
  page: z.coerce.number().int().min(1).default(1),
});

/** What is known of each person, collection and day. */
export const coverageRoutes = {
  'GET coverage': route({
    summary: 'People and days, with what is missing and why',
    role: 'person',
    input: coverageFilters.extend({ hours }),
    answer: coverage,
    ofSnapshot: true,
  }),
  'GET coverage/cell': route({
    summary: 'One day of one person, by collection',
    role: 'person',
    input: z.strictObject({ id: z.string().max(200), day }),
    answer: cell,
    ofSnapshot: true,
  }),
};
