import { itemAt } from '../../base/items.ts';
import { writeId } from './identity.ts';
import { clamp, type Key, Random, round } from './random.ts';

export type Sport = 'run' | 'ride' | 'strength' | 'hike';

/** Somebody who wears a ring, and what stays the same about them. Clocks are seconds from local midnight. */
export interface Person {
  userId: string;
  /** Short, lower case, unique among these people. */
  name: string;
  seed: number;
  index: number;
  age: number;
  sex: 'female' | 'male';
  weightKg: number;
  heightM: number;
  zone: string;
  /** 0 to 1. */
  fitness: number;
  restingHeartRate: number;
  hrv: number;
  /** Usual bedtime; negative before midnight. */
  bedtime: number;
  /** Usual time in bed, seconds. */
  nightLength: number;
  /** How far bedtimes scatter, seconds. */
  irregularity: number;
  /** 0 to 1. */
  stressProneness: number;
  /** How much they move besides training; 1 is usual. */
  liveliness: number;
  deskWork: boolean;
  /** Days of the week, 0 is Monday. */
  trainingDays: readonly number[];
  trainingClock: number;
  sport: Sport;
  napHabit: number;
  sessionHabit: number;
  spo2: number;
  breathRate: number;
  /** Length of the monthly cycle that the skin temperature follows, days; undefined without one. */
  cycleDays: number | undefined;
}

const NAMES =
  'ada ben cleo dev ewa finn gita hugo ines jun kaya luca mira noor otto pia quinn rosa sami tove uma vito wren xenia yuki zoe'.split(' ');

/** The first three are chosen for their clocks: both kinds of summer time, and an offset of a quarter of an hour without any. */
const ZONES = [
  'Europe/Berlin',
  'America/New_York',
  'Asia/Kathmandu',
  'Europe/London',
  'Australia/Sydney',
  'America/Los_Angeles',
  'Asia/Tokyo',
  'America/Sao_Paulo',
];

/** The person with this index: always the same for one seed, however many there are. */
export function createPerson(seed: number, index: number): Person {
  const random = new Random([seed, index, 'person']);
  const sex = random.chance(0.5) ? 'female' : 'male';
  const age = random.integer(23, 61);
  const heightM = round(random.normal(sex === 'female' ? 1.67 : 1.8, 0.06), 2);
  const fitness = random.between(0.1, 1);
  const turn = Math.floor(index / NAMES.length);
  return {
    userId: writeId(seed, { person: index, kind: 'person', day: 0, ordinal: 0 }),
    name: `${NAMES[index % NAMES.length]}${turn ? turn + 1 : ''}`,
    seed,
    index,
    age,
    sex,
    weightKg: round(heightM * heightM * random.between(20.5, 27), 1),
    heightM,
    zone: itemAt(ZONES, index % ZONES.length),
    fitness,
    restingHeartRate: round(clamp(68 - 18 * fitness + random.normal(0, 2), 48, 68)),
    hrv: round(clamp(28 + 50 * fitness - (age - 40) * 0.7 + random.normal(0, 7), 25, 90)),
    bedtime: random.between(-6600, 2400),
    nightLength: random.between(7.2, 8.5) * 3600,
    irregularity: random.between(900, 2700),
    stressProneness: random.between(0.15, 0.9),
    liveliness: random.between(0.75, 1.2),
    deskWork: random.chance(0.65),
    trainingDays: trainingDays(random, clamp(Math.round(1 + 4.4 * fitness), 2, 5)),
    trainingClock: random.pick([6.75, 12.25, 17.75, 18.5]) * 3600,
    sport: random.pick(['run', 'ride', 'strength', 'hike']),
    napHabit: random.between(0.03, 0.1),
    sessionHabit: random.between(0.15, 0.6),
    spo2: random.between(95.8, 97.8),
    breathRate: random.between(13, 16.8),
    cycleDays: sex === 'female' && age < 50 ? random.integer(26, 31) : undefined,
  };
}

/** Spread over the week, so that rest days lie between. */
function trainingDays(random: Random, count: number): number[] {
  const first = random.next() * 7;
  const days = Array.from({ length: count }, (_, i) => Math.floor(first + (i * 7) / count) % 7);
  return days.sort((a, b) => a - b);
}

/** The key of a stream of random numbers that belongs to a day of a person. */
export const keyOf = (person: Person, day: number, purpose: string, version = 0): Key => [person.seed, person.index, day, purpose, version];

/** 0 is Monday. Day 0 was a Thursday. */
export const weekday = (day: number) => (((day + 3) % 7) + 7) % 7;
