import { expect, test } from 'vitest';
import { createClock } from '../../src/simulator/clock.ts';

test('it runs at its speed, stands still at 0, and can be moved forward', () => {
  let real = 1_000_000;
  const clock = createClock({ at: 50_000, speed: 60, realNow: () => real });
  real += 1000;
  expect(clock.now()).toBe(110_000);
  expect(clock.realMsUntil(170_000)).toBe(1000);
  expect(clock.realMsUntil(100_000)).toBe(0);
  clock.setSpeed(0);
  real += 5000;
  expect([clock.now(), clock.speed]).toEqual([110_000, 0]);
  expect(clock.realMsUntil(110_001)).toBe(Number.POSITIVE_INFINITY);
  clock.advance(10_000);
  expect(clock.now()).toBe(120_000);
  clock.setSpeed(1);
  real += 7;
  expect(clock.now()).toBe(120_007);
});

test('a real clock that is set back does not turn it back: it stands where it stood until real time has come there', () => {
  let real = 1_000_000;
  const clock = createClock({ at: 50_000, speed: 2, realNow: () => real });
  real += 30_000;
  expect(clock.now()).toBe(110_000);
  real -= 20_000;
  expect([clock.now(), clock.realMsUntil(110_000), clock.realMsUntil(112_000)]).toEqual([110_000, 0, 21_000]);
  real -= 70_000;
  expect([clock.now(), clock.realMsUntil(112_000)]).toEqual([110_000, 91_000]);
  real += 91_000;
  expect(clock.now()).toBe(112_000);
});
