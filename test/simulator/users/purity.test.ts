import { createHash } from 'node:crypto';
import { afterEach, expect, it } from 'vitest';
import { resources } from '../../../schema/index.ts';
import { findInstant } from '../../../schema/instant.ts';
import { createPeople } from '../../../src/simulator/users/people.ts';
import { daysOf } from './conformity.ts';

const options = { seed: 7, count: 3, from: '2025-03-01', to: '2025-04-15' };
const zone = process.env.TZ;

afterEach(() => {
  if (zone === undefined) delete process.env.TZ;
  else process.env.TZ = zone;
});

/** A hash of everything, asked for in the order in which `arrange` puts the questions. */
function hashAll(arrange: <T>(questions: T[]) => T[], { from, to, ...rest } = options): string {
  const people = createPeople({ ...rest, from, to });
  const questions = people.persons.flatMap(({ userId }) =>
    daysOf(options).flatMap(day => [
      ...resources.map(({ name }) => ({ key: `${userId} ${day} ${name}`, ask: () => people.documents(userId, name, day) as unknown })),
      {
        key: `${userId} ${day} heart rate`,
        ask: () => {
          const noon = findInstant(`${day}T12:00:00Z`)!.micros;
          return people.heartRate(userId, noon, noon + 6 * 3.6e9);
        },
      },
    ]),
  );
  const answers = arrange(questions).map(({ key, ask }) => `${key} ${JSON.stringify(ask())}`);
  return createHash('sha256').update(answers.sort().join('\n')).digest('hex');
}

const forwards = <T>(list: T[]) => list;
let usual: string | undefined;
const hashUsual = () => {
  usual ??= hashAll(forwards);
  return usual;
};
const backwards = <T>(list: T[]) => list.toReversed();
const scattered = <T>(list: T[]) => list.map((_, i) => list[(i * 7919) % list.length]!);

it('gives the same whatever the order of the questions', () => {
  expect(hashAll(backwards)).toBe(hashUsual());
  expect(hashAll(scattered)).toBe(hashUsual());
});

it('gives the same on a machine in another time zone', () => {
  const here = hashUsual();
  for (const other of ['UTC', 'America/New_York', 'Asia/Kathmandu']) {
    process.env.TZ = other;
    expect(hashAll(forwards)).toBe(here);
  }
});

it('gives the same day whatever the range around it, and the same person in a larger company', () => {
  expect(hashAll(forwards, { ...options, from: '2024-01-01', to: '2026-12-31' })).toBe(hashUsual());
  const small = createPeople(options);
  const large = createPeople({ ...options, count: 40 });
  expect(large.persons.slice(0, 3)).toEqual(small.persons);
});

it('gives other people for another seed', () => {
  expect(hashAll(forwards, { ...options, seed: 8 })).not.toBe(hashUsual());
});
