import { describe, expect, it } from 'vitest';
import { resources } from '../../../schema/index.ts';
import { findDayOf, findIdOf, type WireDocument } from '../../../schema/resource.ts';
import { createPeople } from '../../../src/simulator/users/people.ts';
import { peopleSource } from '../../../src/simulator/users/source.ts';
import { allOf } from './conformity.ts';

const people = createPeople({ seed: 7, count: 3, from: '2025-01-01', to: '2025-03-31' });
const source = peopleSource(people);
const [ada, ben] = people.persons.map(({ userId }) => userId) as [string, string];

describe.each(resources)('$name', resource => {
  const all = allOf(people, ada, resource);

  it.each(resource.identifiedBy === undefined ? [1, 7, 1000] : [7, 1000])('comes whole in pages of %i', async limit => {
    const range = resource.dated ? { from: '2024-01-01', to: '2026-01-01' } : {};
    const found: WireDocument[] = [];
    let after: { day: string; id: string } | undefined;
    for (;;) {
      const page = await source.list(ada, resource, { ...range, ...(after && { after }), limit });
      expect(page.length).toBeLessThanOrEqual(limit);
      found.push(...page);
      const last = page.at(-1);
      if (!last) break;
      after = { day: findDayOf(resource, last) ?? '', id: findIdOf(resource, last)! };
    }
    expect(found).toEqual(all);
  });

  it.skipIf(resource.identifiedBy !== undefined)('is found by its identifier, by its user only', async () => {
    for (const document of all.slice(0, 40)) {
      const id = document.id as string;
      expect(await source.find(ada, resource, id)).toEqual(document);
      expect(await source.find(ben, resource, id)).toBeUndefined();
      const other = resources.find(each => each !== resource)!;
      expect(await source.find(ada, other, id)).toBeUndefined();
      expect(
        await source.find(
          ada,
          resource,
          id.replace(/.$/, digit => (digit === '0' ? '1' : '0')),
        ),
      ).toBeUndefined();
      expect(await source.find(ada, resource, id.toUpperCase())).toBeUndefined();
    }
    expect(await source.find(ada, resource, '')).toBeUndefined();
    expect(await source.find(ada, resource, ada)).toBeUndefined();
  });

  it('keeps to a range of days', async () => {
    if (!resource.dated) return;
    const some = await source.list(ada, resource, { from: '2025-02-03', to: '2025-02-20', limit: 1000 });
    const isWithin = (day = '') => '2025-02-03' <= day && day <= '2025-02-20';
    expect(some).toEqual(all.filter(document => isWithin(findDayOf(resource, document))));
    expect(await source.list(ada, resource, { from: '2025-02-20', to: '2025-02-03', limit: 1000 })).toEqual([]);
  });
});

it('pages the heart rate', async () => {
  const [from, to] = [Date.UTC(2025, 1, 1) * 1000, Date.UTC(2025, 1, 4) * 1000];
  const all = people.heartRate(ada, from, to);
  const found: WireDocument[] = [];
  let after: { micros: number; source: string } | undefined;
  for (;;) {
    const page = await source.heartRate(ada, { from, to, ...(after && { after }), limit: 500 });
    found.push(...page);
    const last = page.at(-1);
    if (!last) break;
    after = { micros: (last.timestamp_unix as number) * 1000, source: last.source as string };
  }
  expect(found).toEqual(all);
  expect(await source.heartRate('somebody', { from, to, limit: 5 })).toEqual([]);
});
