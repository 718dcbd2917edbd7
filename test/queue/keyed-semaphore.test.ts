import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { KeyedSemaphore } from '../../src/queue/keyed-semaphore.ts';

const SLOW = 'https://slow.example';
const OTHER = 'https://other.example';

let destinations: KeyedSemaphore;
beforeEach(() => {
  vi.useFakeTimers({ now: 0 });
  destinations = new KeyedSemaphore(8, Date.now);
});
afterEach(() => {
  vi.useRealTimers();
});

const fill = (name = SLOW) => Promise.all(Array.from({ length: 8 }, (_, i) => destinations.acquire(name, `first-${i}`)));

/** What became of a job that asked for a place, as soon as it is known. */
function ask(name: string, jobId: string): { outcome: number | 'place' | 'waits' } {
  const asked: { outcome: number | 'place' | 'waits' } = { outcome: 'waits' };
  void destinations.acquire(name, jobId).then(delayMs => {
    asked.outcome = delayMs ?? 'place';
  });
  return asked;
}

test('a destination has 8 places, and another one has places of its own', async () => {
  expect(await fill()).toEqual(Array.from({ length: 8 }, () => undefined));
  const ninth = ask(SLOW, 'ninth');
  expect(await destinations.acquire(OTHER, 'tenth')).toBeUndefined();
  expect(ninth.outcome).toBe('waits');
});

test('where the receiver is quick a job waits for the next place without leaving, in order', async () => {
  await fill();
  const [one, two] = [ask(SLOW, 'one'), ask(SLOW, 'two')];
  await vi.advanceTimersByTimeAsync(100);
  destinations.release(SLOW, 'first-3');
  destinations.release(SLOW, 'first-3');
  await vi.advanceTimersByTimeAsync(0);
  expect([one.outcome, two.outcome]).toEqual(['place', 'waits']);
  destinations.release(SLOW, 'one');
  await vi.advanceTimersByTimeAsync(0);
  expect(two.outcome).toBe('place');
});

test('who has waited for a quarter of a second leaves, and from then on nobody waits for a receiver that has not answered', async () => {
  await fill();
  const [one, two] = [ask(SLOW, 'one'), ask(SLOW, 'two')];
  await vi.advanceTimersByTimeAsync(249);
  expect([one.outcome, two.outcome]).toEqual(['waits', 'waits']);
  await vi.advanceTimersByTimeAsync(1);
  // 250 ms for each of 8 places: 31 ms each, of which the first is at the least that is waited.
  expect([one.outcome, two.outcome]).toEqual([31.25, 62.5]);
  await vi.advanceTimersByTimeAsync(7_750);
  expect(await destinations.acquire(SLOW, 'three')).toBe(3000);
  expect(await destinations.acquire(SLOW, 'four')).toBe(4000);
});

test('the more stay away and the longer exchanges have taken, the longer, and never more than 5 minutes', async () => {
  await fill();
  for (let i = 0; i < 50; i++) {
    vi.advanceTimersByTime(10_000);
    for (let place = 0; place < 8; place++) {
      destinations.release(SLOW, `first-${place}`);
      await destinations.acquire(SLOW, `first-${place}`);
    }
  }
  const delays: (number | undefined)[] = [];
  for (let i = 0; i < 10_000; i++) delays.push(await destinations.acquire(SLOW, `waiting-${i}`));
  expect(delays[0]).toBeCloseTo(1250, 0);
  expect(delays[9]).toBeCloseTo(12_500, 0);
  expect(delays[9_999]).toBe(300_000);
});

test('whoever comes back shortens the wait of the next, also when it does not enter any more', async () => {
  await fill();
  vi.advanceTimersByTime(800);
  for (let i = 0; i < 80; i++) await destinations.acquire(SLOW, `waiting-${i}`);
  expect(await destinations.acquire(SLOW, 'late')).toBe(8100);
  for (let i = 0; i < 80; i++) destinations.returned(`waiting-${i}`);
  destinations.returned('late');
  destinations.returned('late');
  destinations.returned('never-seen');
  expect(await destinations.acquire(SLOW, 'late')).toBe(100);
});
