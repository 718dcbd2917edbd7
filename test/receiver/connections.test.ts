import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { openReceiver } from '../../src/receiver/receiver.ts';
import { until } from '../support/until.ts';
import { openWebhook } from './open-webhook.ts';
import { post, RawConnection, requestText } from './raw.ts';
import { BODY, headersOf, signed } from './signed.ts';

const limits = { requestMs: 400, silenceMs: 2_000, idleMs: 600, closeMs: 500 };

const good = () => {
  const request = signed(BODY);
  return post({ headers: headersOf(request), body: request.body });
};

/** How long it takes until the connection is cut; it drips a byte of `rest` every 50 ms meanwhile. */
async function cutAfter(connection: RawConnection, rest = ''): Promise<number> {
  const start = performance.now();
  for (let i = 0; !connection.closed; i++) {
    if (i < rest.length) connection.socket.write(rest[i]!);
    if (performance.now() - start > 5_000) throw new Error('it was not cut in 5 s');
    await sleep(50);
  }
  return performance.now() - start;
}

test('a connection that says nothing is cut', async () => {
  const { receiver } = await openWebhook({ limits });
  expect(await cutAfter(await RawConnection.open(receiver.url))).toBeLessThan(1_500);
});

test('headers and bodies that drip are cut, however steadily', async () => {
  const { receiver, events } = await openWebhook({ limits });
  const slowHead = await RawConnection.open(receiver.url);
  const slowBody = await RawConnection.open(receiver.url);
  slowHead.socket.write('POST /webhook HTTP/1.1\r\nHost: x\r\n');
  slowBody.socket.write('POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Length: 9000\r\n\r\n');
  const [head, body] = await Promise.all([cutAfter(slowHead, 'x'.repeat(9_000)), cutAfter(slowBody, 'x'.repeat(9_000))]);
  expect(head).toBeLessThan(1_500);
  expect(body).toBeLessThan(1_500);
  expect(events).toEqual([]);
});

test('an unused connection is kept for a while and then cut', async () => {
  const { receiver } = await openWebhook({ limits });
  const connection = await RawConnection.open(receiver.url);
  for (let i = 0; i < 3; i++) {
    expect((await connection.ask(good()))?.status).toBe(204);
    await sleep(200);
  }
  expect(connection.closed).toBe(false);
  expect(await cutAfter(connection)).toBeLessThan(2_500);
});

test('strangers’ connections are bounded, and unused ones give way to a newcomer', async () => {
  const { receiver } = await openWebhook({ limits: { connections: 5 } });
  const unused = await Promise.all(Array.from({ length: 5 }, () => RawConnection.open(receiver.url)));
  for (const connection of unused) expect((await connection.ask(good()))?.status).toBe(204);
  const refused = await RawConnection.open(receiver.url);
  expect(await refused.ask(good())).toBeUndefined();
  await until('they have given way', () => unused.every(({ closed }) => closed));
  expect((await (await RawConnection.open(receiver.url)).ask(good()))?.status).toBe(204);
});

test('connections that never say a word give way too', async () => {
  const { receiver } = await openWebhook({ limits: { connections: 5 } });
  const silent = await Promise.all(Array.from({ length: 5 }, () => RawConnection.open(receiver.url)));
  const refused = await RawConnection.open(receiver.url);
  expect(await refused.ask(good())).toBeUndefined();
  await until('they have given way', () => silent.every(({ closed }) => closed));
  expect((await (await RawConnection.open(receiver.url)).ask(good()))?.status).toBe(204);
});

test('connections whose request never ends give way too, unused ones before them; one whose event is being kept stays', async () => {
  let release = () => {};
  let arrived = false;
  const { receiver } = await openWebhook({
    limits: { ...limits, requestMs: 20_000, silenceMs: 20_000, connections: 6 },
    accept: () => {
      arrived = true;
      return new Promise<void>(resolve => {
        release = resolve;
      });
    },
  });
  const working = await RawConnection.open(receiver.url);
  const answer = working.ask(good());
  await until('the event is there', () => arrived);
  const half = await Promise.all(Array.from({ length: 5 }, () => RawConnection.open(receiver.url)));
  for (const { socket } of half) socket.write('POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Length: 9000\r\n\r\n{');
  await sleep(100);
  const refused = await RawConnection.open(receiver.url);
  expect(await refused.ask(good())).toBeUndefined();
  await until('they have given way', () => half.every(({ closed }) => closed));
  expect((await (await RawConnection.open(receiver.url)).ask(requestText('GET /health HTTP/1.1', [['Host', 'x']])))?.status).toBe(200);
  release();
  expect((await answer)?.status).toBe(204);
});

test('closing lets an event under way be accepted and answered', async () => {
  let release = () => {};
  let arrived = false;
  const { receiver } = await openWebhook({
    accept: () => {
      arrived = true;
      return new Promise<void>(resolve => {
        release = resolve;
      });
    },
  });
  const connection = await RawConnection.open(receiver.url);
  const answer = connection.ask(good());
  await until('the event is there', () => arrived);
  let closed = false;
  const closing = receiver.close().then(() => {
    closed = true;
  });
  await sleep(100);
  expect(closed).toBe(false);
  await expect(fetch(`${receiver.url}/health`)).rejects.toThrow();
  const start = performance.now();
  release();
  expect((await answer)?.status).toBe(204);
  await closing;
  expect(performance.now() - start).toBeLessThan(1_000);
  expect(receiver.accepted()).toBe(1);
});

test('closing does not wait for a sender that drips, nor for unused connections', async () => {
  const { receiver } = await openWebhook({ limits: { closeMs: 300 } });
  const unused = await RawConnection.open(receiver.url);
  await unused.ask(good());
  const slow = await RawConnection.open(receiver.url);
  slow.socket.write('POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Length: 9000\r\n\r\nx');
  await sleep(50);
  const start = performance.now();
  await receiver.close();
  expect(performance.now() - start).toBeLessThan(2_000);
});

test('without webhooks there is no /webhook', async () => {
  const receiver = await openReceiver({ ready: async () => {} }, { host: '127.0.0.1', port: 0 });
  const connection = await RawConnection.open(receiver.url);
  expect((await fetch(`${receiver.url}/webhook?verification_token=a&challenge=b`)).status).toBe(404);
  expect((await connection.ask(good()))?.status).toBe(404);
  expect([receiver.refusals(), receiver.accepted()]).toEqual([{}, 0]);
  await receiver.close();
});

test('who sends requests without waiting for an answer is cut off before they pile up', async () => {
  let accepted = 0;
  const { receiver } = await openWebhook({
    accept: async () => {
      accepted++;
      await sleep(50);
    },
  });
  const connection = await RawConnection.open(receiver.url);
  connection.socket.write(Buffer.concat(Array.from({ length: 2_000 }, good)));
  await until('it is cut', () => connection.closed);
  expect(accepted).toBeLessThanOrEqual(16);
  const patient = await RawConnection.open(receiver.url);
  for (let i = 0; i < 40; i++) expect((await patient.ask(good()))?.status).toBe(204);
});
