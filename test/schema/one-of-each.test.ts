import { expect, test } from 'vitest';
import type { Resource } from '../../schema/resource.ts';
import { DATA_TYPES } from '../../schema/webhook.ts';
import { createPeople } from '../../src/simulator/users/people.ts';
import { peopleSource } from '../../src/simulator/users/source.ts';
import { SINGLE } from '../support/declared.ts';
import { resourceNamed } from '../support/warehouse.ts';

const people = createPeople({ seed: 7, count: 3, from: '2025-03-01', to: '2025-04-15' });
const source = peopleSource(people);

const haveSome = async (resource: Resource) => {
  const lists = await Promise.all(people.persons.map(({ userId }) => source.list(userId, resource, { limit: 1 })));
  return lists.flat().length > 0;
};

test.each(SINGLE)('changes of $name can be subscribed to, and somebody in the sandbox has some', async resource => {
  expect(DATA_TYPES).toContain(resource.dataType);
  expect(await haveSome(resource)).toBe(true);
});

test('changes of battery levels cannot be subscribed to, and somebody in the sandbox has some', async () => {
  expect(DATA_TYPES).not.toContain('ring_battery_level');
  expect(DATA_TYPES).not.toContain(undefined);
  expect(await haveSome(resourceNamed('ring_battery_level'))).toBe(true);
});
