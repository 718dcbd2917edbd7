import { describe, expect, it } from 'vitest';
import type { Sample } from '../../../schema/fields.ts';
import { findDayNumber, findInstant } from '../../../schema/instant.ts';
import { createUserModels } from '../../../src/simulator/users/people.ts';
import { createPerson } from '../../../src/simulator/users/person.ts';
import { createTravels } from '../../../src/simulator/users/travel.ts';
import { overlaps } from '../../../src/simulator/users/zone.ts';
import { allOf, yearOf } from './conformity.ts';

const people = yearOf(3);
const [, ben, cleo] = people.persons.map(({ userId }) => userId) as [string, string, string];
const HOUR = 3600;
const seconds = (text: unknown) => findInstant(text as string)!.micros / 1e6;
const day = (text: string) => findDayNumber(text)!;
const activity = (userId: string, of: string) => people.documents(userId, 'daily_activity', of)[0]!;
const metOf = (document: Record<string, unknown>) => document.met as Sample;

// ben lives in New York (−04:00). On 4 August 2025 he flies to Kathmandu (+05:45), 9 hours and 45 minutes east, and sets his clock at
// 14:40 UTC, 10:40 by the old one and 20:25 by the new; on 10 August back, at 10:55 UTC: 16:40, then 06:55.
describe('ben flies to Kathmandu and back', () => {
  const { zone, flightOn, lagOn } = createTravels(createPerson(7, 1));

  it('his clock goes forward on the way out and back on the way home', () => {
    expect(flightOn(day('2025-08-04'))).toBe(seconds('2025-08-04T14:40:00Z'));
    expect(flightOn(day('2025-08-05'))).toBeUndefined();
    expect(flightOn(day('2025-08-10'))).toBe(seconds('2025-08-10T10:55:00Z'));
    expect(zone.write(seconds('2025-08-04T14:39:59Z'))).toBe('2025-08-04T10:39:59.000-04:00');
    expect(zone.write(seconds('2025-08-04T14:40:00Z'))).toBe('2025-08-04T20:25:00.000+05:45');
    expect(zone.write(seconds('2025-08-10T10:54:59Z'))).toBe('2025-08-10T16:39:59.000+05:45');
    expect(zone.local(seconds('2025-08-10T10:55:00Z'))).toEqual({ day: day('2025-08-10'), clock: 6 * HOUR + 55 * 60 });
  });

  it('a time that the flight leaves out is that of the flight, of one that comes twice the first is meant', () => {
    for (const clock of [11, 15, 20]) expect(zone.at(day('2025-08-04'), clock * HOUR)).toBe(seconds('2025-08-04T14:40:00Z'));
    expect(zone.at(day('2025-08-04'), 21 * HOUR)).toBe(seconds('2025-08-04T15:15:00Z'));
    expect(zone.at(day('2025-08-10'), 10 * HOUR)).toBe(seconds('2025-08-10T04:15:00Z'));
    expect(zone.at(day('2025-08-10'), 17 * HOUR)).toBe(seconds('2025-08-10T21:00:00Z'));
    // The evening before a day is the day before.
    expect(zone.at(day('2025-08-11'), -2 * HOUR)).toBe(seconds('2025-08-11T02:00:00Z'));
  });

  it('his body follows by an hour a night', () => {
    const lags = ['04', '05', '06', '10', '11', '12', '16', '17', '18'].map(text => lagOn(day(`2025-08-${text}`)));
    expect(lags).toEqual([0, -9.75, -8.75, -4.75, 6, 5, 1, 0, 0]);
  });

  it('the activity of a flight is 24 hours all the same, by the clock of its start', () => {
    const [east, after] = [activity(ben, '2025-08-04'), activity(ben, '2025-08-05')];
    expect(east.timestamp).toBe('2025-08-04T04:00:00.000-04:00');
    expect(after.timestamp).toBe('2025-08-05T04:00:00.000+05:45');
    const west = activity(ben, '2025-08-10');
    expect(west.timestamp).toBe('2025-08-10T04:00:00.000+05:45');
    expect(activity(ben, '2025-08-11').timestamp).toBe('2025-08-11T04:00:00.000-04:00');
    const times = ['non_wear_time', 'resting_time', 'sedentary_time', 'low_activity_time', 'medium_activity_time', 'high_activity_time'];
    for (const document of [east, west]) {
      expect(metOf(document).items).toHaveLength(1440);
      expect(document.class_5_min).toHaveLength(288);
      expect(times.reduce((sum, key) => sum + (document[key] as number), 0)).toBe(86_400);
    }
    // 24 hours less 9 hours and 45 minutes lie between the two starts: what follows is told by both.
    expect(metOf(east).items.slice(855)).toEqual(metOf(after).items.slice(0, 585));
  });

  it('of the day that a flight west makes longer no measurement of the heart is lost or told twice', () => {
    const rows = people.heartRate(ben, seconds('2025-08-09T22:15:00Z') * 1e6, seconds('2025-08-11T08:00:00Z') * 1e6);
    const moments = rows.map(row => row.timestamp_unix);
    expect(moments).toEqual([...new Set(moments)].sort((a, b) => a - b));
    // In each of the 33 hours before the last begun there is a measurement.
    expect(new Set(moments.map(moment => Math.floor(moment / 3_600_000))).size).toBeGreaterThanOrEqual(33);
  });

  it('a nap in the flight begins by one clock and ends by the other', () => {
    const west = people.documents(ben, 'sleep', '2025-08-10').find(({ type }) => type === 'sleep')!;
    expect(west).toMatchObject({
      bedtime_start: '2025-08-10T15:46:30.000+05:45',
      bedtime_end: '2025-08-10T07:45:30.000-04:00',
      time_in_bed: 6240,
    });
    // Its samples are written by the clock of their beginning.
    expect((west.heart_rate as Sample).timestamp).toBe('2025-08-10T15:46:30.000+05:45');
    expect((west.heart_rate as Sample).items).toHaveLength(21);
    // After 6 p.m. by the clock of waking a nap counts for the next day.
    expect(people.documents(ben, 'sleep', '2025-08-05').find(({ type }) => type === 'late_nap')).toMatchObject({
      bedtime_start: '2025-08-04T10:08:30.000-04:00',
      bedtime_end: '2025-08-04T21:09:30.000+05:45',
      time_in_bed: 4560,
    });
  });

  it('the suggestion for a day is made by its clock', () => {
    // In Los Angeles, Berlin, São Paulo and London, and at home.
    const offsets = ['2025-03-31', '2025-05-15', '2025-09-25', '2025-11-12', '2025-07-25'].map(of => {
      const [suggestion] = people.documents(ben, 'sleep_time', of);
      return (suggestion?.optimal_bedtime as { day_tz: number } | null | undefined)?.day_tz;
    });
    expect(offsets).toEqual([-25_200, 7200, -10_800, 0, -14_400]);
  });
});

it('of the first three one flies several times a year, one rarely, and one hardly ever', () => {
  const flights = (index: number) => {
    let count = 0;
    for (let seed = 0; seed < 20; seed++) {
      const { flightOn } = createTravels(createPerson(seed, index));
      for (let of = day('2025-01-01'); of <= day('2025-12-31'); of++) if (flightOn(of) !== undefined) count++;
    }
    // There and back, in twenty years.
    return count / 40;
  };
  expect(flights(0)).toBeLessThan(1.2);
  expect(flights(1)).toBeGreaterThan(4);
  expect(flights(2)).toBeGreaterThan(0.7);
  expect(flights(2)).toBeLessThan(3);
});

describe.each([1, 2, 7, 99])('wherever the people of seed %i fly', seed => {
  const models = createUserModels(seed, 9);
  const days = Array.from({ length: 400 }, (_, i) => day('2024-12-01') + i);

  it('days begin at 4 a.m. where they are, one after the other, in whole 5 minutes', () => {
    for (const { zone } of models) {
      for (const of of days) {
        const [start, end] = [zone.at(of, 4 * HOUR), zone.at(of + 1, 4 * HOUR)];
        expect(zone.local(start)).toEqual({ day: of, clock: 4 * HOUR });
        expect((end - start) % 300).toBe(0);
        // Nobody flies further than ten hours, and at most one more is due to summer time.
        expect(Math.abs(end - start - 24 * HOUR)).toBeLessThanOrEqual(11 * HOUR);
      }
    }
  });

  it('the local day of a moment never goes back', () => {
    for (const { zone } of models) {
      const reached: number[] = [];
      for (let moment = days[0]! * 86_400; moment < days.at(-1)! * 86_400; moment += 1800) reached.push(zone.local(moment).day);
      expect(reached.findIndex((of, i) => i > 0 && of < reached[i - 1]!)).toBe(-1);
    }
  });

  it('nobody sleeps, trains or takes a moment twice at a time, and everybody is awake when the clock is set, or naps', () => {
    let flights = 0;
    for (const { person, planOf, bedTimesOf } of models) {
      const { flightOn } = createTravels(person);
      for (const of of days) {
        const { naps, training, flight } = planOf(of);
        const spans = [bedTimesOf(of).night, ...naps, ...(training ? [training] : []), bedTimesOf(of + 1).night];
        spans.forEach((span, i) => {
          expect(span.start).toBeLessThan(span.end);
          for (const other of spans.slice(i + 1)) expect(overlaps(span, other)).toBe(false);
        });
        if (!flight) continue;
        flights++;
        expect(training).toBeUndefined();
        const clockSet = flightOn(of)!;
        expect([bedTimesOf(of).night.end < clockSet, clockSet < bedTimesOf(of + 1).night.start]).toEqual([true, true]);
        expect(flight.start <= clockSet && clockSet <= flight.end).toBe(true);
      }
    }
    expect(flights).toBeGreaterThan(30);
  });
});

it('jet lag shows: nights are less efficient and the heart beats faster', () => {
  const mean = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / values.length;
  for (const [index, userId] of [
    [1, ben],
    [2, cleo],
  ] as const) {
    const { lagOn } = createTravels(createPerson(7, index));
    const nights = allOf(people, userId, 'sleep').filter(({ type }) => type === 'long_sleep');
    const figures = (isIt: (lag: number) => boolean, key: string) =>
      mean(nights.filter(night => isIt(Math.abs(lagOn(day(night.day as string))))).map(night => night[key] as number));
    const [lagging, usual] = [(lag: number) => lag >= 3, (lag: number) => lag === 0];
    expect(figures(lagging, 'efficiency')).toBeLessThan(figures(usual, 'efficiency') - 1);
    expect(figures(lagging, 'lowest_heart_rate')).toBeGreaterThan(figures(usual, 'lowest_heart_rate') + 1);
  }
});
