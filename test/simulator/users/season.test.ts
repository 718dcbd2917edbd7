import { expect, it } from 'vitest';
import { findDayNumber, formatDay } from '../../../schema/instant.ts';
import { createPeople, createUserModels } from '../../../src/simulator/users/people.ts';
import { weekday } from '../../../src/simulator/users/person.ts';
import { seasonOn } from '../../../src/simulator/users/season.ts';

const FROM = findDayNumber('2023-01-02')!;
const DAYS = 3 * 364;
const models = createUserModels(7, 6);
const people = createPeople({ seed: 7, count: 6, from: formatDay(FROM), to: formatDay(FROM + DAYS) });
const mean = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / values.length;

it('three weeks build up and one recovers, and after two to four of these comes a pause', () => {
  const person = models[0]!.person;
  const weeks = Array.from({ length: DAYS / 7 }, (_, week) => {
    const volumes = Array.from({ length: 7 }, (_, i) => seasonOn(person, FROM + 7 * week + i).volume);
    // A season changes on a Monday.
    expect(weekday(FROM + 7 * week)).toBe(0);
    expect(new Set(volumes).size).toBe(1);
    return volumes[0]!;
  });
  const letters = weeks.map(volume => ({ 0.9: 'a', 1.1: 'b', 1.3: 'c', 0.6: 'r', 0.75: '-' })[volume]).join('');
  expect(letters).toMatch(/^[abcr-]*?(?:-+(?:abcr){2,4})+-*(?:abcr)*a?b?c?$/);
});

it('people train most in the third week of a block, little in the fourth, and hardly in a pause', () => {
  const loads: Record<string, number[]> = {};
  for (const { person, planOf } of models) {
    for (let day = FROM; day < FROM + DAYS; day++) {
      const { volume } = seasonOn(person, day);
      loads[volume] ??= [];
      loads[volume].push(planOf(day).training?.load ?? 0);
    }
  }
  const [first, second, third, recovery, pause] = [0.9, 1.1, 1.3, 0.6, 0.75].map(volume => mean(loads[volume]!));
  expect(third).toBeGreaterThan(second!);
  expect(second).toBeGreaterThan(first!);
  expect(recovery).toBeLessThan(0.6 * first!);
  expect(pause).toBeLessThan(0.5 * first!);
});

it('VO2 max creeps up in a block and falls off in the pause after it', () => {
  for (const { person } of models) {
    const best: number[] = [];
    const worst: number[] = [];
    for (let day = FROM; day < FROM + DAYS; day++) {
      const [estimate] = people.documents(person.userId, 'vo2_max', formatDay(day));
      if (!estimate) continue;
      const { form } = seasonOn(person, day);
      if (form > 0.8) best.push(estimate.vo2_max as number);
      if (form < 0.2) worst.push(estimate.vo2_max as number);
    }
    expect(mean(best)).toBeGreaterThan(mean(worst) + 1.5);
  }
});

it('in the third week of a block the heart beats faster and less variably than at the end of the week of recovery', () => {
  const nights = (volume: number) =>
    models.map(({ person, conditionOf }) =>
      Array.from({ length: DAYS }, (_, i) => FROM + i)
        .filter(day => seasonOn(person, day).volume === volume && weekday(day) >= 3)
        .map(conditionOf)
        // Neither ill nor lagging behind the clock.
        .filter(({ unrest }) => unrest === 0),
    );
  const [hard, easy] = [nights(1.3), nights(0.6)];
  const difference = (figure: 'fatigue' | 'restingHeartRate' | 'hrv') =>
    mean(hard.map((own, i) => mean(own.map(night => night[figure])) - mean(easy[i]!.map(night => night[figure]))));
  expect(difference('fatigue')).toBeGreaterThan(0.3);
  expect(difference('restingHeartRate')).toBeGreaterThan(0.3);
  expect(difference('hrv')).toBeLessThan(-0.5);
});
