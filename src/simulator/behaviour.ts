import { memoize } from './users/memoize.ts';
import { keyOf, type Person } from './users/person.ts';
import { hashPair, Random } from './users/random.ts';
import type { BedTimes } from './users/schedule.ts';
import type { Zone } from './users/zone.ts';

const HOUR = 3600;
/** One upload falls into each of these. */
const SLOT = 1800;
/** Absences are drawn once for so many days; the longest ends within them. */
const ROUND_DAYS = 12;
const LONGEST_TO_EDIT = 2400;

/**
 * When a user's data reach the service, a pure function of the person and the day. Ranges are from after their first moment up to and with
 * their second, in seconds since the Unix epoch.
 */
export class Behaviour {
  readonly #person: Person;
  readonly #zone: Zone;
  readonly #bedTimesOf: (day: number) => BedTimes;
  readonly #isAway = memoize(64, day => this.#drawAway(day));
  readonly #syncsOf = memoize(64, day => this.#drawSyncs(day));

  constructor(person: Person, zone: Zone, bedTimesOf: (day: number) => BedTimes) {
    this.#person = person;
    this.#zone = zone;
    this.#bedTimesOf = bedTimesOf;
  }

  /** The moments at which the ring syncs, ascending. */
  syncs(from: number, to: number): number[] {
    const found: number[] = [];
    for (let day = this.#zone.local(from).day; day <= this.#zone.local(to).day; day++) {
      for (const moment of this.#syncsOf(day)) if (moment > from && moment <= to) found.push(moment);
    }
    return found;
  }

  /** The last moment at which activity and stress come in the background. */
  lastUpload(from: number, to: number): number | undefined {
    for (let slot = Math.floor(to / SLOT); (slot + 1) * SLOT > from; slot--) {
      const moment = this.#uploadIn(slot);
      if (moment !== undefined && moment <= to) return moment > from ? moment : undefined;
    }
    return undefined;
  }

  /** The moments at which the user looks at the app after a sync and changes something. */
  editMoments(from: number, to: number): number[] {
    return this.syncs(from - LONGEST_TO_EDIT, to).flatMap(sync => {
      const random = this.#random(sync, 'whim');
      const moment = random.chance(0.2) ? sync + random.integer(300, LONGEST_TO_EDIT) : undefined;
      return moment !== undefined && moment > from && moment <= to ? [moment] : [];
    });
  }

  /** The first of all these after a moment. */
  next(after: number): number {
    let slot = Math.floor(after / SLOT);
    let upload = this.#uploadIn(slot);
    while (upload === undefined || upload <= after) upload = this.#uploadIn(++slot);
    return Math.min(upload, ...this.syncs(after, upload), ...this.editMoments(after, upload));
  }

  #random(number: number, purpose: string): Random {
    return new Random([this.#person.seed, this.#person.index, number, purpose]);
  }

  /** Now and then nothing comes for days: the phone is away or empty, and the ring goes on recording. */
  #drawAway(day: number): boolean {
    const shift = 5 * this.#person.index;
    const round = Math.floor((day + shift) / ROUND_DAYS);
    const random = this.#random(round, 'away');
    if (!random.chance(0.5)) return false;
    const length = random.integer(1, 4);
    const first = round * ROUND_DAYS - shift + random.integer(0, ROUND_DAYS - length);
    return day >= first && day < first + length;
  }

  #drawSyncs(day: number): number[] {
    if (this.#isAway(day)) return [];
    const random = new Random(keyOf(this.#person, day, 'syncs'));
    const { night, unworn } = this.#bedTimesOf(day);
    const moments: number[] = [];
    const morning = (unworn ?? night).end + random.integer(120, 5400);
    if (random.chance(0.88)) moments.push(morning);
    const at = (from: number, to: number) => this.#zone.at(day, Math.round(random.between(from, to) * HOUR));
    const [midday, evening, whenever] = [at(11.8, 14.2), at(18.5, 23), at(9, 22)];
    if (random.chance(0.6)) moments.push(midday);
    if (random.chance(0.8)) moments.push(evening);
    if (random.chance(0.35)) moments.push(whenever);
    // After a late morning the day may be over before it begins.
    return moments.filter(moment => moment >= morning && this.#zone.local(moment).day === day).sort((a, b) => a - b);
  }

  #uploadIn(slot: number): number | undefined {
    const { seed, index } = this.#person;
    const moment = slot * SLOT + (hashPair([seed, index, slot, 'upload'])[0] % 900);
    const { day } = this.#zone.local(moment);
    if (this.#isAway(day)) return undefined;
    // Who comes back is known from the first sync on.
    const back = this.#isAway(day - 1) ? (this.#syncsOf(day)[0] ?? Number.POSITIVE_INFINITY) : moment;
    return moment >= back ? moment : undefined;
  }
}
