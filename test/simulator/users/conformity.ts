import { z } from 'zod';
import { findFieldAbout, findItem, unwrap } from '../../../schema/fields.ts';
import { resources } from '../../../schema/index.ts';
import { addDays } from '../../../schema/instant.ts';
import type { Resource, WireDocument } from '../../../schema/resource.ts';
import { createPeople, type People } from '../../../src/simulator/users/people.ts';

/** What a value has that its schema does not tell of: unknown keys and undocumented words, at any depth. */
export function findStrange(schema: z.ZodType, value: unknown, path = ''): string[] {
  const words = findFieldAbout(schema)?.values;
  if (words && typeof value === 'string' && !words.includes(value)) return [`${path}: ${value}`];
  const item = findItem(schema);
  if (item && Array.isArray(value)) return value.flatMap((each, i) => findStrange(item, each, `${path}[${i}]`));
  const inner = unwrap(schema);
  if (!(inner instanceof z.ZodObject) || value === null || typeof value !== 'object') return [];
  const shape = inner.shape as Record<string, z.ZodType>;
  return Object.entries(value).flatMap(([key, item]) =>
    shape[key] ? findStrange(shape[key], item, `${path}.${key}`) : [`${path}.${key}: unknown`],
  );
}

/** Every day from the first to the last. */
export function daysOf({ from, to }: { from: string; to: string }): string[] {
  const days: string[] = [];
  for (let day = from; day <= to; day = addDays(day, 1)) days.push(day);
  return days;
}

const years = new Map<number, People>();

/** The first so many people of a seed through 2025, the same ones for all files of a worker: what one has made of their documents the others find. */
export function yearOf(count: number, seed = 7): People {
  const made = years.get(seed);
  const isEnough = made && made.persons.length >= count;
  const all = isEnough ? made : createPeople({ seed, count: Math.max(count, 4), from: '2025-01-01', to: '2025-12-31' });
  years.set(seed, all);
  return { ...all, persons: all.persons.slice(0, count) };
}

const known = new WeakMap<People['documents'], Map<string, WireDocument[]>>();

/** All documents of a person and resource, in order; for people whose lives are written: what was made once is not made again, and is not to be changed. */
export function allOf(people: People, userId: string, resource: Resource | string): readonly WireDocument[] {
  const name = typeof resource === 'string' ? resource : resource.name;
  const ofPeople = known.get(people.documents) ?? new Map<string, WireDocument[]>();
  known.set(people.documents, ofPeople);
  const key = `${userId} ${name}`;
  const documents = ofPeople.get(key) ?? makeAll(people, userId, name);
  ofPeople.set(key, documents);
  return documents;
}

function makeAll(people: People, userId: string, name: string): WireDocument[] {
  if (!resources.find(each => each.name === name)!.dated) return people.undated(userId, name);
  return daysOf(people).flatMap(day => people.documents(userId, name, day));
}
