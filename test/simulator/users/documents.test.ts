import { beforeAll, describe, expect, it } from 'vitest';
import { resources } from '../../../schema/index.ts';
import { findDayOf, findIdOf, type WireDocument } from '../../../schema/resource.ts';
import { createPeople } from '../../../src/simulator/users/people.ts';
import { SINGLE } from '../../support/declared.ts';
import { someOf } from '../../support/whole.ts';
import { allOf, findStrange, yearOf } from './conformity.ts';

describe.each(someOf([7, 1, 4_000_000_019], { more: 1 }))('a year of seed %i', seed => {
  const people = yearOf(4, seed);
  /** Of each person, by resource. */
  let years: Map<string, readonly WireDocument[]>[];

  beforeAll(() => {
    years = people.persons.map(({ userId }) => new Map(resources.map(resource => [resource.name, allOf(people, userId, resource)])));
  });

  it.each(resources)('writes $name as specified, in order', resource => {
    for (const year of years) {
      const documents = year.get(resource.name)!;
      expect(documents.length).toBeGreaterThan(0);
      for (const document of documents) {
        const parsed = resource.document.safeParse(document);
        if (!parsed.success) throw new Error(`${JSON.stringify(document).slice(0, 300)}\n${parsed.error.message}`);
      }
      expect(documents.flatMap(document => findStrange(resource.document, document))).toEqual([]);
      const places = documents.map(document => `${findDayOf(resource, document) ?? ''} ${findIdOf(resource, document)}`);
      expect(places).toEqual([...places].sort());
    }
  });

  it('gives no identifier twice', () => {
    const ids = people.persons
      .map(({ userId }) => userId)
      .concat(years.flatMap(year => SINGLE.flatMap(({ name }) => year.get(name)!.map(({ id }) => String(id)))));
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('leaves optional fields out, and sets them null, now and then', () => {
    const sleeps = years.flatMap(year => year.get('sleep')!);
    for (const key of ['sleep_phase_30_sec', 'ring_id', 'average_breath']) {
      expect(sleeps.some(sleep => sleep[key] === null)).toBe(true);
      expect(sleeps.some(sleep => !(key in sleep))).toBe(true);
    }
  });
});

it('tells people apart by names that accounts may have', () => {
  const { persons } = createPeople({ seed: 7, count: 60, from: '2025-01-01', to: '2025-01-02' });
  expect(new Set(persons.map(({ name }) => name)).size).toBe(60);
  for (const { name } of persons) expect(name).toMatch(/^[a-z0-9]{1,64}$/);
});

it('has nothing outside of its days, nor for strangers', () => {
  const people = createPeople({ seed: 7, count: 1, from: '2025-03-01', to: '2025-03-03' });
  const { userId } = people.persons[0]!;
  for (const { name } of resources) {
    expect(people.documents(userId, name, '2025-02-28')).toEqual([]);
    expect(people.documents(userId, name, '2025-03-04')).toEqual([]);
    expect(people.documents('somebody', name, '2025-03-02')).toEqual([]);
  }
  expect(people.documents(userId, 'meal', '2025-03-02')).toEqual([]);
  expect(people.documents(userId, 'toString', '2025-03-02')).toEqual([]);
  expect(people.personalInfo('somebody')).toBeUndefined();
  expect(people.personalInfo(userId)).toMatchObject({ id: userId });
  expect(() => createPeople({ seed: 7, count: 1, from: '2025-03-03', to: '2025-03-01' })).toThrow(RangeError);
});
