import { expect, test } from 'vitest';
import { WorkSemaphore } from '../../src/queue/work-semaphore.ts';

/** Two places, both taken, and who has been given one since. */
async function full(mostReleased = 1) {
  const semaphore = new WorkSemaphore(2, mostReleased);
  const ends: (() => void)[] = [];
  const came: string[] = [];
  const hold = () => new Promise<void>(resolve => ends.push(resolve));
  for (let i = 0; i < 2; i++) void semaphore.run(false, hold);
  const come = (name: string, urgent: boolean) =>
    void semaphore.run(urgent, () => {
      came.push(name);
      return hold();
    });
  await finished();
  /** The work that has its place for longest ends. */
  const release = () => ends.shift()!();
  return { semaphore, came, come, release };
}

const finished = () => new Promise(resolve => setImmediate(resolve));

test('whoever waits aside lets another work, and comes back before those who wait to begin, the urgent before the rest', async () => {
  const { semaphore, came, come, release } = await full();
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
  release();
  await waited;
  release();
  release();
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

test('a place is free again when work has failed', async () => {
  const semaphore = new WorkSemaphore(1, 0);
  await expect(semaphore.run(false, () => Promise.reject(new Error('failed')))).rejects.toThrow('failed');
  expect(await semaphore.run(false, async () => 'next')).toBe('next');
});
