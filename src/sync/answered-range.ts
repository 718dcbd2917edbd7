import { findDayNumber, MICROS_PER_DAY } from '../../schema/instant.ts';
import { ServiceError } from '../client/error.ts';
import type { DayRange } from '../ledger/windows.ts';

/** Microseconds, `endAt` excluded. */
export interface MomentRange {
  startAt: number;
  endAt: number;
}

/** How far beside its range an answer may lie: a night may be filed under the next day, and the days of another zone begin elsewhere. */
const BESIDE = MICROS_PER_DAY;

/**
 * @param moments of what came, as far as it tells them
 * @throws ServiceError where most of them lie elsewhere: that answers another question, as a cache does that ignores the query. A few may
 * lie within all the same, because the ranges of neighbouring questions overlap
 */
export function ensureAnswers(route: string, moments: Iterable<number>, range: MomentRange | undefined): void {
  if (!range) return;
  let within = 0;
  let elsewhere = 0;
  for (const moment of moments) {
    if (moment >= range.startAt - BESIDE && moment < range.endAt + BESIDE) within++;
    else elsewhere++;
  }
  if (elsewhere > within) throw new ServiceError('malformed', route, 'answered another range than the one that was asked for');
}

/** The range of days; undefined where they have no end. */
export const momentsOfDays = ({ from, to }: Partial<DayRange>): MomentRange | undefined =>
  from === undefined || to === undefined
    ? undefined
    : { startAt: findDayNumber(from)! * MICROS_PER_DAY, endAt: (findDayNumber(to)! + 1) * MICROS_PER_DAY };

/** When the days of these documents begin. */
export function* momentsOfDocuments(documents: Iterable<unknown>): Generator<number> {
  for (const document of documents) {
    const day = typeof document === 'object' && document !== null && 'day' in document ? document.day : undefined;
    const number = typeof day === 'string' ? findDayNumber(day) : undefined;
    if (number !== undefined) yield number * MICROS_PER_DAY;
  }
}
