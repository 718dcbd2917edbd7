import { formatDay } from '../../../../schema/instant.ts';
import type { WireDocument } from '../../../../schema/resource.ts';
import { keyOf } from '../person.ts';
import { clamp, drift, Random, round } from '../random.ts';
import { seasonOn } from '../season.ts';
import type { UserRecord } from '../user-record.ts';
import { omitSome } from './optional.ts';

/** Vessels change over months. */
const KNOT_DAYS = 120;

/** The daily_cardiovascular_age of a day, from the night that ends on it; none without the ring. */
export function dailyCardiovascularAge(record: UserRecord, day: number): WireDocument[] {
  const { person, bedTimesOf } = record;
  if (bedTimesOf(day).unworn || !record.knowsMorning(day)) return [];
  const random = new Random(keyOf(person, day, 'vascular age'));
  const slow = drift([person.seed, person.index, 'vessels'], day / KNOT_DAYS);
  const age = clamp(person.age + 11 * (0.55 - person.fitness) + 2.5 * slow - 1.5 * (seasonOn(person, day).form - 0.4), 18, 100);
  const document: WireDocument = {
    id: record.idOf('daily_cardiovascular_age', day),
    day: formatDay(day),
    pulse_wave_velocity: round(4.4 + 0.068 * age + random.normal(0, 0.06), 2),
    vascular_age: Math.round(age),
  };
  return [omitSome(random, document, ['pulse_wave_velocity', 'vascular_age'], 0.03)];
}
