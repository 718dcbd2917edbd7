import type { z } from 'zod';
import { findFieldAbout, findItem, unwrap } from '../../schema/fields.ts';
import type { Resource, WireDocument } from '../../schema/resource.ts';

export type Random = () => number;

/** mulberry32: the same numbers for the same seed, on every machine. */
export function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

export const below = (random: Random, limit: number) => Math.floor(random() * limit);
export const pick = <T>(random: Random, list: readonly T[]): T => list[below(random, list.length)]!;

const TEXTS = ['', 'a', 'it’s "x"', '眠り', '😀', "o'clock", 'line\nbreak', '\\', 'null', 'NaN', '2025-01-01', '{"a":1}', ' '];
const OFFSETS = ['+00:00', 'Z', '+02:00', '-05:00', '+05:45', '-03:30', '+14:00', '-11:00'];
const FRACTIONS = ['', '.5', '.250', '.000001', '.123456'];
const two = (value: number) => String(value).padStart(2, '0');

export const randomDay = (random: Random) => `20${two(20 + below(random, 10))}-${two(1 + below(random, 12))}-${two(1 + below(random, 28))}`;

export const randomInstant = (random: Random) =>
  `${randomDay(random)}T${two(below(random, 24))}:${two(below(random, 60))}:${two(below(random, 60))}${pick(random, FRACTIONS)}${pick(random, OFFSETS)}`;

const randomNumber = (random: Random) => pick(random, [0, -0, 1, -1, 0.1, 61.5, 1e-7, 1e300, -123456.789, random() * 100]);

const randomSample = (random: Random) => ({
  timestamp: randomInstant(random),
  items: Array.from({ length: below(random, 12) }, () => (random() < 0.2 ? null : randomNumber(random))),
  interval: pick(random, [1, 5, 60, 300, 0.5, 0.000001, 1.1]),
  ...(random() < 0.1 ? { origin: randomJson(random, 2) } : {}),
});

/** A moment of its own for each identifier that ends with another number. */
function momentOf(id: string): string {
  const minute = Number(/\d+$/.exec(id)![0]);
  return `2025-01-01T${two(Math.floor(minute / 60))}:${two(minute % 60)}:00.000+00:00`;
}

/** Anything that JSON can say. */
export function randomJson(random: Random, depth: number): unknown {
  if (depth === 0 || random() < 0.5) return pick(random, [null, true, false, 1.5, 1e20, 'text', '2025-01-01T00:00:00Z', ...TEXTS]);
  if (random() < 0.5) return Array.from({ length: below(random, 3) }, () => randomJson(random, depth - 1));
  return Object.fromEntries(
    Array.from({ length: below(random, 3) }, (_, i) => [pick(random, ['k', 'id', 'a.b', '']) + i, randomJson(random, depth - 1)]),
  );
}

/** A document of the resource with odd, but storable, contents: fields missing or null, of a wrong type, unknown. */
export function randomDocument(resource: Resource, random: Random, id: string): WireDocument {
  const { document, dated, dayField, identifiedBy } = resource;
  const known = identifiedBy === undefined ? { id, ...(dated ? { [dayField]: randomDay(random) } : {}) } : { [identifiedBy]: momentOf(id) };
  return { ...randomObject(document, random), ...known };
}

function randomObject(schema: z.ZodObject, random: Random): WireDocument {
  const document: WireDocument = {};
  const entries = Object.entries(schema.shape as Record<string, z.ZodType>);
  if (random() < 0.3) entries.reverse();
  for (const [key, field] of entries) {
    const chance = random();
    const optional = unwrap(field) !== field;
    if (chance < 0.1) continue;
    if (chance < 0.2) document[key] = null;
    else if (chance < (optional ? 0.3 : 0.23)) document[key] = randomJson(random, 2);
    else document[key] = randomField(field, random);
  }
  if (random() < 0.2) document[pick(random, ['unknown', 'über', 'sk', 'extra', 'user_id', 'constructor'])] = randomJson(random, 3);
  return document;
}

function randomField(field: z.ZodType, random: Random): unknown {
  const about = findFieldAbout(field);
  switch (about?.kind) {
    case undefined:
      return randomObject(unwrap(field) as z.ZodObject, random);
    case 'text':
      return about.values && random() < 0.8 ? pick(random, about.values) : pick(random, TEXTS);
    case 'integer':
      return pick(random, [0, 1, -1, 80, 4294967296, 9007199254740991, -9007199254740991, below(random, 100_000)]);
    case 'number':
      return randomNumber(random);
    case 'flag':
      return random() < 0.5;
    case 'day':
      return randomDay(random);
    case 'instant':
      return random() < 0.1 ? '2025-01-01T00:00:00' : randomInstant(random);
    case 'sample':
      return randomSample(random);
    case 'texts':
      return Array.from({ length: below(random, 4) }, () => pick(random, TEXTS));
    case 'objects':
      return Array.from({ length: below(random, 4) }, () =>
        random() < 0.05 ? randomJson(random, 2) : randomObject(findItem(field)!, random),
      );
  }
}
