import { keyOf, type Person } from './person.ts';
import type { Plan } from './plan.ts';
import { clamp, drift, Random } from './random.ts';

/** How a body goes into a night. */
export interface Condition {
  restingHeartRate: number;
  hrv: number;
  /** How far into the night the heart settles, 0 to 1. */
  settling: number;
  /** Deviation of the skin temperature from the usual, °C. */
  temperature: number;
  /** Training of the past five days, fading; 1 is a solid hour. */
  fatigue: number;
}

/** The condition in the night that ends on a day, from the days before it. */
export function conditionOf(person: Person, day: number, planOf: (day: number) => Plan): Condition {
  const random = new Random(keyOf(person, day, 'condition'));
  const yesterday = planOf(day - 1);
  let fatigue = 0;
  let weight = 1;
  for (let ago = 1; ago <= 5; ago++, weight *= 0.55) fatigue += weight * (planOf(day - ago).training?.load ?? 0);
  const stress = 0.65 * yesterday.stress + 0.35 * planOf(day - 2).stress - 0.38;
  const form = drift([person.seed, person.index, 'form'], day / 45);
  const load = yesterday.training?.load ?? 0;
  return {
    restingHeartRate: person.restingHeartRate - 1.6 * form + 4.5 * stress + 1.1 * load + 4.5 * yesterday.indulgence + random.normal(0, 0.9),
    hrv: person.hrv * clamp(1 + 0.09 * form - 0.36 * stress - 0.09 * load - 0.22 * yesterday.indulgence + random.normal(0, 0.07), 0.4, 1.6),
    settling: clamp(0.35 + 0.3 * yesterday.indulgence + 0.12 * load + random.normal(0, 0.12), 0.1, 0.95),
    temperature: random.normal(0, 0.14) + 0.3 * yesterday.indulgence + monthly(person, day),
    fatigue,
  };
}

/** Skin temperature is higher in the second half of the monthly cycle. */
function monthly({ cycleDays, index }: Person, day: number): number {
  if (cycleDays === undefined) return 0;
  return 0.2 * Math.sin((2 * Math.PI * (day + 7 * index)) / cycleDays);
}
