import { createServer } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { WebhookEvent } from '../../../schema/webhook.ts';
import { createCallCallback } from '../../../src/service/webhooks/call-callback.ts';
import { createCallbackGuard } from '../../../src/service/webhooks/callback-guard.ts';
import { type PostOptions, postEvent } from '../../../src/service/webhooks/post-event.ts';
import type { StoredSubscription } from '../../../src/service/webhooks/subscriptions.ts';
import { until } from '../../support/until.ts';
import { type AnswerCallback, startCallback } from './callback.ts';
import { loopback, openTestWebhooks } from './webhook-service.ts';

/** Its keys in another order than that of 2.17, and one too many: as a queue may give them back. */
const event = {
  user_id: 'üser-1',
  object_id: '8f9a5221-639e-4a85-81cb-4065ef23f979',
  event_time: '2025-03-10T09:00:00+01:00',
  note: 'not sent',
  data_type: 'daily_activity',
  event_type: 'update',
} as WebhookEvent;

const BODY =
  '{"event_type":"update","data_type":"daily_activity","object_id":"8f9a5221-639e-4a85-81cb-4065ef23f979","event_time":"2025-03-10T09:00:00+01:00","user_id":"üser-1"}';

function options(changed: { now?: () => number; headerPrefix?: string; timeoutMs?: number } = {}): PostOptions {
  const guard = createCallbackGuard(loopback);
  const call = createCallCallback(guard, changed.timeoutMs);
  onTestFinished(() => call.close());
  return { call, guard, secret: 'rs_a-secret-of-a-client', headerPrefix: 'x-service-', now: Date.now, ...changed };
}

test('an event is the compact JSON of 2.17 with a timestamp, and the signature that openssl computes', async () => {
  const callback = await startCallback();
  const times = [1_741_593_600_999, 1_741_593_615_000];
  const posting = options({ now: () => times.shift()! });
  expect(await postEvent(posting, `${callback.url}?key=1`, event)).toEqual({ outcome: 'delivered', reason: 'answered 200' });
  await postEvent(posting, callback.url, event);
  const [first, second] = callback.received;
  expect([first!.method, first!.url, first!.body]).toEqual(['POST', '/hook?key=1', BODY]);
  expect(first!.headers).toMatchObject({
    'content-type': 'application/json',
    'x-service-timestamp': '1741593600',
    // printf '%s' "1741593600$BODY" | openssl dgst -sha256 -hmac rs_a-secret-of-a-client
    'x-service-signature': 'A9C172CF3FB2D124F194D3AC361CB4E4462B94DAB8D75F67A82D767AF263CA17',
  });
  expect(second!.body).toBe(BODY);
  expect(second!.headers).toMatchObject({
    'x-service-timestamp': '1741593615',
    'x-service-signature': 'F2B1C09FC9116BFA7A8CF7736CC6942A9024EF68C48B1B9CBC77614E1CC40EE5',
  });
});

test('the prefix of both headers is a setting', async () => {
  const callback = await startCallback();
  await postEvent(options({ headerPrefix: 'X-Ring-' }), callback.url, event);
  const names = Object.keys(callback.received[0]!.headers).filter(name => /timestamp|signature/.test(name));
  expect(names.sort()).toEqual(['x-ring-signature', 'x-ring-timestamp']);
});

test.each([
  [200, 'delivered'],
  [201, 'delivered'],
  [204, 'delivered'],
  [299, 'delivered'],
  [301, '4xx'],
  [307, '4xx'],
  [400, '4xx'],
  [401, '4xx'],
  [404, '4xx'],
  [408, '4xx'],
  [410, 'gone'],
  [429, '4xx'],
  [499, '4xx'],
  [500, '5xx'],
  [503, '5xx'],
  [599, '5xx'],
])('%i is %s', async (status, outcome) => {
  const callback = await startCallback(response => response.writeHead(status, { location: '/elsewhere' }).end());
  expect(await postEvent(options(), callback.url, event)).toEqual({ outcome, reason: `answered ${status}` });
  expect(callback.received).toHaveLength(1);
});

test.each<[string, AnswerCallback]>([
  ['never', () => {}],
  [
    'byte by byte',
    response => {
      response.writeHead(200);
      const more = setInterval(() => response.write('x'), 20);
      response.on('close', () => clearInterval(more));
    },
  ],
])('a callback that answers %s has timed out, counting the whole exchange', async (_name, answer) => {
  const callback = await startCallback(answer);
  const started = Date.now();
  expect(await postEvent(options({ timeoutMs: 300 }), callback.url, event)).toEqual({
    outcome: 'timeout',
    reason: 'it gave no whole answer within 0.3 s',
  });
  expect(Date.now() - started).toBeLessThan(1500);
});

test('a receiver has 10 seconds (section 8)', async () => {
  const late = await startCallback(() => {});
  const justInTime = await startCallback(response => void setTimeout(() => response.writeHead(200).end(), 9_999));
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const posting = options();
  const [timedOut, delivered] = [late, justInTime].map(({ url }) => postEvent(posting, url, event));
  await until('both are called', () => late.received.length + justInTime.received.length === 2);
  vi.advanceTimersByTime(9_999);
  expect(await delivered).toEqual({ outcome: 'delivered', reason: 'answered 200' });
  vi.advanceTimersByTime(1);
  expect(await timedOut).toEqual({ outcome: 'timeout', reason: 'it gave no whole answer within 10 s' });
});

test('no connection, a broken one and a name that cannot be found count as timeouts', async () => {
  const closed = createServer().listen(0, '127.0.0.1');
  await expect.poll(() => closed.listening).toBe(true);
  const { port } = closed.address() as { port: number };
  closed.close();
  const broken = await startCallback(response => response.destroy());
  const posting = options();
  expect(await postEvent(posting, `http://127.0.0.1:${port}/`, event)).toEqual({
    outcome: 'timeout',
    reason: 'it gave no answer (ECONNREFUSED)',
  });
  expect(await postEvent(posting, broken.url, event)).toEqual({ outcome: 'timeout', reason: 'it gave no answer (UND_ERR_SOCKET)' });
  const nowhere = createCallbackGuard([], () => Promise.reject(new Error('ENOTFOUND')));
  const call = createCallCallback(nowhere);
  onTestFinished(() => call.close());
  expect(await postEvent({ ...posting, guard: nowhere, call }, 'http://nowhere.example/', event)).toEqual({
    outcome: 'timeout',
    reason: 'its host cannot be found',
  });
});

test('a long answer is cut off, and its status counts', async () => {
  let closed = false;
  const callback = await startCallback(response => {
    response.writeHead(200).on('close', () => {
      closed = true;
    });
    const more = setInterval(() => response.write('x'.repeat(10_000)), 1);
    response.on('close', () => clearInterval(more));
  });
  expect(await postEvent(options(), callback.url, event)).toEqual({ outcome: 'delivered', reason: 'answered 200' });
  await expect.poll(() => closed).toBe(true);
});

test('an attempt that is ended from outside is no failure of the callback', async () => {
  const callback = await startCallback(() => {});
  const ending = new AbortController();
  const posting = postEvent(options(), callback.url, event, ending.signal);
  await expect.poll(() => callback.received.length).toBe(1);
  ending.abort();
  await expect(posting).rejects.toThrow();
});

test('an event names its kind of data as it was subscribed to', async () => {
  const callback = await startCallback();
  const { post } = openTestWebhooks();
  const subscription = {
    id: 's-1',
    client_id: 'c-1',
    callback_url: callback.url,
    event_type: 'update',
    data_type: 'activity',
  } as StoredSubscription;
  await post(subscription, event);
  expect(JSON.parse(callback.received[0]!.body)).toMatchObject({ data_type: 'activity', event_type: 'update' });
});
