import type { Condition } from './condition.ts';
import { keyOf, type Person } from './person.ts';
import { clamp, Random } from './random.ts';
import { AWAKE, DEEP, fiveMinutes, REM } from './stages.ts';

/** Heart rate and its variability, one item for each 5 minutes of a sleep. Null where the ring could not measure. */
export interface Pulse {
  heartRate: (number | null)[];
  hrv: (number | null)[];
}

/** What each phase adds to the heart rate, and does to its variability. */
const BEATS: Record<number, number> = { [DEEP]: -1, [REM]: 3.2, [AWAKE]: 6.5 };
const VARIABILITY: Record<number, number> = { [DEEP]: 1.12, [REM]: 0.86, [AWAKE]: 0.7 };

/** The pulse of a sleep. By day (`floor` above 0) the heart does not settle as deeply as at night. */
export function pulseOf(person: Person, day: number, ordinal: number, stages: Uint8Array, condition: Condition, floor: number): Pulse {
  const random = new Random(keyOf(person, day, 'pulse', ordinal));
  const blocks = fiveMinutes(stages);
  const heartRate: (number | null)[] = [];
  const hrv: (number | null)[] = [];
  const start = floor > 0 ? 0.5 : 9 + 5 * condition.settling;
  const loose = random.chance(0.07) ? random.integer(6, Math.max(6, blocks.length - 12)) : blocks.length;
  const looseEnd = loose + random.integer(3, 10);
  let wander = 0;
  let wanderHrv = 0;
  blocks.forEach((stage, i) => {
    const through = blocks.length > 1 ? i / (blocks.length - 1) : 0;
    // It falls until the heart has settled, early in a good night and late after a late meal, and rises a little before waking.
    const falling = clamp(1 - through / condition.settling, 0, 1) ** 1.4;
    const rising = clamp((through - 0.8) / 0.2, 0, 1) * 2.2;
    wander = 0.72 * wander + random.normal(0, 1);
    wanderHrv = 0.6 * wanderHrv + random.normal(0, 0.11);
    const beats = condition.restingHeartRate + 1.5 + floor + start * falling + rising + (BEATS[stage] ?? 0) + wander;
    const variability = condition.hrv * (VARIABILITY[stage] ?? 1) * (0.88 + 0.24 * through - 0.18 * falling) * (1 + wanderHrv);
    const missing = random.next();
    const lost = (i >= loose && i < looseEnd) || missing < (stage === AWAKE ? 0.22 : 0.006);
    heartRate.push(lost ? null : Math.round(clamp(beats, 38, 140)));
    hrv.push(lost || missing < 0.02 ? null : Math.round(clamp(variability, 6, 180)));
  });
  return { heartRate, hrv };
}
