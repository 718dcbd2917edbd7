import type { AnswerOf } from '../../api/routes.ts';
import type { DataTable } from '../parts/data-table.ts';
import { dayNumber, dayOfNumber } from '../parts/format.ts';

export type Trend = AnswerOf<'GET people/:id/trends'>['trends'][number];

/** Days from which a point is a week. */
const WEEKLY = 120;

/** A day, or the Monday of a week. */
export interface Point {
  day: string;
  value: number | null;
  /** What an unfinished day has come to; null for a week. */
  part: number | null;
  median: number | null;
  spread: number | null;
  /** Of a day; null for a week. */
  z: number | null;
  /** How many days of the week have a value. */
  days: number;
}

export const isWeekly = (from: string, to: string) => dayNumber(to) - dayNumber(from) + 1 > WEEKLY;

/** A point for each day from first to last, also for those without a row; of long ranges the means of ISO weeks. */
export function pointsOf(trend: Omit<Trend, 'part'> & Partial<Trend>, from: string, to: string): Point[] {
  const rowOf = new Map(trend.day.map((day, row) => [day, row]));
  const first = dayNumber(from);
  const days = Array.from({ length: dayNumber(to) - first + 1 }, (_, index): Point => {
    const day = dayOfNumber(first + index);
    const row = rowOf.get(day) ?? -1;
    const value = trend.value[row] ?? null;
    const [median = null, spread = null, z = null] = [trend.median[row], trend.spread[row], trend.z[row]];
    return { day, value, part: trend.part?.[row] ?? null, median, spread, z, days: value === null ? 0 : 1 };
  });
  return isWeekly(from, to) ? weeksOf(days) : days;
}

function weeksOf(days: readonly Point[]): Point[] {
  const weeks = new Map<string, Point[]>();
  for (const point of days) {
    const monday = mondayOf(point.day);
    const week = weeks.get(monday);
    if (week) week.push(point);
    else weeks.set(monday, [point]);
  }
  return [...weeks].map(([day, points]) => ({
    day,
    value: meanOf(points.map(({ value }) => value)),
    part: null,
    median: meanOf(points.map(({ median }) => median)),
    spread: meanOf(points.map(({ spread }) => spread)),
    z: null,
    days: points.filter(({ value }) => value !== null).length,
  }));
}

/** 1970-01-05 was a Monday. */
const mondayOf = (day: string) => dayOfNumber(Math.floor((dayNumber(day) - 4) / 7) * 7 + 4);

function meanOf(values: readonly (number | null)[]): number | null {
  const known = values.filter(value => value !== null);
  return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
}

/** Neighbours for which something is known, so that nothing is joined over what is missing. */
export function stretchesOf(points: readonly Point[], isKnown: (point: Point) => boolean): Point[][] {
  const stretches: Point[][] = [];
  let open: Point[] = [];
  for (const point of points) {
    if (isKnown(point)) open.push(point);
    else if (open.length) {
      stretches.push(open);
      open = [];
    }
  }
  return open.length ? [...stretches, open] : stretches;
}

export const lastOf = (points: readonly Point[]) => points.findLast(({ value }) => value !== null);

export function tableOf(points: readonly Point[], weekly: boolean, unit: string): DataTable {
  const inUnit = unit ? ` [${unit}]` : '';
  const columns = [
    { name: weekly ? 'week from' : 'day', values: points.map(({ day }) => day) },
    { name: `value${inUnit}`, values: points.map(({ value }) => value) },
    { name: `usual${inUnit}`, values: points.map(({ median }) => median) },
    { name: `band, to either side${inUnit}`, values: points.map(({ spread }) => spread) },
  ];
  if (weekly) return [...columns, { name: 'days with a value', values: points.map(({ days }) => days) }];
  return [...columns, { name: 'robust z', values: points.map(({ z }) => z) }];
}
