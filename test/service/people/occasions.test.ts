import { describe, expect, it } from 'vitest';
import type { Sample } from '../../../schema/fields.ts';
import { addDays, findDayNumber } from '../../../schema/instant.ts';
import { createPeople } from '../../../src/service/people/people.ts';
import { allOf, daysOf } from './conformity.ts';

const people = createPeople({ seed: 7, count: 3, from: '2025-01-01', to: '2025-12-31' });
const each = (resource: string) => people.persons.flatMap(({ userId }) => allOf(people, userId, resource));
const items = (document: Record<string, unknown>, key: string) => (document[key] as Sample | null | undefined)?.items;

describe('a year of three people has', () => {
  it('every type of sleep', () => {
    expect(new Set(each('sleep').map(({ type }) => type))).toEqual(new Set(['long_sleep', 'sleep', 'late_nap', 'rest', 'deleted']));
  });

  it('nights without the ring: no sleep, no heart rate, class 0', () => {
    for (const { userId } of people.persons) {
      const nights = new Set(allOf(people, userId, 'sleep').flatMap(({ type, day }) => (type === 'long_sleep' ? [day] : [])));
      const missing = daysOf(people).filter(day => !nights.has(day));
      expect(missing.length).toBeGreaterThan(0);
      const activity = allOf(people, userId, 'daily_activity');
      for (const day of missing) expect(activity.find(other => other.day === day)?.non_wear_time).toBeGreaterThan(3600);
    }
    const readiness = each('daily_readiness');
    expect(readiness.some(({ score }) => score === null)).toBe(true);
    expect(readiness.length).toBeLessThan(3 * 365);
  });

  it('times without the ring by day, and gaps in the heart rate', () => {
    expect(each('daily_activity').some(({ class_5_min: text }) => /[1-5]0+[1-5]/.test(String(text)))).toBe(true);
    const rows = people.heartRate(people.persons[0]!.userId, 0, 2e15);
    expect(rows.some((row, i) => i > 0 && row.timestamp_unix - rows[i - 1]!.timestamp_unix > 3_600_000)).toBe(true);
  });

  it('null samples', () => {
    expect(each('daily_activity').some(day => items(day, 'met')!.includes(null))).toBe(true);
    for (const key of ['heart_rate', 'hrv']) expect(each('sleep').some(sleep => items(sleep, key)?.includes(null))).toBe(true);
    expect(each('session').some(session => items(session, 'heart_rate')?.includes(null))).toBe(true);
    expect(each('session').some(session => session.heart_rate === null)).toBe(true);
    expect(each('daily_spo2').some(day => day.spo2_percentage === null)).toBe(true);
  });

  it('days of 23 and of 25 hours, and nights across them', () => {
    // ada stays in Berlin all the year; whoever flies has other days besides.
    const lengths = allOf(people, people.persons[0]!.userId, 'daily_activity').map(day => items(day, 'met')!.length);
    expect(new Set(lengths)).toEqual(new Set([1380, 1440, 1500]));
    const changes = each('sleep').filter(sleep => String(sleep.bedtime_start).slice(-6) !== String(sleep.bedtime_end).slice(-6));
    expect(new Set(changes.map(sleep => String(sleep.bedtime_end).slice(-6))).size).toBeGreaterThan(2);
    expect(each('sleep').some(sleep => String(sleep.bedtime_start).endsWith('+05:45'))).toBe(true);
  });

  it('a replaced ring, and no sleep of an unknown one', () => {
    let replaced = 0;
    for (const { userId } of people.persons) {
      const rings = people.ringConfigurations(userId).map(({ id }) => id);
      const worn = new Set(allOf(people, userId, 'sleep').flatMap(({ ring_id: id }) => (id ? [id] : [])));
      for (const id of worn) expect(rings).toContain(id);
      if (worn.size > 1) replaced++;
    }
    expect(replaced).toBeGreaterThan(0);
  });

  it('targets that were passed, and targets that were not', () => {
    const left = each('daily_activity').map(day => day.meters_to_target as number);
    expect(Math.min(...left)).toBeLessThan(0);
    expect(Math.max(...left)).toBeGreaterThan(0);
  });

  it('bedtimes before and after midnight, an estimate of VO2 max every one to two weeks, suggestions on most days', () => {
    const nights = each('sleep').filter(({ type }) => type === 'long_sleep');
    const before = nights.filter(night => String(night.bedtime_start).slice(0, 10) !== night.day);
    expect(before.length).toBeGreaterThan(0);
    expect(before.length).toBeLessThan(nights.length);
    for (const { userId } of people.persons) {
      const days = allOf(people, userId, 'vo2_max').map(({ day }) => findDayNumber(day as string)!);
      days.slice(1).forEach((day, i) => {
        expect(day - days[i]!).toBeGreaterThanOrEqual(7);
        expect(day - days[i]!).toBeLessThanOrEqual(14);
      });
    }
    expect(each('sleep_time').length).toBeGreaterThan(0.8 * 3 * 365);
    for (const { spo2_percentage: percentage } of each('daily_spo2') as { spo2_percentage?: { average: number } | null }[]) {
      if (percentage) expect(Math.abs(percentage.average - 96.5)).toBeLessThanOrEqual(2.5);
    }
  });
});

describe('what belongs together moves together', () => {
  const mean = (values: number[]) => values.reduce((a, b) => a + b, 0) / values.length;

  it('a night after a stressful day has a lower HRV and a higher resting heart rate', () => {
    const nightsAfter = (summary: string, key: string) =>
      people.persons.map(({ userId }) => {
        const nights = allOf(people, userId, 'sleep').filter(({ type }) => type === 'long_sleep');
        const days = allOf(people, userId, 'daily_stress').filter(({ day_summary }) => day_summary === summary);
        const next = days.flatMap(({ day }) => nights.filter(night => night.day === addDays(day as string, 1)));
        return mean(next.map(night => night[key] as number));
      });
    for (const [key, direction] of [
      ['average_hrv', -1],
      ['lowest_heart_rate', 1],
    ] as const) {
      const calm = nightsAfter('restored', key);
      nightsAfter('stressful', key).forEach((value, i) => {
        expect(direction * (value - calm[i]!)).toBeGreaterThan(0);
      });
    }
  });
});
