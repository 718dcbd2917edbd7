import { expect, test } from 'vitest';
import { csvOf } from '../../../src/console/page/parts/data-table.ts';
import { addDays, clock, dayName, hoursAndMinutes, localText, offsetName, shortDay } from '../../../src/console/page/parts/format.ts';
import { bandOf, digitsFor, isMetric, metricWithUnit, numberText } from '../../../src/console/page/parts/metrics.ts';

test('durations, offsets and days are told the same everywhere', () => {
  expect([26_460, 3_599, 0, -3_360].map(hoursAndMinutes)).toEqual(['7 h 21', '1 h 00', '0 h 00', '−0 h 56']);
  expect([0, 3600, 20_700, -12_600, -18_000].map(offsetName)).toEqual(['UTC', 'UTC+1', 'UTC+5:45', 'UTC−3:30', 'UTC−5']);
  // 2025-03-09T00:05:00Z
  expect([clock(1_741_478_700, 20_700), localText(1_741_478_700, -18_000)]).toEqual(['05:50', '2025-03-08 19:05']);
  expect([addDays('2025-02-28', 1), dayName('2026-11-22'), shortDay('2024-02-29')]).toEqual(['2025-03-01', 'Sunday 22 November', '29 Feb']);
});

test('a value has the digits and the unit of its metric, and a true minus', () => {
  expect([
    metricWithUnit('temperature_deviation', 0.774),
    metricWithUnit('temperature_deviation', -0.05),
    metricWithUnit('temperature_deviation', -0.001),
    metricWithUnit('average_breath', 17.5),
    metricWithUnit('total_sleep_duration', 26_460),
    metricWithUnit('steps', 1_234_567),
    numberText(-1234.5, 1),
  ]).toEqual(['+0.77 °C', '−0.05 °C', '0.00 °C', '17.5 /min', '7 h 21', '1,234,567', '−1,234.5']);
  expect([isMetric('steps'), isMetric('toString'), isMetric('')]).toEqual([true, false, false]);
});

test('a table is saved as RFC 4180 says, and no text of it is a formula', () => {
  const table = [
    { name: 'time', values: ['01:00', '01:05', '01:10'] },
    { name: 'heart rate [beats/min]', values: [52, null, -3] },
    { name: 'tag', values: ['=1+1', 'a "b", c', "'x"] },
  ];
  expect(csvOf(table)).toBe('time,heart rate [beats/min],tag\r\n01:00,52,\'=1+1\r\n01:05,,"a ""b"", c"\r\n01:10,-3,\'\'x\r\n');
});

test('a band ends where there can be no values', () => {
  expect([
    bandOf('stress_high', 3600, 7200),
    bandOf('efficiency', 96, 6),
    bandOf('sleep_score', 90, 15),
    bandOf('temperature_deviation', 0.1, 0.3),
    bandOf('average_hrv', 50, 10),
  ]).toEqual([
    [0, 10_800],
    [90, 100],
    [75, 100],
    [expect.closeTo(-0.2), 0.4],
    [40, 60],
  ]);
});

test('labels of an axis have as many digits as tell them apart', () => {
  expect([5, 1, 0.5, 0.1, 0.05, 0.02, 0].map(digitsFor)).toEqual([0, 0, 1, 1, 2, 2, 0]);
});
