import { z } from 'zod';
import { actionNames } from './actions.ts';
import { instant, roles, route } from './route.ts';

const action = z.strictObject({
  name: z.enum(actionNames),
  label: z.string(),
  users: z.array(z.string()),
  collections: z.array(z.string()).optional(),
});

const behind = z.strictObject({
  id: z.string(),
  /** Since when it is so; null: not known. */
  since: instant.nullable(),
  state: z.string(),
  /** What happened, in our words. */
  cause: z.string(),
  helps: z.string(),
  /** The one thing to press; null: nothing here helps. */
  action: action.nullable(),
});

const counts = z.strictObject({ failed: z.number(), active: z.number(), delayed: z.number(), waiting: z.number() });
const queueName = z.enum(['collect', 'events', 'schedules']);

const lag = z.strictObject({
  count: z.number(),
  since: instant,
  p50: z.number(),
  p95: z.number(),
  p99: z.number(),
  /** Of each bar, in seconds; the first begins at 0, and what took longer than the last one is not drawn. */
  width: z.number(),
  bars: z.array(z.number()),
  sql: z.string(),
});

const operations = z.strictObject({
  sentence: z.string(),
  has_owner: z.boolean(),
  behind: z.array(behind),
  queue: z
    .strictObject({
      counts: z.strictObject({ collect: counts, events: counts, schedules: counts }),
      jobs: z.array(
        z.strictObject({
          queue: queueName,
          id: z.string(),
          state: z.string(),
          at: z.string(),
          attempts: z.number(),
          reason: z.string().nullable(),
        }),
      ),
    })
    .nullable(),
  queue_problem: z.string().nullable(),
  /** Null: no event has come. */
  lag: lag.nullable(),
  machine: z.array(z.strictObject({ name: z.string(), value: z.string() })),
  versions: z.array(z.strictObject({ name: z.string(), value: z.string() })),
});

const run = z.strictObject({
  id: z.string(),
  kind: z.string(),
  state: z.string(),
  started: instant,
  ended: instant.nullable(),
  from: z.string().nullable(),
  to: z.string().nullable(),
  planned: z.number(),
  done: z.number(),
  failed: z.number(),
  requests: z.number(),
  documents: z.number(),
  /** Somebody works on it now. */
  is_active: z.boolean(),
  waits_for: z.string().nullable(),
});

const event = z.strictObject({
  received: instant,
  id: z.string().nullable(),
  change: z.string(),
  kind: z.string(),
  outcome: z.string(),
  reason: z.string().nullable(),
  /** Seconds until its outcome. */
  lag: z.number().nullable(),
});

const session = z.strictObject({
  id: z.string(),
  role: z.enum(roles),
  person: z.string().nullable(),
  opened: instant,
  seen: instant,
  is_this: z.boolean(),
});

/** What the pipeline does. */
export const operationRoutes = {
  'GET operations': route({ summary: 'Who is behind, and what helps', role: 'reader', input: z.strictObject({}), answer: operations }),
  'GET runs': route({
    summary: 'The last runs',
    role: 'reader',
    /** `running`: those alone that are worked on now, which asks no snapshot. */
    input: z.strictObject({ state: z.literal('running').optional() }),
    answer: z.strictObject({ runs: z.array(run) }),
  }),
  'GET events': route({
    summary: 'Events and what became of them, the newest first',
    role: 'reader',
    input: z.strictObject({
      before: z.coerce.number().optional(),
      user: z.string().max(200).optional(),
      outcome: z.string().max(100).optional(),
    }),
    answer: z.strictObject({ events: z.array(event) }),
  }),
  'GET log': route({
    summary: 'The last lines of the log',
    role: 'reader',
    input: z.strictObject({}),
    answer: z.strictObject({
      lines: z.array(z.strictObject({ at: instant, level: z.string(), message: z.string(), rest: z.string() })),
    }),
  }),
};

/** Who may look. */
export const sessionListRoutes = {
  'GET sessions': route({
    summary: 'Sessions that are open',
    role: 'operator',
    input: z.strictObject({}),
    answer: z.strictObject({ sessions: z.array(session) }),
  }),
  'DELETE sessions/:id': route({
    summary: 'Ends a session',
    role: 'operator',
    input: z.strictObject({ id: z.string().min(1).max(100) }),
    answer: z.strictObject({}),
  }),
};
