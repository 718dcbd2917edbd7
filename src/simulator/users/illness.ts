import type { Person } from './person.ts';
import { Random } from './random.ts';

/** How ill somebody is. */
export interface Illness {
  /** 0 to 1. */
  severity: number;
  /** What it adds to the temperature of the skin, °C. */
  temperature: number;
}

const HEALTHY: Illness = { severity: 0, temperature: 0 };
/** An illness is drawn once for so many days, and ends within them. */
const ROUND_DAYS = 80;
const LONGEST = 8;

/** The illness of a day and of the night that ends on it: it rises for a day or two and falls off until its last day. */
export function illnessOn({ seed, index }: Person, day: number): Illness {
  const round = Math.floor((day + 13 * index) / ROUND_DAYS);
  const random = new Random([seed, index, round, 'illness']);
  if (!random.chance(0.8)) return HEALTHY;
  const length = random.integer(3, LONGEST);
  const nth = day + 13 * index - round * ROUND_DAYS - random.integer(0, ROUND_DAYS - LONGEST);
  if (nth < 0 || nth >= length) return HEALTHY;
  const worst = length > 3 ? random.integer(1, 2) : 1;
  const share = nth <= worst ? (nth + 1) / (worst + 1) : (length - nth) / (length - worst);
  const fever = random.between(0.5, 1.8);
  return { severity: share * (0.45 + 0.3 * fever), temperature: share * fever };
}

/** Whoever is as ill as this rests. */
const FELT = 0.35;

/** The days of a rest mode: from the first of an illness that is felt to its last one. */
export interface Rest {
  first: number;
  last: number;
}

/** The rest mode of the illness that a day belongs to; undefined where there is none, or none that is felt. */
export function restAround(person: Person, day: number): Rest | undefined {
  const isIll = (day: number) => illnessOn(person, day).severity > 0;
  if (!isIll(day)) return undefined;
  let [first, last] = [day, day];
  while (isIll(first - 1)) first--;
  while (isIll(last + 1)) last++;
  while (first <= last && illnessOn(person, first).severity < FELT) first++;
  return first <= last ? { first, last } : undefined;
}
