import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { dayNumberOf } from '../../schema/instant.ts';
import { webhookEvent } from '../../schema/webhook.ts';
import { messageOf, RingneckError } from '../base/errors.ts';
import { writeFileAtomically } from '../base/files.ts';
import type { Behaviour } from './behaviour.ts';
import { editSchema } from './edit.ts';
import { activityEnd } from './users/movement.ts';
import type { UserModel } from './users/user-model.ts';
import { DAY } from './users/zone.ts';

/** The timeline as it is kept: what is visible, what was edited and what is still to be told change together, in one write. */
const timelineState = z.object({
  format: z.literal(1),
  seed: z.int(),
  /** Up to this day everything was there from the beginning; null: it began with the calendar. */
  whole_to: z.string().nullable(),
  /** Where the clock stood, and when that was; milliseconds. */
  clock_ms: z.number(),
  real_ms: z.number(),
  /** Up to this moment, in seconds, everything that was due has happened. */
  advanced_to: z.number(),
  /** What the names of its events begin with, and the number of the next: none ever has another's name, in another timeline neither. */
  name: z.string().regex(/^[0-9a-f]{8}$/),
  next_event: z.int(),
  /** By the people's indexes. `advanced_to` is there where somebody is further than everybody. */
  people: z.array(z.object({ synced: z.number(), uploaded: z.number(), advanced_to: z.number().optional() })),
  edits: z.array(editSchema),
  /** Events that are perhaps not told of yet. */
  outbox: z.array(z.object({ eventId: z.string(), event: webhookEvent })),
});
export type TimelineState = z.infer<typeof timelineState>;

/** What a file holds; undefined when there is none. Throws when it is the timeline of others. */
export function findState(path: string, { seed, count }: { seed: number; count: number }): TimelineState | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
  let state: TimelineState;
  try {
    state = timelineState.parse(JSON.parse(text));
  } catch (error) {
    throw new RingneckError(`${path} is no timeline of this program; restore it or remove it to begin anew (${messageOf(error)})`);
  }
  if (state.seed === seed && state.people.length === count) return state;
  throw new RingneckError(
    `${path} is the timeline of ${state.people.length} people of seed ${state.seed}, not of ${count} of seed ${seed}; remove it to begin anew`,
  );
}

export function writeState(path: string, state: TimelineState): void {
  writeFileAtomically(path, `${JSON.stringify(state)}\n`);
}

/** A user as the timeline begins. */
export interface BegunUser {
  model: UserModel;
  behaviour: Behaviour;
}

/** How far back a first start looks for a user's last sync. */
const LONGEST_SILENCE = 15 * DAY;

/**
 * The timeline at its first moment: now, with what has synced by now; or with a last day, the end of that day for everybody (an activity
 * lasts 24 hours from 4 a.m.), with all of it and nothing after it. Of a timeline before it, what was edited and what is not told of yet stay.
 */
export function beginState(
  users: readonly BegunUser[],
  { seed, to, realMs }: { seed: number; to: string | undefined; realMs: number },
  before: TimelineState | undefined,
): TimelineState {
  const { name = randomBytes(4).toString('hex'), next_event = 1, edits = [], outbox = [] } = before ?? {};
  const rest = { format: 1, seed, name, next_event, edits, outbox } as const;
  if (to === undefined) {
    const now = Math.floor(realMs / 1000);
    const people = users.map(({ behaviour }) => {
      const synced = behaviour.syncs(now - LONGEST_SILENCE, now).at(-1) ?? now - LONGEST_SILENCE;
      return { synced, uploaded: behaviour.lastUpload(synced, now) ?? synced };
    });
    return { ...rest, whole_to: null, clock_ms: realMs, real_ms: realMs, advanced_to: now, people };
  }
  const end = Math.max(...users.map(({ model: { zone } }) => activityEnd(zone, dayNumberOf(to))));
  const people = users.map(() => ({ synced: 0, uploaded: 0 }));
  return { ...rest, whole_to: to, clock_ms: end * 1000, real_ms: realMs, advanced_to: end, people };
}
