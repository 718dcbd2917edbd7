import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { addDays, dayOfMicros, findDayNumber, findInstant, formatDay, formatInstant } from '../../schema/instant.ts';

describe.each(['UTC', 'America/New_York', 'Asia/Kathmandu'])('in the time zone %s', zone => {
  beforeEach(() => {
    vi.stubEnv('TZ', zone);
  });
  afterEach(() => {
    vi.unstubAllEnvs();
  });

  test('the zone is really in force', () => {
    expect(new Date(1_748_736_000_000).getTimezoneOffset()).toBe({ UTC: 0, 'America/New_York': 240, 'Asia/Kathmandu': -345 }[zone]);
  });

  test.each([
    ['2025-03-30T04:00:00.000+02:00', 1_743_300_000_000_000, 7200],
    ['2025-03-30T04:00:00+0200', 1_743_300_000_000_000, 7200],
    ['2025-03-30T02:00:00Z', 1_743_300_000_000_000, 0],
    ['2025-03-30t02:00z', 1_743_300_000_000_000, 0],
    ['2025-03-30T02:00:00-00:00', 1_743_300_000_000_000, 0],
    ['2025-01-15T12:00:00.000+05:45', 1_736_921_700_000_000, 20_700],
    ['2025-01-15T12:00:00.000-03:30', 1_736_955_000_000_000, -12_600],
    ['2025-01-15T12:00:00.000001+00:00', 1_736_942_400_000_001, 0],
    ['2025-01-15T12:00:00.123456000+00:00', 1_736_942_400_123_456, 0],
    ['2024-02-29T00:00:00+00:00', 1_709_164_800_000_000, 0],
    ['1969-12-31T23:59:59.5+00:00', -500_000, 0],
    ['1900-01-01T00:00:00+00:09:21', -2_208_989_361_000_000, 561],
    ['0001-01-01T00:00:00Z', -62_135_596_800_000_000, 0],
  ])('%s is the moment %d with the offset %d', (text, micros, offset) => {
    expect(findInstant(text)).toEqual({ micros, offset });
  });

  test.each([
    ['no offset', '2025-03-30T04:00:00'],
    ['only a day', '2025-03-30'],
    ['a day that is none', '2025-02-29T00:00:00Z'],
    ['the thirty-first of April', '2025-04-31T00:00:00Z'],
    ['a month that is none', '2025-13-01T00:00:00Z'],
    ['an hour that is none', '2025-01-01T24:00:00Z'],
    ['a leap second', '2016-12-31T23:59:60Z'],
    ['an offset that is none', '2025-01-01T00:00:00+24:00'],
    ['nanoseconds that no column could keep', '2025-01-01T00:00:00.000000001Z'],
    ['a blank for the T', '2025-01-01 00:00:00Z'],
    ['text behind it', '2025-01-01T00:00:00Z '],
    ['the year zero', '0000-01-01T00:00:00Z'],
    ['nothing', ''],
  ])('an instant with %s is none', (_, text) => {
    expect(findInstant(text)).toBeUndefined();
  });

  test.each([
    [1_743_300_000_000_000, 7200, '2025-03-30T04:00:00.000+02:00'],
    [1_736_921_700_000_000, 20_700, '2025-01-15T12:00:00.000+05:45'],
    [1_736_955_000_000_000, -12_600, '2025-01-15T12:00:00.000-03:30'],
    [1_736_942_400_000_001, 0, '2025-01-15T12:00:00.000001+00:00'],
    [1_736_942_400_120_000, 0, '2025-01-15T12:00:00.120+00:00'],
    [-500_000, 0, '1969-12-31T23:59:59.500+00:00'],
    [-1, 0, '1969-12-31T23:59:59.999999+00:00'],
    [-2_208_989_361_000_000, 561, '1900-01-01T00:00:00.000+00:09:21'],
  ])('%d with the offset %d is written %s, and read back the same', (micros, offset, text) => {
    expect(formatInstant({ micros, offset })).toBe(text);
    expect(findInstant(text)).toEqual({ micros, offset });
  });

  test('days are counted from the epoch, leap days and all', () => {
    expect(findDayNumber('1970-01-01')).toBe(0);
    expect(findDayNumber('1969-12-31')).toBe(-1);
    expect(findDayNumber('2024-02-29')).toBe(19_782);
    expect(findDayNumber('2025-03-30')).toBe(20_177);
    expect(formatDay(20_177)).toBe('2025-03-30');
    expect(formatDay(19_782)).toBe('2024-02-29');
    expect(dayOfMicros(1_743_299_999_999_999)).toBe('2025-03-30');
    expect(dayOfMicros(-1)).toBe('1969-12-31');
    expect(addDays('2025-03-29', 2)).toBe('2025-03-31');
    expect(addDays('2024-03-01', -1)).toBe('2024-02-29');
    expect(() => addDays('2025-02-30', 1)).toThrow('not a day: 2025-02-30');
  });

  test.each(['2025-02-29', '2025-00-10', '2025-01-32', '25-01-01', '2025-1-1', '2025-01-01T00:00:00Z', ' 2025-01-01', '0000-01-01', ''])(
    '"%s" is no day',
    text => {
      expect(findDayNumber(text)).toBeUndefined();
    },
  );
});
