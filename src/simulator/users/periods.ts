import type { Condition } from './condition.ts';
import { keyOf, type Person } from './person.ts';
import type { NapKind, Plan } from './plan.ts';
import { type Pulse, pulseOf } from './pulse.ts';
import { clamp, Random } from './random.ts';
import type { BedTimes } from './schedule.ts';
import { EPOCH, movements, sleepStages, withLeastSleep } from './stages.ts';
import { type Span, sleepDay, type Zone } from './zone.ts';

/** A sleep period as it comes in, before anything is edited at the service. */
export interface Period extends Span {
  kind: 'long_sleep' | NapKind;
  /** The user has moved its ends in the app: what was left out was spent awake. */
  moved: boolean;
  /** The local day it counts for. */
  day: number;
  /** 0 for the night, then the others of that day in their order. */
  ordinal: number;
  stages: Uint8Array;
  movement: Uint8Array;
  pulse: Pulse;
  breathRate: number;
}

interface Surroundings {
  person: Person;
  planOf(day: number): Plan;
  conditionOf(day: number): Condition;
}

/** A sleep as the ring sees it. */
export function recordPeriod(
  { person, planOf, conditionOf }: Surroundings,
  { start, end }: Span,
  { kind, day, ordinal, moved = false }: Pick<Period, 'kind' | 'day' | 'ordinal'> & { moved?: boolean },
): Period {
  const random = new Random(keyOf(person, day, 'stages', ordinal));
  const { stress, indulgence } = planOf(day - 1);
  const condition = conditionOf(day);
  const unrest = clamp(0.55 * stress + 0.4 * indulgence + condition.unrest + random.normal(0, 0.16), 0, 1);
  const sleeping = sleepStages(random, Math.round((end - start) / EPOCH), unrest);
  const stages = kind === 'sleep' || kind === 'late_nap' ? withLeastSleep(sleeping) : sleeping;
  const floor = kind === 'long_sleep' ? 0 : kind === 'rest' ? 9 : 5;
  const pulse = pulseOf(person, day, ordinal, stages, condition, floor);
  const breathRate = person.breathRate + condition.breath + random.normal(0, 0.25);
  return { start, end, kind, moved, day, ordinal, stages, movement: movements(random, stages), pulse, breathRate };
}

/** The sleep periods that count for a day: the night, the naps since 6 p.m. of the day before, and what was taken for one. */
export function periodsOf(zone: Zone, day: number, { night, unworn }: BedTimes, surroundings: Surroundings): Period[] {
  const { planOf } = surroundings;
  const naps = [...planOf(day - 1).naps, ...planOf(day).naps].filter(nap => sleepDay(zone, nap.end) === day);
  const periods = naps.map((nap, i) => recordPeriod(surroundings, nap, { kind: nap.kind, day, ordinal: i + 1 }));
  if (!unworn) {
    const span = moveEnds(surroundings.person, day, night);
    periods.unshift(recordPeriod(surroundings, span, { kind: 'long_sleep', day, ordinal: 0, moved: span !== night }));
  }
  return periods;
}

/** Now and then somebody says in the app that they went to bed later than the ring thought, or rose earlier. */
function moveEnds(person: Person, day: number, night: Span): Span {
  const random = new Random(keyOf(person, day, 'moved ends'));
  if (!random.chance(0.05)) return night;
  return { start: night.start + 300 * random.integer(1, 4), end: night.end - EPOCH * random.integer(0, 20) };
}
