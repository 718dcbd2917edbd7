import { describe, expect, it } from 'vitest';
import type { Sample } from '../../../schema/fields.ts';
import { findInstant } from '../../../schema/instant.ts';
import { allOf, yearOf } from './conformity.ts';

const people = yearOf(3);
const sleeps = people.persons.flatMap(({ userId }) => allOf(people, userId, 'sleep'));
const secondsAt = (text: unknown) => findInstant(text as string)!.micros / 1e6;
const count = (text: string, digit: string) => text.split(digit).length - 1;
const measured = (sample: unknown) => (sample as Sample).items.filter(item => item !== null);
const average = (items: number[]) => items.reduce((a, b) => a + b, 0) / items.length;

describe('a sleep', () => {
  it('lasts as long as it says, on half minutes', () => {
    for (const sleep of sleeps) {
      expect(secondsAt(sleep.bedtime_end) - secondsAt(sleep.bedtime_start)).toBe(sleep.time_in_bed);
      expect(secondsAt(sleep.bedtime_start) % 30).toBe(0);
      const parts = ['deep_sleep_duration', 'light_sleep_duration', 'rem_sleep_duration'].map(key => sleep[key] as number);
      expect(parts.reduce((a, b) => a + b)).toBe(sleep.total_sleep_duration);
      expect((sleep.total_sleep_duration as number) + (sleep.awake_time as number)).toBe(sleep.time_in_bed);
      expect(sleep.efficiency).toBe(Math.round((100 * (sleep.total_sleep_duration as number)) / (sleep.time_in_bed as number)));
    }
  });

  it('has strings that its durations count', () => {
    for (const sleep of sleeps.filter(each => each.sleep_phase_30_sec)) {
      const phases = sleep.sleep_phase_30_sec as string;
      expect(phases).toMatch(/^[1-4]+$/);
      expect(phases.length * 30).toBe(sleep.time_in_bed);
      const keys = ['deep_sleep_duration', 'light_sleep_duration', 'rem_sleep_duration', 'awake_time'];
      keys.forEach((key, i) => {
        expect(count(phases, String(i + 1)) * 30).toBe(sleep[key]);
      });
      expect(phases.search(/[123]/) * 30).toBe(sleep.latency);
      const blocks = phases.match(/.{1,10}/g)!;
      for (const key of ['sleep_phase_5_min', 'app_sleep_phase_5_min'].filter(each => sleep[each])) {
        const text = sleep[key] as string;
        expect(text.length).toBe(blocks.length);
        blocks.forEach((block, i) => {
          const most = Math.max(...['1', '2', '3', '4'].map(digit => count(block, digit)));
          expect(count(block, text[i]!)).toBe(most);
        });
      }
    }
    for (const sleep of sleeps.filter(each => each.movement_30_sec)) {
      expect(sleep.movement_30_sec).toMatch(/^[1-4]+$/);
      expect((sleep.movement_30_sec as string).length * 30).toBe(sleep.time_in_bed);
      if (sleep.restless_periods) expect((sleep.movement_30_sec as string).match(/[234]+/g)?.length).toBe(sleep.restless_periods);
    }
  });

  it('has averages that its samples give', () => {
    for (const sleep of sleeps.filter(each => each.heart_rate)) {
      const { interval, items, timestamp } = sleep.heart_rate as Sample;
      expect(interval).toBe(300);
      expect(timestamp).toBe(sleep.bedtime_start);
      expect(items.length).toBe((sleep.sleep_phase_5_min as string).length);
      const beats = measured(sleep.heart_rate);
      expect(sleep.average_heart_rate).toBeCloseTo(average(beats), 2);
      expect(sleep.lowest_heart_rate).toBe(Math.min(...beats));
      if (sleep.hrv) expect(sleep.average_hrv).toBe(Math.round(average(measured(sleep.hrv))));
      expect([...beats, ...measured(sleep.hrv)].every(Number.isInteger)).toBe(true);
    }
  });

  it('counts for the day of waking, or for the next after 6 p.m., and keeps to its type', () => {
    for (const sleep of sleeps) {
      const { micros, offset } = findInstant(sleep.bedtime_end as string)!;
      const local = micros / 1e6 + offset;
      expect(Math.floor((local + 6 * 3600 - 1) / 86_400) * 86_400).toBe(secondsAt(`${sleep.day}T00:00:00Z`));
      const minutes = (sleep.time_in_bed as number) / 60;
      if (sleep.type === 'long_sleep') expect(minutes).toBeGreaterThan(180);
      else expect(minutes).toBeLessThanOrEqual(180);
      expect(minutes).toBeGreaterThanOrEqual(15);
      if (sleep.type === 'late_nap') expect(local % 86_400).toBeGreaterThan(18 * 3600);
      if (sleep.type === 'sleep') expect(local % 86_400).toBeLessThan(18 * 3600);
    }
  });

  it('goes deep early and dreams late', () => {
    const nights = sleeps.filter(sleep => sleep.type === 'long_sleep' && sleep.sleep_phase_30_sec);
    const halves = (digit: string) =>
      nights.reduce(
        ([first, second], { sleep_phase_30_sec: text }) => {
          const phases = text as string;
          const middle = phases.length / 2;
          return [first! + count(phases.slice(0, middle), digit), second! + count(phases.slice(middle), digit)];
        },
        [0, 0],
      );
    const [deepEarly, deepLate] = halves('1');
    expect(deepEarly).toBeGreaterThan(2 * deepLate!);
    const [remEarly, remLate] = halves('3');
    expect(remLate).toBeGreaterThan(1.5 * remEarly!);
  });

  it('is alone in its time', () => {
    for (const { userId } of people.persons) {
      const own = allOf(people, userId, 'sleep').toSorted((a, b) => secondsAt(a.bedtime_start) - secondsAt(b.bedtime_start));
      own.slice(1).forEach((sleep, i) => {
        expect(secondsAt(sleep.bedtime_start)).toBeGreaterThan(secondsAt(own[i]!.bedtime_end));
      });
    }
  });
});

it('scores a day exactly when there is a main sleep', () => {
  for (const { userId } of people.persons) {
    const nights = new Set(allOf(people, userId, 'sleep').flatMap(({ type, day }) => (type === 'long_sleep' ? [day] : [])));
    expect(new Set(allOf(people, userId, 'daily_sleep').map(({ day }) => day))).toEqual(nights);
    expect(new Set(allOf(people, userId, 'daily_spo2').map(({ day }) => day))).toEqual(nights);
    for (const { day, score } of allOf(people, userId, 'daily_readiness')) expect(typeof score === 'number').toBe(nights.has(day));
  }
});
