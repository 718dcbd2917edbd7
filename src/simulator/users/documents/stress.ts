import { formatDay } from '../../../../schema/instant.ts';
import type { WireDocument } from '../../../../schema/resource.ts';
import { keyOf, type Person } from '../person.ts';
import type { Plan } from '../plan.ts';
import { clamp, Random, round } from '../random.ts';
import { mean } from '../reports.ts';
import { USUAL_HRV } from '../scores.ts';
import type { UserRecord } from '../user-record.ts';

/** Stress is judged in quarters of an hour. */
const QUARTER = 900;
const LONGEST = 9 * 3600;

/** The daily_stress of a day, or of the part of it that is there. A day on which the ring lay about for hours has no summary. */
export function dailyStress(record: UserRecord, day: number): WireDocument[] {
  const { person, planOf } = record;
  const uploaded = record.uploadedOf(day);
  const passed = wakingShare(record, day, uploaded);
  if (passed === 0) return [];
  const random = new Random(keyOf(person, day, 'daily stress'));
  if (random.chance(0.015)) return [];
  const plan = planOf(day);
  const { gaps, moments } = plan;
  const head = { id: record.idOf('daily_stress', day), day: formatDay(day) };
  const away = gaps.reduce((sum, gap) => sum + Math.max(0, Math.min(gap.end, uploaded) - gap.start), 0);
  if (away > 3 * 3600)
    return [random.chance(0.5) ? { ...head, day_summary: null, recovery_high: null, stress_high: null } : { ...head, day_summary: null }];
  const quarters = (hours: number) => round((Math.min(hours * 3600, LONGEST) * passed) / QUARTER) * QUARTER;
  const calm = moments.filter(({ end }) => end <= uploaded).length;
  const hours = hoursOf(person, day, plan);
  const high = quarters(hours.high);
  const recovery = quarters(hours.recovery + 0.5 * calm);
  const summary = high - recovery > 9000 ? 'stressful' : recovery - high > 5400 ? 'restored' : 'normal';
  return [{ ...head, day_summary: summary, recovery_high: recovery, stress_high: high }];
}

/** Hours of high stress and, but for quiet moments, of recovery in a whole day. */
function hoursOf(person: Person, day: number, { stress }: Plan): { high: number; recovery: number } {
  const random = new Random(keyOf(person, day, 'hours of stress'));
  const within = (hours: number) => clamp(hours, 0, LONGEST / 3600);
  return {
    high: within(11 * (stress - 0.18) + random.normal(0, 0.7)),
    recovery: within(5.5 * (0.52 - stress) + random.normal(0.4, 0.6)),
  };
}

/** How much of the waking hours of a day lies before a moment, 0 to 1. */
function wakingShare({ bedTimesOf }: UserRecord, day: number, moment: number): number {
  const [before, after] = [bedTimesOf(day), bedTimesOf(day + 1)];
  const start = (before.unworn ?? before.night).end;
  return clamp((moment - start) / ((after.unworn ?? after.night).start - start), 0, 1);
}

const LEVELS = [
  [80, 'exceptional'],
  [67, 'strong'],
  [54, 'solid'],
  [40, 'adequate'],
  [0, 'limited'],
] as const;

/** The daily_resilience of a day, from the stress and the nights of the past two weeks. */
export function dailyResilience(record: UserRecord, day: number): WireDocument[] {
  const { person, planOf, bedTimesOf, nightOf } = record;
  const random = new Random(keyOf(person, day, 'resilience'));
  if (bedTimesOf(day).unworn || !record.knowsMorning(day) || random.chance(0.02)) return [];
  // What is known of today in the morning is its night.
  const days = Array.from({ length: 14 }, (_, ago) => day - 1 - ago).map(each => hoursOf(person, each, planOf(each)));
  const nights = Array.from({ length: 14 }, (_, ago) => nightOf(day - ago)).filter(night => night !== null);
  const asleep = mean(nights.map(night => night.asleep)) / 3600;
  const vigour = mean(nights.map(night => night.averageHrv ?? USUAL_HRV * person.hrv)) / (USUAL_HRV * person.hrv);
  const part = (value: number) => round(clamp(value, 0, 100), 1);
  const contributors = {
    sleep_recovery: part(62 + 17 * (asleep - 6.6) + 110 * (vigour - 1)),
    daytime_recovery: part(34 + 20 * mean(days.map(({ recovery }) => recovery)) + 6 * person.fitness),
    stress: part(86 - 11 * mean(days.map(({ high }) => high)) + 9 * person.fitness),
  };
  const overall = mean(Object.values(contributors));
  const level = LEVELS.find(([from]) => overall >= from)![1];
  return [{ id: record.idOf('daily_resilience', day), day: formatDay(day), contributors, level }];
}
