import { expect, onTestFinished, test } from 'vitest';
import { Ahead } from '../../src/console/server/ahead.ts';

const HOUR_MS = 3_600_000;

/** @param takesMs how long an answer takes */
function setUp({ takesMs = 0 } = {}) {
  const seen = { at: 0, stamp: 'first' as string | undefined, asked: [] as (string | undefined)[], fails: false, isUnreadable: false };
  const ahead = new Ahead({
    stampOf: () => {
      if (seen.isUnreadable) throw new Error('ELOOP');
      return seen.stamp;
    },
    ask: async () => {
      seen.asked.push(seen.stamp);
      seen.at += takesMs;
      if (seen.fails) throw new Error('there is no snapshot');
    },
    now: () => seen.at,
  });
  onTestFinished(() => ahead.close());
  return { ahead, seen };
}

test('each publication is asked about once, as soon as somebody looks', async () => {
  const { ahead, seen } = setUp();
  await ahead.look();
  expect(seen.asked).toEqual([]);
  ahead.seen();
  await ahead.look();
  await ahead.look();
  seen.stamp = 'second';
  await ahead.look();
  expect(seen.asked).toEqual(['first', 'second']);
});

test('nothing is asked where there is no snapshot, nor once nobody has looked for a day and a half', async () => {
  const { ahead, seen } = setUp();
  ahead.seen();
  seen.stamp = undefined;
  await ahead.look();
  expect(seen.asked).toEqual([]);
  seen.stamp = 'second';
  seen.at = 36 * HOUR_MS;
  await ahead.look();
  seen.stamp = 'third';
  seen.at++;
  await ahead.look();
  expect(seen.asked).toEqual(['second']);
});

test('of publications that follow each other quickly only some are asked about: a twentieth of the time at most', async () => {
  const { ahead, seen } = setUp({ takesMs: 500 });
  ahead.seen();
  for (let second = 0; second < 100; second++) {
    seen.stamp = `at ${second}`;
    await ahead.look();
    seen.at += 1000;
  }
  // Each takes half a second, and then nothing is asked for ten.
  expect(seen.asked).toEqual(['at 0', 'at 10', 'at 20', 'at 30', 'at 40', 'at 50', 'at 60', 'at 70', 'at 80', 'at 90']);
});

test('what could not be answered is asked again of the next publication', async () => {
  const { ahead, seen } = setUp();
  ahead.seen();
  seen.fails = true;
  await ahead.look();
  seen.stamp = 'second';
  await ahead.look();
  expect(seen.asked).toEqual(['first', 'second']);
});

test('a snapshot that cannot be looked at ends nothing, and the next one is asked about', async () => {
  const { ahead, seen } = setUp();
  ahead.seen();
  seen.isUnreadable = true;
  await ahead.look();
  seen.isUnreadable = false;
  await ahead.look();
  expect(seen.asked).toEqual(['first']);
});
