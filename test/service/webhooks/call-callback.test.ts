import { getEventListeners } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, onTestFinished, test } from 'vitest';
import { createCallCallback } from '../../../src/service/webhooks/call-callback.ts';
import { CallbackRefused, createCallbackGuard } from '../../../src/service/webhooks/callback-guard.ts';
import { agree, startCallback } from './callback.ts';
import { loopback } from './webhook-service.ts';

function openCall(allowed = loopback) {
  const call = createCallCallback(createCallbackGuard(allowed));
  onTestFinished(() => call.close());
  return call;
}

test.each([
  ['127.0.0.1', '127.0.0.1'],
  ['0x7f.1', '127.0.0.1'],
  ['[::ffff:127.0.0.1]', '127.0.0.1'],
  ['[::1]', '::1'],
])('a connection to the literal %s is refused although nobody has judged the URL before', async (host, address) => {
  const canary = await startCallback(agree, address);
  const request = { method: 'POST', url: new URL(`http://${host}:${canary.port}/hook`), headers: {}, maxBytes: 100 } as const;
  const refusal = await openCall([])(request).catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(CallbackRefused);
  expect((refusal as Error).message).toBe('its host has an address that is not public');
  expect(canary.connections()).toBe(0);
  // Where it is allowed the same call arrives.
  expect(await openCall()(request)).toMatchObject({ status: 200 });
  expect(canary.connections()).toBe(1);
});

test('a call that is over holds nothing, though its ten seconds are not, nor its signal', async () => {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  const heap = () => {
    collect();
    return process.memoryUsage().heapUsed;
  };
  const call = openCall([]);
  const { signal } = new AbortController();
  const request = { method: 'POST', url: new URL('http://127.0.0.1:9/'), headers: {}, maxBytes: 100, signal } as const;
  const callOften = async (times: number) => {
    for (let i = 0; i < times; i++) await call(request).catch(() => undefined);
  };
  await callOften(500);
  const before = heap();
  await callOften(1500);
  // One that is held is 24 kB.
  expect((heap() - before) / 1500).toBeLessThan(4000);
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

test('a signal that has ended already ends a call before it has begun', async () => {
  const callback = await startCallback();
  const request = { method: 'POST', url: new URL(callback.url), headers: {}, maxBytes: 100, signal: AbortSignal.abort() } as const;
  await expect(openCall()(request)).rejects.toThrow('it gave no answer (AbortError)');
  expect(callback.received).toEqual([]);
});
