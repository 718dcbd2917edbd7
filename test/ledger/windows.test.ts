import { expect, test } from 'vitest';
import { type Coverage, daysOf, planDays } from '../../src/ledger/windows.ts';

const at = (text: string) => Date.parse(text) * 1000;

/** A window that was read: its first and last day, and when it was asked for. */
const read = (from: string, to: string, requested: string): Coverage => ({
  startAt: at(`${from}T00:00:00Z`),
  endAt: at(`${to}T00:00:00Z`) + 86_400_000_000,
  readAt: at(requested),
});

/** The days of each window planned, and how many were left out whole. */
function plan(from: string, to: string, size: number, coverage?: Coverage[], settledDays = 14) {
  const { spans, skipped } = planDays({ from, to }, size, coverage && { coverage, settledDays });
  return {
    days: spans.map(span => {
      const days = daysOf(span);
      return `${days.from}..${days.to}`;
    }),
    skipped,
  };
}

test('a range is cut into windows of the size, the last one shorter', () => {
  expect(plan('2025-01-01', '2025-01-31', 7)).toEqual({
    days: [
      '2025-01-01..2025-01-07',
      '2025-01-08..2025-01-14',
      '2025-01-15..2025-01-21',
      '2025-01-22..2025-01-28',
      '2025-01-29..2025-01-31',
    ],
    skipped: 0,
  });
});

test('a window is the microseconds of whole days in UTC, its end left out', () => {
  expect(planDays({ from: '2025-01-01', to: '2025-01-02' }, 90, undefined).spans).toEqual([
    { startAt: 1_735_689_600_000_000, endAt: 1_735_862_400_000_000 },
  ]);
});

test('one day is one window, and the same day twice is that day', () => {
  expect(plan('2025-01-01', '2025-01-01', 90)).toEqual({ days: ['2025-01-01..2025-01-01'], skipped: 0 });
  expect(plan('2025-01-01', '2025-01-03', 1).days).toEqual(['2025-01-01..2025-01-01', '2025-01-02..2025-01-02', '2025-01-03..2025-01-03']);
});

test('leap days and turns of the year are days like others', () => {
  expect(plan('2024-02-27', '2024-03-02', 3).days).toEqual(['2024-02-27..2024-02-29', '2024-03-01..2024-03-02']);
  expect(plan('2023-02-27', '2023-03-02', 3).days).toEqual(['2023-02-27..2023-03-01', '2023-03-02..2023-03-02']);
  expect(plan('2024-12-30', '2025-01-02', 10).days).toEqual(['2024-12-30..2025-01-02']);
  expect(plan('1969-12-30', '1970-01-02', 2).days).toEqual(['1969-12-30..1969-12-31', '1970-01-01..1970-01-02']);
});

test('a day is settled when it was read completely 14 days after its end, and not a moment earlier', () => {
  expect(plan('2025-01-01', '2025-01-01', 7, [read('2025-01-01', '2025-01-01', '2025-01-15T23:59:59.999Z')])).toEqual({
    days: ['2025-01-01..2025-01-01'],
    skipped: 0,
  });
  expect(plan('2025-01-01', '2025-01-01', 7, [read('2025-01-01', '2025-01-01', '2025-01-16T00:00:00Z')])).toEqual({ days: [], skipped: 1 });
});

test('how many days settle is a setting; 0 settles what was over when it was read', () => {
  const coverage = [read('2025-01-01', '2025-01-02', '2025-01-02T12:00:00Z')];
  expect(plan('2025-01-01', '2025-01-02', 7, coverage, 0)).toEqual({ days: ['2025-01-02..2025-01-02'], skipped: 0 });
  expect(plan('2025-01-01', '2025-01-02', 7, coverage, 1)).toEqual({ days: ['2025-01-01..2025-01-02'], skipped: 0 });
});

test('of one window that was read, the early days are settled and the late ones are not', () => {
  expect(plan('2025-01-01', '2025-01-31', 90, [read('2025-01-01', '2025-01-31', '2025-02-05T10:00:00Z')])).toEqual({
    days: ['2025-01-22..2025-01-31'],
    skipped: 0,
  });
});

test('holes between what is settled are windows of their own', () => {
  const coverage = [
    read('2025-01-03', '2025-01-04', '2025-06-01T00:00:00Z'),
    read('2025-01-08', '2025-01-08', '2025-06-01T00:00:00Z'),
    read('2025-01-10', '2025-01-31', '2025-06-01T00:00:00Z'),
  ];
  expect(plan('2025-01-01', '2025-01-14', 7, coverage)).toEqual({
    days: ['2025-01-01..2025-01-02', '2025-01-05..2025-01-07', '2025-01-09..2025-01-09'],
    skipped: 0,
  });
});

test('pieces that are settled whole are counted as skipped', () => {
  const coverage = [read('2025-01-01', '2025-01-14', '2025-06-01T00:00:00Z')];
  expect(plan('2025-01-01', '2025-01-21', 7, coverage)).toEqual({ days: ['2025-01-15..2025-01-21'], skipped: 2 });
  expect(plan('2025-01-01', '2025-01-14', 7, coverage)).toEqual({ days: [], skipped: 2 });
});

test('a day is settled only by a window that holds the whole of it', () => {
  const half = { startAt: at('2025-01-01T00:00:00Z'), endAt: at('2025-01-01T12:00:00Z'), readAt: at('2025-06-01T00:00:00Z') };
  const rest = { ...half, startAt: half.endAt, endAt: at('2025-01-02T00:00:00Z') };
  expect(plan('2025-01-01', '2025-01-01', 7, [half, rest])).toEqual({ days: ['2025-01-01..2025-01-01'], skipped: 0 });
});

test('a later reading settles what an earlier one left open', () => {
  const coverage = [read('2025-01-01', '2025-01-31', '2025-01-31T10:00:00Z'), read('2025-01-01', '2025-01-31', '2025-02-20T10:00:00Z')];
  expect(plan('2025-01-01', '2025-01-31', 90, coverage)).toEqual({ days: [], skipped: 1 });
});

test('without a rule of what is settled everything is read', () => {
  expect(plan('2025-01-01', '2025-01-14', 7)).toEqual({ days: ['2025-01-01..2025-01-07', '2025-01-08..2025-01-14'], skipped: 0 });
});

test('the days of a window count a part of a day as the day', () => {
  expect(daysOf({ startAt: at('2025-01-01T12:00:00Z'), endAt: at('2025-01-03T00:00:00.001Z') })).toEqual({
    from: '2025-01-01',
    to: '2025-01-03',
  });
});
