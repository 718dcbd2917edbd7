import { randomBytes } from 'node:crypto';
import { findDayNumber } from '../../schema/instant.ts';
import type { Habits } from './habits.ts';
import type { KeptLife } from './kept-life.ts';
import { activityEnd } from './users/movement.ts';
import type { Life } from './users/recorded-life.ts';
import { DAY } from './users/zone.ts';

/** Who lives in a sandbox. */
export interface Inhabitant {
  life: Life;
  habits: Habits;
}

/** How far back a first start looks for somebody's last sync. */
const LONGEST_SILENCE = 15 * DAY;

/**
 * Life from its first moment: now, with what has synced by now; or with a last day, the end of that day for everybody (an activity lasts
 * 24 hours from 4 a.m.), with all of it and nothing after it. Of a life before it, what was edited and what is not told of yet stay.
 */
export function beginLife(
  inhabitants: readonly Inhabitant[],
  to: string | undefined,
  realMs: number,
  before: KeptLife | undefined,
): KeptLife {
  const seed = inhabitants[0]!.life.person.seed;
  const { name = randomBytes(4).toString('hex'), next_event = 1, edits = [], outbox = [] } = before ?? {};
  const rest = { format: 1, seed, name, next_event, edits, outbox } as const;
  if (to === undefined) {
    const now = Math.floor(realMs / 1000);
    const people = inhabitants.map(({ habits }) => {
      const synced = habits.syncs(now - LONGEST_SILENCE, now).at(-1) ?? now - LONGEST_SILENCE;
      return { synced, uploaded: habits.lastUpload(synced, now) ?? synced };
    });
    return { ...rest, whole_to: null, clock_ms: realMs, real_ms: realMs, lived_to: now, people };
  }
  const end = Math.max(...inhabitants.map(({ life: { zone } }) => activityEnd(zone, findDayNumber(to)!)));
  const people = inhabitants.map(() => ({ synced: 0, uploaded: 0 }));
  return { ...rest, whole_to: to, clock_ms: end * 1000, real_ms: realMs, lived_to: end, people };
}
