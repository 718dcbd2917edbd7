import { describe, expect, it } from 'vitest';
import type { Sample } from '../../../schema/fields.ts';
import { addDays, findDayNumber } from '../../../schema/instant.ts';
import { illnessOn } from '../../../src/simulator/users/illness.ts';
import { isWhole, someOf } from '../../support/whole.ts';
import { allOf, daysOf, yearOf } from './conformity.ts';

const people = yearOf(3);
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

  it('every status and every recommendation of a bedtime', () => {
    const count = (key: string, value: string) => each('sleep_time').filter(document => document[key] === value).length;
    for (const status of ['not_enough_nights', 'not_enough_recent_nights', 'bad_sleep_quality', 'only_recommended_found', 'optimal_found'])
      expect(count('status', status), status).toBeGreaterThanOrEqual(5);
    for (const recommendation of [
      'improve_efficiency',
      'earlier_bedtime',
      'later_bedtime',
      'earlier_wake_up_time',
      'later_wake_up_time',
      'follow_optimal_bedtime',
    ])
      expect(count('recommendation', recommendation), recommendation).toBeGreaterThanOrEqual(5);
  });

  it('every reason of an analysis, and the first algorithm until a day in each life', () => {
    const reasons = new Map<unknown, number>();
    for (const { sleep_analysis_reason: reason } of each('sleep')) reasons.set(reason ?? null, (reasons.get(reason ?? null) ?? 0) + 1);
    for (const reason of [
      'foreground_sleep_analysis',
      'bedtime_edit',
      'background_sleep_analysis',
      'background_created_foreground_updated',
    ])
      expect(reasons.get(reason), reason).toBeGreaterThan(20);
    for (const { userId } of people.persons) {
      const versions = allOf(people, userId, 'sleep').flatMap(sleep => sleep.sleep_algorithm_version ?? []);
      const legacy = versions.lastIndexOf('v1');
      expect(legacy).toBeGreaterThan(5);
      expect(legacy).toBeLessThan(120);
      expect(versions.indexOf('v2')).toBe(legacy + 1);
    }
  });

  it('naps with at least the 15 minutes of sleep that they take, and of at most 3 hours', () => {
    const count = isWhole ? 20 : 2;
    const many = yearOf(count, 11);
    const naps = many.persons
      .flatMap(({ userId }) => allOf(many, userId, 'sleep'))
      .filter(({ type }) => type === 'sleep' || type === 'late_nap');
    expect(naps.length).toBeGreaterThan(15 * count);
    for (const nap of naps) {
      expect(nap.total_sleep_duration as number).toBeGreaterThanOrEqual(900);
      if (nap.type === 'sleep') expect(nap.time_in_bed as number).toBeLessThanOrEqual(10_800);
      const [day, clock] = String(nap.bedtime_end).split('T') as [string, string];
      // A late one ends after 6 p.m. and counts for the next day; others for their own.
      expect(nap.type).toBe(clock > '18:00:00.000' ? 'late_nap' : 'sleep');
      expect(nap.day).toBe(nap.type === 'late_nap' ? addDays(day, 1) : day);
    }
  });

  it('null samples', () => {
    expect(each('daily_activity').some(day => items(day, 'met')!.includes(null))).toBe(true);
    for (const key of ['heart_rate', 'hrv']) expect(each('sleep').some(sleep => items(sleep, key)?.includes(null))).toBe(true);
    expect(each('session').some(session => items(session, 'heart_rate')?.includes(null))).toBe(true);
    expect(each('session').some(session => session.heart_rate === null)).toBe(true);
    expect(each('daily_spo2').some(day => day.spo2_percentage === null)).toBe(true);
  });

  it('days between whose starts 23 and 25 hours lie, and nights across them', () => {
    // ada stays in Berlin all the year; whoever flies has other days besides.
    const starts = allOf(people, people.persons[0]!.userId, 'daily_activity').map(day => Date.parse(day.timestamp as string) / 3_600_000);
    expect(new Set(starts.slice(1).map((start, i) => start - starts[i]!))).toEqual(new Set([23, 24, 25]));
    const changes = each('sleep').filter(sleep => String(sleep.bedtime_start).slice(-6) !== String(sleep.bedtime_end).slice(-6));
    expect(new Set(changes.map(sleep => String(sleep.bedtime_end).slice(-6))).size).toBeGreaterThan(2);
    expect(each('sleep').some(sleep => String(sleep.bedtime_start).endsWith('+05:45'))).toBe(true);
  });

  it('a replaced ring, and no sleep of an unknown one', () => {
    let replaced = 0;
    for (const { userId } of people.persons) {
      const rings = people.undated(userId, 'ring_configuration').map(({ id }) => id);
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

  it('a suggested bedtime follows when somebody has gone to bed', () => {
    for (const { userId } of people.persons) {
      const bedtimes = new Map(
        allOf(people, userId, 'sleep').flatMap(({ type, day, bedtime_start: start }) => {
          const [date, clock] = String(start).split('T') as [string, string];
          const [hours, minutes] = clock.split(':').map(Number) as [number, number];
          return type === 'long_sleep' ? [[day as string, hours * 60 + minutes - (date === day ? 0 : 1440)]] : [];
        }),
      );
      const pairs = allOf(people, userId, 'sleep_time').flatMap(({ day, optimal_bedtime: window }) => {
        if (!window) return [];
        const { start_offset: start, end_offset: end } = window as { start_offset: number; end_offset: number };
        const recent = Array.from({ length: 14 }, (_, ago) => bedtimes.get(addDays(day as string, -ago))).filter(
          each => each !== undefined,
        );
        return recent.length > 10 ? [{ middle: (start + end) / 120, usual: mean(recent) }] : [];
      });
      expect(pairs.length).toBeGreaterThan(100);
      for (const { middle, usual } of pairs) expect(Math.abs(middle - usual)).toBeLessThan(40);
      expect(new Set(pairs.map(({ middle }) => middle)).size).toBeGreaterThan(2);
    }
  });

  it('a workout is where MET and heart rate rise, and nothing else is', () => {
    // To read a year of heart rate is a second for each.
    for (const { userId } of someOf(people.persons, { more: 1 })) {
      const activity = new Map(allOf(people, userId, 'daily_activity').map(document => [document.day, document.met as Sample]));
      const workouts = allOf(people, userId, 'workout').map(workout => ({
        day: workout.day as string,
        intensity: workout.intensity,
        start: Date.parse(workout.start_datetime as string),
        end: Date.parse(workout.end_datetime as string),
      }));
      expect(workouts.length).toBeGreaterThan(60);
      const rows = people.heartRate(userId, 0, 2e15);
      const beats = rows.filter(({ source }) => source === 'workout');
      const awake = mean(rows.flatMap(({ source, bpm }) => (source === 'awake' ? [bpm] : [])));
      let place = 0;
      // In no workout.
      const before: number[] = [];
      for (const { day, intensity, start, end } of workouts) {
        const met = activity.get(day)!;
        const first = (start - Date.parse(met.timestamp)) / 60_000;
        const during = met.items.slice(first, first + (end - start) / 60_000) as number[];
        expect(Math.min(...during)).toBeGreaterThanOrEqual(1.6);
        expect(mean(during)).toBeGreaterThan(2 * mean(met.items.filter(item => item !== null)));
        expect(intensity).toBe(mean(during) >= 8 ? 'hard' : mean(during) >= 5 ? 'moderate' : 'easy');
        const own: number[] = [];
        for (let beat = beats[place]; beat && beat.timestamp_unix < end; beat = beats[++place]) {
          own.push(beat.bpm);
          if (beat.timestamp_unix < start) before.push(beat.timestamp_unix);
        }
        expect(own.length).toBeGreaterThan((end - start) / 20_000);
        expect(mean(own)).toBeGreaterThan(awake + 8);
      }
      expect([...before, ...beats.slice(place)]).toEqual([]);
    }
  });

  it('what a workout took is a part of what its day took', () => {
    for (const { userId } of people.persons) {
      const days = new Map(allOf(people, userId, 'daily_activity').map(document => [document.day, document]));
      for (const { day, calories, distance } of allOf(people, userId, 'workout')) {
        const activity = days.get(day)!;
        if (typeof calories === 'number') expect(calories).toBeLessThanOrEqual((activity.active_calories as number) + 1);
        if (typeof distance === 'number') expect(distance).toBeGreaterThan(500);
      }
    }
  });

  it('a rest mode follows an illness, and ends on the day after its last one', () => {
    let episodesSeen = 0;
    for (const person of people.persons) {
      const severityOn = (day: string) => illnessOn(person, findDayNumber(day)!).severity;
      for (const period of allOf(people, person.userId, 'rest_mode_period')) {
        const { start_day: first, end_day: end, episodes } = period as { start_day: string; end_day: string; episodes: unknown[] };
        expect(severityOn(first)).toBeGreaterThanOrEqual(0.35);
        for (let day = first; day < end; day = addDays(day, 1)) expect(severityOn(day)).toBeGreaterThan(0);
        expect(severityOn(end)).toBe(0);
        for (const { timestamp } of episodes as { timestamp: string }[]) {
          expect(timestamp.slice(0, 10) >= first && timestamp.slice(0, 10) < end).toBe(true);
          episodesSeen++;
        }
      }
    }
    expect(episodesSeen).toBeGreaterThan(10);
  });

  it('tags are noted of days that were as they say', () => {
    const codes = new Set<unknown>();
    for (const person of people.persons) {
      for (const tag of allOf(people, person.userId, 'enhanced_tag')) {
        const { tag_type_code: code, start_day: day, start_time: start, end_time: end } = tag as Record<string, string | null>;
        codes.add(code);
        if (code === 'tag_generic_sick') expect(illnessOn(person, findDayNumber(day!)!).severity).toBeGreaterThan(0);
        if (code === 'custom') expect(tag.custom_name).toBe('Sauna');
        if (code === null) expect(typeof tag.comment).toBe('string');
        expect(end === null).toBe(code !== 'tag_generic_travel');
        if (end) expect(Date.parse(end)).toBeGreaterThan(Date.parse(start!));
      }
    }
    expect([...codes].sort()).toEqual(
      ['custom', null, 'tag_generic_alcohol', 'tag_generic_sick', 'tag_generic_stress', 'tag_generic_travel'].sort(),
    );
  });

  it('vessels age slowly, about the age of the person', () => {
    for (const { userId, age } of people.persons) {
      const ages = allOf(people, userId, 'daily_cardiovascular_age').flatMap(({ vascular_age: age }) => (age as number | null) ?? []);
      expect(ages.length).toBeGreaterThan(300);
      expect(Math.abs(mean(ages) - age)).toBeLessThan(10);
      for (const [i, value] of ages.slice(1).entries()) expect(Math.abs(value - ages[i]!)).toBeLessThanOrEqual(1);
      expect(Math.max(...ages) - Math.min(...ages)).toBeLessThan(12);
    }
  });

  it('the activity of the day before is what readiness makes of it', () => {
    for (const { userId } of people.persons) {
      const activity = new Map(allOf(people, userId, 'daily_activity').map(document => [document.day, document]));
      let compared = 0;
      for (const { day, contributors } of allOf(people, userId, 'daily_readiness')) {
        const before = activity.get(addDays(day as string, -1));
        const contributor = (contributors as Record<string, number | null>).previous_day_activity;
        if (!before || contributor == null) continue;
        const reached = (before.equivalent_walking_distance as number) / (before.target_meters as number);
        if (reached < 0.2) expect(contributor).toBe(60);
        if (reached > 0.8 && reached < 1.1) expect(contributor).toBeGreaterThanOrEqual(94);
        if (reached > 2.6) expect(contributor).toBe(40);
        compared++;
      }
      expect(compared).toBeGreaterThan(300);
    }
  });

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
