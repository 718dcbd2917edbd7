import { expect, test } from 'vitest';
import { createGates, type Pass } from '../../src/client/gate.ts';

const never = new AbortController().signal;

test('places are given in the order of asking, and one that is left twice is given once', async () => {
  const gates = createGates({ requestsPerToken: 1, now: () => 0 });
  const first = await gates.enter('anna', never);
  const order: number[] = [];
  const later = [1, 2, 3].map(n => gates.enter('anna', never).then(pass => ({ pass, n: order.push(n) })));
  first.leave();
  first.leave();
  const { pass } = await later[0]!;
  await new Promise(resolve => setImmediate(resolve));
  expect(order).toEqual([1]);
  pass.leave();
  (await later[1]!).pass.leave();
  (await later[2]!).pass.leave();
  expect(order).toEqual([1, 2, 3]);
});

test('who gives up in the row leaves no gap', async () => {
  const gates = createGates({ requestsPerToken: 1, now: () => 0 });
  const first = await gates.enter('anna', never);
  const stop = new AbortController();
  const given = gates.enter('anna', stop.signal);
  const next = gates.enter('anna', never);
  stop.abort();
  await expect(given).rejects.toThrow();
  first.leave();
  (await next).leave();
  await expect(gates.enter('anna', stop.signal)).rejects.toThrow();
});

test('a gate never opens sooner than it was said to, outlives its users, and is forgotten when it is open again', async () => {
  let now = 0;
  const gates = createGates({ now: () => now });
  const anna = await gates.enter('anna', never);
  anna.close('token', 100);
  anna.close('token', 50);
  anna.leave();
  const berta = await gates.enter('berta', never);
  expect(berta.closedUntil()).toBeLessThan(0);
  expect((await gates.enter('anna', never)).closedUntil()).toBe(100);
  berta.close('application', 200);
  expect((await gates.enter('carla', never)).closedUntil()).toBe(200);
  now = 300;
  expect((await gates.enter('dora', never)).closedUntil()).toBeLessThanOrEqual(now);
});

test('bulk requests leave a place free for live ones, which go first', async () => {
  const gates = createGates({ requestsPerToken: 3, reservedForLive: 1, now: () => 0 });
  const bulk = [await gates.enter('anna', never, 'bulk'), await gates.enter('anna', never, 'bulk')];
  const order: string[] = [];
  const note = (name: string) => (pass: Pass) => {
    order.push(name);
    return pass;
  };
  const third = gates.enter('anna', never, 'bulk').then(note('bulk'));
  const live = await gates.enter('anna', never, 'live');
  const waiting = gates.enter('anna', never, 'live').then(note('live'));
  bulk[0]!.leave();
  (await waiting).leave();
  (await third).leave();
  expect(order).toEqual(['live', 'bulk']);
  live.leave();
  bulk[1]!.leave();
});

test('with one place only, bulk requests have it too', async () => {
  const gates = createGates({ requestsPerToken: 1, reservedForLive: 1, now: () => 0 });
  (await gates.enter('anna', never, 'bulk')).leave();
  (await gates.enter('anna', never, 'live')).leave();
});
