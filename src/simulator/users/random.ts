import { itemAt } from '../../base/items.ts';

/** What a stream of random numbers belongs to: the same key gives the same numbers on every machine, in every order. */
export type Key = readonly (number | string)[];

/** Two independent 32-bit hashes of a key. Numbers may be any integers; only their low 53 bits count. */
export function hashPair(key: Key): [number, number] {
  let a = 0x9e3779b9;
  let b = 0x85ebca6b;
  const mix = (word: number) => {
    a = Math.imul(a ^ word, 0xcc9e2d51);
    a = Math.imul((a << 15) | (a >>> 17), 0x1b873593) ^ b;
    b = Math.imul(b ^ word, 0x27d4eb2f);
    b = Math.imul((b << 13) | (b >>> 19), 0x165667b1) + a;
  };
  for (const part of key) {
    if (typeof part === 'number') {
      mix(part | 0);
      mix(Math.floor(part / 4_294_967_296) | 0);
    } else {
      for (let i = 0; i < part.length; i++) mix(part.charCodeAt(i));
      mix(part.length);
    }
  }
  return [avalanche(a), avalanche(b ^ Math.imul(a, 0x2c1b3c6d))];
}

/** The finaliser of MurmurHash3: every input bit changes about half of the output bits. */
function avalanche(word: number): number {
  let h = word;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** A seeded stream of random numbers (sfc32), keyed by what it is for. */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(key: Key) {
    const [a, b] = hashPair(key);
    this.#a = a | 0;
    this.#b = b | 0;
    this.#c = Math.imul(a ^ b, 0x9e3779b1);
    for (let i = 0; i < 12; i++) this.next();
  }

  /** At least 0, below 1. */
  next(): number {
    const sum = (((this.#a + this.#b) | 0) + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return (sum >>> 0) / 4_294_967_296;
  }

  between(min: number, max: number): number {
    return min + (max - min) * this.next();
  }

  /** A whole number from `min` to `max`, both included. */
  integer(min: number, max: number): number {
    return min + Math.floor((max - min + 1) * this.next());
  }

  /** About normally distributed, never further than 3.5 deviations: a sum of four, which needs no logarithm. */
  normal(mean = 0, deviation = 1): number {
    return mean + deviation * 1.7320508 * (this.next() + this.next() + this.next() + this.next() - 2);
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(choices: readonly T[]): T {
    return itemAt(choices, Math.floor(choices.length * this.next()));
  }
}

/** A smooth random curve from −1 to 1 with one free value at every whole `x`. */
export function drift(key: Key, x: number): number {
  const knot = Math.floor(x);
  const [left] = hashPair([...key, knot]);
  const [right] = hashPair([...key, knot + 1]);
  const t = x - knot;
  const weight = t * t * (3 - 2 * t);
  return ((left + (right - left) * weight) / 4_294_967_296) * 2 - 1;
}

export function clamp(value: number, min: number, max: number): number {
  return Math.min(max, Math.max(min, value));
}

/** Rounds to a number of decimals. */
export function round(value: number, decimals = 0): number {
  const scale = 10 ** decimals;
  return Math.round(value * scale) / scale || 0;
}
