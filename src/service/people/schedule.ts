import { keyOf, type Person, weekday } from './person.ts';
import { clamp, Random } from './random.ts';
import type { Span, Zone } from './zone.ts';

const MINUTE = 60;
const HOUR = 3600;

/** When somebody lay in bed, whether or not the ring was there to see it. */
export interface BedTimes {
  night: Span;
  /** Set on a night without the ring: how long it lay elsewhere, in whole 5 minutes. */
  unworn: Span | undefined;
}

/** The night that ends on the morning of a day. It depends on nothing else, so that every day may ask for its neighbours. */
export function bedTimes(person: Person, zone: Zone, day: number): BedTimes {
  const random = new Random(keyOf(person, day, 'bed times'));
  const freeMorning = weekday(day) >= 5;
  const late = random.chance(freeMorning ? 0.12 : 0.03) ? random.between(1.2, 2.4) * HOUR : 0;
  const bed = clamp(person.bedtime + random.normal(freeMorning ? 40 * MINUTE : 0, person.irregularity) + late, -3 * HOUR, 2.9 * HOUR);
  const alarm = person.bedtime + person.nightLength + random.normal(0, 14 * MINUTE);
  const rested = bed + person.nightLength + random.normal(freeMorning ? 25 * MINUTE : -5 * MINUTE, 32 * MINUTE);
  const wake = clamp(freeMorning ? rested : Math.min(rested, alarm), bed + 4.4 * HOUR, bed + 10.2 * HOUR);
  const night = { start: to30(zone.at(day, Math.round(bed))), end: to30(zone.at(day, Math.round(wake))) };
  const unworn = random.chance(0.022)
    ? {
        start: Math.floor((night.start - random.between(25, 110) * MINUTE) / 300) * 300,
        end: Math.ceil((night.end + random.between(15, 90) * MINUTE) / 300) * 300,
      }
    : undefined;
  return { night, unworn };
}

/** Ends of sleeps lie on the 30 seconds of their strings. */
export const to30 = (moment: number) => Math.round(moment / 30) * 30;
