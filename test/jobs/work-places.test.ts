import { expect, test } from 'vitest';
import { createWorkPlaces } from '../../jobs/work-places.ts';

/** Two places, both taken, and who has been given one since. */
async function full(mostAside = 1) {
  const places = createWorkPlaces(2, mostAside);
  await places.take(false);
  await places.take(false);
  const came: string[] = [];
  const come = (name: string, urgent: boolean) => void places.take(urgent).then(() => came.push(name));
  return { places, came, come };
}

const settled = () => new Promise(resolve => setImmediate(resolve));

test('whoever waits aside lets another work, and comes back before those who wait to begin, the urgent before the rest', async () => {
  const { places, came, come } = await full();
  let wake = () => {};
  const waited = places.aside(() => new Promise(resolve => (wake = resolve)))!.then(() => came.push('back'));
  come('first', false);
  come('backfill', false);
  come('nightly', true);
  await settled();
  expect(came).toEqual(['first']);
  wake();
  await settled();
  expect(came).toEqual(['first']);
  places.leave();
  await waited;
  places.leave();
  places.leave();
  await settled();
  expect(came).toEqual(['first', 'back', 'nightly', 'backfill']);
});

test('too many are not let aside, and one whose wait is broken off has its place again', async () => {
  const { places, came, come } = await full();
  let breakOff = (_: Error) => {};
  const waited = places.aside(() => new Promise((_, reject) => (breakOff = reject)))!;
  expect(places.aside(async () => {})).toBeUndefined();
  breakOff(new Error('stopped'));
  await expect(waited).rejects.toThrow('stopped');
  come('third', false);
  await settled();
  expect(came).toEqual([]);
  expect(places.aside(async () => {})).toBeDefined();
});
