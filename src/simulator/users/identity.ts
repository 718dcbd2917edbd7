import { hashPair } from './random.ts';

/**
 * Identifiers look like random UUIDs and carry what they name: 12 hexadecimal digits hold person, day, kind and ordinal, encrypted
 * with the other 18, which are a keyed hash of the same. So one is found again without a search, and a guessed one is refused.
 */
export interface Name {
  person: number;
  kind: string;
  /** A day number; the ordinal of a ring; 0 for a person. */
  day: number;
  ordinal: number;
}

/** Kinds by the number that their identifiers hold, for good. Those of any other hold the number after, and its name is in their proof. */
const NUMBERED = [
  'daily_readiness',
  'daily_sleep',
  'daily_activity',
  'daily_spo2',
  'vo2_max',
  'ring_configuration',
  'daily_resilience',
  'sleep_time',
  'daily_stress',
  'sleep',
  'session',
  'person',
];

/** Days from −524,288 to 524,287 fit into the 20 bits they have. */
const DAY_SHIFT = 0x80000;
const SHAPE = /^([0-9a-f]{8})-([0-9a-f]{4})-4([0-9a-f]{3})-8([0-9a-f]{3})-([0-9a-f]{6})([0-9a-f]{6})$/;

/** The identifier of something. Throws where it would not fit: more than 65,536 people, 256 of a kind on a day. */
export function writeId(seed: number, { person, kind, day, ordinal }: Name): string {
  const high = ((day + DAY_SHIFT) << 4) | numberOf(kind);
  const low = (person << 8) | ordinal;
  if (high < 0 || high > 0xffffff || person > 0xffff || ordinal > 0xff) {
    throw new RangeError(`no identifier for ${kind} ${ordinal} of person ${person} on day ${day}`);
  }
  const proof = proofOf(seed, kind, high, low);
  const [maskHigh, maskLow] = hashPair([seed, 'mask', proof]);
  const body = hex((high ^ maskHigh) & 0xffffff, 6) + hex((low ^ maskLow) & 0xffffff, 6);
  return `${proof.slice(0, 8)}-${proof.slice(8, 12)}-4${proof.slice(12, 15)}-8${proof.slice(15)}-${body}`;
}

/** What an identifier names, or undefined when it is none of this seed and kind. */
export function findName(seed: number, kind: string, id: string): Name | undefined {
  const match = SHAPE.exec(id);
  if (!match) return undefined;
  const [, first, second, third, fourth, left = '', right = ''] = match;
  const proof = `${first}${second}${third}${fourth}`;
  const [maskHigh, maskLow] = hashPair([seed, 'mask', proof]);
  const high = (Number.parseInt(left, 16) ^ maskHigh) & 0xffffff;
  const low = (Number.parseInt(right, 16) ^ maskLow) & 0xffffff;
  if ((high & 0xf) !== numberOf(kind) || proofOf(seed, kind, high, low) !== proof) return undefined;
  return { person: low >>> 8, kind, day: (high >>> 4) - DAY_SHIFT, ordinal: low & 0xff };
}

function numberOf(kind: string): number {
  const number = NUMBERED.indexOf(kind);
  return number < 0 ? NUMBERED.length : number;
}

function proofOf(seed: number, kind: string, high: number, low: number): string {
  const key = NUMBERED.includes(kind) ? [seed] : [seed, kind];
  const [a, b] = hashPair([...key, 'proof', high, low]);
  const [c] = hashPair([...key, 'more proof', high, low]);
  return hex(a, 8) + hex(b, 8) + hex(c & 0xff, 2);
}

const hex = (word: number, digits: number) => (word >>> 0).toString(16).padStart(digits, '0');
