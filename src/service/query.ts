import { addDays, findDayNumber, findInstant, formatInstant, type Instant, MICROS_PER_DAY } from '../../schema/instant.ts';
import type { DocumentRange } from './document-range.ts';
import { type Issue, Problem } from './problem.ts';

/** A query string as parsed: a repeated parameter is an array. */
export type Query = Readonly<Record<string, unknown>>;

/** What a request says of its range, before defaults. `fields` without repetitions and in alphabetical order. */
export interface GivenRange<Bound> {
  start?: Bound;
  end?: Bound;
  fields?: readonly string[];
  nextToken?: string;
  latest?: true;
}

const MAX_MOMENTS_DAYS = 30;
/** There is no year 0. */
const FIRST_DAY = '0001-01-01';

/** Reads the parameters of a collection that are named in `parameters`. Throws 422 with every parameter that is wrong. */
export function parseDays(query: Query, parameters: readonly string[]): GivenRange<string> {
  return parseRange(query, parameters, 'start_date', 'end_date', findBound, {
    type: 'date_parsing',
    msg: 'Input should be a date, YYYY-MM-DD, or an ISO 8601 date-time',
  });
}

/** The parameters of the heart-rate series. */
export const HEART_RATE_PARAMETERS: readonly string[] = ['start_datetime', 'end_datetime', 'next_token', 'fields'];

/** Reads those parameters of a range of moments that are named in `parameters`. Throws 422 with every parameter that is wrong. */
export function parseMoments(query: Query, parameters: readonly string[]): GivenRange<number> {
  return parseRange(query, parameters, 'start_datetime', 'end_datetime', findMicros, {
    type: 'datetime_parsing',
    msg: 'Input should be an ISO 8601 date-time with offset, or a date',
  });
}

/**
 * The range asked for, its ends days or date-times: the end is today (UTC) when omitted, the start the day before the end.
 * Throws 400 when reversed.
 */
export function completeDays(given: GivenRange<string>, now: Date): DocumentRange {
  const end = given.end ?? now.toISOString().slice(0, 10);
  const start = given.start ?? dayBefore(end);
  if (isReversed(start, end)) throw new Problem(400, `Start date ${start} is after end date ${end}.`);
  return { start, end };
}

function dayBefore(end: string): string {
  const instant = findInstant(end);
  const start = instant ? formatInstant({ ...instant, micros: instant.micros - MICROS_PER_DAY }) : addDays(end, -1);
  return start < FIRST_DAY ? FIRST_DAY : start;
}

/** A day is compared with a date-time by the date that this is written with. */
function isReversed(start: string, end: string): boolean {
  const [first, last] = [findInstant(start), findInstant(end)];
  return first && last ? first.micros > last.micros : start.slice(0, 10) > end.slice(0, 10);
}

/** The moments asked for: the last 24 hours when omitted, the last 30 days for the newest. Throws 400 when reversed or longer than 30 days. */
export function completeMoments(given: GivenRange<number>, now: Date): { start: number; end: number } {
  const end = given.end ?? now.getTime() * 1000;
  const start = given.start ?? end - (given.latest ? MAX_MOMENTS_DAYS : 1) * MICROS_PER_DAY;
  const [first, last] = [formatInstant({ micros: start, offset: 0 }), formatInstant({ micros: end, offset: 0 })];
  if (start > end) throw new Problem(400, `Start date ${first} is after end date ${last}.`);
  if (end - start > MAX_MOMENTS_DAYS * MICROS_PER_DAY)
    throw new Problem(400, `Range from ${first} to ${last} is longer than ${MAX_MOMENTS_DAYS} days.`);
  return { start, end };
}

function parseRange<Bound>(
  query: Query,
  parameters: readonly string[],
  startName: string,
  endName: string,
  find: (text: string) => Bound | undefined,
  wrong: { type: string; msg: string },
): GivenRange<Bound> {
  const issues: Issue[] = [];
  const read = (name: string): string | undefined => {
    const input = parameters.includes(name) ? query[name] : undefined;
    if (input === undefined || typeof input === 'string') return input;
    issues.push({ loc: ['query', name], msg: 'Input should be given once', type: 'string_type', input });
    return undefined;
  };
  const bound = (name: string): Bound | undefined => {
    const input = read(name);
    const found = input === undefined ? undefined : find(input);
    if (input !== undefined && found === undefined) issues.push({ loc: ['query', name], ...wrong, ...explain(input), input });
    return found;
  };
  const given = { start: bound(startName), end: bound(endName), fields: readFields(read('fields')), nextToken: read('next_token') };
  const latest = read('latest');
  const isLatest = latest === undefined ? false : FLAGS.get(latest.toLowerCase());
  if (isLatest === undefined)
    issues.push({ loc: ['query', 'latest'], msg: 'Input should be true or false', type: 'bool_parsing', input: latest });
  if (issues.length > 0) throw new Problem(422, issues);
  return isLatest ? { ...given, latest: true } : given;
}

const FLAGS: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['1', true],
  ['false', false],
  ['0', false],
]);

function readFields(text: string | undefined): string[] | undefined {
  const names = (text ?? '').split(',').map(name => name.trim());
  const known = [...new Set(names)].filter(name => name !== '').sort();
  return known.length > 0 ? known : undefined;
}

function findBound(text: string): string | undefined {
  if (findDayNumber(text) !== undefined) return text;
  const instant = findMoment(text);
  return instant && formatInstant(instant);
}

function findMicros(text: string): number | undefined {
  const day = findDayNumber(text);
  return day === undefined ? findMoment(text)?.micros : day * MICROS_PER_DAY;
}

/** Clients write a blank for the T, and leave the offset out. */
function findMoment(text: string): Instant | undefined {
  const written = text.replace(/^(\d{4}-\d\d-\d\d) /, '$1T');
  return findInstant(written) ?? findInstant(`${written}Z`);
}

/** The usual mistake by name: an unescaped `+` arrives as a blank (4.3). */
function explain(text: string): { msg: string; type: string } | undefined {
  if (text.includes(' ') && findInstant(text.replace(' ', '+')))
    return { type: 'datetime_parsing', msg: 'Input has a blank where the offset begins: a + in a query must be sent as %2B' };
  return undefined;
}
