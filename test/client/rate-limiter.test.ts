import { expect, test } from 'vitest';
import { type Permit, RateLimiter } from '../../src/client/rate-limiter.ts';

const never = new AbortController().signal;

test('places are given in the order of asking, and one that is left twice is given once', async () => {
  const limiter = new RateLimiter({ requestsPerToken: 1, now: () => 0 });
  const first = await limiter.acquire('anna', never);
  const order: number[] = [];
  const later = [1, 2, 3].map(n => limiter.acquire('anna', never).then(pass => ({ pass, n: order.push(n) })));
  first.release();
  first.release();
  const { pass } = await later[0]!;
  await new Promise(resolve => setImmediate(resolve));
  expect(order).toEqual([1]);
  pass.release();
  (await later[1]!).pass.release();
  (await later[2]!).pass.release();
  expect(order).toEqual([1, 2, 3]);
});

test('who gives up in the row leaves no gap', async () => {
  const limiter = new RateLimiter({ requestsPerToken: 1, now: () => 0 });
  const first = await limiter.acquire('anna', never);
  const stop = new AbortController();
  const given = limiter.acquire('anna', stop.signal);
  const next = limiter.acquire('anna', never);
  stop.abort();
  await expect(given).rejects.toThrow();
  first.release();
  (await next).release();
  await expect(limiter.acquire('anna', stop.signal)).rejects.toThrow();
});

test('a gate never opens sooner than it was said to, outlives its users, and is forgotten when it is open again', async () => {
  let now = 0;
  const limiter = new RateLimiter({ now: () => now });
  const anna = await limiter.acquire('anna', never);
  anna.close('token', 100);
  anna.close('token', 50);
  anna.release();
  const berta = await limiter.acquire('berta', never);
  expect(berta.closedUntil()).toBeLessThan(0);
  expect((await limiter.acquire('anna', never)).closedUntil()).toBe(100);
  berta.close('application', 200);
  expect((await limiter.acquire('carla', never)).closedUntil()).toBe(200);
  now = 300;
  expect((await limiter.acquire('dora', never)).closedUntil()).toBeLessThanOrEqual(now);
});

test('bulk requests leave a place free for live ones, which go first', async () => {
  const limiter = new RateLimiter({ requestsPerToken: 3, reservedForLive: 1, now: () => 0 });
  const bulk = [await limiter.acquire('anna', never, 'bulk'), await limiter.acquire('anna', never, 'bulk')];
  const order: string[] = [];
  const note = (name: string) => (pass: Permit) => {
    order.push(name);
    return pass;
  };
  const third = limiter.acquire('anna', never, 'bulk').then(note('bulk'));
  const live = await limiter.acquire('anna', never, 'live');
  const waiting = limiter.acquire('anna', never, 'live').then(note('live'));
  bulk[0]!.release();
  (await waiting).release();
  (await third).release();
  expect(order).toEqual(['live', 'bulk']);
  live.release();
  bulk[1]!.release();
});

test('with one place only, bulk requests have it too', async () => {
  const limiter = new RateLimiter({ requestsPerToken: 1, reservedForLive: 1, now: () => 0 });
  (await limiter.acquire('anna', never, 'bulk')).release();
  (await limiter.acquire('anna', never, 'live')).release();
});
