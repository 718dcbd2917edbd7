import { expect, onTestFinished, test } from 'vitest';
import { ServiceError } from '../../src/client/error.ts';
import { SubscriptionClient, type SubscriptionClientOptions } from '../../src/client/subscriptions.ts';
import { CLIENT, invalid, type SubscriptionService, startSubscriptionService } from '../support/literal-subscriptions.ts';

const CALLBACK = 'https://example.org/webhook?key=not-for-logs-key';
const ID = '5f0e3a52-6d0b-4c3e-9a35-0d5f8f6f2b11';
const TOLD = {
  id: ID,
  callback_url: CALLBACK,
  event_type: 'create',
  data_type: 'sleep',
  expiration_time: '2025-08-30T02:00:00+02:00',
};
const KNOWN = { id: ID, callbackUrl: CALLBACK, eventType: 'create', dataType: 'sleep', expiresAt: 1_756_512_000_000_000 };

async function start(options: Partial<SubscriptionClientOptions> = {}) {
  const service = await startSubscriptionService();
  const client = new SubscriptionClient({ baseUrl: service.url, callbackUrl: CALLBACK, ...CLIENT, ...options });
  onTestFinished(async () => {
    await client.close();
    await service.close();
  });
  return { service, client };
}

/** The error that a request ends with: no secret in it. */
async function errorOf(promise: Promise<unknown>): Promise<ServiceError> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(ServiceError);
  expect(`${(error as Error).stack} ${JSON.stringify(error)}`).not.toContain('not-for-logs');
  return error as ServiceError;
}

const lastAsked = ({ asked }: SubscriptionService) => {
  const { method, path, headers, body } = asked.at(-1)!;
  return {
    method,
    path,
    client: [headers['x-client-id'], headers['x-client-secret']],
    type: headers['content-type'],
    body: body && JSON.parse(body),
  };
};

test('each endpoint of 4.4 is asked as it is specified, and its answer read', async () => {
  const { service, client } = await start();
  const ours = ['client-7', 'not-for-logs-secret'];
  service.instead = ({ method }) => ({ status: method === 'POST' ? 201 : 200, json: TOLD });
  expect(await client.create('create', 'sleep')).toEqual(KNOWN);
  expect(lastAsked(service)).toEqual({
    method: 'POST',
    path: '/v2/webhook/subscription',
    client: ours,
    type: 'application/json',
    body: { callback_url: CALLBACK, verification_token: 'not-for-logs-token', event_type: 'create', data_type: 'sleep' },
  });

  expect(await client.update(ID)).toEqual(KNOWN);
  expect(lastAsked(service)).toEqual({
    method: 'PUT',
    path: `/v2/webhook/subscription/${ID}`,
    client: ours,
    type: 'application/json',
    body: { callback_url: CALLBACK, verification_token: 'not-for-logs-token' },
  });

  expect(await client.renew(ID)).toEqual(KNOWN);
  expect(lastAsked(service)).toEqual({
    method: 'PUT',
    path: `/v2/webhook/subscription/renew/${ID}`,
    client: ours,
    type: 'application/json',
    body: '',
  });

  service.instead = () => ({ status: 204, text: '' });
  expect(await client.remove(ID)).toBe(true);
  expect(lastAsked(service)).toMatchObject({ method: 'DELETE', path: `/v2/webhook/subscription/${ID}`, client: ours, body: '' });

  service.instead = () => ({ status: 200, json: [TOLD] });
  expect(await client.list()).toEqual([KNOWN]);
  expect(lastAsked(service)).toMatchObject({ method: 'GET', path: '/v2/webhook/subscription', client: ours });
});

test('the list is an extension: where it is not offered, that is no error', async () => {
  const { service, client } = await start();
  service.offersList = false;
  expect(await client.list()).toBeUndefined();
  service.instead = () => ({ status: 405, json: { detail: 'Method Not Allowed' } });
  expect(await client.list()).toBeUndefined();
});

test('what is already gone need not be removed, and that is told', async () => {
  const { client } = await start();
  expect(await client.remove(ID)).toBe(false);
});

test.each([
  [401, { detail: 'Unknown client.' }, { kind: 'unauthorized' }, 'POST /v2/webhook/subscription: answered 401'],
  [409, { detail: 'exists' }, { kind: 'invalid_request', status: 409 }, 'POST /v2/webhook/subscription: answered 409'],
  [404, { detail: 'x' }, { kind: 'not_found' }, 'POST /v2/webhook/subscription: answered 404'],
  [503, { detail: 'x' }, { kind: 'unavailable' }, 'POST /v2/webhook/subscription: answered 503'],
])('%i to a POST is told as what it is', async (status, json, expected, message) => {
  const { service, client } = await start();
  service.instead = () => ({ status, json });
  const error = await errorOf(client.create('create', 'sleep'));
  expect(error).toMatchObject(expected);
  expect(error.message).toBe(message);
  expect(service.asked).toHaveLength(1);
});

test('a validation error says which field it is about, without repeating secrets', async () => {
  const { service, client } = await start();
  service.instead = () => invalid('callback_url', `no echo from ${CALLBACK} with not-for-logs-token by not-for-logs-secret`);
  const error = await errorOf(client.create('create', 'sleep'));
  expect(error).toMatchObject({ kind: 'invalid_request', status: 422, field: 'callback_url' });
  expect(error.detail).toContain('body.callback_url: no echo from');
  service.instead = () => invalid('data_type', 'unknown');
  expect((await errorOf(client.create('create', 'mood'))).field).toBe('data_type');
  for (const json of [null, [], { detail: 'x' }, { detail: [null] }, { detail: [{ loc: 7 }] }]) {
    service.instead = () => ({ status: 422, json });
    expect((await errorOf(client.create('create', 'sleep'))).field).toBeUndefined();
  }
});

test('what a proxy answers is no verdict: not to a list, nor to a removal', async () => {
  const { service, client } = await start();
  for (const status of [401, 403, 404, 405]) {
    service.instead = () => ({ status, text: '<html>' });
    expect(await errorOf(client.list())).toMatchObject({ kind: 'unavailable', status });
    expect(await errorOf(client.remove(ID))).toMatchObject({ kind: 'unavailable', status });
  }
  service.instead = () => ({ status: 200, text: '<html>' });
  expect(await errorOf(client.remove(ID))).toMatchObject({ kind: 'malformed', status: 200 });
  service.instead = () => ({ status: 405, json: { detail: 'Method Not Allowed' } });
  expect(await client.list()).toBeUndefined();
});

test('a limit says for how long', async () => {
  const { service, client } = await start();
  service.instead = () => ({ status: 429, json: {}, headers: { 'retry-after': '17' } });
  expect(await errorOf(client.list())).toMatchObject({ kind: 'rate_limited', retryAfterMs: 17_000 });
});

test('a redirect is not followed: the secret goes nowhere else', async () => {
  const { service, client } = await start();
  const other = await startSubscriptionService();
  onTestFinished(() => other.close());
  service.instead = () => ({ status: 307, headers: { location: `${other.url}/v2/webhook/subscription` } });
  expect(await errorOf(client.create('create', 'sleep'))).toMatchObject({ kind: 'redirected' });
  expect(other.asked).toEqual([]);
});

test.each([
  ['an id that would name another path', { ...TOLD, id: '../../usercollection' }],
  ['an id that is no text', { ...TOLD, id: 7 }],
  ['no data_type', { ...TOLD, data_type: undefined }],
  ['a list in place of one', [TOLD]],
  ['nothing', null],
])('an answer with %s is malformed', async (_, json) => {
  const { service, client } = await start();
  service.instead = () => ({ status: 201, json });
  expect(await errorOf(client.create('create', 'sleep'))).toMatchObject({ kind: 'malformed' });
});

test('an unreadable expiration and ids of another kind are taken: only the path must be safe', async () => {
  const { service, client } = await start();
  service.instead = () => ({ status: 200, json: { ...TOLD, id: 'sub_17', expiration_time: 'in 90 days' } });
  expect(await client.renew('sub_17')).toEqual({ ...KNOWN, id: 'sub_17', expiresAt: null });
});

test('an answer that is too large, is a page or never comes is an error in good time', async () => {
  const { service, client } = await start({ deadlineMs: 200 });
  service.instead = () => ({ status: 200, text: `[${'1,'.repeat(600_000)}1]` });
  expect((await errorOf(client.list())).message).toBe('GET /v2/webhook/subscription: the answer is larger than 1048576 bytes');
  service.instead = () => ({ status: 200, text: '<html>' });
  expect(await errorOf(client.list())).toMatchObject({ kind: 'malformed' });
  service.instead = () => 'hang';
  expect((await errorOf(client.create('create', 'sleep'))).message).toBe('POST /v2/webhook/subscription: no whole answer within 0.2 s');
});

test('closing stops what is under way', async () => {
  const { service, client } = await start();
  service.instead = () => 'hang';
  const asked = errorOf(client.create('create', 'sleep'));
  while (!service.asked.length) await new Promise(resolve => setImmediate(resolve));
  await client.close();
  expect(await asked).toMatchObject({ kind: 'stopped' });
});
