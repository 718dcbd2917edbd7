import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { webhookEvent } from '../../schema/webhook.ts';
import { messageOf, RingneckError } from '../base/errors.ts';
import { writeFileAtomically } from '../base/files.ts';
import { editSchema } from './edit.ts';

/** Life as it is kept: what is visible, what was edited and what is still to be told change together, in one write. */
const keptLife = z.object({
  format: z.literal(1),
  seed: z.int(),
  /** Up to this day everything was there from the beginning; null: life began with the calendar. */
  whole_to: z.string().nullable(),
  /** Where the clock stood, and when that was; milliseconds. */
  clock_ms: z.number(),
  real_ms: z.number(),
  /** Up to this moment, in seconds, everything that was due has happened. */
  lived_to: z.number(),
  /** What the names of its events begin with, and the number of the next: none ever has another's name, in another life neither. */
  name: z.string().regex(/^[0-9a-f]{8}$/),
  next_event: z.int(),
  /** By the people's indexes. `lived_to` is there where somebody is further than everybody. */
  people: z.array(z.object({ synced: z.number(), uploaded: z.number(), lived_to: z.number().optional() })),
  edits: z.array(editSchema),
  /** Events that are perhaps not told of yet. */
  outbox: z.array(z.object({ eventId: z.string(), event: webhookEvent })),
});
export type KeptLife = z.infer<typeof keptLife>;

/** What a file holds; undefined when there is none. Throws when it is the life of others. */
export function findKeptLife(path: string, { seed, count }: { seed: number; count: number }): KeptLife | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
  let life: KeptLife;
  try {
    life = keptLife.parse(JSON.parse(text));
  } catch (error) {
    throw new RingneckError(`${path} is no life of this program; restore it or remove it to begin anew (${messageOf(error)})`);
  }
  if (life.seed === seed && life.people.length === count) return life;
  throw new RingneckError(
    `${path} is the life of ${life.people.length} people of seed ${life.seed}, not of ${count} of seed ${seed}; remove it to begin anew`,
  );
}

export function keepLife(path: string, life: KeptLife): void {
  writeFileAtomically(path, `${JSON.stringify(life)}\n`);
}
