import type { Condition } from './condition.ts';
import type { Beats } from './heart-rate.ts';
import type { MeasuredMoment } from './moments.ts';
import type { Minutes } from './movement.ts';
import type { Period } from './periods.ts';
import type { Person } from './person.ts';
import type { Plan } from './plan.ts';
import type { BedTimes } from './schedule.ts';
import type { Zone } from './zone.ts';

/**
 * What a user does and a ring measures of it, day by day and on demand. All of it is a pure function of the person and the day;
 * what is kept is only for speed. No edit changes it.
 */
export interface UserModel {
  person: Person;
  zone: Zone;
  bedTimesOf(day: number): BedTimes;
  planOf(day: number): Plan;
  conditionOf(day: number): Condition;
  /** The sleep periods that count for a day. */
  periodsOf(day: number): Period[];
  /** What later days remember of the night that ends on a day; null without the ring. */
  nightOf(day: number): NightFigures | null;
  momentsOf(day: number): MeasuredMoment[];
  /** From 4 a.m. to 4 a.m. of the next day, with what was napped besides the plan. */
  minutesOf(day: number, naps?: readonly Period[]): Minutes;
  beatsOf(day: number, naps?: readonly Period[]): Beats;
}

/** A night before anybody edited it. */
export interface NightFigures {
  /** Seconds. */
  asleep: number;
  /** Percent. */
  efficiency: number;
  averageHrv: number | undefined;
}
