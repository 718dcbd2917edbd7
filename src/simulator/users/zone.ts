import { formatInstant } from '../../../schema/instant.ts';

/** A stretch of time in seconds since the Unix epoch, its end not included. */
export interface Span {
  start: number;
  end: number;
}

export const overlaps = (a: Span, b: Span) => a.start < b.end && b.start < a.end;

export const DAY = 86_400;

/** A time zone: between moments in seconds since the Unix epoch and local days and clocks. */
export interface Zone {
  name: string;
  /** Seconds east of UTC at a moment. */
  offsetAt(moment: number): number;
  /** The moment at which a local clock shows so many seconds (may be negative or beyond a day) from the midnight of a day. */
  at(day: number, clock: number): number;
  /** The local day of a moment and the seconds on the clock. */
  local(moment: number): { day: number; clock: number };
  /** A moment as the wire writes it, in local time with its offset. */
  write(moment: number): string;
}

const zones = new Map<string, Zone>();

/** The zone of a name, always the same one: what it has worked out serves everybody who lives there. */
export function zoneNamed(name: string): Zone {
  const found = zones.get(name) ?? createZone(name);
  zones.set(name, found);
  return found;
}

/** A zone of the IANA database, by the rules that Node carries; the machine's own zone plays no part. */
export function createZone(name: string): Zone {
  const format = new Intl.DateTimeFormat('en-US', { timeZone: name, timeZoneName: 'longOffset' });
  const starts = new Map<number, number>();
  const changes = new Map<number, number>();

  const ask = (moment: number): number => {
    const match = /GMT(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?$/.exec(format.format(moment * 1000));
    if (!match?.[1]) return 0;
    return (match[1] === '-' ? -1 : 1) * (Number(match[2]) * 3600 + Number(match[3]) * 60 + Number(match[4] ?? 0));
  };
  const offsetAtStart = (utcDay: number): number => {
    let offset = starts.get(utcDay);
    if (offset === undefined) {
      offset = ask(utcDay * DAY);
      starts.set(utcDay, offset);
    }
    return offset;
  };
  /** The first moment of a UTC day that has the offset of the next day. */
  const changeIn = (utcDay: number): number => {
    let change = changes.get(utcDay);
    if (change === undefined) {
      let before = utcDay * DAY;
      change = before + DAY;
      const after = offsetAtStart(utcDay + 1);
      while (change - before > 1) {
        const middle = Math.floor((before + change) / 2);
        if (ask(middle) === after) change = middle;
        else before = middle;
      }
      changes.set(utcDay, change);
    }
    return change;
  };
  const offsetAt = (moment: number): number => {
    const utcDay = Math.floor(moment / DAY);
    const before = offsetAtStart(utcDay);
    const after = offsetAtStart(utcDay + 1);
    return before === after || moment < changeIn(utcDay) ? before : after;
  };

  return {
    name,
    offsetAt,
    at(day, clock) {
      const local = day * DAY + clock;
      const first = offsetAt(local - offsetAt(local));
      const second = offsetAt(local - first);
      // Where the clock jumps forward over this time neither offset fits; the later moment keeps the order of things.
      return local - (offsetAt(local - second) === second ? second : Math.min(first, second));
    },
    local(moment) {
      const local = moment + offsetAt(moment);
      const day = Math.floor(local / DAY);
      return { day, clock: local - day * DAY };
    },
    write: moment => formatInstant({ micros: moment * 1_000_000, offset: offsetAt(moment) }),
  };
}

/** Sleep that ends later than this counts for the next day (specification 2.12, late_nap). */
const SLEEP_DAY_CHANGE = 18 * 3600;

/** The local day that a sleep counts for, by the clock of where somebody wakes. */
export function sleepDay(zone: Zone, end: number): number {
  const { day, clock } = zone.local(end);
  return clock > SLEEP_DAY_CHANGE ? day + 1 : day;
}
