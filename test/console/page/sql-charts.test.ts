import { expect, test } from 'vitest';
import { tickTexts } from '../../../src/console/page/screens/sql/number-text.ts';
import { type Chart, type Data, fill, gapOf, numberOf, propose, timeOf, whyNot } from '../../../src/console/page/screens/sql/propose.ts';
import { modelOf } from '../../../src/console/page/screens/sql/result-model.ts';

type Of = Record<string, [type: string, ...values: (string | number | null)[]]>;

/** A result of columns by name: the type, then the values. */
function resultOf(columns: Of): Data {
  const entries = Object.entries(columns);
  const numeric = (type: string) => /INT|DOUBLE|DECIMAL/.test(type);
  return {
    columns: entries.map(([name, [type]]) => ({ name, type, numeric: numeric(type) })),
    values: entries.map(([, [, ...values]]) => values.map(value => (value === null ? null : String(value)))),
    rows: (entries[0]?.[1].length ?? 1) - 1,
  };
}

const many = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));
const chart = (kind: Chart['kind'], x: number | null, y: number, by: number | null = null): Chart => ({ kind, x, y, by });

const DAYS: Of[string] = ['DATE', '2025-03-28', '2025-03-29', '2025-03-30'];

test.each<[string, Of, Chart | undefined]>([
  ['a date and a number are a line', { day: DAYS, hrv: ['BIGINT', 50, null, 61] }, chart('line', 0, 1)],
  [
    'a moment and a number too',
    { n: ['DOUBLE', 1, 2], ts: ['TIMESTAMP', '2025-03-30 01:00:00', '2025-03-30 01:05:00'] },
    chart('line', 1, 0),
  ],
  [
    'with up to twelve texts that tell the rows of a day apart a line for each',
    { day: ['DATE', '2025-03-30', '2025-03-30'], who: ['VARCHAR', 'ada', 'ben'], hrv: ['BIGINT', 50, 61] },
    chart('line', 0, 2, 1),
  ],
  [
    'of thirteen texts on two days a heat map',
    {
      day: ['DATE', ...many(26, i => `2025-03-0${1 + (i % 2)}`)],
      who: ['VARCHAR', ...many(26, i => `p${i >> 1}`)],
      hrv: ['BIGINT', ...many(26, i => i)],
    },
    chart('heat', 1, 2, 0),
  ],
  ['a text and a number are bars', { who: ['VARCHAR', 'ada', 'ben'], nights: ['BIGINT', 3, 4] }, chart('bars', 0, 1)],
  [
    'two texts and a number are a heat map',
    { who: ['VARCHAR', 'ada', 'ada', 'ben'], stress: ['VARCHAR', '0', '1', '0'], weeks: ['BIGINT', 1, 2, 3] },
    chart('heat', 0, 2, 1),
  ],
  ['two numbers are points', { a: ['DOUBLE', 1, 1], b: ['DECIMAL(4,2)', 1, 2] }, chart('points', 0, 1)],
  ['a number is a histogram', { a: ['DOUBLE', 1, 1] }, chart('histogram', null, 0)],
  [
    'more than sixty texts are no bars',
    { who: ['VARCHAR', ...many(61, i => `p${i}`)], n: ['BIGINT', ...many(61, i => i)] },
    chart('histogram', null, 1),
  ],
  ['texts alone are nothing', { who: ['VARCHAR', 'ada', 'ben'], list: ['VARCHAR[]', '[]', '[]'] }, undefined],
  ['one row is nothing', { day: ['DATE', '2025-03-30'], n: ['BIGINT', 1] }, undefined],
  ['no row is nothing', { day: ['DATE'], n: ['BIGINT'] }, undefined],
])('%s', (_, columns, proposed) => {
  expect(propose(resultOf(columns))).toEqual(proposed);
});

test('what would draw several rows at one place says so instead', () => {
  const data = resultOf({ day: ['DATE', '2025-03-30', '2025-03-30'], n: ['BIGINT', 1, 2] });
  expect(fill('line', data)).toEqual(chart('line', 0, 1));
  expect(whyNot(chart('line', 0, 1), data)).toBe('Several rows have the same “day”: group them, or choose a column that tells them apart.');
  expect(whyNot(chart('points', 0, 1), data)).toBeUndefined();
});

test('NULL, an empty text and one that is the word NULL are three', () => {
  const data = resultOf({ who: ['VARCHAR', null, '', 'NULL', '“NULL”'], nights: ['BIGINT', 1, 2, 3, 4] });
  expect(whyNot(chart('bars', 0, 1), data)).toBeUndefined();
  const names = ['NULL', '“”', '“NULL”', '““NULL””'];
  const bars = modelOf(chart('bars', 0, 1), data);
  expect([bars.categories, bars.points.map(({ x, at, y }) => [x, at, y])]).toEqual([names, names.map((name, i) => [i, name, i + 1])]);
  const days = resultOf({
    day: ['DATE', ...many(4, () => '2025-03-30')],
    who: ['VARCHAR', null, '', 'NULL', '“NULL”'],
    n: ['BIGINT', 1, 2, 3, 4],
  });
  const lines = modelOf(chart('line', 0, 2, 1), days);
  expect([lines.series, lines.points.map(({ series }) => series)]).toEqual([names, names]);
});

test('days and moments are read on the clock of UTC, or of their own offset', () => {
  expect(
    ['2025-03-30', '2025-03-30 01:02:03', '2025-03-30 01:02:03.456789', '2025-03-30 01:02:03+05:45', '2025-03-30 01:02:03+02'].map(timeOf),
  ).toEqual([1_743_292_800_000, 1_743_296_523_000, 1_743_296_523_456, 1_743_275_823_000, 1_743_289_323_000]);
  expect(['infinity', '0044-03-15 (BC)', null, '7:30'].map(timeOf)).toEqual([null, null, null, null]);
  expect(['1.50', 'nan', 'inf', null, '-3', ''].map(numberOf)).toEqual([1.5, null, null, null, -3, null]);
});

const gapIn = (...moments: string[]) => gapOf(moments.map(text => ({ x: timeOf(text) ?? 0 })));

test.each([
  ['days', ['2025-03-03', '2025-03-04', '2025-03-05', '2025-03-07'], 24],
  ['weeks as moments', ['2025-03-03 00:00:00', '2025-03-10 00:00:00', '2025-03-17 00:00:00', '2025-03-31 00:00:00'], 7 * 24],
  ['months as moments', ['2025-01-01 00:00:00', '2025-02-01 00:00:00', '2025-03-04 00:00:00', '2025-05-01 00:00:00'], 31 * 24],
  ['samples by the clock', ['2025-03-03 01:02:00', '2025-03-03 01:07:00', '2025-03-03 01:12:00', '2025-03-03 01:27:00'], 1 / 12],
])('no line goes over what is missing of %s', (_, moments, hours) => {
  expect(gapIn(...moments)).toBe(1.5 * hours * 3_600_000);
});

test('moments that come as they will are joined over a few of them', () => {
  expect(gapIn(...['00:00:00', '00:00:07', '00:00:15', '00:00:40'].map(time => `2025-03-03 ${time}`))).toBe(5 * 8000);
});

test.each([
  [
    [0, 1.5, 3],
    ['0', '1.5', '3.0'],
  ],
  [
    [-20, 0, 20],
    ['−20', '0', '20'],
  ],
  [
    [1000, 1000.05, 1000.1],
    ['1000.00', '1000.05', '1000.10'],
  ],
  [
    [1_793_000_000, 1_793_500_000, 1_794_000_000],
    ['1.7930e+9', '1.7935e+9', '1.7940e+9'],
  ],
  [
    [0, 1e9, 2e9],
    ['0', '1e+9', '2e+9'],
  ],
  [
    [0.00001, 0.00002],
    ['1e−5', '2e−5'],
  ],
  [[7], ['7']],
])('no two values of an axis are told alike: %j', (ticks, texts) => {
  expect(tickTexts(ticks)).toEqual(texts);
});
