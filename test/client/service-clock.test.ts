import { expect, test } from 'vitest';
import { createServiceClock } from '../../src/client/service-clock.ts';

const NOON = Date.parse('2026-11-22T12:00:00Z');
const SPRING = Date.parse('2025-04-01T08:00:00Z');

/** A clock of ours that the test sets, and that of a service that has answered at each of these moments with these dates. */
function setUp() {
  const ours = { ms: NOON };
  const learned: number[] = [];
  const clock = createServiceClock(
    () => ours.ms,
    undefined,
    aheadMs => learned.push(aheadMs),
  );
  const answer = (at: number, date: number | undefined, tookMs = 0) => {
    ours.ms = at;
    clock.note(date, { sentMs: at - tookMs, receivedMs: at });
  };
  return { ours, clock, learned, answer };
}

test('before any answer the time is ours, and worth a question', () => {
  const { clock } = setUp();
  expect([clock.now(), clock.aheadMs, clock.isStale()]).toEqual([NOON, undefined, true]);
});

test('a service whose date agrees with our clock, as far as whole seconds tell, keeps it exactly', () => {
  const { clock, learned, answer } = setUp();
  for (let i = 0; i < 10; i++) answer(NOON + i * 777, Math.floor((NOON + i * 777) / 1000) * 1000, 200);
  expect([clock.now() - (NOON + 9 * 777), clock.aheadMs, clock.isStale()]).toEqual([0, 0, false]);
  expect(learned).toEqual([0]);
});

test('a service that stands in another year: its time goes on with ours, and is asked again before it is relied on', () => {
  const { ours, clock, answer } = setUp();
  answer(NOON, SPRING);
  answer(NOON, SPRING);
  expect([clock.now(), clock.isStale()]).toEqual([SPRING, false]);
  ours.ms += 3_600_000;
  expect([clock.now(), clock.isStale()]).toEqual([SPRING + 3_600_000, true]);
});

test('a service whose clock is set a little differently is not asked again', () => {
  const { ours, clock, answer } = setUp();
  answer(NOON, NOON + 40_000);
  ours.ms += 3_600_000;
  expect([clock.now(), clock.isStale()]).toEqual([NOON + 3_640_000, false]);
});

test('a service that runs at 600 times: its latest answer tells, and after some seconds it is asked again', () => {
  const { ours, clock, answer } = setUp();
  answer(NOON, NOON);
  answer(NOON + 1_000, NOON + 600_000);
  expect([clock.now(), clock.isStale()]).toEqual([NOON + 600_000, false]);
  ours.ms += 6_000;
  expect(clock.isStale()).toBe(true);
  answer(NOON + 7_000, NOON + 4_200_000);
  expect([clock.now(), clock.isStale()]).toEqual([NOON + 4_200_000, false]);
});

test('an answer that was overtaken changes nothing; a service that shows no date leaves ours', () => {
  const { clock, answer } = setUp();
  answer(NOON, SPRING);
  answer(NOON, SPRING);
  answer(NOON + 500, SPRING - 86_400_000, 1_000);
  expect(clock.aheadMs).toBe(SPRING - NOON);
  const silent = setUp();
  silent.answer(NOON, undefined);
  expect([silent.clock.now(), silent.clock.aheadMs, silent.clock.isStale()]).toEqual([NOON, undefined, false]);
});

test('a date of another time counts once a second answer agrees: a single one is a mistake', () => {
  const { clock, learned, answer } = setUp();
  answer(NOON, SPRING);
  expect([clock.aheadMs, clock.isStale(), learned]).toEqual([undefined, true, []]);
  answer(NOON + 1_000, NOON + 1_000);
  expect([clock.aheadMs, clock.isStale()]).toEqual([0, false]);
  answer(NOON + 2_000, SPRING);
  answer(NOON + 20_000, NOON + 20_000);
  answer(NOON + 40_000, SPRING);
  expect([clock.aheadMs, clock.isStale(), learned]).toEqual([0, true, [0]]);
});

test('where a clock is known the second answer comes some seconds later', () => {
  const { clock, answer } = setUp();
  answer(NOON, NOON);
  answer(NOON + 1_000, SPRING);
  answer(NOON + 5_999, SPRING + 4_999);
  expect(clock.aheadMs).toBe(0);
  answer(NOON + 6_000, SPRING + 5_000);
  expect(clock.now()).toBe(SPRING + 5_000);
});

test('a clock of another time is given up for ours after an answer without a date, one of our time is kept', () => {
  const { clock, learned, answer } = setUp();
  answer(NOON, SPRING);
  answer(NOON + 1_000, SPRING + 1_000);
  answer(NOON + 2_000, undefined);
  expect([clock.now(), learned]).toEqual([NOON + 2_000, [SPRING - NOON, 0]]);
  answer(NOON + 3_000, NOON + 10 * 86_400_000);
  answer(NOON + 4_000, undefined);
  expect(clock.aheadMs).toBe(10 * 86_400_000 - 3_000);
});

test('a date that is more than a century from ours counts as none, and so does one that was kept', () => {
  const { clock, learned, answer } = setUp();
  const far = Date.parse('9999-12-31T23:59:59Z');
  answer(NOON, far);
  answer(NOON + 10_000, far);
  expect([clock.now(), clock.aheadMs, clock.isStale(), learned]).toEqual([NOON + 10_000, undefined, false, []]);
  expect(createServiceClock(() => NOON, far - NOON).now()).toBe(NOON);
  expect(createServiceClock(() => NOON, Date.parse('2120-01-01T00:00:00Z') - NOON).now()).toBe(Date.parse('2120-01-01T00:00:00Z'));
});
