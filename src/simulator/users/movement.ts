import type { Period } from './periods.ts';
import { keyOf, type Person, weekday } from './person.ts';
import type { Plan } from './plan.ts';
import { clamp, Random } from './random.ts';
import { DAY, type Span, type Zone } from './zone.ts';

/** What somebody does in a minute, as far as the pulse is concerned. */
export const State = { awake: 0, lying: 1, asleep: 2, training: 3, moment: 4, unworn: 5 } as const;

/** MET of a minute of which nothing is known. */
export const UNKNOWN = 255;
/** What a ring on a table measures, in tenths of a MET. */
export const UNWORN = 1;

/** Minutes, one after the other: those of a day from 4 a.m. to 4 a.m. by the clock of where somebody is then, or of an activity. */
export interface Minutes extends Span {
  /** Tenths of a MET, or UNKNOWN. */
  met: Uint8Array;
  state: Uint8Array;
  /** Tenths of a step. */
  steps: Uint16Array;
}

const ACTIVITY_DAY_START = 4 * 3600;

/** The start of an activity day. */
export const activityStart = (zone: Zone, day: number) => zone.at(day, ACTIVITY_DAY_START);

/** When everything that belongs to an activity day is over: its 24 hours, and the last minute before the next day starts. */
export const activityEnd = (zone: Zone, day: number) => Math.max(activityStart(zone, day) + DAY, activityStart(zone, day + 1));

/**
 * What the activity of a day tells: 24 hours from 4 a.m. (2.5). Where the clock goes forward, by summer time or in a flight, its end is
 * told by the next day too; where it goes back, what lies between the two is told by none.
 */
export function activityMinutes(minutesOf: (day: number) => Minutes, day: number): Minutes {
  const own = minutesOf(day);
  const end = own.start + DAY;
  if (own.end === end) return own;
  const count = DAY / 60;
  const join = <T extends Uint8Array | Uint16Array>(make: (count: number) => T, pick: (minutes: Minutes) => T): T => {
    const joined = make(count);
    joined.set(pick(own).subarray(0, count));
    if (own.end < end) joined.set(pick(minutesOf(day + 1)).subarray(0, (end - own.end) / 60), (own.end - own.start) / 60);
    return joined;
  };
  return {
    start: own.start,
    end,
    met: join(
      length => new Uint8Array(length),
      ({ met }) => met,
    ),
    state: join(
      length => new Uint8Array(length),
      ({ state }) => state,
    ),
    steps: join(
      length => new Uint16Array(length),
      ({ steps }) => steps,
    ),
  };
}

/** The minutes of a day with naps that nobody planned. */
export function withNaps(person: Person, minutes: Minutes, naps: readonly Period[]): Minutes {
  const changed = { ...minutes, met: minutes.met.slice(), state: minutes.state.slice(), steps: minutes.steps.slice() };
  for (const nap of naps) lie(changed, new Random(keyOf(person, nap.day, 'lying', nap.ordinal)), nap, State.asleep);
  return changed;
}

interface Bout {
  met: number;
  spread: number;
  minutes: readonly [number, number];
  state: number;
}

const COUCH: Bout = { met: 10, spread: 0, minutes: [10, 38], state: State.lying };
const SIT: Bout = { met: 12, spread: 1, minutes: [8, 45], state: State.awake };
const STAND: Bout = { met: 18, spread: 3, minutes: [3, 14], state: State.awake };
const WALK: Bout = { met: 33, spread: 5, minutes: [4, 20], state: State.awake };

const ALOFT = [4, 84, 9, 3] as const;

/** How likely couch, sitting, standing and walking are at an hour. */
function odds(person: Person, pace: number, hour: number, free: boolean): readonly [number, number, number, number] {
  if (hour < 6 || hour >= 23) return [40, 55, 5, 0];
  if (hour >= 19.5) return [34, 42, 20 * pace, 5 * pace];
  if (free) return [9, 42, 30, 20 * pace];
  if (hour < 9 || (hour >= 17 && hour < 18.5)) return [2, 32, 32, 34 * pace];
  if (hour >= 12 && hour < 13) return [2, 40, 25, 33 * pace];
  return person.deskWork ? [1, 68, 20, 8 * pace] : [2, 38, 42, 18 * pace];
}

/** Fills the minutes of a day: what somebody does awake, then training, sleep, sessions and times without the ring over it. */
export function minutesOf(
  person: Person,
  zone: Zone,
  day: number,
  plan: Plan,
  periods: readonly Period[],
  unworn: readonly Span[],
): Minutes {
  const start = activityStart(zone, day);
  const end = activityStart(zone, day + 1);
  const count = (end - start) / 60;
  const minutes = { start, end, met: new Uint8Array(count), state: new Uint8Array(count), steps: new Uint16Array(count) };
  const random = new Random(keyOf(person, day, 'movement'));
  wander(minutes, random, person, zone, day, plan);
  if (plan.training) train(minutes, random, plan.training);
  for (const period of periods)
    lie(minutes, random, period, period.kind === 'rest' || period.kind === 'deleted' ? State.lying : State.asleep);
  for (const span of plan.moments) lie(minutes, random, span, State.moment);
  for (const span of unworn) paint(minutes, span, UNWORN, State.unworn);
  for (const gap of plan.gaps) paint(minutes, gap, gap.kind === 'empty' ? UNKNOWN : UNWORN, State.unworn);
  return minutes;
}

function wander(
  { met, state, steps, start }: Minutes,
  random: Random,
  person: Person,
  zone: Zone,
  day: number,
  { illness, flight }: Plan,
): void {
  const free = weekday(day) >= 5;
  const lazy = random.between(0.75, 1.25) * (1 - 0.5 * illness);
  const pace = person.liveliness * (1 - 0.4 * illness);
  for (let minute = 0; minute < met.length; ) {
    const moment = start + minute * 60;
    const aloft = flight !== undefined && flight.start <= moment && moment < flight.end;
    const [rest, sit, stand, walk] = aloft ? ALOFT : odds(person, pace, zone.local(moment).clock / 3600, free);
    const couch = rest + 60 * illness;
    const draw = random.next() * (couch + sit + stand + walk * lazy);
    const bout = draw < couch ? COUCH : draw < couch + sit ? SIT : draw < couch + sit + stand ? STAND : WALK;
    const level = bout.met + bout.spread * random.normal(0, 0.7);
    const until = Math.min(met.length, minute + random.integer(...bout.minutes));
    for (; minute < until; minute++) {
      const fidget = bout === SIT && random.chance(0.05) ? 6 : 0;
      met[minute] = clamp(Math.round(level + fidget + bout.spread * random.normal(0, 0.6)), bout === COUCH ? 9 : 11, 60);
      state[minute] = bout.state;
      steps[minute] = stepsAt(met[minute] ?? 0);
    }
  }
}

/** Tenths of a step in a minute at so many tenths of a MET: none while sitting, about 105 a minute at a brisk walk. */
const stepsAt = (met: number) => (met < 16 ? 0 : Math.min(1250, (met - 15) * 42));

/** Warms up, holds with waves, cools down. */
function train({ met, state, steps, start }: Minutes, random: Random, training: NonNullable<Plan['training']>): void {
  const first = Math.round((training.start - start) / 60);
  const length = Math.round((training.end - training.start) / 60);
  const cadence = { run: 1620, hike: 1060, strength: 130, ride: 0 }[training.sport];
  for (let i = 0; i < length; i++) {
    const minute = first + i;
    if (minute < 0 || minute >= met.length) continue;
    const warm = Math.min(1, 0.5 + i / 12, 0.45 + (length - i) / 8);
    const pause = training.sport === 'strength' && i % 4 === 3 ? 0.6 : 1;
    met[minute] = clamp(Math.round(10 * training.met * warm * pause * (1 + 0.08 * Math.sin(i / 5)) * random.normal(1, 0.05)), 16, 160);
    state[minute] = State.training;
    steps[minute] = Math.round(cadence * (0.7 + 0.3 * warm) * random.normal(1, 0.03));
  }
}

/** Lying still. A night's short walks stay below what counts as movement. */
function lie({ met, state, steps, start }: Minutes, random: Random, span: Span, as: number): void {
  const first = Math.max(0, Math.floor((span.start - start) / 60));
  const last = Math.min(met.length, Math.ceil((span.end - start) / 60));
  for (let minute = first; minute < last; minute++) {
    const draw = random.next();
    met[minute] = draw < 0.06 ? 8 : draw < 0.86 ? 9 : 10;
    state[minute] = as;
    steps[minute] = 0;
  }
}

function paint({ met, state, steps, start }: Minutes, span: Span, value: number, as: number): void {
  const first = Math.max(0, (span.start - start) / 60);
  const last = Math.max(0, (span.end - start) / 60);
  met.fill(value, first, last);
  state.fill(as, first, last);
  steps.fill(0, first, last);
}
