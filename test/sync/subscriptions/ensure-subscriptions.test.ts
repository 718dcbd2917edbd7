import { beforeEach, expect, test } from 'vitest';
import type { WebhookSettings } from '../../../src/base/config.ts';
import { createLog } from '../../../src/base/log.ts';
import { readDesired } from '../../../src/ledger/subscriptions.ts';
import { dueAt } from '../../../src/sync/subscriptions/expiry.ts';
import { reportSubscriptions, reportWebhooks } from '../../../src/sync/webhook-status.ts';
import { CLIENT, invalid, type Said, startSubscriptionService } from '../../support/literal-subscriptions.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { rows } from '../../support/warehouse.ts';
import { CALLBACK, CONCEALED, clock, methods, rowOf, SIX, set, startAfresh, states, told, warehouse } from './kept-subscriptions.ts';

const folder = tempFolder();
beforeEach(() => startAfresh(folder));

test('one subscription is made for each kind of data and operation, and each is in the ledger', async () => {
  const { service, start, timers } = await set();
  await start();
  expect(told(service)).toEqual(SIX.toSorted());
  expect(await states()).toEqual([{ state: 'active', n: 6 }]);
  const { id } = service.subscriptions.find(one => one.event_type === 'update' && one.data_type === 'session')!;
  expect(await rowOf('update', 'session')).toEqual({
    id,
    callback_url: CONCEALED,
    state: 'active',
    reason: null,
    since: expect.stringMatching(/^2025-06-01 00:00:00/),
    renewed_at: expect.stringMatching(/^2025-06-01 00:00:00/),
    expiration_time: '2025-08-30 00:00:00',
  });
  // Renewal is far away: it looks again after six hours.
  expect(timers.map(({ ms }) => ms)).toEqual([21_600_000]);
});

test('what exists is left as it is: another round asks for the list and no more', async () => {
  const { service, start, nextRound } = await set();
  await start();
  const before = await rows(warehouse, 'SELECT * FROM sync.subscriptions ORDER BY ALL');
  const asked = service.asked.length;
  clock.ms += 21_600_000;
  await nextRound();
  expect(methods(service, asked)).toEqual(['GET']);
  expect(await rows(warehouse, 'SELECT * FROM sync.subscriptions ORDER BY ALL')).toEqual(before);
});

test('each is renewed when less than a third of its life is left', async () => {
  const { service, start, nextRound, timers } = await set();
  await start();
  // 90 days: the last third begins on the 31st of July.
  clock.ms = Date.parse('2025-07-30T22:00:00Z');
  await nextRound();
  expect(methods(service).filter(asked => asked.startsWith('PUT'))).toEqual([]);
  expect(timers.at(-1)!.ms).toBe(7_200_000);
  service.expiration = () => '2025-10-29T00:00:00Z';
  clock.ms = Date.parse('2025-07-31T00:00:00Z') + 1;
  const asked = service.asked.length;
  await nextRound();
  expect(methods(service, asked)).toEqual(['GET', ...Array(6).fill('PUT /renew/ID')]);
  expect(await rowOf('delete', 'sleep')).toMatchObject({
    state: 'active',
    since: expect.stringMatching(/^2025-06-01/),
    renewed_at: expect.stringMatching(/^2025-07-31/),
    expiration_time: '2025-10-29 00:00:00',
  });
});

test('short lives are renewed in time, but no more often than every five seconds', async () => {
  const { service, start, timers, nextRound } = await set();
  service.expiration = () => new Date(clock.ms + 60_000).toISOString();
  await start();
  expect(timers[0]!.ms).toBeCloseTo(40_000, -1);
  service.expiration = () => new Date(clock.ms + 3_000).toISOString();
  clock.ms += 40_001;
  await nextRound();
  expect(timers[1]!.ms).toBe(5_000);
});

test('the life of one that we did not make is supposed to be thirty days', () => {
  const row = { eventType: 'create', dataType: 'sleep', id: 'a', callbackUrl: null, state: 'active', reason: null } as const;
  const day = 86_400_000_000;
  expect(dueAt({ ...row, since: 0, renewedAt: null, expiresAt: 90 * day })).toBe(80 * day);
  expect(dueAt({ ...row, since: 0, renewedAt: 0, expiresAt: 90 * day })).toBe(60 * day);
  expect(dueAt({ ...row, since: 0, renewedAt: 5 * day, expiresAt: null })).toBe(25 * day);
});

test('what was lost at the service is made again and said, and its time begins anew', async () => {
  const said: string[] = [];
  const log = createLog({ level: 'info', pretty: false, stream: { write: line => void said.push(line) } });
  const { service, start, nextRound } = await set({ log });
  await start();
  const kept = await rowOf('create', 'session');
  service.subscriptions = service.subscriptions.filter(one => one.data_type !== 'sleep');
  clock.ms = Date.parse('2025-06-02T00:00:00Z');
  await nextRound();
  expect(told(service)).toEqual(SIX.toSorted());
  expect(await rowOf('create', 'sleep')).toMatchObject({ state: 'active', since: expect.stringMatching(/^2025-06-02/) });
  expect(await rowOf('create', 'session')).toEqual(kept);
  const lost = said.map(line => JSON.parse(line)).filter(({ level }) => level === 40);
  expect(lost).toMatchObject([{ lost: expect.arrayContaining(['create sleep', 'update sleep', 'delete sleep']) }]);
  expect(lost[0].lost).toHaveLength(3);
  expect(said.join('')).not.toContain('not-for-logs');
});

test('one that was replaced at the service by another of its kind is active since we saw that', async () => {
  const { service, start, nextRound } = await set();
  await start();
  const one = service.subscriptions.find(({ event_type, data_type }) => event_type === 'create' && data_type === 'sleep')!;
  one.id = '11111111-2222-4333-8444-555555555555';
  clock.ms = Date.parse('2025-06-02T00:00:00Z');
  await nextRound();
  expect(await rowOf('create', 'sleep')).toMatchObject({ id: one.id, since: expect.stringMatching(/^2025-06-02/), renewed_at: null });
});

test('one that goes to another callback is turned to ours', async () => {
  const service = await startSubscriptionService();
  const one = { callback_url: 'https://old.example.org/webhook', data_type: 'sleep', expiration_time: '2025-08-30T00:00:00Z' };
  service.subscriptions.push({ ...one, id: '11111111-2222-4333-8444-555555555555', event_type: 'create' });
  const said: string[] = [];
  const log = createLog({ level: 'warn', pretty: false, stream: { write: line => void said.push(line) } });
  const { start } = await set({ log }, service);
  await start();
  expect(service.subscriptions.map(({ callback_url }) => callback_url)).toEqual(Array(6).fill(CALLBACK));
  expect(methods(service).filter(asked => asked === 'PUT /ID')).toHaveLength(1);
  expect(said.map(line => JSON.parse(line))).toMatchObject([{ redirected: ['create sleep'] }]);
  expect(await rowOf('create', 'sleep')).toMatchObject({ id: '11111111-2222-4333-8444-555555555555', state: 'active' });
});

test('a service that leaves the callback as it was gets a new subscription', async () => {
  const service = await startSubscriptionService();
  const old = { callback_url: 'https://old.example.org/webhook', data_type: 'sleep', expiration_time: '2025-08-30T00:00:00Z' };
  service.subscriptions.push({ ...old, id: '11111111-2222-4333-8444-555555555555', event_type: 'create' });
  service.instead = ({ method, path }) =>
    method === 'PUT' && !path.includes('renew') ? { status: 200, json: service.subscriptions[0] } : undefined;
  const { start } = await set({}, service);
  await start();
  expect(told(service)).toEqual(SIX.toSorted());
  expect(service.subscriptions.map(({ callback_url }) => callback_url)).toEqual(Array(6).fill(CALLBACK));
});

test('without a list what we know is renewed, which shows that it exists, and what is gone is made again', async () => {
  const service = await startSubscriptionService();
  service.offersList = false;
  const { start, nextRound, manager } = await set({}, service);
  await start();
  service.subscriptions = service.subscriptions.filter(one => one.event_type !== 'delete');
  const asked = service.asked.length;
  clock.ms = Date.parse('2025-06-01T06:00:00Z');
  await nextRound();
  expect(methods(service, asked).toSorted()).toEqual(['GET', 'POST', 'POST', ...Array(6).fill('PUT /renew/ID')]);
  expect(told(service)).toEqual(SIX.toSorted());
  expect(await rowOf('delete', 'sleep')).toMatchObject({ since: expect.stringMatching(/^2025-06-01 06:00/) });
  expect(await rowOf('create', 'sleep')).toMatchObject({ since: expect.stringMatching(/^2025-06-01 00:00/) });
  const { remote, rows: known } = await manager.list();
  expect(remote).toBeUndefined();
  expect(reportSubscriptions(known, remote).map(({ at_service }) => at_service)).toEqual(Array(6).fill(null));
});

test('one that exists where neither a list nor our table knows it is noted with what to do', async () => {
  const service = await startSubscriptionService();
  service.offersList = false;
  const one = { callback_url: CALLBACK, data_type: 'sleep', expiration_time: '2025-08-30T00:00:00Z' };
  service.subscriptions.push({ ...one, id: '11111111-2222-4333-8444-555555555555', event_type: 'create' });
  const { start, timers } = await set({}, service);
  await start();
  expect(await states()).toEqual([
    { state: 'active', n: 5 },
    { state: 'refused', n: 1 },
  ]);
  expect(await rowOf('create', 'sleep')).toMatchObject({ id: null, reason: expect.stringContaining('remove --on-next-event') });
  expect(timers[0]!.ms).toBe(60_000);
});

test.each([
  ['body', 'already_exists'],
  ['body', 'value_error.conflict'],
  ['data_type', 'duplicate_entry'],
  ['event_type', 'value_error.unique'],
])('a 422 at %s of the type %s says the same as a 409', async (field, type) => {
  const { row, timer } = await refused([{ loc: field === 'body' ? ['body'] : ['body', field], msg: 'Said by the service.', type }]);
  expect(row).toMatchObject({ id: null, state: 'refused', reason: expect.stringContaining('remove --on-next-event') });
  expect(row!.reason).not.toContain('Said by');
  expect(timer).toBe(60_000);
});

test.each<[string, object[], string, string]>([
  ['of the body', [{ loc: ['body'], msg: 'It exists already.', type: 'value_error' }], 'refused', 'answered 422'],
  ['of a field that is missing', [{ loc: ['body', 'owner'], msg: 'Field required', type: 'missing' }], 'refused', 'answered 422'],
  ['of what does not exist', [{ loc: ['body', 'data_type'], msg: 'x', type: 'not_exists' }], 'not_offered', 'no such kind of data'],
  ['of a kind of data', [{ loc: ['body', 'data_type'], msg: 'Unknown', type: 'enum' }], 'not_offered', 'no such kind of data'],
  ['of a word that is not unique', [{ loc: ['body', 'verification_token'], msg: 'x', type: 'unique' }], 'refused', 'answered 422'],
  [
    'of one thing more',
    [
      { loc: ['body'], msg: 'x', type: 'already_exists' },
      { loc: ['body', 'owner'], msg: 'Field required', type: 'missing' },
    ],
    'refused',
    'answered 422',
  ],
])('a validation error %s does not say that there is one already', async (_, detail, state, reason) => {
  const { row } = await refused(detail);
  expect(row).toMatchObject({ id: null, state, reason: expect.stringContaining(reason) });
  expect(row!.reason).not.toContain('already');
});

/** What becomes of a subscription whose creation is refused so, where there is no list. */
async function refused(detail: object[]) {
  const service = await startSubscriptionService();
  service.offersList = false;
  service.instead = ({ method }) => (method === 'POST' ? { status: 422, json: { detail } } : undefined);
  const { start, timers } = await set({ dataTypes: ['sleep'] }, service);
  await start();
  return { row: await rowOf('create', 'sleep'), timer: timers[0]!.ms };
}

test('a kind of data that the service does not know is not asked for again until the next start', async () => {
  const service = await startSubscriptionService();
  service.instead = ({ method, body }) => (method === 'POST' && body.includes('"session"') ? invalid('data_type', 'unknown') : undefined);
  const { start, nextRound, timers } = await set({}, service);
  await start();
  expect(await states()).toEqual([
    { state: 'active', n: 3 },
    { state: 'not_offered', n: 3 },
  ]);
  // No failure: it looks again as usual.
  expect(timers[0]!.ms).toBe(21_600_000);
  const asked = service.asked.length;
  await nextRound();
  expect(methods(service, asked)).toEqual(['GET']);

  service.instead = () => undefined;
  const again = await set({}, service);
  await again.start();
  expect(await states()).toEqual([{ state: 'active', n: 6 }]);
});

test('a service that says activity where others say daily_activity is asked by that name', async () => {
  const service = await startSubscriptionService();
  service.instead = ({ method, body }) =>
    method === 'POST' && body.includes('"daily_activity"') ? invalid('data_type', 'unknown') : undefined;
  const { start, nextRound } = await set({ dataTypes: ['daily_activity'] }, service);
  await start();
  expect(told(service)).toEqual(['create activity', 'delete activity', 'update activity']);
  expect(await rowOf('create', 'daily_activity')).toMatchObject({ state: 'active' });
  const asked = service.asked.length;
  await nextRound();
  expect(methods(service, asked)).toEqual(['GET']);
});

test('a callback that the service cannot verify is tried once a round, and all say what to check', async () => {
  const service = await startSubscriptionService();
  service.instead = ({ method }) => (method === 'POST' ? invalid('callback_url', 'no echo') : undefined);
  const { start, nextRound, timers } = await set({}, service);
  await start();
  expect(await states()).toEqual([{ state: 'refused', n: 6 }]);
  expect((await rowOf('create', 'sleep'))!.reason).toMatch(
    /^the service could not verify our callback: check RINGNECK_CALLBACK_URL, the reverse proxy and RINGNECK_VERIFICATION_TOKEN/,
  );
  expect(methods(service).filter(asked => asked === 'POST').length).toBeLessThanOrEqual(4);
  await nextRound();
  await nextRound();
  expect(timers.map(({ ms }) => ms)).toEqual([60_000, 120_000, 240_000]);
  service.instead = () => undefined;
  await nextRound();
  expect(await states()).toEqual([{ state: 'active', n: 6 }]);
  expect(timers.at(-1)!.ms).toBe(21_600_000);
});

test('an error of one subscription leaves the others alone, and one of all is told once and tried again', async () => {
  const service = await startSubscriptionService();
  const settings = { webhooks: { ...CLIENT, callbackUrl: CALLBACK, secrets: [CLIENT.clientSecret] } satisfies WebhookSettings };
  service.instead = ({ method, body }) => (method === 'POST' && body.includes('"update"') ? { status: 500, json: {} } : undefined);
  const { start, nextRound, timers } = await set({}, service);
  await start();
  expect(told(service)).toEqual(['create session', 'create sleep', 'delete session', 'delete sleep']);
  expect(await rowOf('update', 'sleep')).toMatchObject({
    state: 'refused',
    reason: 'not made yet: POST /v2/webhook/subscription: answered 500',
  });
  service.instead = () => ({ status: 401, json: { detail: 'Unknown client.' } });
  await nextRound();
  expect(await readDesired(warehouse)).toEqual({
    desired: 'ensured',
    problem: 'GET /v2/webhook/subscription: answered 401: check RINGNECK_CLIENT_ID and RINGNECK_CLIENT_SECRET',
  });
  expect(timers.map(({ ms }) => ms)).toEqual([60_000, 120_000]);
  expect(await reportWebhooks(warehouse, settings, () => clock.ms)).toMatchObject({
    problem: expect.stringContaining('401'),
    active: 4,
    problems: [
      { event_type: 'update', data_type: 'sleep', state: 'refused' },
      { event_type: 'update', data_type: 'session', state: 'refused' },
    ],
  });
  service.instead = () => ({ status: 429, json: {}, headers: { 'retry-after': '3600' } });
  await nextRound();
  expect(timers.at(-1)!.ms).toBe(3_600_000);
  for (let n = 0; n < 8; n++) {
    service.instead = () => ({ status: 503, json: {} });
    await nextRound();
  }
  expect(timers.at(-1)!.ms).toBe(1_800_000);
  service.instead = () => undefined;
  await nextRound();
  expect(await states()).toEqual([{ state: 'active', n: 6 }]);
  expect((await readDesired(warehouse)).problem).toBeNull();
});

test('a renewal that fails takes nothing away, and a creation that fails leaves what was lost as lost', async () => {
  const { service, start, nextRound } = await set();
  await start();
  clock.ms = Date.parse('2025-08-15T00:00:00Z');
  service.instead = ({ method }) => (method === 'GET' ? undefined : { status: 502, text: '<html>' });
  service.subscriptions = service.subscriptions.filter(one => one.event_type !== 'create');
  await nextRound();
  expect(await states()).toEqual([
    { state: 'active', n: 4 },
    { state: 'lost', n: 2 },
  ]);
  expect(await rowOf('create', 'sleep')).toMatchObject({ since: expect.stringMatching(/^2025-08-15/) });
  service.instead = () => undefined;
  clock.ms = Date.parse('2025-08-16T00:00:00Z');
  await nextRound();
  expect(await states()).toEqual([{ state: 'active', n: 6 }]);
  expect(await rowOf('create', 'sleep')).toMatchObject({ since: expect.stringMatching(/^2025-08-16/) });
  expect(await rowOf('update', 'sleep')).toMatchObject({ since: expect.stringMatching(/^2025-06-01/) });
});

test('renewals that fail for ever are told once for each reason, stand in status, and end as lost when the subscriptions expire', async () => {
  const settings = { webhooks: { ...CLIENT, callbackUrl: CALLBACK, secrets: [CLIENT.clientSecret] } satisfies WebhookSettings };
  const said: string[] = [];
  const log = createLog({ level: 'warn', pretty: false, stream: { write: line => void said.push(line) } });
  const service = await startSubscriptionService();
  service.offersList = false;
  const { start, nextRound } = await set({ log, dataTypes: ['sleep'] }, service);
  await start();
  expect(said).toEqual([]);

  service.instead = ({ path }) => (path.includes('/renew/') ? { status: 503, json: {} } : undefined);
  for (const day of ['2025-07-31T00:00:01Z', '2025-08-10T00:00:00Z', '2025-08-20T00:00:00Z']) {
    clock.ms = Date.parse(day);
    await nextRound();
  }
  const asked = 'PUT /v2/webhook/subscription/renew/{id}: answered 503';
  const problem = `subscriptions are not renewed, and are lost when they expire: ${asked}`;
  expect(said.map(line => JSON.parse(line))).toMatchObject([
    { level: 40, subscriptions: expect.arrayContaining(['create sleep', 'delete sleep', 'update sleep']), reason: asked },
  ]);
  expect(await states()).toEqual([{ state: 'active', n: 3 }]);
  expect(await reportWebhooks(warehouse, settings, () => clock.ms)).toMatchObject({ active: 3, problem, problems: [] });

  service.instead = ({ path }) => (path.includes('/renew/') ? { status: 500, json: {} } : undefined);
  await nextRound();
  expect(said.map(line => JSON.parse(line).reason)).toEqual([asked, asked.replace('503', '500')]);

  clock.ms = Date.parse('2025-08-30T00:00:00Z');
  await nextRound();
  const row = await rowOf('create', 'sleep');
  const reason = 'it has expired and could not be renewed: PUT /v2/webhook/subscription/renew/{id}: answered 500';
  expect(row).toMatchObject({ state: 'lost', reason, since: expect.stringMatching(/^2025-08-30/), expiration_time: '2025-08-30 00:00:00' });
  expect(await states()).toEqual([{ state: 'lost', n: 3 }]);
  expect(said.slice(2).map(line => JSON.parse(line))).toMatchObject([
    { level: 40, state: 'lost', reason },
    { level: 40, msg: 'subscriptions are missing; tried again', active: 0, desired: 3 },
  ]);
  expect(await reportWebhooks(warehouse, settings, () => clock.ms)).toMatchObject({
    active: 0,
    problem: expect.stringContaining('answered 500'),
    problems: [{ state: 'lost' }, { state: 'lost' }, { state: 'lost' }],
  });
  clock.ms = Date.parse('2025-09-10T00:00:00Z');
  await nextRound();
  expect(await rowOf('create', 'sleep')).toEqual(row);
  expect(said).toHaveLength(4);

  service.instead = () => undefined;
  service.expiration = () => '2025-12-10T00:00:00Z';
  await nextRound();
  expect(await states()).toEqual([{ state: 'active', n: 3 }]);
  expect(await rowOf('create', 'sleep')).toMatchObject({ reason: null, since: expect.stringMatching(/^2025-09-10/) });
  expect((await readDesired(warehouse)).problem).toBeNull();
});

test('what the service lists stands although its renewal fails, also where our table had lost it', async () => {
  const { service, start, nextRound } = await set({ dataTypes: ['sleep'] });
  await start();
  await warehouse.record([
    {
      table: 'sync.subscriptions',
      key: { event_type: 'create', data_type: 'sleep' },
      row: { state: 'lost', since: Date.parse('2025-06-02') * 1000 },
    },
  ]);
  service.instead = ({ path }) => (path.includes('/renew/') ? { status: 503, json: {} } : undefined);
  clock.ms = Date.parse('2025-08-20T00:00:00Z');
  await nextRound();
  expect(await states()).toEqual([{ state: 'active', n: 3 }]);
  expect(await rowOf('create', 'sleep')).toMatchObject({ since: expect.stringMatching(/^2025-08-20/) });
});

test('what expires while the service refuses everything is lost as well', async () => {
  const { service, start, nextRound } = await set();
  await start();
  service.instead = () => ({ status: 503, json: {} });
  clock.ms = Date.parse('2025-08-29T23:59:00Z');
  await nextRound();
  expect(await states()).toEqual([{ state: 'active', n: 6 }]);
  clock.ms = Date.parse('2025-08-30T00:00:00Z');
  await nextRound();
  expect(await states()).toEqual([{ state: 'lost', n: 6 }]);
  expect((await rowOf('update', 'session'))!.reason).toBe(
    'it has expired and could not be renewed: GET /v2/webhook/subscription: answered 503; try again later',
  );
});

test('a 404 from something on the way does not cost the id: it is renewed by it afterwards', async () => {
  const service = await startSubscriptionService();
  service.offersList = false;
  const { start, nextRound } = await set({}, service);
  await start();
  const before = await rowOf('create', 'sleep');
  const answering = (answer: Said) => {
    service.instead = ({ path }) => (path.includes('/renew/') ? answer : undefined);
    clock.ms += 21_600_000;
    return nextRound();
  };
  await answering({ status: 404, text: '<html>' });
  expect(await rowOf('create', 'sleep')).toMatchObject({ id: before!.id, state: 'active' });
  // Also one in the form of the service: it has the subscription all the same.
  await answering({ status: 404, json: { detail: 'Not Found' } });
  expect(await rowOf('create', 'sleep')).toMatchObject({ id: before!.id, state: 'refused' });
  service.instead = () => undefined;
  await nextRound();
  expect(await rowOf('create', 'sleep')).toMatchObject({ id: before!.id, state: 'active' });
});
