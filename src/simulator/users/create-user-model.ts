import { conditionOf } from './condition.ts';
import { measureBeats } from './heart-rate.ts';
import { memoize } from './memoize.ts';
import { measureMoments } from './moments.ts';
import { type Minutes, minutesOf, withNaps } from './movement.ts';
import { type Period, periodsOf } from './periods.ts';
import type { Person } from './person.ts';
import { planDay } from './plan.ts';
import { totalsOf } from './reports.ts';
import { bedTimes } from './schedule.ts';
import { createTravels } from './travel.ts';
import type { UserModel } from './user-model.ts';
import { overlaps, type Span } from './zone.ts';

/** Days kept of what is small, and of what is large. */
const SMALL = 500;
const LARGE = 12;

export function createUserModel(person: Person): UserModel {
  const travels = createTravels(person);
  const { zone, lagOn } = travels;
  const bedTimesOf = memoize(SMALL, day => bedTimes(person, travels, day));
  const planOf = memoize(SMALL, day => planDay(person, travels, day, bedTimesOf(day), bedTimesOf(day + 1)));
  const conditionOfDay = memoize(SMALL, day => conditionOf(person, day, { planOf, lagOn }));
  const periodsOfDay = memoize(LARGE, day => periodsOf(zone, day, bedTimesOf(day), { person, planOf, conditionOf: conditionOfDay }));
  const nightOf = memoize(SMALL, day => {
    const night = periodsOfDay(day).find(({ ordinal }) => ordinal === 0);
    if (!night) return null;
    const { asleep, efficiency, averageHrv } = totalsOf(night);
    return { asleep, efficiency, averageHrv };
  });
  const momentsOf = (day: number) => measureMoments(person, day, planOf(day), conditionOfDay(day));
  const periodsAround = (day: number) => [...periodsOfDay(day), ...periodsOfDay(day + 1)];
  const minutesOfDay = memoize(LARGE, day => {
    const unworn = [bedTimesOf(day).unworn, bedTimesOf(day + 1).unworn].filter((span): span is Span => span !== undefined);
    return minutesOf(person, zone, day, planOf(day), periodsAround(day), unworn);
  });
  const measure = (day: number, minutes: Minutes, naps: readonly Period[]) => {
    const periods = [...periodsAround(day), ...naps].filter(period => overlaps(period, minutes));
    const { stress } = planOf(day);
    return measureBeats(person, zone, day, { minutes, periods, moments: momentsOf(day), condition: conditionOfDay(day), stress });
  };
  const beatsOfDay = memoize(LARGE, day => measure(day, minutesOfDay(day), []));
  const minutesWith = (day: number, naps: readonly Period[]) => withNaps(person, minutesOfDay(day), naps);
  return {
    person,
    zone,
    bedTimesOf,
    planOf,
    conditionOf: conditionOfDay,
    periodsOf: periodsOfDay,
    nightOf,
    momentsOf,
    minutesOf: (day, naps = []) => (naps.length > 0 ? minutesWith(day, naps) : minutesOfDay(day)),
    beatsOf: (day, naps = []) => (naps.length > 0 ? measure(day, minutesWith(day, naps), naps) : beatsOfDay(day)),
  };
}
