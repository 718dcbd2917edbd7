import { describe, expect, it } from 'vitest';
import type { Sample } from '../../../schema/fields.ts';
import { findInstant } from '../../../schema/instant.ts';
import { allOf, yearOf } from './conformity.ts';

const people = yearOf(3);
const days = people.persons.flatMap(({ userId }) => allOf(people, userId, 'daily_activity'));
const classed = days.filter(day => day.class_5_min);
const TIMES = [
  'non_wear_time',
  'resting_time',
  'sedentary_time',
  'low_activity_time',
  'medium_activity_time',
  'high_activity_time',
] as const;
const metOf = (day: Record<string, unknown>) => (day.met as Sample).items;
const sum = (items: readonly (number | null)[]) => items.reduce<number>((total, item) => total + (item ?? 0), 0);

describe('a day of activity', () => {
  it('is 24 hours from 4 a.m. local time, a sample for each of 1,440 minutes, whatever the clocks do', () => {
    for (const day of days) {
      const { offset, micros } = findInstant(day.timestamp as string)!;
      expect(new Date(micros / 1000 + offset * 1000).toISOString()).toBe(`${day.day}T04:00:00.000Z`);
      expect(day.met).toMatchObject({ interval: 60, timestamp: day.timestamp });
      expect(metOf(day)).toHaveLength(1440);
      expect(metOf(day).every(item => item === null || item === Math.round(item * 10) / 10)).toBe(true);
    }
  });

  it('tells a minute that two days hold alike', () => {
    let shared = 0;
    for (const { userId } of people.persons) {
      const own = allOf(people, userId, 'daily_activity');
      own.slice(1).forEach((day, i) => {
        const [start, next] = [own[i]!, day].map(each => findInstant(each.timestamp as string)!.micros / 6e7);
        const overlap = metOf(own[i]!).slice(next! - start!);
        expect(overlap).toEqual(metOf(day).slice(0, overlap.length));
        shared += overlap.length;
      });
    }
    // Summer time and flights to the east.
    expect(shared).toBeGreaterThan(600);
  });

  it('has times that count its classes', () => {
    for (const day of classed) {
      const classes = day.class_5_min as string;
      expect(classes).toMatch(/^[0-5]+$/);
      expect(classes).toHaveLength(288);
      TIMES.forEach((key, i) => {
        expect(day[key]).toBe((classes.split(String(i)).length - 1) * 300);
      });
    }
    for (const day of days) expect(sum(TIMES.map(key => day[key] as number))).toBe(86_400);
  });

  it('has classes in the order of their MET, and MET minutes that add up', () => {
    const ranges = Array.from({ length: 6 }, () => [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY] as [number, number]);
    const keys = ['sedentary_met_minutes', 'low_activity_met_minutes', 'medium_activity_met_minutes', 'high_activity_met_minutes'];
    for (const day of classed) {
      const minutes = [0, 0, 0, 0, 0, 0];
      [...(day.class_5_min as string)].forEach((digit, block) => {
        const total = sum(metOf(day).slice(block * 5, block * 5 + 5));
        const range = ranges[Number(digit)]!;
        range[0] = Math.min(range[0], Math.round(total * 10));
        range[1] = Math.max(range[1], Math.round(total * 10));
        minutes[Number(digit)]! += total;
      });
      keys.forEach((key, i) => {
        expect(Math.abs((day[key] as number) - minutes[i + 2]!)).toBeLessThanOrEqual(0.5001);
      });
    }
    ranges.slice(1).forEach((range, i) => {
      expect(range[0]).toBeGreaterThan(ranges[i]![1]);
    });
  });

  it('has totals that follow its MET', () => {
    for (const day of days) {
      const known = metOf(day).filter(item => item !== null);
      expect(day.average_met_minutes).toBeCloseTo(sum(known) / known.length, 4);
      expect((day.target_meters as number) - (day.equivalent_walking_distance as number)).toBe(day.meters_to_target);
      expect(day.total_calories as number).toBeGreaterThan(day.active_calories as number);
    }
    const byEffort = [...days].sort((a, b) => (a.average_met_minutes as number) - (b.average_met_minutes as number));
    const mean = (part: typeof days, key: string) => sum(part.map(day => day[key] as number)) / part.length;
    for (const key of ['steps', 'active_calories', 'equivalent_walking_distance']) {
      expect(mean(byEffort.slice(-200), key)).toBeGreaterThan(mean(byEffort.slice(0, 200), key));
    }
  });

  it('rests while it sleeps', () => {
    for (const { userId } of people.persons) {
      const byDay = allOf(people, userId, 'daily_activity').filter(day => day.class_5_min);
      for (const night of allOf(people, userId, 'sleep').filter(({ type }) => type === 'long_sleep')) {
        const [start, end] = [night.bedtime_start, night.bedtime_end].map(text => findInstant(text as string)!.micros / 1e6);
        for (const day of byDay) {
          const zero = findInstant(day.timestamp as string)!.micros / 1e6;
          const classes = day.class_5_min as string;
          const first = Math.max(0, Math.ceil((start! - zero) / 300));
          const last = Math.min(classes.length, Math.floor((end! - zero) / 300));
          if (first < last) expect(classes.slice(first, last)).toMatch(/^1+$/);
        }
      }
    }
  });
});
