import { resources } from '../../schema/index.ts';
import { addDays, findDayNumber, formatDay, formatInstant } from '../../schema/instant.ts';
import type { WireDocument } from '../../schema/resource.ts';
import { createPeople } from '../../src/simulator/users/people.ts';
import { below, pick, type Random, randomFrom } from '../support/random-documents.ts';
import type { Told } from './views-oracle-compare.ts';

const HOUR = 3600;
/** Near a leap day, the ends of years with 52 and 53 weeks, and changes of the clock. */
const FIRST_DAYS = ['2024-02-20', '2024-12-20', '2020-12-24', '2025-03-20', '2025-10-20', '2026-12-21'];
const OFFSETS = [-12, -11, -9.5, -5, -3.5, 0, 1, 5.5, 5.75, 12.75, 14].map(hours => hours * HOUR);

/** Sleeps of one day, alike in what decides which of them is the night. */
interface SleepDay {
  types: readonly (string | null | undefined)[];
  lengths: readonly number[];
  timesInBed: readonly (number | null)[];
  timesAsleep: readonly (number | null)[];
}

const SLEEP_DAYS: readonly SleepDay[] = [
  {
    types: ['long_sleep', 'long_sleep', 'sleep', 'late_nap', 'rest', 'deleted', undefined],
    lengths: [-HOUR, HOUR, 3 * HOUR + 1, 7 * HOUR, 7 * HOUR, 8 * HOUR + 17, 8 * HOUR + 2.5, 8 * HOUR + 0.25, 14 * HOUR, 49 * HOUR + 1],
    timesInBed: [10_799, 10_800, 10_801, 7 * HOUR, 7 * HOUR, null],
    timesAsleep: [600, 5 * HOUR, 7 * HOUR, null],
  },
  {
    types: ['sleep', 'sleep', null, 'siesta', 'late_nap'],
    lengths: [0, 900, HOUR, 2 * HOUR],
    timesInBed: [0, 10_800, 10_800, null],
    timesAsleep: [0, 900, HOUR, null],
  },
  { types: ['long_sleep'], lengths: [4 * HOUR], timesInBed: [4 * HOUR], timesAsleep: [3 * HOUR] },
];

/** Draws values, of which some are missing. */
class Draw {
  readonly random: Random;
  readonly #missing: number;

  constructor(random: Random) {
    this.random = random;
    this.#missing = pick(random, [0.05, 0.3]);
  }

  chance = (share: number) => this.random() < share;
  one = <T>(list: readonly T[]) => pick(this.random, list);
  maybe = <T>(value: T) => (this.chance(1 - this.#missing) ? value : this.one([null, undefined]));
  of = <T>(...list: readonly T[]) => this.maybe(this.one(list));
  score = () => this.of(1, 60, 61, 61, 99, 100);
  seconds = () => this.of(0, 600, HOUR, 5 * HOUR, 7 * HOUR, 7 * HOUR);
  text = (digits: string, length: number) => Array.from({ length }, () => this.one([...digits])).join('');

  sample = (start: number, offset: number, most: number) =>
    this.maybe({
      timestamp: at(start + this.one([0, 0, -300, 7, 0.5]), offset),
      interval: this.one([300, 300, 60, 30, 299, 0.5, 1000]),
      items: Array.from({ length: this.one([0, 1, 2, most]) }, () => this.of(0, 0.1, 42, 61.5, -3, 70) ?? null),
    });
}

const at = (seconds: number, offset: number) => formatInstant({ micros: seconds * 1_000_000, offset });

function sleep(draw: Draw, day: SleepDay, start: number, length: number, offset: number): WireDocument {
  const { one, of, maybe, chance, score, seconds } = draw;
  const landed = offset + one([-HOUR, HOUR, 1800, 9.75 * HOUR, -22 * HOUR]);
  const endOffset = chance(0.1) ? Math.max(-12 * HOUR, Math.min(14 * HOUR, landed)) : offset;
  const text = (step: number) => {
    const whole = Math.max(0, Math.ceil(length / step));
    return maybe(draw.text(one(['1234', '1', '12', '0159x 4é']), one([whole, whole, whole, 0, 1, Math.max(0, whole - 1), whole + 2])));
  };
  return {
    type: one(day.types),
    bedtime_start: chance(0.97) ? at(start, offset) : null,
    bedtime_end: chance(0.97) ? at(start + length, endOffset) : null,
    time_in_bed: one(day.timesInBed),
    total_sleep_duration: one(day.timesAsleep),
    awake_time: seconds(),
    deep_sleep_duration: seconds(),
    light_sleep_duration: seconds(),
    rem_sleep_duration: seconds(),
    latency: seconds(),
    efficiency: score(),
    restless_periods: score(),
    average_heart_rate: of(51.1, 51.1, 51.2, 60),
    lowest_heart_rate: score(),
    average_hrv: score(),
    average_breath: of(13.1),
    low_battery_alert: of(true, false),
    ring_id: of('r'),
    period: 0,
    readiness: of({ contributors: {}, temperature_deviation: of(-0.1) }),
    hrv: draw.sample(start, offset, 20),
    heart_rate: draw.sample(start, offset, 20),
    sleep_phase_30_sec: chance(0.2) ? text(30) : one(['', null, undefined]),
    sleep_phase_5_min: text(300),
    movement_30_sec: chance(0.2) ? text(30) : of(''),
  };
}

function activity(draw: Draw, number: number, offset: number): WireDocument {
  const { one, of, maybe, chance, score } = draw;
  const start = (number * 24 + 4) * HOUR - offset;
  const count = () => (chance(0.98) ? one([0, 0, HOUR, 4 * HOUR, 12 * HOUR]) : null);
  return {
    score: score(),
    timestamp: chance(0.97) ? at(start, offset) : null,
    class_5_min: maybe(draw.text(one(['012345', '0', '019x5']), one([276, 288, 288, 300, 0, 1, 7]))),
    met: draw.sample(start + one([0, 0, HOUR]), offset, one([5, 300])),
    contributors: {},
    high_activity_time: count(),
    medium_activity_time: count(),
    low_activity_time: count(),
    sedentary_time: count(),
    resting_time: count(),
    non_wear_time: count(),
    steps: count(),
    equivalent_walking_distance: count(),
    active_calories: count(),
    total_calories: count(),
    average_met_minutes: of(1.5),
    inactivity_alerts: count(),
  };
}

function session(draw: Draw, number: number, offset: number): WireDocument {
  const start = (number * 24 + below(draw.random, 24)) * HOUR - offset;
  return {
    type: 'rest',
    start_datetime: at(start, offset),
    end_datetime: at(start + 600, offset),
    heart_rate: draw.sample(start, offset, 20),
  };
}

function workout(draw: Draw, number: number, offset: number): WireDocument {
  const { one, of, chance } = draw;
  const start = (number * 24 + below(draw.random, 24)) * HOUR - offset + one([0, 0, 30, 299]);
  return {
    activity: one(['running', 'walking']),
    intensity: of('easy', 'hard'),
    source: of('manual'),
    label: of('x'),
    calories: of(100.5),
    distance: of(0, 5000),
    start_datetime: chance(0.95) ? at(start, offset) : null,
    end_datetime: chance(0.95) ? at(start + one([-60, 0, 59.5, 1800, 2 * HOUR, 30 * HOUR]), offset) : null,
  };
}

const DAILY: Record<string, (draw: Draw, number: number, offset: number) => WireDocument> = {
  daily_readiness: ({ of, score }) => ({
    score: score(),
    temperature_deviation: of(0.1, 0.1, 0.1, -0.2, 1e100, -1e99),
    temperature_trend_deviation: of(0.3),
    contributors: {},
  }),
  daily_sleep: ({ score }) => ({ score: score(), contributors: {} }),
  daily_spo2: ({ of, score }) => ({ breathing_disturbance_index: score(), spo2_percentage: of({ average: of(97.3, 1e300) }) }),
  vo2_max: ({ of, random }, number) => ({ vo2_max: of(40, 41, 42), timestamp: of(at((number * 24 + below(random, 2)) * HOUR, 0)) }),
  daily_resilience: ({ of }) => ({ level: of('solid', 'strong'), contributors: {} }),
  daily_stress: ({ of, seconds }) => ({
    day_summary: of('restored', 'normal', 'stressful', 'stressful', 'odd'),
    stress_high: seconds(),
    recovery_high: seconds(),
  }),
  sleep_time: () => ({ status: 'x' }),
  daily_activity: activity,
};

const KINDS = [...Object.keys(DAILY), 'sleep', 'session', 'workout'];

/** Some documents in another version, under another day as well, and some removed. */
function change(draw: Draw, resource: string, list: readonly WireDocument[]): Told['answers'][number] {
  const edited = list.filter(() => draw.chance(0.05)).map(document => ({ ...draw.one(list), id: document.id }));
  const others = list.map(({ id }) => id as string).filter(id => edited.every(document => document.id !== id));
  return { resource, documents: edited, removed: others.filter(() => draw.chance(0.03)) };
}

/** @param alone the only kind of documents there is */
function randomPerson(random: Random, user: string, firstDay: string, days: number, alone?: string): Told {
  const draw = new Draw(random);
  const { one, chance } = draw;
  const documents = new Map<string, WireDocument[]>();
  const heartRate = new Map<number, WireDocument>();
  let number = findDayNumber(firstDay)!;
  let offset = one(OFFSETS);
  let wokeAt: number | undefined;

  const save = (resource: string, document: WireDocument) => {
    const list = documents.get(resource) ?? [];
    list.push({ id: `${resource}-${list.length}`, day: formatDay(number), ...document });
    documents.set(resource, list);
  };

  for (let i = 0; i < days; i++) {
    number += i === 20 ? one([366, 367, 368, 800]) : chance(0.05) ? one([2, 6, 30]) : 1;
    if (chance(0.08)) offset = one(OFFSETS);
    const only = alone ?? (chance(0.2) ? one([...KINDS, 'none']) : undefined);
    const has = (resource: string, share = 1) => (only ? only === resource : chance(share));
    for (const [resource, make] of Object.entries(DAILY)) {
      if (!has(resource, resource === 'vo2_max' ? 0.3 : 0.85)) continue;
      for (let copies = chance(0.15) ? 3 : 1; copies > 0; copies--) save(resource, make(draw, number, offset));
    }
    const day = one(SLEEP_DAYS);
    for (let sleeps = has('sleep') ? one([0, 1, 1, 2, 3, 4]) : 0; sleeps > 0; sleeps--) {
      const length = one(day.lengths);
      // From 18:00 of the day before to 20:00, and so that middles fall on whole hours; or where another one ends.
      const anywhere = (number * 24 + below(random, 27) - 6) * HOUR - (chance(0.5) ? length / 2 : 0) - offset;
      const start = one([anywhere, anywhere, anywhere, wokeAt]) ?? anywhere;
      wokeAt = start + length;
      save('sleep', sleep(draw, day, start, length, offset));
    }
    for (let sessions = has('session') ? one([0, 0, 1, 2]) : 0; sessions > 0; sessions--) save('session', session(draw, number, offset));
    for (let workouts = has('workout') ? one([0, 0, 1, 3]) : 0; workouts > 0; workouts--) save('workout', workout(draw, number, offset));
    for (let rows = below(random, 4); rows > 0; rows--) {
      const seconds = number * 86_400 + below(random, 192) * 450;
      const source = one(['awake', 'sleep', 'new']);
      heartRate.set(seconds, { timestamp: at(seconds, chance(0.7) ? 0 : offset), bpm: 40 + below(random, 99), source });
    }
  }
  if (chance(0.8)) documents.set('personal_info', [{ id: 'p', age: one([0, 18, 40, 40, 151, null]) }]);
  const answers = [...documents].map(([resource, list]) => ({ resource, documents: list, removed: [] }));
  return {
    user,
    answers: [...answers, ...[...documents].map(([resource, list]) => change(draw, resource, list))],
    heartRate: [...heartRate.values()],
  };
}

/**
 * Two people of so many days, and one for each kind of documents who has nothing else. Their documents have the same identifiers, every
 * field may be missing or null, and what the views decide by stands on its borders and in ties.
 */
export function randomPeople(seed: number, days: number): Told[] {
  const random = randomFrom(seed);
  const first = pick(random, FIRST_DAYS);
  return [
    ...['ann', "Ann's"].map(user => randomPerson(random, user, first, days)),
    ...KINDS.map(kind => randomPerson(random, kind, first, 3, kind)),
  ];
}

/** What the sandbox serves of its people from one day to another. */
export function generatedPeople(seed: number, count: number, from: string, to: string): Told[] {
  const people = createPeople({ seed, count, from, to });
  const days = Array.from({ length: findDayNumber(to)! - findDayNumber(from)! + 1 }, (_, i) => addDays(from, i));
  return people.persons.map(({ userId, name }) => ({
    user: name,
    answers: resources
      .filter(({ dated }) => dated)
      .map(resource => ({
        resource: resource.name,
        documents: days.flatMap(day => people.documents(userId, resource.name, day)),
        removed: [] as string[],
      }))
      .concat([{ resource: 'personal_info', documents: [people.personalInfo(userId)!], removed: [] }]),
    heartRate: people.heartRate(userId, Date.parse(from) * 1000, Date.parse(to) * 1000),
  }));
}
