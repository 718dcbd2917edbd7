import { memoize } from './memoize.ts';
import type { Person } from './person.ts';
import { Random } from './random.ts';
import { DAY, type Span, type Zone, zoneNamed } from './zone.ts';

/** A stay in another time zone, from the moment in which the clock is set on the way out to that on the way home. */
export interface Trip extends Span {
  away: Zone;
  /** The local days of the two flights. */
  outDay: number;
  homeDay: number;
  /** How far its clocks are ahead of those at home. */
  hours: number;
}

/** Where in the world somebody is. */
export interface Travels {
  /** The zone that somebody lives by: that of home, and of each trip while it lasts. */
  zone: Zone;
  /** When the clock is set in a flight of a day. */
  flightOn(day: number): number | undefined;
  /** Hours that the body is ahead of the clock in the night that ends on a day; it follows by an hour a night. */
  lagOn(day: number): number;
}

const HOUR = 3600;
/** A trip is drawn once for so many days; the body is at home again before the next. */
const ROUND_DAYS = 45;
/** How likely it is: the first of three hardly ever flies, the second for a living, the third once in a while. */
const ODDS = [0.1, 0.8, 0.2];
const DESTINATIONS = [
  'America/Los_Angeles',
  'America/Denver',
  'America/New_York',
  'America/Sao_Paulo',
  'Atlantic/Reykjavik',
  'Europe/London',
  'Europe/Berlin',
  'Africa/Nairobi',
  'Asia/Kathmandu',
  'Asia/Singapore',
  'Asia/Tokyo',
  'Australia/Sydney',
];
/** Farther away the flights would cross the date line. */
const FARTHEST = 10 * HOUR;

/** The travels of a person, a pure function of the person and the day. */
export function createTravels(person: Person): Travels {
  const home = zoneNamed(person.zone);
  const tripIn = memoize<Trip | null>(64, round => planTrip(person, home, round));
  // No flight is near the border of a round, so it does not matter whether the day is a local one or one of UTC.
  const tripNear = (day: number) => tripIn(Math.floor(day / ROUND_DAYS));
  return {
    zone: withTrips(home, tripNear),
    flightOn(day) {
      const trip = tripNear(day);
      return trip?.outDay === day ? trip.start : trip?.homeDay === day ? trip.end : undefined;
    },
    lagOn(day) {
      const trip = tripNear(day);
      if (!trip || day <= trip.outDay) return 0;
      const left = (hours: number, nights: number) => Math.sign(hours) * Math.max(0, Math.abs(hours) - nights);
      if (day <= trip.homeDay) return left(-trip.hours, day - trip.outDay - 1);
      return left(trip.hours - left(trip.hours, trip.homeDay - trip.outDay), day - trip.homeDay - 1);
    },
  };
}

function planTrip({ seed, index }: Person, home: Zone, round: number): Trip | null {
  const random = new Random([seed, index, round, 'trip']);
  if (!random.chance(ODDS[index % ODDS.length] ?? 0)) return null;
  const outDay = round * ROUND_DAYS + random.integer(3, 17);
  const homeDay = outDay + (random.chance(0.6) ? random.integer(3, 6) : random.integer(8, 12));
  const noon = home.at(outDay, 12 * HOUR);
  const ahead = (zone: Zone) => zone.offsetAt(noon) - home.offsetAt(noon);
  const reachable = DESTINATIONS.map(zoneNamed).filter(zone => Math.abs(ahead(zone)) >= HOUR && Math.abs(ahead(zone)) <= FARTHEST);
  const away = random.pick(reachable);
  const start = clockSet(random, outDay, home, away);
  return { start, end: clockSet(random, homeDay, away, home), away, outDay, homeDay, hours: ahead(away) / HOUR };
}

/**
 * When the clock is set in a flight: by day, by the clock before and by that after, and on the same date, so that nobody is between
 * two zones at midnight or at 4 a.m., when days begin. In whole 5 minutes, as activity classes are.
 */
function clockSet(random: Random, day: number, from: Zone, to: Zone): number {
  const noon = from.at(day, 12 * HOUR);
  const forward = to.offsetAt(noon) - from.offsetAt(noon);
  const clock = random.between(Math.max(9.5 * HOUR, 6.5 * HOUR - forward), Math.min(20.5 * HOUR, 20.5 * HOUR - forward));
  return Math.round(from.at(day, Math.round(clock)) / 300) * 300;
}

/** Of a time that a flight east leaves out, the moment is that of the flight; of one that a flight west repeats, the first. */
function withTrips(home: Zone, tripNear: (day: number) => Trip | null): Zone {
  const zoneAt = (moment: number): Zone => {
    const trip = tripNear(Math.floor(moment / DAY));
    return trip && trip.start <= moment && moment < trip.end ? trip.away : home;
  };
  return {
    name: home.name,
    offsetAt: moment => zoneAt(moment).offsetAt(moment),
    at(day, clock) {
      const trip = tripNear(day);
      const atHome = home.at(day, clock);
      if (!trip || atHome < trip.start) return atHome;
      const away = trip.away.at(day, clock);
      return away < trip.end ? Math.max(away, trip.start) : Math.max(atHome, trip.end);
    },
    local: moment => zoneAt(moment).local(moment),
    write: moment => zoneAt(moment).write(moment),
  };
}
