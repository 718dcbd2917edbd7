import { Validator } from '@seriousme/openapi-schema-validator';
import { expect, test } from 'vitest';
import { resources } from '../../../schema/index.ts';
import { heartRate } from '../../../schema/resources/heart-rate.ts';
import { describeService } from '../../../src/service/openapi.ts';
import { startService } from '../literal-service.ts';
import { agree, startCallback } from './callback.ts';
import { openTestWebhooks, startWebhookService } from './webhook-service.ts';

const UUID = '11111111-1111-4111-8111-111111111111';
const wanted = (callback_url: string) => ({ callback_url, verification_token: 'our-word', event_type: 'create', data_type: 'sleep' });

test('a subscription is made, read, listed, changed, renewed and deleted (4.4)', async () => {
  let now = Date.parse('2025-03-10T12:00:00.000Z');
  const callback = await startCallback();
  const { ask } = await startWebhookService({ now: () => now });
  const made = await ask('POST', '', wanted(callback.url));
  expect([made.status, made.headers.get('content-type'), made.headers.get('cache-control')]).toEqual([
    201,
    'application/json; charset=utf-8',
    'no-store',
  ]);
  expect(made.body).toEqual({
    id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    callback_url: callback.url,
    event_type: 'create',
    data_type: 'sleep',
    expiration_time: '2025-06-08T12:00:00.000Z',
  });
  const { id } = made.body;
  expect(await ask('GET', '')).toMatchObject({ status: 200, body: [made.body] });
  expect(await ask('GET', `/${id}`)).toMatchObject({ status: 200, body: made.body });

  now += 86_400_000;
  const changed = { ...made.body, event_type: 'delete' };
  const update = { verification_token: 'another', event_type: 'delete', data_type: null };
  expect(await ask('PUT', `/${id}`, update)).toMatchObject({ status: 200, body: changed });
  const moved = { ...changed, callback_url: `${callback.url}/new?key=1` };
  const move = { verification_token: 'third', callback_url: `${callback.url}/new?key=1` };
  expect(await ask('PUT', `/${id}`, move)).toMatchObject({ status: 200, body: moved });
  expect(callback.received.map(({ method, url }) => `${method} ${url.replace(/challenge=.*/, '…')}`)).toEqual([
    'GET /hook?verification_token=our-word&…',
    'GET /hook?verification_token=another&…',
    'GET /hook/new?key=1&verification_token=third&…',
  ]);

  expect(await ask('PUT', `/renew/${id}`)).toMatchObject({
    status: 200,
    body: { ...moved, expiration_time: '2025-06-09T12:00:00.000Z' },
  });
  const deleted = await ask('DELETE', `/${id}`);
  expect([deleted.status, deleted.text, deleted.headers.get('content-type')]).toEqual([204, '', null]);
  expect(await ask('GET', '')).toMatchObject({ status: 200, body: [] });
});

test('the verification comes while the POST is still open', async () => {
  let answered = false;
  const callback = await startCallback((response, request, received) => {
    expect(answered).toBe(false);
    agree(response, request, received);
  });
  const { ask } = await startWebhookService();
  expect((await ask('POST', '', wanted(callback.url))).status).toBe(201);
  answered = true;
  expect(callback.received).toHaveLength(1);
});

test('of 50 creates at once one is 201 and 49 are 409', async () => {
  const callback = await startCallback((...all) => void setTimeout(() => agree(...all), 100));
  const { ask } = await startWebhookService();
  const answers = await Promise.all(Array.from({ length: 50 }, () => ask('POST', '', wanted(callback.url))));
  const statuses = answers.map(({ status }) => status);
  expect([statuses.filter(status => status === 201).length, statuses.filter(status => status === 409).length]).toEqual([1, 49]);
  expect(answers.find(({ status }) => status === 409)?.body).toEqual({
    detail: 'There is a subscription for create of sleep; update, renew or delete that one.',
  });
  expect([callback.received.length, (await ask('GET', '')).body.length]).toEqual([1, 1]);
});

test('one callback serves a subscription for every operation and kind of data', async () => {
  const callback = await startCallback();
  const { ask } = await startWebhookService();
  for (const event_type of ['create', 'update', 'delete'])
    for (const data_type of ['sleep', 'activity', 'vo2_max', 'meal'])
      expect((await ask('POST', '', { ...wanted(callback.url), event_type, data_type })).status).toBe(201);
  const listed = (await ask('GET', '')).body as { event_type: string; data_type: string }[];
  expect(listed.map(one => `${one.event_type} ${one.data_type}`)).toEqual([
    ...['create sleep', 'create activity', 'create vo2_max', 'create meal'],
    ...['update sleep', 'update activity', 'update vo2_max', 'update meal'],
    ...['delete sleep', 'delete activity', 'delete vo2_max', 'delete meal'],
  ]);
});

test('a callback that does not pass its verification is 422 at callback_url; nothing is kept, and an update leaves the old state', async () => {
  const callback = await startCallback();
  const { ask } = await startWebhookService();
  const made = (await ask('POST', '', wanted(callback.url))).body;
  callback.answer = response => response.writeHead(401).end();
  const detail = [
    {
      loc: ['body', 'callback_url'],
      msg: 'The callback was not taken: it answered the verification with 401',
      type: 'callback',
    },
  ];
  expect(await ask('POST', '', { ...wanted(callback.url), event_type: 'update' })).toMatchObject({ status: 422, body: { detail } });
  expect(await ask('PUT', `/${made.id}`, { verification_token: 'x', event_type: 'update' })).toMatchObject({
    status: 422,
    body: { detail },
  });
  expect((await ask('GET', '')).body).toEqual([made]);

  const inside = await ask('PUT', `/${made.id}`, { verification_token: 'x', callback_url: 'http://169.254.169.254/latest' });
  expect([inside.status, inside.body.detail[0].loc, inside.body.detail[0].msg]).toEqual([
    422,
    ['body', 'callback_url'],
    'The callback was not taken: its host has an address that is not public',
  ]);
  expect((await ask('GET', '')).body).toEqual([made]);
});

test('wrong credentials are 401, whichever is wrong and whatever is asked, and come before the body', async () => {
  const { ask, webhooks } = await startWebhookService();
  const { id, secret } = webhooks.client;
  const wrong: Record<string, string>[] = [
    { 'x-client-id': UUID },
    { 'x-client-secret': `${secret.slice(0, -1)}${secret.endsWith('A') ? 'B' : 'A'}` },
    { 'x-client-id': UUID, 'x-client-secret': 'x' },
    { 'x-client-id': '', 'x-client-secret': '' },
    { 'x-client-id': id.toUpperCase() },
    { 'x-client-secret': `${secret}x` },
  ];
  const refused = [401, '{"detail":"Client is unknown: send the headers x-client-id and x-client-secret."}'];
  for (const headers of wrong)
    for (const [method, path] of [
      ['GET', ''],
      ['POST', ''],
      ['PUT', `/${UUID}`],
      ['PUT', `/renew/${UUID}`],
      ['DELETE', `/${UUID}`],
    ] as const) {
      const answer = await ask(method, path, method === 'GET' ? undefined : 'no json', headers);
      expect([method, path, answer.status, answer.text]).toEqual([method, path, ...refused]);
    }
});

test('headers that are missing or come twice are 401 as well, and a bearer token is none', async () => {
  const { url, webhooks } = await startWebhookService();
  const { id, secret } = webhooks.client;
  const status = async (headers: Headers) => (await fetch(`${url}/v2/webhook/subscription`, { headers })).status;
  expect(await status(new Headers())).toBe(401);
  expect(await status(new Headers({ 'x-client-id': id }))).toBe(401);
  expect(await status(new Headers({ authorization: 'Bearer ada-token' }))).toBe(401);
  const doubled = new Headers({ 'x-client-id': id, 'x-client-secret': secret });
  expect(await status(doubled)).toBe(200);
  doubled.append('x-client-secret', secret);
  expect(await status(doubled)).toBe(401);
});

test('an unknown subscription is 404, and so is one that was deleted or has expired', async () => {
  let now = Date.parse('2025-03-10T12:00:00.000Z');
  const callback = await startCallback();
  const { ask } = await startWebhookService({ now: () => now, timeScale: 90 });
  const deleted = (await ask('POST', '', wanted(callback.url))).body.id;
  await ask('DELETE', `/${deleted}`);
  const { id: expired, expiration_time } = (await ask('POST', '', wanted(callback.url))).body;
  expect(expiration_time).toBe('2025-03-11T12:00:00.000Z');
  now += 86_400_000;
  for (const id of [UUID, 'no-uuid', '%00', '..%2f..', deleted, expired])
    for (const [method, path] of [
      ['GET', `/${id}`],
      ['PUT', `/${id}`],
      ['PUT', `/renew/${id}`],
      ['DELETE', `/${id}`],
    ] as const) {
      const answer = await ask(method, path, method === 'GET' ? undefined : {});
      expect([method, id, answer.status, answer.body]).toEqual([method, id, 404, { detail: 'Subscription not found.' }]);
    }
});

test.each<[string, unknown, object[]]>([
  [
    'nothing in it',
    {},
    ['callback_url', 'verification_token', 'event_type', 'data_type'].map(name => ({
      loc: ['body', name],
      msg: 'Field required',
      type: 'missing',
    })),
  ],
  ['an unknown operation', { ...wanted('http://x/'), event_type: 'upsert' }, [{ loc: ['body', 'event_type'], input: 'upsert' }]],
  ['an unknown kind of data', { ...wanted('http://x/'), data_type: 'heart_rate' }, [{ loc: ['body', 'data_type'], input: 'heart_rate' }]],
  ['a null', { ...wanted('http://x/'), event_type: null }, [{ loc: ['body', 'event_type'], input: null }]],
  ['a number', { ...wanted('http://x/'), callback_url: 7 }, [{ loc: ['body', 'callback_url'], type: 'invalid_type', input: 7 }]],
  ['an empty token', { ...wanted('http://x/'), verification_token: '' }, [{ loc: ['body', 'verification_token'] }]],
  ['an endless token', { ...wanted('http://x/'), verification_token: 'x'.repeat(1025) }, [{ loc: ['body', 'verification_token'] }]],
  ['half a character in the token', { ...wanted('http://x/'), verification_token: '\ud800' }, [{ loc: ['body', 'verification_token'] }]],
  ['an array', [], [{ loc: ['body'] }]],
  ['null', null, [{ loc: ['body'] }]],
  ['no JSON', '{', [{ loc: ['body'], msg: 'Input should be JSON', type: 'json_invalid' }]],
  ['no body', '', [{ loc: ['body'], msg: 'Input should be JSON', type: 'json_invalid' }]],
])('a body with %s is 422 and says what is wrong', async (_name, body, detail) => {
  const { ask } = await startWebhookService();
  const answer = await ask('POST', '', body);
  expect(answer.status).toBe(422);
  expect(answer.body.detail).toMatchObject(detail);
  expect(answer.body.detail).toHaveLength(detail.length);
  for (const issue of answer.body.detail) expect(issue).toMatchObject({ msg: expect.any(String), type: expect.any(String) });
});

test('a refused body never repeats the verification token', async () => {
  const { ask } = await startWebhookService();
  const answer = await ask('POST', '', { ...wanted('http://x/'), verification_token: ['our-word'], event_type: 'upsert' });
  expect(answer.status).toBe(422);
  expect(answer.text).not.toContain('our-word');
});

test('an update needs its verification token, and nothing else', async () => {
  const callback = await startCallback();
  const { ask } = await startWebhookService();
  const made = (await ask('POST', '', wanted(callback.url))).body;
  expect((await ask('PUT', `/${made.id}`, { event_type: 'delete' })).body.detail).toEqual([
    { loc: ['body', 'verification_token'], msg: 'Field required', type: 'missing' },
  ]);
  const all = { verification_token: 'x', event_type: null, data_type: null, callback_url: null, unknown: 1 };
  expect(await ask('PUT', `/${made.id}`, all)).toMatchObject({ status: 200, body: made });
});

test('a body that is not said to be JSON is 415; renew and DELETE have none and take any type', async () => {
  const callback = await startCallback();
  const { ask } = await startWebhookService();
  const body = JSON.stringify(wanted(callback.url));
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonp']) {
    const answer = await ask('POST', '', body, { 'content-type': type });
    expect([type, answer.status, answer.body.detail]).toEqual([
      type,
      415,
      'The body should be JSON: send the header Content-Type: application/json.',
    ]);
  }
  const { id } = (await ask('POST', '', body, { 'content-type': 'application/json; charset=utf-8' })).body;
  expect((await ask('PUT', `/renew/${id}`, undefined, { 'content-type': 'application/json' })).status).toBe(200);
  expect((await ask('PUT', `/renew/${id}`, undefined, { 'content-type': 'text/strange' })).status).toBe(200);
  expect((await ask('DELETE', `/${id}`, undefined, { 'content-type': 'application/json' })).status).toBe(204);
});

test('a large body is 413, with its length and without', async () => {
  const { ask, url, webhooks } = await startWebhookService();
  expect(await ask('POST', '', 'x'.repeat(70_000))).toMatchObject({ status: 413, body: { detail: 'Payload Too Large' } });
  const { id, secret } = webhooks.client;
  const chunked = new ReadableStream({
    start(controller) {
      for (let i = 0; i < 70; i++) controller.enqueue(new TextEncoder().encode('x'.repeat(1000)));
      controller.close();
    },
  });
  const headers = { 'x-client-id': id, 'x-client-secret': secret, 'content-type': 'application/json' };
  const init: RequestInit & { duplex: 'half' } = { method: 'POST', headers, body: chunked, duplex: 'half' };
  expect((await fetch(`${url}/v2/webhook/subscription`, init)).status).toBe(413);
});

test('other methods are 405 and name those that are taken; other paths are 404', async () => {
  const { ask } = await startWebhookService();
  const allow = async (method: string, path: string) => {
    const { status, headers, body } = await ask(method, path);
    return [status, headers.get('allow'), body.detail];
  };
  expect(await allow('PATCH', '')).toEqual([405, 'GET, HEAD, POST', 'Method Not Allowed']);
  expect(await allow('PATCH', `/${UUID}`)).toEqual([405, 'GET, HEAD, PUT, DELETE', 'Method Not Allowed']);
  expect(await allow('POST', `/renew/${UUID}`)).toEqual([405, 'PUT', 'Method Not Allowed']);
  expect(await allow('PUT', `/renew/${UUID}/more`)).toEqual([404, null, 'Not Found']);
});

test('with specificationOnly the extensions are gone and the rest stays', async () => {
  const callback = await startCallback();
  const { ask } = await startWebhookService({}, true);
  const { id } = (await ask('POST', '', wanted(callback.url))).body;
  expect(await ask('GET', '')).toMatchObject({ status: 405 });
  expect((await ask('GET', '')).headers.get('allow')).toBe('POST');
  expect((await ask('GET', `/${id}`)).headers.get('allow')).toBe('PUT, DELETE');
  expect((await ask('PUT', `/renew/${id}`)).status).toBe(200);
});

test('with specificationOnly a second one is the validation error of section 7, as is an update that takes the place of another', async () => {
  const callback = await startCallback();
  const { ask, webhooks } = await startWebhookService({}, true);
  await ask('POST', '', wanted(callback.url));
  const second = await ask('POST', '', wanted(callback.url));
  const taken = {
    detail: [
      {
        loc: ['body'],
        msg: 'There is a subscription for create of sleep; update, renew or delete that one.',
        type: 'already_exists',
      },
    ],
  };
  expect([second.status, second.body]).toEqual([422, taken]);
  const { id } = (await ask('POST', '', { ...wanted(callback.url), event_type: 'update' })).body;
  const update = await ask('PUT', `/${id}`, { ...wanted(callback.url), event_type: 'create' });
  expect([update.status, update.body]).toEqual([422, taken]);
  expect(webhooks.subscriptions.list(webhooks.client.id)).toHaveLength(2);
});

test('a second one is 422 as long as answers are as specified', async () => {
  const callback = await startCallback();
  const webhooks = openTestWebhooks();
  let asSpecified = false;
  const { url } = await startService({ ada: { documents: {} } }, {}, { webhooks, answersAsSpecified: () => asSpecified });
  const { id, secret } = webhooks.client;
  const headers = { 'x-client-id': id, 'x-client-secret': secret, 'content-type': 'application/json' };
  const create = () => fetch(`${url}/v2/webhook/subscription`, { method: 'POST', headers, body: JSON.stringify(wanted(callback.url)) });
  const statuses = [(await create()).status, (await create()).status];
  asSpecified = true;
  statuses.push((await create()).status);
  expect(statuses).toEqual([201, 409, 422]);
});

test('a service without webhooks has none of these routes', async () => {
  const { url } = await startService({ ada: { documents: {} } });
  expect((await fetch(`${url}/v2/webhook/subscription`)).status).toBe(404);
  expect((await fetch(`${url}/v2/webhook/subscription`, { method: 'POST', body: '{}' })).status).toBe(404);
});

test('the log tells no secret, token, query or id', async () => {
  const callback = await startCallback();
  const { webhooks } = await startWebhookService();
  const logged: object[] = [];
  const write = (facts: object) => logged.push(facts);
  const { url } = await startService({ ada: { documents: {} } }, {}, { webhooks, log: { debug: write, error: write } });
  const { id, secret } = webhooks.client;
  const headers = { 'x-client-id': id, 'x-client-secret': secret, 'content-type': 'application/json' };
  await fetch(`${url}/v2/webhook/subscription`, { method: 'POST', headers, body: JSON.stringify(wanted(`${callback.url}?key=word`)) });
  await fetch(`${url}/v2/webhook/subscription/${UUID}?key=word`, { headers });
  expect(logged.map(facts => ({ ...facts, ms: 0 }))).toEqual([
    { method: 'POST', route: '/v2/webhook/subscription', status: 201, ms: 0 },
    { method: 'GET', route: '/v2/webhook/subscription/:id', status: 404, ms: 0 },
  ]);
});

// biome-ignore lint/suspicious/noExplicitAny: tests look into JSON of any shape.
const describe = (specificationOnly = false): any => describeService({ resources, heartRate, specificationOnly, webhooks: true });

test.each([false, true])('section 4.4 is described in valid OpenAPI 3.1, specificationOnly %s', async specificationOnly => {
  const validator = new Validator();
  const { valid, errors } = await validator.validate(structuredClone(describe(specificationOnly)));
  expect([valid, errors]).toEqual([true, undefined]);
  expect(() => validator.resolveRefs()).not.toThrow();
});

test('it describes every operation, and marks those that 4.4 does not list', () => {
  const commands = (document: { paths: Record<string, Record<string, { 'x-extension'?: boolean }>> }) =>
    Object.entries(document.paths)
      .filter(([path]) => path.startsWith('/v2/webhook'))
      .flatMap(([path, methods]) => Object.entries(methods).map(([method, one]) => `${method} ${path}${one['x-extension'] ? ' +' : ''}`));
  expect(commands(describe())).toEqual([
    'get /v2/webhook/subscription +',
    'post /v2/webhook/subscription',
    'get /v2/webhook/subscription/{id} +',
    'put /v2/webhook/subscription/{id}',
    'delete /v2/webhook/subscription/{id}',
    'put /v2/webhook/subscription/renew/{id}',
  ]);
  expect(commands(describe(true))).toEqual(commands(describe()).filter(line => !line.endsWith('+')));
  const { post } = describe().paths['/v2/webhook/subscription'];
  expect(Object.keys(post.responses)).toEqual(['201', '400', '401', '409', '413', '415', '422', '431', '500', '503']);
  expect(Object.keys(describe(true).paths['/v2/webhook/subscription'].post.responses)).toEqual([
    '201',
    '400',
    '401',
    '413',
    '415',
    '422',
    '431',
    '500',
    '503',
  ]);
  expect(describe().components.schemas.NewWebhookSubscription.required).toEqual([
    'callback_url',
    'verification_token',
    'event_type',
    'data_type',
  ]);
  expect(describe().components.schemas.WebhookSubscriptionUpdate.required).toEqual(['verification_token']);
  expect(describe().webhooks.event.post.requestBody.content['application/json'].schema.$ref).toBe('#/components/schemas/WebhookEvent');
});
