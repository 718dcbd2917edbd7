import type { Condition } from './condition.ts';
import { type MeasuredMoment, SESSION_INTERVAL } from './moments.ts';
import { type Minutes, State } from './movement.ts';
import type { Period } from './periods.ts';
import { keyOf, type Person } from './person.ts';
import { clamp, Random } from './random.ts';
import type { Zone } from './zone.ts';

export const SOURCES = ['awake', 'workout', 'rest', 'sleep', 'live', 'session'] as const;
type Source = (typeof SOURCES)[number];

/** The measurements of an activity day, in their order; no two at one moment. */
export interface Beats {
  /** Milliseconds since the Unix epoch. */
  at: Float64Array;
  bpm: Uint8Array;
  /** Index in SOURCES. */
  source: Uint8Array;
}

/** What the pulse of a day follows. */
export interface PulseInputs {
  minutes: Minutes;
  periods: readonly Period[];
  moments: readonly MeasuredMoment[];
  condition: Condition;
  stress: number;
}

/** Measures a day: about every 50 seconds awake, every few in training, every 5 minutes lying and asleep, never without the ring. */
export function measureBeats(person: Person, zone: Zone, day: number, inputs: PulseInputs): Beats {
  const { minutes } = inputs;
  const random = new Random(keyOf(person, day, 'heart rate'));
  const pulse = pulseByMinute(person, zone, random, inputs);
  const rows: { at: number; bpm: number; source: Source }[] = [];
  const end = minutes.end * 1000;
  const push = (at: number, bpm: number, source: Source) => {
    const last = rows.at(-1);
    if (at >= minutes.start * 1000 && at < end && (!last || at > last.at)) rows.push({ at, bpm, source });
  };
  const known = knownPulses(random, inputs);
  let next = 0;
  const emitUntil = (moment: number) => {
    for (let one = known[next]; one && one.end <= moment; one = known[++next]) emit(one);
  };
  let live = random.chance(0.3) ? minutes.start * 1000 + random.between(6, 15) * 3_600_000 : Number.POSITIVE_INFINITY;
  let at = minutes.start * 1000 + random.integer(0, 40_000);
  while (at < end) {
    const minute = Math.floor((at / 1000 - minutes.start) / 60);
    const state = minutes.state[minute];
    // Sleeps and sessions carry samples of their own: their rows are those samples.
    emitUntil(at);
    const inside = known[next];
    if (inside && inside.start <= at) {
      emit(inside);
      next++;
      at = inside.end + random.integer(4_000, 40_000);
      continue;
    }
    if (state === State.unworn) {
      at = (minutes.start + (minute + 1) * 60) * 1000 + random.integer(0, 9_000);
      continue;
    }
    const bpm = Math.round((pulse[minute] ?? 0) + random.normal(0, state === State.lying ? 1 : 1.8));
    if (at >= live && state === State.awake) {
      for (let i = 0; i < 20; i++) push(at + i * 1500 + random.integer(0, 900), bpm + random.integer(-2, 2), 'live');
      live = Number.POSITIVE_INFINITY;
      at += 60_000;
      continue;
    }
    push(at, bpm, state === State.training ? 'workout' : state === State.lying ? 'rest' : 'awake');
    at += pause(random, state);
  }
  emitUntil(Number.POSITIVE_INFINITY);
  return pack(rows);

  function emit({ rows: samples }: Known): void {
    for (const { at, bpm, source } of samples) push(at, bpm, source);
  }
}

/** Milliseconds to the next measurement. */
function pause(random: Random, state: number | undefined): number {
  if (state === State.training) return random.integer(4_000, 13_000);
  if (state === State.lying) return random.integer(270_000, 330_000);
  const draw = random.next();
  if (draw < 0.8) return random.integer(14_000, 44_000);
  return draw < 0.95 ? random.integer(55_000, 140_000) : random.integer(200_000, 320_000);
}

interface Known {
  start: number;
  end: number;
  rows: { at: number; bpm: number; source: Source }[];
}

/** Sleeps and sessions of the day as rows, in their order. */
function knownPulses(random: Random, { periods, moments }: PulseInputs): Known[] {
  const known: Known[] = [];
  for (const { start, end, kind, pulse, day, ordinal } of periods) {
    const source = kind === 'rest' || kind === 'deleted' ? 'rest' : 'sleep';
    // A night is cut at 4 a.m., so the little delays must not depend on which of the two days asks.
    const delay = new Random([day, ordinal, start, 'delay']);
    const rows: Known['rows'] = [];
    pulse.heartRate.forEach((bpm, i) => {
      const late = delay.integer(0, 28_000);
      if (bpm !== null && start + i * 300 < end - 30) rows.push({ at: (start + i * 300) * 1000 + late, bpm, source });
    });
    known.push({ start: start * 1000, end: end * 1000, rows });
  }
  for (const { start, end, heartRate } of moments) {
    const rows: Known['rows'] = [];
    heartRate?.forEach((bpm, i) => {
      if (bpm !== null) rows.push({ at: (start + i * SESSION_INTERVAL) * 1000 + random.integer(0, 900), bpm, source: 'session' });
    });
    known.push({ start: start * 1000, end: end * 1000, rows });
  }
  return known.sort((a, b) => a.start - b.start);
}

/** The pulse of each waking minute: it follows effort quickly up and slowly down, the time of day, and stress. */
function pulseByMinute(person: Person, zone: Zone, random: Random, { minutes, condition, stress }: PulseInputs): Float32Array {
  const pulse = new Float32Array(minutes.met.length);
  const rest = condition.restingHeartRate;
  const highest = 208 - 0.7 * person.age;
  const perMet = (highest - rest - 10) / (9 + 7 * person.fitness);
  const offset = zone.offsetAt(minutes.start);
  let effort = 0;
  let wander = 0;
  for (let i = 0; i < pulse.length; i++) {
    const target = Math.max(0, (minutes.met[i] ?? 0) / 10 - 1.1) * (minutes.state[i] === State.unworn ? 0 : 1);
    effort += (target - effort) * (target > effort ? 0.45 : 0.22);
    wander = 0.93 * wander + random.normal(0, 0.9);
    const hour = ((minutes.start + i * 60 + offset) % 86_400) / 3600;
    const clock = 3.2 * Math.cos(((hour - 16) * Math.PI) / 12);
    const posture = minutes.state[i] === State.lying ? 5 : 11;
    pulse[i] = clamp(rest + posture + clock + 9 * (stress - 0.3) + perMet * effort + wander, 40, highest - 4);
  }
  return pulse;
}

function pack(rows: readonly { at: number; bpm: number; source: Source }[]): Beats {
  const beats = { at: new Float64Array(rows.length), bpm: new Uint8Array(rows.length), source: new Uint8Array(rows.length) };
  rows.forEach(({ at, bpm, source }, i) => {
    beats.at[i] = at;
    beats.bpm[i] = bpm;
    beats.source[i] = SOURCES.indexOf(source);
  });
  return beats;
}
