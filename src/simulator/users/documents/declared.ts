import { z } from 'zod';
import { type FieldAbout, findFieldAbout, findItem, unwrap } from '../../../../schema/fields.ts';
import { formatDay, formatInstant } from '../../../../schema/instant.ts';
import type { Resource, WireDocument } from '../../../../schema/resource.ts';
import { keyOf } from '../person.ts';
import { Random, round } from '../random.ts';
import type { UserRecord } from '../user-record.ts';
import { DAY } from '../zone.ts';

const MINUTE = 60;
const HOUR = 3600;
const SAMPLES = 12;
/** Of a number whose declaration names no bounds. */
const USUAL = { min: 0, max: 1000 };

/** The document of a type that is known by its declaration alone, one a day; it is there once what it tells of is over. */
export function declaredOfDay(resource: Resource, record: UserRecord, day: number): WireDocument[] {
  const random = new Random(keyOf(record.person, day, resource.name));
  const clock = random.integer(8, 18) * HOUR;
  const start = resource.identifiedBy === undefined ? record.zone.at(day, clock) : day * DAY + clock;
  const end = start + SAMPLES * 5 * MINUTE;
  const isThere = resource.comesInBackground ? end <= record.uploadedOf(day) : record.hasSynced(day, end);
  return isThere ? [write(resource, { record, day, start, end, random })] : [];
}

/** The only document of an undated type that is known by its declaration alone. */
export function declared(resource: Resource, record: UserRecord): WireDocument {
  const random = new Random(keyOf(record.person, 0, resource.name));
  return write(resource, { record, day: 0, start: 0, end: HOUR, random });
}

/** What a document tells of. */
interface Told {
  record: UserRecord;
  day: number;
  start: number;
  end: number;
  random: Random;
}

function write({ name, document, dayField, startsAt, identifiedBy }: Resource, told: Told): WireDocument {
  const { record, day, start } = told;
  const known: WireDocument =
    identifiedBy === undefined
      ? { id: record.idOf(name, day), [dayField]: formatDay(day) }
      : { [identifiedBy]: formatInstant({ micros: start * 1_000_000, offset: 0 }) };
  if (startsAt) known[startsAt] = record.zone.write(start);
  const shape = fieldsOf(document);
  return Object.fromEntries(shape.flatMap(([key, schema]) => (key in known ? [[key, known[key]]] : writeField(key, schema, told))));
}

/** A field and its value; now and then an optional one is null, or not there at all. */
function writeField(key: string, schema: z.ZodType, told: Told): [string, unknown][] {
  const value = writeValue(schema, told);
  if (told.random.chance(0.05) && schema.isOptional()) return [];
  return [[key, told.random.chance(0.05) && schema.isNullable() ? null : value]];
}

function writeValue(schema: z.ZodType, told: Told): unknown {
  const inner = unwrap(schema);
  const about = findFieldAbout(schema);
  if (about) return writeLeaf(about, inner, told);
  return writeObject(inner, told);
}

const writeObject = (schema: z.ZodType, told: Told): WireDocument =>
  Object.fromEntries(fieldsOf(schema).flatMap(([key, field]) => writeField(key, field, told)));

function writeLeaf({ kind, values }: FieldAbout, schema: z.ZodType, told: Told): unknown {
  const { record, day, start, end, random } = told;
  const { zone } = record;
  const { min, max } = boundsOf(schema);
  switch (kind) {
    case 'text':
      return values ? random.pick(values) : `text ${random.integer(1, 1000)}`;
    case 'texts':
      return Array.from({ length: random.integer(0, 3) }, () => `text ${random.integer(1, 1000)}`);
    case 'integer':
      return random.integer(Math.ceil(min), Math.floor(max));
    case 'number':
      return Math.min(max, Math.max(min, round(random.between(min, max), 2)));
    case 'flag':
      return random.chance(0.5);
    case 'day':
      return formatDay(day);
    case 'instant':
      return zone.write(random.integer(start + 1, end));
    case 'objects': {
      const item = findItem(schema);
      return item ? Array.from({ length: random.integer(0, 3) }, () => writeObject(item, told)) : [];
    }
    case 'sample': {
      const items = Array.from({ length: SAMPLES }, () => (random.chance(0.1) ? null : random.integer(USUAL.min, USUAL.max)));
      return { interval: (end - start) / SAMPLES, items, timestamp: zone.write(start) };
    }
  }
}

const fieldsOf = (schema: z.ZodType): [string, z.ZodType][] =>
  schema instanceof z.ZodObject ? Object.entries<z.ZodType>(schema.shape) : [];

/** Bounds as declared; where there is one alone, the other is as far from it as usual. */
function boundsOf(schema: z.ZodType): typeof USUAL {
  const { minValue, maxValue } = schema instanceof z.ZodNumber ? schema : { minValue: null, maxValue: null };
  const [low, high] = [minValue ?? Number.MIN_SAFE_INTEGER, maxValue ?? Number.MAX_SAFE_INTEGER];
  const min = low > Number.MIN_SAFE_INTEGER ? low : Math.min(USUAL.min, high - USUAL.max);
  return { min, max: high < Number.MAX_SAFE_INTEGER ? high : Math.max(USUAL.max, min + USUAL.max) };
}
