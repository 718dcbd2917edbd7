import { keyOf, type Person } from './users/person.ts';
import { hashPair, Random } from './users/random.ts';
import { remember } from './users/remember.ts';
import type { BedTimes } from './users/schedule.ts';
import type { Zone } from './users/zone.ts';

/**
 * When somebody's data reach the service. Ranges are from after their first moment up to and with their second, in seconds since
 * the Unix epoch.
 */
export interface Habits {
  /** The moments at which the ring syncs, ascending. */
  syncs(from: number, to: number): number[];
  /** The last moment at which activity and stress come in the background. */
  lastUpload(from: number, to: number): number | undefined;
  /** The moments at which the user looks at the app after a sync and changes something. */
  whims(from: number, to: number): number[];
  /** The first of all these after a moment. */
  next(after: number): number;
}

const HOUR = 3600;
/** One upload falls into each of these. */
const SLOT = 1800;
/** Absences are drawn once for so many days; the longest ends within them. */
const ROUND_DAYS = 12;
const LONGEST_WHIM = 2400;

/** The habits of a person, a pure function of the person and the day. */
export function createHabits(person: Person, zone: Zone, bedTimesOf: (day: number) => BedTimes): Habits {
  /** Now and then nothing comes for days: the phone is away or empty, and the ring goes on recording. */
  const isAway = remember(64, day => {
    const round = Math.floor((day + 5 * person.index) / ROUND_DAYS);
    const random = new Random([person.seed, person.index, round, 'away']);
    if (!random.chance(0.5)) return false;
    const length = random.integer(1, 4);
    const first = round * ROUND_DAYS - 5 * person.index + random.integer(0, ROUND_DAYS - length);
    return day >= first && day < first + length;
  });
  const syncsOf = remember(64, day => {
    if (isAway(day)) return [];
    const random = new Random(keyOf(person, day, 'syncs'));
    const { night, unworn } = bedTimesOf(day);
    const moments: number[] = [];
    const morning = (unworn ?? night).end + random.integer(120, 5400);
    if (random.chance(0.88)) moments.push(morning);
    const at = (from: number, to: number) => zone.at(day, Math.round(random.between(from, to) * HOUR));
    const [midday, evening, whenever] = [at(11.8, 14.2), at(18.5, 23), at(9, 22)];
    if (random.chance(0.6)) moments.push(midday);
    if (random.chance(0.8)) moments.push(evening);
    if (random.chance(0.35)) moments.push(whenever);
    // After a late morning the day may be over before it begins.
    return moments.filter(moment => moment >= morning && zone.local(moment).day === day).sort((a, b) => a - b);
  });
  const uploadIn = (slot: number): number | undefined => {
    const moment = slot * SLOT + (hashPair([person.seed, person.index, slot, 'upload'])[0] % 900);
    const { day } = zone.local(moment);
    if (isAway(day)) return undefined;
    // Who comes back is known from the first sync on.
    const back = isAway(day - 1) ? (syncsOf(day)[0] ?? Number.POSITIVE_INFINITY) : moment;
    return moment >= back ? moment : undefined;
  };
  const syncs = (from: number, to: number): number[] => {
    const found: number[] = [];
    for (let day = zone.local(from).day; day <= zone.local(to).day; day++) {
      for (const moment of syncsOf(day)) if (moment > from && moment <= to) found.push(moment);
    }
    return found;
  };
  const whimAfter = (sync: number): number | undefined => {
    const random = new Random([person.seed, person.index, sync, 'whim']);
    return random.chance(0.2) ? sync + random.integer(300, LONGEST_WHIM) : undefined;
  };
  const whims = (from: number, to: number) =>
    syncs(from - LONGEST_WHIM, to).flatMap(sync => {
      const moment = whimAfter(sync);
      return moment !== undefined && moment > from && moment <= to ? [moment] : [];
    });

  return {
    syncs,
    whims,
    lastUpload(from, to) {
      for (let slot = Math.floor(to / SLOT); (slot + 1) * SLOT > from; slot--) {
        const moment = uploadIn(slot);
        if (moment !== undefined && moment <= to) return moment > from ? moment : undefined;
      }
      return undefined;
    },
    next(after) {
      let slot = Math.floor(after / SLOT);
      let upload = uploadIn(slot);
      while (upload === undefined || upload <= after) upload = uploadIn(++slot);
      return Math.min(upload, ...syncs(after, upload), ...whims(after, upload));
    },
  };
}
