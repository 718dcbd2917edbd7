import { expect, test } from 'vitest';
import { createWorkSemaphore } from '../../jobs/work-semaphore.ts';

/** Two places, both taken, and who has been given one since. */
async function full(mostReleased = 1) {
  const semaphore = createWorkSemaphore(2, mostReleased);
  await semaphore.acquire(false);
  await semaphore.acquire(false);
  const came: string[] = [];
  const come = (name: string, urgent: boolean) => void semaphore.acquire(urgent).then(() => came.push(name));
  return { semaphore, came, come };
}

const finished = () => new Promise(resolve => setImmediate(resolve));

test('whoever waits aside lets another work, and comes back before those who wait to begin, the urgent before the rest', async () => {
  const { semaphore, came, come } = await full();
  let wake = () => {};
  const waited = semaphore.releaseWhile(() => new Promise(resolve => (wake = resolve)))!.then(() => came.push('back'));
  come('first', false);
  come('backfill', false);
  come('nightly', true);
  await finished();
  expect(came).toEqual(['first']);
  wake();
  await finished();
  expect(came).toEqual(['first']);
  semaphore.release();
  await waited;
  semaphore.release();
  semaphore.release();
  await finished();
  expect(came).toEqual(['first', 'back', 'nightly', 'backfill']);
});

test('too many are not let aside, and one whose wait is broken off has its place again', async () => {
  const { semaphore, came, come } = await full();
  let breakOff = (_: Error) => {};
  const waited = semaphore.releaseWhile(() => new Promise((_, reject) => (breakOff = reject)))!;
  expect(semaphore.releaseWhile(async () => {})).toBeUndefined();
  breakOff(new Error('stopped'));
  await expect(waited).rejects.toThrow('stopped');
  come('third', false);
  await finished();
  expect(came).toEqual([]);
  expect(semaphore.releaseWhile(async () => {})).toBeDefined();
});
