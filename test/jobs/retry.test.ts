import { expect, test } from 'vitest';
import { FAILURE_CLASSES, type FailureClass, type Failures, planRetry } from '../../jobs/retry.ts';
import { randomFrom } from '../support/random-documents.ts';

/** How long an attempt takes that ends so (section 8). */
const TOOK_MS: Record<FailureClass, number> = { '4xx': 0, '5xx': 0, timeout: 10_000 };

/** Attempts of one delivery on a clock of their own, each failing as told, until it is given up. */
function failAlways(classOf: (attempt: number) => FailureClass, random: () => number) {
  let [now, attempts] = [0, 0];
  let failures: Failures = {};
  for (;;) {
    const failure = classOf(attempts++);
    now += TOOK_MS[failure];
    const retry = planRetry(failures, failure, random());
    if (!retry) return { attempts, failures, minutes: now / 60_000 };
    failures = retry.failures;
    now += retry.delayMs;
  }
}

test('the retries of a class come after 15 seconds at first and a quarter of an hour at last, an hour in all', () => {
  const seconds: number[] = [];
  let failures: Failures = {};
  for (let retry = planRetry(failures, '5xx', 0.5); retry; retry = planRetry(failures, '5xx', 0.5)) {
    seconds.push(retry.delayMs / 1000);
    failures = retry.failures;
  }
  expect(seconds).toEqual([15, 30, 60, 120, 240, 360, 480, 660, 780, 855]);
  expect(failures).toEqual({ '5xx': 10 });
  // 5 % less and more, as chance has it.
  expect([0, 1].map(random => planRetry({}, '5xx', random)?.delayMs)).toEqual([14_250, 15_750]);
  expect([0, 1].map(random => planRetry({ '5xx': 9 }, '5xx', random)?.delayMs)).toEqual([812_250, 897_750]);
});

test.each(FAILURE_CLASSES)('a delivery that always fails by %s is tried again 10 times, within 54 to 66 minutes', failure => {
  const next = randomFrom(4);
  for (const random of [() => 0, () => 1, ...Array.from({ length: 200 }, () => next)]) {
    const { attempts, failures, minutes } = failAlways(() => failure, random);
    expect([attempts, failures]).toEqual([11, { [failure]: 10 }]);
    expect(minutes).toBeGreaterThan(54);
    expect(minutes).toBeLessThan(66);
  }
});

test('each class has 10 retries of its own', () => {
  const inTurn = failAlways(
    attempt => FAILURE_CLASSES[attempt % 3]!,
    () => 0.5,
  );
  expect([inTurn.attempts, inTurn.failures]).toEqual([31, { '4xx': 10, '5xx': 10, timeout: 10 }]);
  // Three hours, ten timeouts of 10 seconds, and the eleventh failure of the first class ends it.
  expect(inTurn.minutes).toBeCloseTo(180 + 100 / 60, 6);

  const oneThenOther = failAlways(
    attempt => (attempt < 10 ? '5xx' : '4xx'),
    () => 0.5,
  );
  expect([oneThenOther.attempts, oneThenOther.failures]).toEqual([21, { '5xx': 10, '4xx': 10 }]);
  expect(oneThenOther.minutes).toBeCloseTo(120, 6);

  const mostlyOne = failAlways(
    attempt => (attempt === 5 ? 'timeout' : '4xx'),
    () => 0.5,
  );
  expect([mostlyOne.attempts, mostlyOne.failures]).toEqual([12, { '4xx': 10, timeout: 1 }]);
  expect(mostlyOne.minutes).toBeCloseTo(60 + 25 / 60, 6);
});

test('planning changes nothing that it was given', () => {
  const failures: Failures = Object.freeze({ '4xx': 3 });
  expect(planRetry(failures, '5xx', 0.5)).toEqual({ failures: { '4xx': 3, '5xx': 1 }, delayMs: 15_000 });
  expect(failures).toEqual({ '4xx': 3 });
});
