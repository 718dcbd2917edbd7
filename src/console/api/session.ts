import { z } from 'zod';
import { instant, roles, route } from './route.ts';

/** How the snapshot is kept up: by the owner; more is being read; by nobody, for none runs; not, for the disk is full, the service silent, or none can be made. */
export const freshness = ['followed', 'reading', 'alone', 'full', 'unreachable', 'unpublished'] as const;

const session = z.strictObject({
  role: z.enum(roles),
  /** The account that a person sees; null: everybody's. */
  person: z.string().nullable(),
  /** Sent along, as `x-csrf`, with what changes something. */
  csrf: z.string(),
  expires_at: instant,
  version: z.string(),
  /** False: no owner of the data folder runs, and nothing can be done here but look. */
  can_act: z.boolean(),
  /** When the snapshot that is shown was taken; null: there is none. */
  taken_at: instant.nullable(),
  freshness: z.enum(freshness),
});

/** Who looks, and how somebody becomes one who may. */
export const sessionRoutes = {
  'POST enter': route({
    summary: 'Opens a session for the code of a link',
    role: null,
    input: z.strictObject({ code: z.string().min(1).max(100) }),
    answer: z.strictObject({}),
  }),
  'GET session': route({ summary: 'Who looks', role: 'person', input: z.strictObject({}), answer: session }),
  'DELETE session': route({ summary: 'Ends the session', role: 'person', input: z.strictObject({}), answer: z.strictObject({}) }),
};
