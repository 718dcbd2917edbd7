import { describe, expect, it, onTestFinished, test } from 'vitest';
import { resources } from '../../schema/index.ts';
import { heartRate } from '../../schema/resources/heart-rate.ts';
import { listRoutes } from '../../src/service/routes.ts';
import { createService } from '../../src/service/service.ts';
import type { ServiceSettings } from '../../src/service/settings.ts';
import { createAuthenticate, hashToken } from '../../src/service/tokens.ts';
import { addAnswerFaults } from '../../src/simulator/answer-faults.ts';
import type { Change } from '../../src/simulator/change.ts';
import { withEventFaults } from '../../src/simulator/event-faults.ts';
import { createFaultSwitches, faultHelp } from '../../src/simulator/faults.ts';
import { oneOfEach } from '../service/documents.ts';
import { createLiteralSource, type Holdings } from '../service/literal-service.ts';
import { CALLBACK, openGrants } from '../service/sign-in/sign-in-service.ts';
import { openTestWebhooks } from '../service/webhooks/webhook-service.ts';
import { advanceTo, openTimeline, userIds } from './open-timeline.ts';

describe('a fault', () => {
  it.each([
    ['status', '503', { status: 503, rate: 1 }],
    ['status', '429/0.25', { status: 429, rate: 0.25 }],
    ['slow', '1500', 1500],
    ['truncate', undefined, 1],
    ['truncate', '0.1', 0.1],
    ['empty', undefined, true],
    ['specification-only', undefined, true],
    ['lose', '0.5', 0.5],
    ['repeat', '3', 3],
    ['delay', '12.5', 12.5],
    ['shuffle', undefined, true],
    ['unreadable', '40', 40],
    ['token-slow', '200', 200],
    ['token-error', undefined, 1],
    ['token-truncate', '0.5', 0.5],
  ] as const)('%s=%s is switched on and off', (name, text, value) => {
    const faults = createFaultSwitches();
    expect(faults.get(name)).toBeUndefined();
    faults.set({ [name]: text ?? true });
    expect(faults.get(name)).toEqual(value);
    expect(faults.shown()).toEqual({ [name]: text ?? true });
    faults.set({ [name]: null });
    expect([faults.get(name), faults.shown()]).toEqual([undefined, {}]);
    expect(faultHelp()).toContain(`  ${name}`);
  });

  it.each([
    ['status', '200', 'status=200 is no fault: expected status=CODE[/RATE]'],
    ['status', '503/2', 'status=503/2 is no fault: expected status=CODE[/RATE]'],
    ['status', undefined, 'status is no fault: expected status=CODE[/RATE]'],
    ['slow', '-1', 'slow=-1 is no fault: expected slow=MS'],
    ['slow', '1.5', 'slow=1.5 is no fault: expected slow=MS'],
    ['lose', '', 'lose= is no fault: expected lose=RATE'],
    ['repeat', '0', 'repeat=0 is no fault: expected repeat=N'],
    ['empty', '1', 'empty=1 is no fault: expected empty'],
    ['toString', undefined, 'no fault is called "toString"; there are status=CODE[/RATE], '],
  ])('%s=%s is refused', (name, text, message) => {
    const faults = createFaultSwitches();
    expect(() => faults.set({ [name]: text ?? true })).toThrow(message);
    expect(faults.shown()).toEqual({});
  });
});

async function start(settings: Partial<ServiceSettings> = {}, documents: Holdings['documents'] = oneOfEach) {
  const faults = createFaultSwitches();
  const webhooks = openTestWebhooks();
  const grants = openGrants();
  const service = createService({
    resources,
    source: createLiteralSource({ ada: { documents } }),
    authenticate: createAuthenticate(new Map([[hashToken('t'), { userId: 'ada', state: 'active' as const }]])),
    clock: () => new Date('2025-03-10T15:30:00Z'),
    tokenKey: new Uint8Array(32).fill(7),
    settings: { closeTimeoutMs: 50, pageSize: 1, ...settings },
    webhooks,
    signIn: { client: webhooks.client, people: [], redirectUrls: [CALLBACK], grants },
    answersAsSpecified: () => faults.get('specification-only') ?? false,
  });
  addAnswerFaults(service, listRoutes({ resources, heartRate }), faults, 7);
  const url = await service.listen({ host: '127.0.0.1', port: 0 });
  onTestFinished(() => service.close());
  const { id, secret } = webhooks.client;
  const get = async (path: string, token = 't', method = 'GET') => {
    const headers = { authorization: `Bearer ${token}`, 'x-client-id': id, 'x-client-secret': secret };
    const response = await fetch(url + path, { method, headers });
    return { status: response.status, headers: response.headers, text: await response.text() };
  };
  const collection = () => get('/v2/usercollection/daily_activity?start_date=2025-03-09&end_date=2025-03-10');
  const refresh = async (refresh_token: string) => {
    const body = new URLSearchParams({ grant_type: 'refresh_token', refresh_token, client_id: id, client_secret: secret });
    const response = await fetch(`${url}/oauth/token`, { method: 'POST', body });
    return { status: response.status, body: await response.json() };
  };
  const signIn = () => grants.exchange(grants.grant('ada', ['daily'], { redirectUri: CALLBACK, challenge: null }), CALLBACK, undefined);
  return { faults, get, collection, refresh, signIn };
}

describe('answers', () => {
  it('are as they should be without a fault', async () => {
    const { collection } = await start();
    const { status, text } = await collection();
    expect([status, JSON.parse(text).data.length]).toEqual([200, 1]);
  });

  it('with status: that status, as the service writes it', async () => {
    const { faults, get, collection } = await start();
    faults.set({ status: '503' });
    expect(await collection()).toMatchObject({ status: 503, text: '{"detail":"Service Unavailable"}' });
    faults.set({ status: '429' });
    const limited = await collection();
    expect([limited.status, limited.headers.get('retry-after')]).toEqual([429, '1']);
    // What is no data route, and who is not admitted, are as ever.
    expect((await get('/docs')).status).toBe(200);
    expect((await get('/v2/usercollection/daily_activity', 'unknown')).status).toBe(401);
  });

  it('with a status of a share: some', async () => {
    const { faults, collection } = await start();
    faults.set({ status: '500/0.5' });
    const statuses = new Set<number>();
    for (let i = 0; i < 40; i++) statuses.add((await collection()).status);
    expect([...statuses].sort()).toEqual([200, 500]);
  });

  it('with empty: 200 and nothing, of everything', async () => {
    const { faults, get, collection } = await start();
    faults.set({ empty: true });
    expect(await collection()).toMatchObject({ status: 200, text: '{"data":[],"next_token":null}' });
    expect(await get('/v2/usercollection/heartrate')).toMatchObject({ status: 200, text: '{"data":[],"next_token":null}' });
    expect(await get('/v2/usercollection/daily_activity/unknown')).toMatchObject({ status: 200, text: '[]' });
    expect((await get('/v2/usercollection/daily_activity', 'unknown')).status).toBe(401);
  });

  it('with truncate: they break off', async () => {
    const { faults, collection } = await start();
    faults.set({ truncate: true });
    await expect(collection()).rejects.toThrow();
    faults.set({ truncate: null });
    expect((await collection()).status).toBe(200);
  });

  it('with slow: they come later', async () => {
    const { faults, collection } = await start();
    faults.set({ slow: '150' });
    const started = performance.now();
    expect((await collection()).status).toBe(200);
    expect(performance.now() - started).toBeGreaterThanOrEqual(145);
  });

  const USED = {
    status: 400,
    body: {
      error: 'invalid_grant',
      error_description: 'The refresh token was used before: all tokens that came of this sign-in are revoked.',
    },
  };

  it('with token-error: 500, and the refresh token has been used', async () => {
    const { faults, refresh, signIn } = await start();
    const { refreshToken } = signIn();
    faults.set({ 'token-error': true });
    // What is refused is refused as ever.
    expect((await refresh('unknown')).body).toEqual({ error: 'invalid_grant', error_description: 'The refresh token is unknown.' });
    expect(await refresh(refreshToken)).toEqual({ status: 500, body: { detail: 'Internal Server Error' } });
    faults.set({ 'token-error': null });
    expect(await refresh(refreshToken)).toEqual(USED);
  });

  it('with token-truncate: the answer breaks off, and the refresh token has been used', async () => {
    const { faults, refresh, signIn, collection } = await start();
    const { refreshToken } = signIn();
    faults.set({ 'token-truncate': true });
    await expect(refresh(refreshToken)).rejects.toThrow();
    expect((await collection()).status).toBe(200);
    faults.set({ 'token-truncate': null });
    expect(await refresh(refreshToken)).toEqual(USED);
  });

  it('with token-slow: the tokens come all the same', async () => {
    const { faults, refresh, signIn } = await start();
    faults.set({ 'token-slow': '20' });
    expect(await refresh(signIn().refreshToken)).toMatchObject({ status: 200, body: { token_type: 'bearer', scope: 'daily' } });
  });

  it('with specification-only: the extensions are not there', async () => {
    const { faults, get, collection } = await start();
    faults.set({ 'specification-only': true });
    expect(await get('/v2/usercollection/sleep/some')).toMatchObject({ status: 404, text: '{"detail":"Not Found"}' });
    expect((await get('/v2/usercollection/personal_info')).status).toBe(404);
    expect((await get('/oauth/authorize')).status).toBe(404);
    expect((await collection()).status).toBe(200);
    faults.set({ 'specification-only': null });
    expect(await get('/v2/usercollection/sleep/some')).toMatchObject({ status: 404, text: '{"detail":"Document not found."}' });
  });
});

describe('with specification-only at run time', () => {
  const RANGE = 'start_date=2025-03-08&end_date=2025-03-10';
  const TWO_DAYS = {
    daily_resilience: [
      { id: 'r1', day: '2025-03-08' },
      { id: 'r2', day: '2025-03-09' },
    ],
    daily_stress: [
      { id: 's1', day: '2025-03-08' },
      { id: 's2', day: '2025-03-09' },
    ],
  };

  it.each([
    ['GET', '/v2/webhook/subscription', 405, '{"detail":"Method Not Allowed"}', 'POST'],
    ['HEAD', '/v2/webhook/subscription', 405, '', 'POST'],
    ['GET', '/v2/webhook/subscription/some', 405, '{"detail":"Method Not Allowed"}', 'PUT, DELETE'],
    // These are there; only the subscription is not.
    ['DELETE', '/v2/webhook/subscription/some', 404, '{"detail":"Subscription not found."}', null],
    ['PUT', '/v2/webhook/subscription/renew/some', 404, '{"detail":"Subscription not found."}', null],
    [
      'GET',
      `/v2/usercollection/daily_resilience?${RANGE}`,
      200,
      '{"data":[{"id":"r1","day":"2025-03-08"},{"id":"r2","day":"2025-03-09"}]}',
      null,
    ],
    [
      'GET',
      `/v2/usercollection/daily_stress?${RANGE}`,
      200,
      '{"data":[{"id":"s1","day":"2025-03-08"},{"id":"s2","day":"2025-03-09"}]}',
      null,
    ],
    [
      'GET',
      `/v2/usercollection/daily_resilience?${RANGE}&fields=day`,
      200,
      '{"data":[{"id":"r1","day":"2025-03-08"},{"id":"r2","day":"2025-03-09"}]}',
      null,
    ],
    ['GET', '/v2/sandbox/usercollection/sleep', 404, '{"detail":"Not Found"}', null],
  ] as const)('%s %s answers as a service that was started so', async (method, path, status, text, allow) => {
    const [switched, started] = [await start({}, TWO_DAYS), await start({ specificationOnly: true }, TWO_DAYS)];
    switched.faults.set({ 'specification-only': true });
    for (const { get } of [switched, started]) {
      const answer = await get(path, 't', method);
      expect([answer.status, answer.text, answer.headers.get('allow')]).toEqual([status, text, allow]);
    }
  });

  it('and off again the extensions and the pages are back', async () => {
    const { faults, get } = await start({}, TWO_DAYS);
    faults.set({ 'specification-only': true });
    faults.set({ 'specification-only': null });
    expect(await get('/v2/webhook/subscription')).toMatchObject({ status: 200, text: '[]' });
    const { data, next_token } = JSON.parse((await get(`/v2/usercollection/daily_stress?${RANGE}`)).text);
    expect([data, typeof next_token]).toEqual([[{ id: 's1', day: '2025-03-08' }], 'string']);
  });
});

describe('events', () => {
  const changes = (count: number): Change[] =>
    Array.from({ length: count }, (_, i) => ({
      eventId: `e${i + 1}`,
      event: {
        event_type: 'update',
        data_type: 'sleep',
        object_id: `s${i + 1}`,
        event_time: '2025-03-01T12:00:00.000+00:00',
        user_id: 'ada',
      },
    }));
  async function tell(count: number, set: Record<string, string | true>) {
    const told: Change[] = [];
    const faults = createFaultSwitches();
    faults.set(set);
    const announce = withEventFaults(async some => void told.push(...some), faults, 7);
    await announce(changes(count));
    return told;
  }
  const ids = (told: readonly Change[]) => told.map(({ eventId }) => eventId);

  it('are told as they are without a fault', async () => {
    expect(await tell(3, {})).toEqual(changes(3));
  });

  it('with lose: about that share is not told, always the same ones', async () => {
    const told = await tell(1000, { lose: '0.3' });
    expect(told.length).toBeGreaterThan(650);
    expect(told.length).toBeLessThan(750);
    expect(await tell(1000, { lose: '0.3' })).toEqual(told);
    expect(await tell(10, { lose: '1' })).toEqual([]);
    expect(await tell(10, { lose: '0' })).toHaveLength(10);
  });

  it('with repeat: each comes that often, under names of its own', async () => {
    const told = await tell(2, { repeat: '3' });
    expect(ids(told)).toEqual(['e1', 'e1-2', 'e1-3', 'e2', 'e2-2', 'e2-3']);
    expect(told[2]!.event).toEqual(told[0]!.event);
  });

  it('with delay: all come later', async () => {
    expect((await tell(2, { delay: '1.5' })).map(({ delayMs }) => delayMs)).toEqual([1500, 1500]);
  });

  it('with shuffle: all come, in another order and within 10 seconds', async () => {
    const told = await tell(20, { shuffle: true });
    expect(ids(told)).not.toEqual(ids(changes(20)));
    expect(ids(told).sort()).toEqual(ids(changes(20)).sort());
    expect(told.every(({ delayMs = 0 }) => delayMs < 10_000)).toBe(true);
    expect(new Set(told.map(({ delayMs }) => delayMs)).size).toBeGreaterThan(10);
  });
});

test('what is not readable yet becomes so after its time, a deletion too', async () => {
  let lag = 0;
  const { timeline, real } = openTimeline({ lagMs: () => lag });
  const [ada] = userIds(timeline);
  const sleep = resources.find(({ name }) => name === 'sleep')!;
  await advanceTo(timeline, '2025-02-18T12:20:00+01:00');
  lag = 40_000;
  const nap = await timeline.nap(ada, 30);
  expect(nap.events.length).toBeGreaterThan(0);
  real.now += 39_999;
  expect(await timeline.source.find(ada, sleep, nap.id)).toBeUndefined();
  real.now += 1;
  expect(await timeline.source.find(ada, sleep, nap.id)).toMatchObject({ id: nap.id });
  await timeline.edit({ kind: 'delete-sleep', userId: ada, day: nap.day, id: nap.id });
  real.now += 39_999;
  expect(await timeline.source.find(ada, sleep, nap.id)).toMatchObject({ id: nap.id });
  lag = 0;
  expect(await timeline.source.find(ada, sleep, nap.id)).toBeUndefined();
});
