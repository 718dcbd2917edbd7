import { z } from 'zod';
import { findDayNumber, findInstant } from './instant.ts';

/**
 * What a leaf is stored as. A `sample` is exploded to a series, `objects` to a table of their own; everything else is one column (an
 * `instant` has an offset beside it).
 */
export type FieldKind = 'text' | 'texts' | 'integer' | 'number' | 'flag' | 'day' | 'instant' | 'sample' | 'objects';

export interface FieldAbout {
  kind: FieldKind;
  description: string;
  unit?: string;
  /** The documented values of an open enumeration. */
  values?: readonly string[];
  /** The key always comes, and null with it says something. */
  mayBeNull?: true;
}

const about = z.registry<FieldAbout>();

function field<T extends z.ZodType>(schema: T, facts: FieldAbout, json: Record<string, unknown> = {}): T {
  const { kind: _, values: __, description, unit } = facts;
  const described = schema.meta({ description: unit ? `${description} [${unit}]` : description, ...json });
  about.add(described, facts);
  return described;
}

/** The facts of a leaf, looked up through `.nullish()` and the like. Undefined for an object that holds further fields. */
export function findFieldAbout(schema: z.ZodType): FieldAbout | undefined {
  return about.get(unwrap(schema));
}

/** The schema without its optional and nullable wrappers. */
export function unwrap(schema: z.ZodType): z.ZodType {
  let inner = schema;
  while (inner instanceof z.ZodOptional || inner instanceof z.ZodNullable) inner = inner.unwrap() as z.ZodType;
  return inner;
}

export const text = (description: string) => field(z.string(), { kind: 'text', description });

/** Identifiers are strings of at least one character (section 2, section 8). */
export const identifier = (description: string) => field(z.string().min(1), { kind: 'text', description });

/** A whole number that JavaScript keeps exactly. */
export const integer = (description: string, unit?: string) => field(z.int(), { kind: 'integer', description, unit });

/** A whole number from `min` to `max`; a service that steps outside is reported, its value kept. */
export const integerBetween = (min: number, max: number, description: string, unit?: string) =>
  field(z.int().min(min).max(max), { kind: 'integer', description, unit });

export const number = (description: string, unit?: string) => field(z.number(), { kind: 'number', description, unit });

export const numberBetween = (min: number, max: number, description: string, unit?: string) =>
  field(z.number().min(min).max(max), { kind: 'number', description, unit });

export const flag = (description: string) => field(z.boolean(), { kind: 'flag', description });

/** A calendar day, `YYYY-MM-DD`, kept as the service says it and never derived from an instant. */
export const day = (description: string) =>
  field(
    z.string().refine(value => findDayNumber(value) !== undefined, 'not a calendar day, YYYY-MM-DD'),
    { kind: 'day', description },
    { format: 'date' },
  );

/** An ISO 8601 date-time with offset. */
export const instant = (description: string, mayBeNull = false) =>
  field(
    z.string().refine(value => findInstant(value) !== undefined, 'not an ISO 8601 date-time with offset'),
    { kind: 'instant', description, ...(mayBeNull ? { mayBeNull } : {}) },
    { type: mayBeNull ? ['string', 'null'] : 'string', format: 'date-time' },
  );

/** An instant of which the key always comes, with null as long as it is not known. */
export const instantOrNull = (description: string) => instant(description, true);

/** An open enumeration: the documented values are known, a new one is let through and reported by the reader. */
export const choice = (values: readonly string[], description: string) =>
  field(z.string(), { kind: 'text', description, values }, { examples: [...values], 'x-documented-values': [...values] });

/** An array of texts, kept as JSON. */
export const texts = (description: string) => field(z.array(z.string()), { kind: 'texts', description });

/** An array of objects whose fields are leaves: a table of its own with a row for each of them. */
export const objects = <Item extends z.ZodObject>(description: string, item: Item) =>
  field(z.array(item), { kind: 'objects', description });

/** What the objects of such an array are. Undefined for anything else. */
export function findItem(schema: z.ZodType): z.ZodObject | undefined {
  const inner = unwrap(schema);
  return inner instanceof z.ZodArray && inner.element instanceof z.ZodObject ? inner.element : undefined;
}

/** Numbers or nulls, checked in one pass: an element-wise schema costs seven times as much on a day of MET samples. */
function isItems(value: unknown): value is (number | null)[] {
  if (!Array.isArray(value)) return false;
  for (let i = 0; i < value.length; i++) {
    const item = value[i];
    if (item !== null && !Number.isFinite(item)) return false;
  }
  return true;
}

/** Sample items; the element type is not shown in the specification, live services send numbers and nulls. */
const items = z.custom<(number | null)[]>(isItems, 'not an array of numbers and nulls');

/** A run of equally spaced samples (2.1). */
export const sample = (description: string, unit: string) =>
  field(
    z.object({
      interval: z.number().positive().meta({ description: 'seconds between sampled items' }),
      items,
      timestamp: z.string().refine(value => findInstant(value) !== undefined, 'not an ISO 8601 date-time with offset'),
    }),
    { kind: 'sample', description, unit },
    { 'x-unit': unit },
  );

export interface Sample {
  interval: number;
  items: (number | null)[];
  timestamp: string;
}

/** The JSON schema of a document; the checks that zod cannot write down are written here. */
export function jsonSchema(document: z.ZodType): Record<string, unknown> {
  return z.toJSONSchema(document, {
    unrepresentable: 'any',
    io: 'input',
    override: ({ zodSchema, jsonSchema }) => {
      if (zodSchema === (items as unknown)) Object.assign(jsonSchema, { type: 'array', items: { type: ['number', 'null'] } });
    },
  }) as Record<string, unknown>;
}
