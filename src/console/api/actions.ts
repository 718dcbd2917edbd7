import { z } from 'zod';
import { day, instant, route } from './route.ts';

export const actionNames = ['backfill', 'repair', 'resume', 'pause', 'stop', 'invite', 'retry'] as const;
export type ActionName = (typeof actionNames)[number];

const name = z.enum(actionNames);
const names = z.array(z.string().min(1).max(200)).min(1).max(1000);

/** What acts says first what it would do. */
export const actionRoutes = {
  'POST actions/:name/plan': route({
    summary: 'What an action would do',
    role: 'operator',
    input: z.strictObject({
      name,
      /** Accounts; none: all, where the action is for more than one. */
      users: names.optional(),
      collections: names.optional(),
      from: day.optional(),
      to: day.optional(),
      /** The run to stop, or the job to try again. */
      id: z.string().min(1).max(200).optional(),
      queue: z.enum(['collect', 'events', 'schedules']).optional(),
    }),
    answer: z.strictObject({
      /** Given back to do it, once, within two minutes; null: there is nothing to do. */
      plan: z.string().nullable(),
      says: z.array(z.string()),
      windows: z.number().nullable(),
      /** How many requests it takes at least. */
      requests: z.number().nullable(),
      expires_at: instant,
    }),
  }),
  'POST actions/:name': route({
    summary: 'Does what was planned',
    role: 'operator',
    input: z.strictObject({ name, plan: z.string().min(1).max(100) }),
    answer: z.strictObject({
      says: z.string(),
      /** A link to hand on: shown once. */
      url: z.string().nullable(),
    }),
  }),
};
