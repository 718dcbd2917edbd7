import { dayNumber } from '../page/parts/format.ts';

/** From when on the clock is so many seconds east of UTC. */
export interface Clock {
  start: number;
  offset: number;
}

const DAY = 86_400;

/**
 * A date of a person's own clock: from when to when it lasts, and which clocks it has. At which moment a clock moved is not known, only
 * which document was the first to tell the new one: it is taken to have moved then.
 * @param changes in the order of time; the first one counts for all time before it too; none: UTC
 */
export function localDay(day: string, changes: readonly Clock[]): { start: number; end: number; clocks: Clock[] } {
  const number = dayNumber(day);
  const known = changes.length ? changes : [{ start: 0, offset: 0 }];
  const parts = known.flatMap(({ start, offset }, at) => {
    const since = at === 0 ? Number.NEGATIVE_INFINITY : start;
    const until = known[at + 1]?.start ?? Number.POSITIVE_INFINITY;
    const from = Math.max(since, number * DAY - offset);
    const to = Math.min(until, (number + 1) * DAY - offset);
    return from < to ? [{ start: from, end: to, offset }] : [];
  });
  const [first] = parts;
  // A clock that went forward over midnight leaves a date out.
  if (!first) return localDay(day, known.slice(0, 1));
  const end = Math.max(...parts.map(part => part.end));
  // West over midnight the date before comes once more in between: no part of this one, but of its hours.
  const moved = known.slice(1).filter(({ start }) => start > first.start && start < end);
  return { start: first.start, end, clocks: [{ start: first.start, offset: first.offset }, ...moved] };
}
