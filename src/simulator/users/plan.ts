import { illnessOn } from './illness.ts';
import { keyOf, type Person, type Sport, weekday } from './person.ts';
import { clamp, drift, Random } from './random.ts';
import { type BedTimes, to30 } from './schedule.ts';
import { seasonOn } from './season.ts';
import type { Travels } from './travel.ts';
import { overlaps, type Span, sleepDay, type Zone } from './zone.ts';

const MINUTE = 60;
const HOUR = 3600;

export interface Training extends Span {
  sport: Sport;
  /** Mean metabolic equivalent. */
  met: number;
  /** 1 is a solid hour. */
  load: number;
}

export type NapKind = 'sleep' | 'late_nap' | 'rest' | 'deleted';

export interface Nap extends Span {
  kind: NapKind;
}

export type SessionKind = 'breathing' | 'meditation' | 'nap' | 'relaxation' | 'rest' | 'body_status';

export interface Moment extends Span {
  kind: SessionKind;
}

export interface Gap extends Span {
  /** `off`: the ring lies on a table and measures that; `empty`: it measures nothing at all. */
  kind: 'off' | 'empty';
}

/** What happens on a day besides the night. Nothing of it overlaps, but moments, which may fall into a gap. */
export interface Plan {
  /** 0 to 1. */
  stress: number;
  /** 0 to 1: a late meal, a drink, a long evening. */
  indulgence: number;
  /** 0 to 1. */
  illness: number;
  flight: Span | undefined;
  training: Training | undefined;
  naps: readonly Nap[];
  moments: readonly Moment[];
  gaps: readonly Gap[];
}

const SPORTS: Record<Sport, { met: number; minutes: readonly [number, number] }> = {
  run: { met: 9.2, minutes: [30, 70] },
  ride: { met: 7.4, minutes: [45, 110] },
  strength: { met: 4.7, minutes: [40, 70] },
  hike: { met: 5.6, minutes: [60, 150] },
};

/** Plans a day between the night that ends on it and the one that follows. Nobody trains who is ill or flies. */
export function planDay(person: Person, { zone, flightOn }: Travels, day: number, before: BedTimes, after: BedTimes): Plan {
  const taken: Span[] = [before, after].map(({ night, unworn }) => widen(unworn ?? night, 20 * MINUTE));
  /** Keeps a span when nothing else has its time. */
  const reserve = <T extends Span>(span: T): T | undefined => {
    if (taken.some(other => overlaps(span, other))) return undefined;
    taken.push(widen(span, 10 * MINUTE));
    return span;
  };
  const { severity: illness } = illnessOn(person, day);
  const clockSet = flightOn(day);
  const flight = clockSet === undefined ? undefined : planFlight(person, day, clockSet, before.night.end, after.night.start);
  const aloft = clockSet === undefined ? undefined : planNapAloft(person, zone, day, clockSet, reserve);
  if (flight) taken.push(flight);
  const training = illness > 0 || flight ? undefined : planTraining(person, zone, day, reserve);
  const naps = planNaps(person, zone, day, reserve, aloft ? [aloft] : []);
  const gaps = planGaps(person, zone, day, reserve);
  const moments = planMoments(person, zone, day, gaps, reserve);
  const evening = new Random(keyOf(person, day, 'evening'));
  const party = evening.chance([4, 5].includes(weekday(day)) ? 0.35 : 0.09);
  const indulgence = party && illness === 0 ? evening.between(0.35, 1) : 0;
  return { stress: stressOf(person, day, illness), indulgence, illness, flight, training, naps, moments, gaps };
}

/** How stressful somebody's days are in the long run. */
export const usualStress = (person: Person) => 0.14 + 0.4 * person.stressProneness;

/** How stressful a day is, 0 to 1: weeks that go up and down, calmer weekends, the day itself, and the body when it is ill. */
function stressOf(person: Person, day: number, illness: number): number {
  const wave = drift([person.seed, person.index, 'stress'], day / 11) * 0.3;
  const week = weekday(day) >= 5 ? -0.15 : 0.06;
  const own = new Random(keyOf(person, day, 'stress')).normal(0, 0.13);
  return clamp(usualStress(person) + wave + week + own + 0.15 * illness, 0, 1);
}

/** Some hours around the moment in which the clock is set, between two nights. */
function planFlight(person: Person, day: number, clockSet: number, woken: number, inBed: number): Span {
  const half = new Random(keyOf(person, day, 'flight')).integer(75, 240) * MINUTE;
  return {
    start: Math.min(clockSet, Math.max(clockSet - half, woken + 45 * MINUTE)),
    end: Math.max(clockSet, Math.min(clockSet + half, inBed - 45 * MINUTE)),
  };
}

/** Some sleep through the moment in which the clock is set: it begins by one clock and ends by the other. */
function planNapAloft(person: Person, zone: Zone, day: number, clockSet: number, reserve: Reserve): Nap | undefined {
  const random = new Random(keyOf(person, day, 'nap aloft'));
  if (!random.chance(0.5)) return undefined;
  const start = to30(clockSet - random.between(20, 70) * MINUTE);
  const end = to30(clockSet + random.between(20, 70) * MINUTE);
  return reserve({ start, end, kind: sleepDay(zone, end) === day ? 'sleep' : 'late_nap' });
}

type Reserve = <T extends Span>(span: T) => T | undefined;

function planTraining(person: Person, zone: Zone, day: number, reserve: Reserve): Training | undefined {
  const random = new Random(keyOf(person, day, 'training'));
  const planned = person.trainingDays.includes(weekday(day));
  const season = seasonOn(person, day);
  if (!random.chance((planned ? 0.87 : 0.07) * season.frequency)) return undefined;
  const sport = random.chance(0.78) ? person.sport : random.pick(['run', 'ride', 'strength', 'hike'] as const);
  const { met, minutes } = SPORTS[sport];
  const length = Math.round(random.integer(...minutes) * season.volume) * MINUTE;
  const intensity = met * (0.8 + 0.3 * person.fitness) * random.between(0.88, 1.1);
  for (const clock of [person.trainingClock + random.normal(0, 20 * MINUTE), 17.6 * HOUR, 10 * HOUR]) {
    const start = Math.round(zone.at(day, Math.round(clock)) / MINUTE) * MINUTE;
    const training = reserve({ start, end: start + length, sport, met: intensity, load: ((length / MINUTE) * (intensity - 1)) / 400 });
    if (training) return training;
  }
  return undefined;
}

/** Sleeps by day, and times that were taken for sleep: each kind with its usual hours. */
const NAPS: readonly { kind: NapKind; habit: number; clock: readonly [number, number]; minutes: readonly [number, number] }[] = [
  { kind: 'sleep', habit: 1, clock: [12.8, 15.6], minutes: [18, 105] },
  { kind: 'late_nap', habit: 0.35, clock: [17.45, 18.6], minutes: [40, 75] },
  { kind: 'rest', habit: 0.5, clock: [10, 16.5], minutes: [20, 60] },
  { kind: 'deleted', habit: 0.4, clock: [19.3, 20.6], minutes: [20, 50] },
];

function planNaps(person: Person, zone: Zone, day: number, reserve: Reserve, others: readonly Nap[]): Nap[] {
  const random = new Random(keyOf(person, day, 'naps'));
  const tired = weekday(day) >= 5 ? 1.6 : 0.8;
  const naps = [...others];
  for (const { kind, habit, clock, minutes } of NAPS) {
    const start = to30(zone.at(day, Math.round(random.between(...clock) * HOUR)));
    const end = start + to30(random.between(...minutes) * MINUTE);
    if (!random.chance(person.napHabit * habit * tired)) continue;
    // A nap that ends after 18:00 is a late one; its hours are chosen so that it does, summer time or not.
    const nap = reserve({ start, end, kind });
    if (nap) naps.push(nap);
  }
  return naps.sort((a, b) => a.start - b.start);
}

/** Times without the ring: charging, a forgotten ring, an empty battery. In whole 5 minutes, as activity classes are. */
function planGaps(person: Person, zone: Zone, day: number, reserve: Reserve): Gap[] {
  const random = new Random(keyOf(person, day, 'gaps'));
  const gaps: Gap[] = [];
  const leave = (kind: Gap['kind'], clock: number, minutes: number) => {
    const start = Math.round(zone.at(day, Math.round(clock * HOUR)) / 300) * 300;
    const gap = reserve({ start, end: start + Math.round(minutes / 5) * 300, kind });
    if (gap) gaps.push(gap);
  };
  if (random.chance(0.3)) leave('off', random.pick([8.5, 13, 19.8, 21]) + random.normal(0, 0.4), random.between(20, 75));
  if (random.chance(0.03)) leave('off', random.between(9, 14), random.between(150, 420));
  if (random.chance(0.012)) leave('empty', random.between(11, 18), random.between(60, 200));
  return gaps.sort((a, b) => a.start - b.start);
}

const MOMENTS: readonly { kind: SessionKind; clock: readonly [number, number]; minutes: readonly [number, number] }[] = [
  { kind: 'meditation', clock: [7.5, 9.5], minutes: [8, 21] },
  { kind: 'breathing', clock: [11, 16.5], minutes: [3, 8] },
  { kind: 'body_status', clock: [9, 18], minutes: [1, 3] },
  { kind: 'rest', clock: [13, 18], minutes: [10, 30] },
  { kind: 'nap', clock: [13, 16], minutes: [15, 30] },
  { kind: 'relaxation', clock: [20, 22], minutes: [5, 20] },
];

function planMoments(person: Person, zone: Zone, day: number, gaps: readonly Gap[], reserve: Reserve): Moment[] {
  const random = new Random(keyOf(person, day, 'moments'));
  const favourite = new Random(keyOf(person, 0, 'favourite moment')).pick(MOMENTS);
  const count = random.chance(person.sessionHabit) ? (random.chance(0.2) ? 2 : 1) : 0;
  const moments: Moment[] = [];
  for (let i = 0; i < count; i++) {
    const { kind, clock, minutes } = random.chance(0.55) ? favourite : random.pick(MOMENTS);
    const start = zone.at(day, Math.round(random.between(...clock) * HOUR));
    const length = Math.round((random.between(...minutes) * MINUTE) / 5) * 5;
    // Whoever takes a moment while the ring charges gets one without measurements.
    const charging = random.chance(0.3) ? gaps.find(gap => gap.end - gap.start > length + 240) : undefined;
    const moment = charging
      ? { start: charging.start + 120, end: charging.start + 120 + length, kind }
      : reserve({ start, end: start + length, kind });
    if (moment && !moments.some(other => overlaps(other, moment))) moments.push(moment);
  }
  return moments.sort((a, b) => a.start - b.start);
}

const widen = ({ start, end }: Span, by: number): Span => ({ start: start - by, end: end + by });
