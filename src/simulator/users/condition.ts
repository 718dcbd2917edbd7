import { illnessOn } from './illness.ts';
import { keyOf, type Person } from './person.ts';
import { type Plan, usualStress } from './plan.ts';
import { clamp, drift, Random } from './random.ts';
import { seasonOn } from './season.ts';

/** How a body goes into a night. */
export interface Condition {
  restingHeartRate: number;
  hrv: number;
  /** How far into the night the heart settles, 0 to 1. */
  settling: number;
  /** Deviation of the skin temperature from the usual, °C. */
  temperature: number;
  /** Training of the past days, fading; 1 is a solid hour. */
  fatigue: number;
  /** How badly an illness, or a body by another clock, sleeps; 0 to 1. */
  unrest: number;
  /** Breaths a minute beyond the usual. */
  breath: number;
}

/** So many days of stress wear somebody down. */
const WEEK = 7;

/** The condition in the night that ends on a day, from the days before it. */
export function conditionOf(
  person: Person,
  day: number,
  { planOf, lagOn }: { planOf(day: number): Plan; lagOn(day: number): number },
): Condition {
  const random = new Random(keyOf(person, day, 'condition'));
  const yesterday = planOf(day - 1);
  let fatigue = 0;
  let week = 0;
  let weight = 1;
  for (let ago = 1; ago <= WEEK; ago++, weight *= 0.55) {
    const plan = planOf(day - ago);
    fatigue += weight * (plan.training?.load ?? 0);
    week += plan.stress / WEEK;
  }
  const usual = usualStress(person);
  const stress = 0.65 * yesterday.stress + 0.35 * planOf(day - 2).stress - usual;
  const strain = week - usual;
  const form = 0.7 * drift([person.seed, person.index, 'form'], day / 45) + 1.6 * (seasonOn(person, day).form - 0.4);
  const load = yesterday.training?.load ?? 0;
  const tired = Math.max(0, fatigue - 1);
  const lag = Math.min(8, Math.abs(lagOn(day)));
  const { severity, temperature } = illnessOn(person, day);
  return {
    restingHeartRate:
      person.restingHeartRate -
      1.6 * form +
      3.4 * stress +
      4 * strain +
      1.1 * load +
      1.6 * tired +
      4.5 * yesterday.indulgence +
      0.5 * lag +
      9 * severity +
      random.normal(0, 0.9),
    hrv:
      person.hrv *
      clamp(
        1 +
          0.06 * form -
          0.26 * stress -
          0.36 * strain -
          0.06 * load -
          0.06 * tired -
          0.22 * yesterday.indulgence -
          0.012 * lag -
          0.32 * severity +
          random.normal(0, 0.07),
        0.4,
        1.6,
      ),
    settling: clamp(0.35 + 0.3 * yesterday.indulgence + 0.12 * load + 0.15 * severity + random.normal(0, 0.12), 0.1, 0.95),
    temperature: random.normal(0, 0.14) + 0.3 * yesterday.indulgence + monthly(person, day) + temperature,
    fatigue,
    unrest: 0.35 * severity + 0.06 * lag,
    breath: 0.6 * yesterday.indulgence + 2 * severity,
  };
}

/** Skin temperature is higher in the second half of the monthly cycle. */
function monthly({ cycleDays, index }: Person, day: number): number {
  if (cycleDays === undefined) return 0;
  return 0.2 * Math.sin((2 * Math.PI * (day + 7 * index)) / cycleDays);
}
