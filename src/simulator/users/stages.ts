import { clamp, type Random } from './random.ts';

/** Phases as the wire numbers them. */
export const DEEP = 1;
export const LIGHT = 2;
export const REM = 3;
export const AWAKE = 4;

/** Seconds that one phase digit stands for. */
export const EPOCH = 30;
/** Epochs of the shortest sleep that is one (2.12): 15 minutes. */
export const SHORTEST = (15 * 60) / EPOCH;
/** Epochs in 5 minutes. */
const BLOCK = 10;

/** Shares of deep sleep and of REM in the successive cycles of a night: deep sleep comes early, REM late. */
const SHARES = [
  { deep: 0.42, rem: 0.1 },
  { deep: 0.3, rem: 0.22 },
  { deep: 0.17, rem: 0.31 },
  { deep: 0.06, rem: 0.38 },
  { deep: 0.02, rem: 0.42 },
];
const LATE_SHARES = { deep: 0, rem: 0.4 };

/** One phase for each 30 seconds: cycles of about 90 minutes between falling asleep and waking. */
export function sleepStages(random: Random, epochs: number, unrest: number): Uint8Array {
  const stages = new Uint8Array(epochs).fill(LIGHT);
  const latency = Math.round(clamp(4 + 60 * random.next() ** 2 * (0.35 + unrest) + random.normal(8, 4), 2, epochs / 4));
  const waking = Math.round(clamp(random.between(2, 26), 1, epochs / 8));
  const deepness = random.between(0.75, 1.2);
  const dreaming = random.between(0.8, 1.15);
  stages.fill(AWAKE, 0, latency);
  let at = latency;
  for (let cycle = 0; at < epochs - waking; cycle++) {
    const length = Math.round(cycle === 0 ? random.between(140, 185) : random.between(165, 220));
    const onset = cycle === 0 ? random.integer(8, 24) : random.integer(10, 36);
    const shares = SHARES[cycle] ?? LATE_SHARES;
    const deep = Math.round(length * shares.deep * deepness * random.between(0.75, 1.2));
    const rem = Math.round(length * shares.rem * dreaming * random.between(0.65, 1.25));
    paint(stages, DEEP, at + onset, at + onset + deep);
    paint(stages, REM, at + length - rem, at + length);
    // Many cycles end with a moment awake that nobody remembers.
    if (random.chance(0.45 + 0.4 * unrest)) paint(stages, AWAKE, at + length, at + length + random.integer(1, 14));
    at += length;
  }
  interrupt(random, stages, latency, unrest);
  stages.fill(AWAKE, epochs - waking);
  return stages;
}

/** The same sleep with at least 15 minutes of it asleep, as a confirmed one has (2.12): around its middle. */
export function withLeastSleep(stages: Uint8Array): Uint8Array {
  const result = stages.slice();
  let missing = Math.min(SHORTEST, stages.length) - stages.filter(stage => stage !== AWAKE).length;
  const middle = Math.floor(stages.length / 2);
  for (let away = 0; away <= stages.length && missing > 0; away++) {
    for (const epoch of away === 0 ? [middle] : [middle - away, middle + away]) {
      if (result[epoch] !== AWAKE || missing <= 0) continue;
      result[epoch] = LIGHT;
      missing--;
    }
  }
  return result;
}

/** Short changes inside the blocks: light sleep breaks deep sleep and REM, arousals break everything, now and then a long one. */
function interrupt(random: Random, stages: Uint8Array, from: number, unrest: number): void {
  const long = random.chance(0.15 + 0.5 * unrest) ? from + Math.floor(random.next() * (stages.length - from)) : -1;
  for (let i = from; i < stages.length; i++) {
    const draw = random.next();
    const stage = stages[i];
    if (i === long) paint(stages, AWAKE, i, i + random.integer(14, 60));
    else if (draw < 0.005 + 0.03 * unrest) paint(stages, AWAKE, i, i + (random.chance(0.6) ? random.integer(1, 2) : random.integer(3, 14)));
    else if (stage === DEEP && draw < 0.035) paint(stages, LIGHT, i, i + random.integer(1, 5));
    else if (stage === REM && draw < 0.04) paint(stages, LIGHT, i, i + random.integer(1, 4));
    else continue;
    while (i + 1 < stages.length && stages[i + 1] === stages[i]) i++;
  }
}

function paint(stages: Uint8Array, stage: number, from: number, to: number): void {
  stages.fill(stage, Math.min(from, stages.length), Math.min(to, stages.length));
}

/** The same sleep as a later analysis sees it: the borders between phases lie a little elsewhere. */
export function reanalyse(random: Random, stages: Uint8Array): Uint8Array {
  const result = stages.slice();
  for (let i = 1; i < stages.length - 1; i++) {
    const [before = AWAKE, after = AWAKE] = stages.subarray(i - 1, i + 1);
    if (after === before) continue;
    const shift = random.integer(-4, 4);
    if (shift > 0) paint(result, before, i, i + shift);
    else paint(result, after, Math.max(0, i + shift), i);
  }
  return result;
}

/** Odds of the movement digits 2, 3 and 4 in each phase; else it is 1, none. */
const MOVEMENT: Record<number, readonly [number, number, number]> = {
  [DEEP]: [0.02, 0.004, 0.001],
  [LIGHT]: [0.07, 0.018, 0.006],
  [REM]: [0.055, 0.012, 0.003],
};
const MOVEMENT_AWAKE = [0.33, 0.26, 0.16] as const;

/** One movement digit for each 30 seconds. */
export function movements(random: Random, stages: Uint8Array): Uint8Array {
  return stages.map(stage => {
    const [restless, tossing, active] = MOVEMENT[stage] ?? MOVEMENT_AWAKE;
    const draw = random.next();
    if (draw < active) return 4;
    if (draw < active + tossing) return 3;
    return draw < active + tossing + restless ? 2 : 1;
  });
}

/** The most frequent phase of each 5 minutes; of equally frequent ones the one nearest to waking. The last block may be shorter. */
export function fiveMinutes(stages: Uint8Array): Uint8Array {
  const blocks = new Uint8Array(Math.ceil(stages.length / BLOCK));
  for (let block = 0; block < blocks.length; block++) {
    const counts = [0, 0, 0, 0, 0];
    for (const stage of stages.subarray(block * BLOCK, (block + 1) * BLOCK)) counts[stage] = (counts[stage] ?? 0) + 1;
    blocks[block] = counts.lastIndexOf(Math.max(...counts));
  }
  return blocks;
}

/** Digits as the wire writes them. */
export const digits = (values: Uint8Array): string => Buffer.from(values.map(value => value + 48)).toString('latin1');
