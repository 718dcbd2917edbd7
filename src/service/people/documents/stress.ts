import { formatDay } from '../../../../schema/instant.ts';
import type { WireDocument } from '../../../../schema/resource.ts';
import type { Diary } from '../diary.ts';
import { keyOf } from '../person.ts';
import { clamp, Random, round } from '../random.ts';
import { mean } from '../reports.ts';

/** Stress is judged in quarters of an hour. */
const QUARTER = 900;
const LONGEST = 9 * 3600;

/** The daily_stress of a day, or of the part of it that is there. A day on which the ring lay about for hours has no summary. */
export function dailyStress(diary: Diary, day: number): WireDocument[] {
  const { person, planOf } = diary;
  const uploaded = diary.uploadedOf(day);
  const passed = wakingShare(diary, day, uploaded);
  if (passed === 0) return [];
  const random = new Random(keyOf(person, day, 'daily stress'));
  if (random.chance(0.015)) return [];
  const { stress, gaps, moments } = planOf(day);
  const head = { id: diary.idOf('daily_stress', day), day: formatDay(day) };
  const away = gaps.reduce((sum, gap) => sum + Math.max(0, Math.min(gap.end, uploaded) - gap.start), 0);
  if (away > 3 * 3600)
    return [random.chance(0.5) ? { ...head, day_summary: null, recovery_high: null, stress_high: null } : { ...head, day_summary: null }];
  const quarters = (hours: number) => round((clamp(hours, 0, LONGEST / 3600) * passed * 3600) / QUARTER) * QUARTER;
  const calm = moments.filter(({ end }) => end <= uploaded).length;
  const high = quarters(11 * (stress - 0.18) + random.normal(0, 0.7));
  const recovery = quarters(5.5 * (0.52 - stress) + 0.5 * calm + random.normal(0.4, 0.6));
  const summary = high - recovery > 9000 ? 'stressful' : recovery - high > 5400 ? 'restored' : 'normal';
  return [{ ...head, day_summary: summary, recovery_high: recovery, stress_high: high }];
}

/** How much of the waking hours of a day lies before a moment, 0 to 1. */
function wakingShare({ bedTimesOf }: Diary, day: number, moment: number): number {
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

/** The daily_resilience of a day, from the past two weeks. */
export function dailyResilience(diary: Diary, day: number): WireDocument[] {
  const { person, planOf, bedTimesOf, conditionOf } = diary;
  const random = new Random(keyOf(person, day, 'resilience'));
  if (bedTimesOf(day).unworn || !diary.knowsMorning(day) || random.chance(0.02)) return [];
  const days = Array.from({ length: 14 }, (_, ago) => day - ago);
  const stress = mean(days.map(each => planOf(each).stress));
  const hours = mean(days.map(each => bedTimesOf(each).night).map(({ start, end }) => end - start)) / 3600;
  const vigour = mean(days.map(each => conditionOf(each).hrv)) / person.hrv;
  const part = (value: number) => round(clamp(value, 0, 100), 1);
  const contributors = {
    sleep_recovery: part(62 + 17 * (hours - 7.5) + 90 * (vigour - 1) + random.normal(0, 1)),
    daytime_recovery: part(96 - 100 * stress + 6 * person.fitness + random.normal(0, 1)),
    stress: part(100 - 105 * stress + 9 * person.fitness + random.normal(0, 1)),
  };
  const overall = mean(Object.values(contributors));
  const level = LEVELS.find(([from]) => overall >= from)![1];
  return [{ id: diary.idOf('daily_resilience', day), day: formatDay(day), contributors, level }];
}
