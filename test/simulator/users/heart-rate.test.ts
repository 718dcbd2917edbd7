import { describe, expect, it } from 'vitest';
import type { Sample } from '../../../schema/fields.ts';
import { findInstant } from '../../../schema/instant.ts';
import { heartRate } from '../../../schema/resources/heart-rate.ts';
import { createPeople } from '../../../src/simulator/users/people.ts';
import { allOf } from './conformity.ts';

const people = createPeople({ seed: 7, count: 3, from: '2025-03-01', to: '2025-04-30' });
const at = (text: unknown) => findInstant(text as string)!.micros;
const everything = [at('2020-01-01T00:00:00Z'), at('2030-01-01T00:00:00Z')] as const;

describe.each(people.persons)('the heart rate of $name', ({ userId, zone }) => {
  const rows = people.heartRate(userId, ...everything);

  it('is written as specified, in UTC, each moment later than the one before', () => {
    const written = heartRate.row.strict();
    const wrong = rows.filter((row, i) => {
      const { micros, offset } = findInstant(row.timestamp)!;
      const later = i === 0 || row.timestamp_unix > rows[i - 1]!.timestamp_unix;
      return !written.safeParse(row).success || offset !== 0 || micros !== row.timestamp_unix * 1000 || !later;
    });
    expect(wrong).toEqual([]);
    expect(new Set(rows.map(({ source }) => source))).toEqual(new Set(['awake', 'workout', 'rest', 'sleep', 'live', 'session']));
  });

  it('lies within the local days', () => {
    const format = new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short' });
    expect(format.format(rows[0]!.timestamp_unix)).toBe('2025-03-01');
    expect(format.format(rows.at(-1)!.timestamp_unix)).toBe('2025-04-30');
  });

  it('has about 1,200 rows a day, irregularly', () => {
    expect(rows.length / 61).toBeGreaterThan(900);
    expect(rows.length / 61).toBeLessThan(1600);
    expect(new Set(rows.slice(1, 2000).map((row, i) => row.timestamp_unix - rows[i]!.timestamp_unix)).size).toBeGreaterThan(500);
  });

  it('is the heart rate of the sleeps while they last', () => {
    const nights = allOf(people, userId, 'sleep').filter(({ type, day }) => type !== 'rest' && type !== 'deleted' && day !== '2025-03-01');
    for (const night of nights) {
      const { items } = night.heart_rate as Sample;
      const [start, end] = [at(night.bedtime_start), at(night.bedtime_end)];
      const own = people.heartRate(userId, start, end);
      for (const { timestamp_unix, bpm, source } of own) {
        expect(source).toBe('sleep');
        expect(bpm).toBe(items[Math.floor((timestamp_unix * 1000 - start) / 3e8)]);
      }
      const known = items.filter(item => item !== null).length;
      expect(known - own.length).toBeLessThanOrEqual(1);
    }
  });

  it('is the same in any pieces', () => {
    const pieces: unknown[] = [];
    for (let from: number = everything[0]; ; ) {
      const piece = people.heartRate(userId, from, everything[1], 777);
      pieces.push(...piece);
      if (piece.length < 777) break;
      from = piece.at(-1)!.timestamp_unix * 1000 + 1;
    }
    expect(pieces).toEqual(rows);
    const [from, to] = [rows[5000]!.timestamp_unix * 1000, rows[9000]!.timestamp_unix * 1000];
    expect(people.heartRate(userId, from, to)).toEqual(rows.slice(5000, 9000));
  });
});
