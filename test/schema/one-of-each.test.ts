import { expect, test } from 'vitest';
import { resources } from '../../schema/index.ts';
import { DATA_TYPES } from '../../schema/webhook.ts';
import { createPeople } from '../../src/simulator/users/people.ts';
import { peopleSource } from '../../src/simulator/users/source.ts';

const people = createPeople({ seed: 7, count: 3, from: '2025-03-01', to: '2025-04-15' });
const source = peopleSource(people);

test.each(resources)('changes of $name can be subscribed to, and somebody in the sandbox has some', async resource => {
  expect(DATA_TYPES).toContain(resource.dataType);
  const lists = await Promise.all(people.persons.map(({ userId }) => source.list(userId, resource, { limit: 1 })));
  expect(lists.flat().length).toBeGreaterThan(0);
});
