import type { Condition } from './condition.ts';
import { keyOf, type Person } from './person.ts';
import type { Moment, Plan } from './plan.ts';
import { clamp, Random } from './random.ts';
import { overlaps } from './zone.ts';

/** Seconds between the samples of a session. */
export const SESSION_INTERVAL = 5;

/** A session with what the ring measured. */
export interface MeasuredMoment extends Moment {
  ordinal: number;
  mood: string | null;
  /** Undefined when the ring was not worn. */
  heartRate: (number | null)[] | undefined;
  hrv: (number | null)[] | undefined;
  motion: (number | null)[] | undefined;
}

/** The sessions of a day: the heart slows and its variability grows, more in quiet ones. */
export function measureMoments(person: Person, day: number, plan: Plan, condition: Condition): MeasuredMoment[] {
  return plan.moments.map((moment, ordinal) => {
    const random = new Random(keyOf(person, day, 'session', ordinal));
    const mood = random.chance(0.25) ? null : random.pick(['bad', 'worse', 'same', 'same', 'good', 'good', 'good', 'great']);
    if (plan.gaps.some(gap => overlaps(gap, moment))) {
      return { ...moment, ordinal, mood, heartRate: undefined, hrv: undefined, motion: undefined };
    }
    const count = Math.round((moment.end - moment.start) / SESSION_INTERVAL);
    const depth = moment.kind === 'body_status' ? 0 : random.between(2, 8);
    const start = condition.restingHeartRate + 11 + 9 * plan.stress + random.normal(0, 2);
    const breath = (moment.kind === 'breathing' ? 10 : 4.5) / SESSION_INTERVAL;
    const heartRate: (number | null)[] = [];
    const hrv: (number | null)[] = [];
    const motion: (number | null)[] = [];
    let wander = 0;
    for (let i = 0; i < count; i++) {
      const through = Math.min(1, i / Math.max(24, 0.6 * count));
      wander = 0.85 * wander + random.normal(0, 0.6);
      const swing = (moment.kind === 'breathing' ? 3 : 1) * Math.sin(i / breath);
      heartRate.push(random.chance(0.02) ? null : Math.round(clamp(start - depth * through + swing + wander, 38, 150)));
      hrv.push(random.chance(0.03) ? null : Math.round(clamp(condition.hrv * (0.75 + 0.3 * through) * random.normal(1, 0.1), 6, 180)));
      motion.push(random.chance(0.1) ? random.integer(1, 6) : 0);
    }
    return { ...moment, ordinal, mood, heartRate, hrv, motion };
  });
}
