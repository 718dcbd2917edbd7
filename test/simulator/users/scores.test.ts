import { describe, expect, it } from 'vitest';
import type { WireDocument } from '../../../schema/resource.ts';
import { allOf, yearOf } from './conformity.ts';

const people = yearOf(4);
const documentsOf = (userId: string, resource: string) => allOf(people, userId, resource);
const mean = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / values.length;
const contributorsOf = (document: WireDocument) => document.contributors as Record<string, number | null>;

/** Each contributor with its weight. */
const WEIGHTS: Record<string, Record<string, number>> = {
  daily_sleep: { total_sleep: 35, restfulness: 15, rem_sleep: 12, deep_sleep: 12, efficiency: 10, latency: 8, timing: 8 },
  daily_readiness: {
    previous_night: 18,
    hrv_balance: 15,
    resting_heart_rate: 14,
    activity_balance: 10,
    body_temperature: 10,
    recovery_index: 10,
    sleep_balance: 10,
    previous_day_activity: 8,
    sleep_regularity: 5,
  },
  daily_activity: {
    meet_daily_targets: 25,
    stay_active: 20,
    training_frequency: 15,
    training_volume: 15,
    recovery_time: 13,
    move_every_hour: 12,
  },
};

describe('a score is the mean of its contributors by their weights', () => {
  it('ada’s night of 12 March 2025', () => {
    const [document] = people.documents(people.persons[0]!.userId, 'daily_sleep', '2025-03-12');
    expect(document!.contributors).toEqual({
      deep_sleep: 79,
      efficiency: 86,
      latency: 84,
      rem_sleep: 69,
      restfulness: 75,
      timing: 99,
      total_sleep: 60,
    });
    // (35 × 60 + 15 × 75 + 12 × 69 + 12 × 79 + 10 × 86 + 8 × 84 + 8 × 99) ÷ 100 = 73.25
    expect(document!.score).toBe(73);
  });

  it.each(Object.keys(WEIGHTS))('every %s that has all of them', resource => {
    let count = 0;
    for (const { userId } of people.persons) {
      for (const document of documentsOf(userId, resource)) {
        const entries = Object.entries(WEIGHTS[resource]!).map(([key, weight]) => ({ value: contributorsOf(document)[key], weight }));
        if (typeof document.score !== 'number' || entries.some(({ value }) => typeof value !== 'number')) continue;
        const total = entries.reduce((sum, { value, weight }) => sum + value! * weight, 0);
        expect(document.score).toBe(Math.round(total / entries.reduce((sum, { weight }) => sum + weight, 0)));
        count++;
      }
    }
    expect(count).toBeGreaterThan(1200);
  });
});

describe('contributors follow from figures that anybody can read', () => {
  const byDay = (userId: string, resource: string) =>
    new Map(
      documentsOf(userId, resource).flatMap(each => (each.type === undefined || each.type === 'long_sleep' ? [[each.day, each]] : [])),
    );

  /** What a contributor is in the lowest and in the highest quarter of days by a figure. */
  function quarters(figures: readonly { figure: unknown; contributor: unknown }[]): [number, number] {
    const known = figures.filter(
      (each): each is { figure: number; contributor: number } => typeof each.figure === 'number' && typeof each.contributor === 'number',
    );
    const sorted = [...known].sort((a, b) => a.figure - b.figure).map(({ contributor }) => contributor);
    const quarter = Math.floor(sorted.length / 4);
    expect(quarter).toBeGreaterThan(70);
    return [mean(sorted.slice(0, quarter)), mean(sorted.slice(-quarter))];
  }

  it('of sleep: the night’s own', () => {
    for (const { userId } of people.persons) {
      const nights = byDay(userId, 'sleep');
      for (const [contributor, key] of [
        ['total_sleep', 'total_sleep_duration'],
        ['efficiency', 'efficiency'],
        ['deep_sleep', 'deep_sleep_duration'],
        ['rem_sleep', 'rem_sleep_duration'],
      ] as const) {
        const scores = documentsOf(userId, 'daily_sleep').map(document => ({
          figure: nights.get(document.day)?.[key],
          contributor: contributorsOf(document)[contributor],
        }));
        const [low, high] = quarters(scores);
        expect(high, contributor).toBeGreaterThan(low + 10);
      }
    }
  });

  it('of readiness: last night’s score, heart rate and temperature, and the variability of three nights', () => {
    for (const { userId } of people.persons) {
      const [sleeps, nights] = [byDay(userId, 'daily_sleep'), byDay(userId, 'sleep')];
      const ready = documentsOf(userId, 'daily_readiness').filter(({ score }) => typeof score === 'number');
      for (const document of ready) {
        expect(contributorsOf(document).previous_night).toBe(sleeps.get(document.day)!.score);
        const deviation = document.temperature_deviation;
        if (deviation === 0.25 || deviation === -0.25) expect(contributorsOf(document).body_temperature).toBe(94);
      }
      const by = (contributor: string, figure: (document: WireDocument, i: number) => unknown) =>
        quarters(ready.map((document, i) => ({ figure: figure(document, i), contributor: contributorsOf(document)[contributor] })));
      const [slow, fast] = by('resting_heart_rate', ({ day }) => nights.get(day)!.lowest_heart_rate);
      expect(slow).toBeGreaterThan(fast + 10);
      const lately = (_: WireDocument, i: number) =>
        mean(ready.slice(Math.max(0, i - 2), i + 1).flatMap(({ day }) => (nights.get(day)!.average_hrv as number | null) ?? []));
      const [even, varied] = by('hrv_balance', lately);
      expect(varied).toBeGreaterThan(even + 20);
    }
  });

  it('of resilience: the stress and the nights of two weeks, and its level is that of their mean', () => {
    const levels = { limited: 0, adequate: 40, solid: 54, strong: 67, exceptional: 80 };
    for (const { userId } of people.persons) {
      const stress = byDay(userId, 'daily_stress');
      const figures = documentsOf(userId, 'daily_resilience').map((document, i, all) => {
        const parts = contributorsOf(document) as Record<'stress' | 'daytime_recovery' | 'sleep_recovery', number>;
        const overall = (parts.stress + parts.daytime_recovery + parts.sleep_recovery) / 3;
        const level = Object.entries(levels).findLast(([, from]) => overall >= from)![0];
        expect(document.level).toBe(level);
        const before = all.slice(Math.max(0, i - 14), i).flatMap(({ day }) => (stress.get(day)?.stress_high as number | null) ?? []);
        return { figure: before.length > 10 ? mean(before) : undefined, contributor: parts.stress };
      });
      const [calm, stressed] = quarters(figures);
      expect(calm).toBeGreaterThan(stressed + 8);
    }
  });

  it('of a day of stress: the summary is that of its seconds', () => {
    for (const { userId } of people.persons) {
      for (const { day_summary: summary, stress_high: high, recovery_high: recovery } of documentsOf(userId, 'daily_stress')) {
        if (typeof high !== 'number' || typeof recovery !== 'number') continue;
        expect(summary).toBe(high > recovery + 9000 ? 'stressful' : recovery > high + 5400 ? 'restored' : 'normal');
      }
    }
  });
});

it('in weeks with more stress the variability of the heart rate falls, for everybody', () => {
  for (const { userId } of people.persons) {
    const nights = new Map(
      documentsOf(userId, 'sleep').flatMap(({ type, day, average_hrv: hrv }) =>
        type === 'long_sleep' && typeof hrv === 'number' ? [[day as string, hrv]] : [],
      ),
    );
    const stress = documentsOf(userId, 'daily_stress');
    const weeks: { high: number; hrv: number }[] = [];
    for (let first = 0; first + 7 <= stress.length; first += 7) {
      const week = stress.slice(first, first + 7);
      const high = week.flatMap(({ stress_high: seconds }) => (typeof seconds === 'number' ? [seconds] : []));
      const hrv = week.flatMap(({ day }) => nights.get(day as string) ?? []);
      if (high.length > 3 && hrv.length > 3) weeks.push({ high: mean(high), hrv: mean(hrv) });
    }
    expect(weeks.length).toBeGreaterThan(45);
    const sorted = weeks.sort((a, b) => a.high - b.high).map(({ hrv }) => hrv);
    const third = Math.floor(sorted.length / 3);
    expect(mean(sorted.slice(-third))).toBeLessThan(0.95 * mean(sorted.slice(0, third)));
  }
});
