import { expect, test } from 'vitest';
import { RequestClock } from '../../src/warehouse/request-clock.ts';

const NOTHING = Number.POSITIVE_INFINITY;

test('what a scope has begun is under way until it ends, also by an error', async () => {
  const clock = new RequestClock(0, () => 1);
  const failing = clock.withRequest(async request => {
    request.send();
    request.keep(clock.lease());
    request.beginRead(1_001);
    expect([request.sentAt, clock.oldestAnswer(), clock.oldestLeased()]).toEqual([1_000, 1_000, 1_000]);
    clock.release(1_001);
    throw new Error('not stored');
  });
  await expect(failing).rejects.toThrow('not stored');
  expect([clock.oldestAnswer(), clock.oldestLeased()]).toEqual([NOTHING, NOTHING]);
});

test('a request that is sent again has the later moment alone', async () => {
  const clock = new RequestClock(0, () => 1);
  await clock.withRequest(async request => {
    request.send();
    request.send();
    expect([request.sentAt, clock.oldestAnswer()]).toEqual([1_001, 1_001]);
  });
});

test('a read is held by the moment of its first answer, but no answer is awaited between two', async () => {
  const clock = new RequestClock(0, () => 1);
  await clock.withRequest(async request => {
    request.beginRead(1_000);
    request.beginRead(1_001);
    expect([clock.oldestAnswer(), clock.oldestLeased()]).toEqual([NOTHING, 1_000]);
    request.keep(1_001);
    request.keep(1_001);
    expect(clock.oldestAnswer()).toBe(1_001);
    request.drop(1_001);
    expect([clock.oldestAnswer(), clock.oldestLeased()]).toEqual([NOTHING, 1_000]);
  });
});
