import { isoOf } from '../../../schema/instant.ts';
import type { RequestClock } from '../../warehouse/request-clock.ts';
import { type CheckResult, warn } from './check-result.ts';

/** A clock that was set back by less is being kept right. */
const TOLERATED_MICROS = 60_000_000;

/** The newest moment that is stored, where it is ahead of our clock: that is wrong now, or was when it was stored. */
export const findNewestAhead = (clock: Pick<RequestClock, 'latest' | 'wall'>): number | undefined =>
  clock.latest() > clock.wall() + TOLERATED_MICROS ? clock.latest() : undefined;

export function checkClock({ clock }: { clock: Pick<RequestClock, 'latest' | 'wall'> }): CheckResult[] {
  const newest = findNewestAhead(clock);
  if (newest === undefined) return [];
  const ahead = formatSpan((newest - clock.wall()) / 1000);
  return [
    warn(
      'clock',
      `the newest moment in the warehouse, ${isoOf(newest)}, is ${ahead} ahead of this machine’s clock`,
      'set the clock (NTP); where it was wrong before and is right now, nothing is to be done: later answers count as later all the same',
    ),
  ];
}

/** A span in the largest unit of which there are two at least. */
export function formatSpan(ms: number): string {
  const seconds = Math.round(Math.abs(ms) / 1000);
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} days`;
}
