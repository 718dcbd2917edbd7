import { itemAt } from '../../base/items.ts';
import type { Person } from './person.ts';
import { Random } from './random.ts';

/** How somebody trains in a week. 1 is usual. */
export interface Season {
  /** How many of the planned trainings take place. */
  frequency: number;
  /** How long they are. */
  volume: number;
  /** What the training so far has done for fitness, 0 to 1: it grows in a block and is lost in the pause after it. */
  form: number;
}

/** A block of training and the pause after it. */
const ROUND_WEEKS = 18;
/** Three weeks that build up and one to recover. */
const CYCLE = [
  { frequency: 1, volume: 0.9 },
  { frequency: 1.05, volume: 1.1 },
  { frequency: 1.12, volume: 1.3 },
  { frequency: 0.6, volume: 0.6 },
] as const;
const PAUSE = { frequency: 0.25, volume: 0.75 };

/** The season of a day. Weeks begin on Monday. */
export function seasonOn({ seed, index }: Person, day: number): Season {
  // Day −3 was a Monday.
  const monday = (day + 3) / 7 + 5 * index;
  const round = Math.floor(monday / ROUND_WEEKS);
  const through = monday - round * ROUND_WEEKS;
  const block = CYCLE.length * new Random([seed, index, round, 'season']).integer(2, 4);
  if (through >= block) return { ...PAUSE, form: (ROUND_WEEKS - through) / (ROUND_WEEKS - block) };
  return { ...itemAt(CYCLE, Math.floor(through) % CYCLE.length), form: through / block };
}
