import type { Sample } from '../../schema/fields.ts';
import { findInstant, formatDay } from '../../schema/instant.ts';
import type { WireDocument } from '../../schema/resource.ts';

/** A version of a document that is stored; `sk` grows in the order of storing. */
export interface Stored {
  user: string;
  resource: string;
  sk: number;
  document: WireDocument;
}

export interface StoredHeartRate {
  user: string;
  row: WireDocument;
}

/** Columns by name: moments are microseconds in UTC, days text. */
export type Row = Record<string, string | number | boolean | null>;

export const SECOND = 1_000_000;
const DAY = 86_400 * SECOND;

/** The value of a field, null where it is absent. */
export const get = (document: WireDocument, ...path: string[]) => {
  let value: unknown = document;
  for (const key of path) value = (value as WireDocument | null | undefined)?.[key];
  return (value ?? null) as string & number & boolean & null;
};

/** The moment that a field says, null where it says none. */
export const moment = (document: WireDocument, key: string) => findInstant(get(document, key) ?? '') ?? null;

/** A moment so many seconds later, null where either is. */
export const add = (micros: number | null, seconds: number | null) =>
  micros === null || seconds === null ? null : micros + seconds * SECOND;

/** The day of a moment in UTC, or of a local one. */
export const dayOf = (micros: number) => formatDay(Math.floor(micros / DAY));

/** What the macros promise. */
export const macros = {
  night_of: (micros: number, offset: number) => dayOf(micros + offset * SECOND + 6 * 3600 * SECOND),
  activity_day_of: (micros: number, offset: number) => dayOf(micros + offset * SECOND - 4 * 3600 * SECOND),
  hhmm(seconds: number) {
    const minutes = Math.floor(Math.abs(seconds) / 60 + 0.5);
    return `${seconds < 0 && minutes ? '-' : ''}${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, '0')}`;
  },
};

export interface SampleMoment {
  ts: number;
  utc_offset: number;
  value: number | null;
}

/** The samples of a field with their moments. */
export function samples(document: WireDocument, key: string): SampleMoment[] {
  const sample = get(document, key) as Sample | null;
  if (!sample) return [];
  const start = findInstant(sample.timestamp)!;
  return sample.items.map((value, i) => ({
    ts: start.micros + Math.round(i * sample.interval * SECOND),
    utc_offset: start.offset,
    value,
  }));
}

export const of = (stored: readonly Stored[], resource: string) => stored.filter(version => version.resource === resource);

export function groupBy<T>(list: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of list) {
    const group = groups.get(keyOf(item));
    if (group) group.push(item);
    else groups.set(keyOf(item), [item]);
  }
  return groups;
}

/** Those that are numbers. */
export const known = (values: readonly unknown[]) => values.filter(value => typeof value === 'number');

export const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

export const mean = (values: readonly number[]) => (values.length ? sum(values) / values.length : null);

/** The standard deviation of a sample, null of fewer than two. */
export function deviation(values: readonly number[]): number | null {
  if (values.length < 2) return null;
  if (values.every(value => value === values[0])) return 0;
  const middle = mean(values)!;
  return Math.sqrt(sum(values.map(value => (value - middle) ** 2)) / (values.length - 1));
}

/** Of an even number the middle of the two in the middle. */
export function median(values: readonly number[]): number | null {
  const inOrder = [...values].sort((a, b) => a - b);
  const half = inOrder.length / 2;
  return inOrder.length ? (inOrder[Math.ceil(half) - 1]! + inOrder[Math.floor(half)]!) / 2 : null;
}

/** What a mean or a deviation can be made of: a value of 1e100 and more counts as missing. */
export const bounded = (values: readonly number[]) => values.filter(value => Math.abs(value) < 1e100);
