import { illnessOn } from './illness.ts';
import { keyOf, type Person, weekday } from './person.ts';
import { clamp, Random } from './random.ts';
import type { Travels } from './travel.ts';
import type { Span } from './zone.ts';

const MINUTE = 60;
const HOUR = 3600;

/** When somebody lay in bed, whether or not the ring was there to see it. */
export interface BedTimes {
  night: Span;
  /** Set on a night without the ring: how long it lay elsewhere, in whole 5 minutes. */
  unworn: Span | undefined;
}

/** Whoever flies has packed and set an alarm. */
const BEFORE_FLIGHT = 8 * HOUR;

/**
 * The night that ends on the morning of a day. It depends on no other day, so that every day may ask for its neighbours. A body that
 * is ahead of the clock goes to bed earlier, one that is behind later; an ill one lies longer.
 */
export function bedTimes(person: Person, { zone, lagOn, flightOn }: Travels, day: number): BedTimes {
  const random = new Random(keyOf(person, day, 'bed times'));
  const freeMorning = weekday(day) >= 5;
  const late = random.chance(freeMorning ? 0.12 : 0.03) ? random.between(1.2, 2.4) * HOUR : 0;
  const lag = clamp(lagOn(day), -7, 7);
  const { severity } = illnessOn(person, day);
  const shift = -0.4 * lag * HOUR - 0.6 * severity * HOUR;
  const usual = person.bedtime + random.normal(freeMorning ? 40 * MINUTE : 0, person.irregularity) + late;
  const bed = clamp(usual + shift, -3 * HOUR, 2.9 * HOUR);
  const length = person.nightLength + (1.2 * severity - 0.12 * Math.abs(lag)) * HOUR;
  const alarm = person.bedtime + person.nightLength + random.normal(0, 14 * MINUTE) + 2 * severity * HOUR;
  const rested = bed + length + random.normal(freeMorning ? 25 * MINUTE : -5 * MINUTE, 32 * MINUTE);
  const latest = flightOn(day) === undefined ? bed + 10.2 * HOUR : BEFORE_FLIGHT;
  const wake = clamp(freeMorning ? rested : Math.min(rested, alarm), bed + 4.4 * HOUR, latest);
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
