import { expect, test } from 'vitest';
import { createClock } from '../../../src/service/sandbox/clock.ts';

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

test('a real clock that is set back does not turn it back', () => {
  let real = 1_000_000;
  const clock = createClock({ at: 50_000, speed: 1, realNow: () => real });
  real -= 60_000;
  expect(clock.now()).toBe(50_000);
});
