import { expect, onTestFinished, test } from 'vitest';
import { openReceiver } from '../../src/receiver/receiver.ts';

async function start(ready: () => Promise<void>) {
  const receiver = await openReceiver({ ready }, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => receiver.close());
  return async (path: string, init?: RequestInit) => {
    const response = await fetch(receiver.url + path, init);
    return [response.status, response.headers.get('content-type'), await response.text()];
  };
}

const JSON_TYPE = 'application/json; charset=utf-8';

test('it lives, whatever the warehouse says', async () => {
  const get = await start(() => Promise.reject(new Error('no')));
  expect(await get('/health')).toEqual([200, JSON_TYPE, '{"status":"ok"}']);
});

test('it is ready while a write succeeds, and tells strangers no path when not', async () => {
  let wrong: Error | undefined;
  const get = await start(async () => {
    if (wrong) throw wrong;
  });
  expect(await get('/ready')).toEqual([200, JSON_TYPE, '{"status":"ready"}']);
  wrong = new Error('/var/lib/ringneck: the disk is almost full');
  expect(await get('/ready')).toEqual([503, JSON_TYPE, '{"status":"not ready","reason":"nothing can be written: the log says why"}']);
  wrong = undefined;
  expect(await get('/ready')).toEqual([200, JSON_TYPE, '{"status":"ready"}']);
});

test('there is nothing else to ask', async () => {
  const get = await start(async () => {});
  expect((await get('/'))[0]).toBe(404);
  expect((await get('/health', { method: 'POST' }))[0]).toBe(404);
});

test('a port that is in use is refused', async () => {
  const first = await openReceiver({ ready: async () => {} }, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => first.close());
  const address = { host: '127.0.0.1', port: Number(new URL(first.url).port) };
  await expect(openReceiver({ ready: async () => {} }, address)).rejects.toMatchObject({ code: 'EADDRINUSE' });
});
