import { addDays, dayNumberOf, dayOfMicros, findDayNumber, findInstant, MICROS_PER_DAY } from '../../schema/instant.ts';
import { findDayOf, type Resource, type WireDocument } from '../../schema/resource.ts';

/** A range of documents: its ends are days, or date-times as `formatInstant` writes them. */
export interface DocumentRange {
  start: string;
  end: string;
}

/** A night begins the day before its own, and a clock is up to a day away from UTC. */
const MARGIN_DAYS = 3;

/** The days among which everything of a range lies, both counted in. An end that is a day is left out of some kinds, as live services do. */
export function daysOf(resource: Resource, { start, end }: DocumentRange, inclusiveEnd: boolean): { from: string; to: string } {
  const leftOut = resource.endDay === 'excluded' && !inclusiveEnd;
  return {
    from: isMoment(start) ? shift(start.slice(0, 10), -MARGIN_DAYS) : start,
    to: isMoment(end) ? shift(end.slice(0, 10), MARGIN_DAYS) : leftOut ? addDays(end, -1) : end,
  };
}

/** Whether a document among those days lies in the range: the ends that are date-times are compared with its own instant, and counted in. */
export function createIsWithin(resource: Resource, { start, end }: DocumentRange): (document: WireDocument) => boolean {
  const [first, last] = [findInstant(start)?.micros, findInstant(end)?.micros];
  if (first === undefined && last === undefined) return () => true;
  return document => {
    const micros = ownMicros(resource, document);
    return (first === undefined || micros >= first) && (last === undefined || micros <= last);
  };
}

/** Where a document begins, else the midnight of its day: local where the document tells how far that is from UTC. */
function ownMicros(resource: Resource, document: WireDocument): number {
  const { startsAt, dayOffset } = resource;
  const start = startsAt && document[startsAt];
  const instant = typeof start === 'string' ? findInstant(start) : undefined;
  if (instant) return instant.micros;
  const offset = dayOffset?.reduce<unknown>((value, key) => (value as WireDocument | null | undefined)?.[key], document);
  return (
    (findDayNumber(findDayOf(resource, document) ?? '') ?? Number.NaN) * MICROS_PER_DAY -
    (typeof offset === 'number' ? offset * 1_000_000 : 0)
  );
}

const FIRST_MICROS = dayNumberOf('0001-01-01') * MICROS_PER_DAY;
const LAST_MICROS = (dayNumberOf('9999-12-31') + 1) * MICROS_PER_DAY - 1;

/** The days (UTC) of a stretch of moments, of which the end is left out; as far as days can be written. */
export function daysOfMoments({ start, end }: { start: number; end: number }): { from: string; to: string } {
  return { from: dayOfMicros(Math.max(start, FIRST_MICROS)), to: dayOfMicros(Math.min(end - 1, LAST_MICROS)) };
}

const isMoment = (bound: string) => bound.length > 10;

/** Stays among the days that can be written. */
function shift(day: string, count: number): string {
  const moved = addDays(day, count);
  if (count < 0) return moved < '0001-01-01' || moved > day ? '0001-01-01' : moved;
  return moved < day ? '9999-12-31' : moved;
}
