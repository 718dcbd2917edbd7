import { expect, test } from 'vitest';
import { createAdmit } from '../../src/service/admission.ts';
import type { Problem } from '../../src/service/problem.ts';
import { createRateCounter } from '../../src/service/rate-limit.ts';
import { defaultSettings, type ServiceSettings } from '../../src/service/settings.ts';
import { spo2 } from './documents.ts';
import { startService } from './literal-service.ts';

const PATH = '/v2/usercollection/daily_spo2';
const ada = { documents: { daily_spo2: [spo2('2025-03-09')] } };
const ben = { documents: {} };

test('a missing, malformed, unknown, expired and revoked token are 401, each in its own words', async () => {
  const { get } = await startService({ ada });
  const bare = 'Bearer';
  const worthless = (why: string) => `Bearer error="invalid_token", error_description="Access token ${why}."`;
  const challenges = [bare, bare, worthless('is unknown'), worthless('has expired'), worthless('has been revoked')];
  const answers = [
    await get(PATH, null),
    await get(PATH, null, { headers: { authorization: 'Basic YWRhOnB3' } }),
    await get(PATH, 'nobody-token'),
    await get(PATH, 'ada-expired'),
    await get(PATH, 'ada-revoked'),
  ];
  for (const answer of answers) {
    expect(answer.status).toBe(401);
    expect(answer.body).toEqual({ detail: expect.any(String) });
  }
  expect(answers.map(answer => answer.headers.get('www-authenticate'))).toEqual(challenges);
  expect(new Set(answers.map(answer => answer.body.detail)).size).toBe(5);
});

test.each(['ada-token', 'Bearer', 'Bearer ', 'Bearer a b', 'Bearerada-token', 'Bearer "ada-token"', 'Token ada-token', ''])(
  'the header "%s" is malformed',
  async authorization => {
    const { get } = await startService({ ada });
    const answer = await get(PATH, null, { headers: { authorization } });
    expect([answer.status, answer.body.detail]).toEqual([401, expect.stringContaining('malformed')]);
  },
);

test('the scheme may be written in any case', async () => {
  const { get } = await startService({ ada });
  for (const scheme of ['bearer', 'BEARER']) {
    expect((await get(PATH, null, { headers: { authorization: `${scheme} ada-token` } })).status).toBe(200);
  }
});

test('a lapsed subscription is 403', async () => {
  const { get } = await startService({ ada });
  const answer = await get(PATH, 'ada-lapsed');
  expect([answer.status, answer.body]).toEqual([403, { detail: expect.stringContaining('expired') }]);
});

test('authentication comes before validation and before looking for documents', async () => {
  const { get } = await startService({ ada });
  for (const query of ['?start_date=x', '?start_date=2025-03-10&end_date=2025-03-01', '?next_token=garbage', '/none']) {
    expect((await get(PATH + query, null)).status).toBe(401);
    expect((await get(PATH + query, 'ada-lapsed')).status).toBe(403);
  }
  expect((await get('/v2/sandbox/usercollection/heartrate?start_datetime=x', null)).status).toBe(401);
  expect((await get('/v2/usercollection/personal_info', null)).status).toBe(401);
});

test('the limit of a token answers 429 with its headers until the window ends', async () => {
  let now = new Date('2025-03-10T12:00:00.400Z');
  const { get } = await startService({ ada, ben }, { rateLimit: { requests: 2, seconds: 60 } }, { clock: () => now });
  expect((await get(PATH)).status).toBe(200);
  now = new Date('2025-03-10T12:00:20.000Z');
  expect((await get(PATH)).status).toBe(200);
  const refused = await get(PATH);
  expect([refused.status, refused.body]).toEqual([429, { detail: expect.stringContaining('Rate limit exceeded') }]);
  expect(Object.fromEntries(refused.headers)).toMatchObject({
    'retry-after': '41',
    'x-ratelimit-limit': '2',
    'x-ratelimit-window': '60',
    'x-ratelimit-reset': String(Date.parse('2025-03-10T12:01:01Z') / 1000),
    'x-ratelimit-tier': 'token',
  });
  expect((await get(PATH, 'ben-token')).status).toBe(200);
  now = new Date('2025-03-10T12:01:00.399Z');
  expect((await get(PATH)).headers.get('retry-after')).toBe('1');
  now = new Date('2025-03-10T12:01:00.400Z');
  expect((await get(PATH)).status).toBe(200);
});

test('the limit of the application counts authorised requests only, and strangers never hear of it', async () => {
  let now = new Date('2025-03-10T12:00:00Z');
  const { get } = await startService({ ada, ben }, { appRateLimit: { requests: 3, seconds: 10 } }, { clock: () => now });
  const statuses = [];
  for (const token of [null, 'nobody-token', 'ada-expired', 'ada-revoked', 'ada-lapsed', 'ada-token', 'ben-token', 'ada-token'])
    statuses.push((await get(PATH, token)).status);
  expect(statuses).toEqual([401, 401, 401, 401, 403, 200, 200, 200]);
  const refused = await get(PATH, 'ben-token');
  expect([refused.status, refused.headers.get('x-ratelimit-tier')]).toEqual([429, 'application']);
  expect((await get(PATH, null)).status).toBe(401);
  now = new Date('2025-03-10T12:00:10Z');
  expect((await get(PATH, 'ben-token')).status).toBe(200);
});

test('what one limit refuses uses up nothing of the other', async () => {
  const limits = { rateLimit: { requests: 1, seconds: 60 }, appRateLimit: { requests: 2, seconds: 60 } };
  const { get } = await startService({ ada, ben }, limits);
  const statuses = [];
  for (const token of ['ada-token', 'ada-token', 'ada-token', 'ben-token', 'ben-token']) statuses.push((await get(PATH, token)).status);
  expect(statuses).toEqual([200, 429, 429, 200, 429]);
});

test('a clock set back starts a new window instead of a long wait', async () => {
  let now = new Date('2025-03-10T12:00:00Z');
  const { get } = await startService({ ada }, { rateLimit: { requests: 1, seconds: 60 } }, { clock: () => now });
  expect((await get(PATH)).status).toBe(200);
  now = new Date('2025-03-10T11:00:00Z');
  expect((await get(PATH)).status).toBe(200);
  expect((await get(PATH)).headers.get('retry-after')).toBe('60');
});

/** Asks so often, and tells how often it was admitted before the first refusal, and by which limit that came. */
function admitted(settings: Partial<ServiceSettings>, tokens: readonly string[], times: number): [number, unknown?] {
  const admit = createAdmit(
    token => ({ userId: token, state: 'active' }),
    { ...defaultSettings, ...settings },
    () => new Date('2025-03-10T12:00:00Z'),
  );
  for (let n = 0; n < times; n++) {
    try {
      admit(`Bearer ${tokens[n % tokens.length]}`, 'daily');
    } catch (error) {
      const { headers } = error as Problem;
      return [n, [headers['X-RateLimit-Tier'], headers['X-RateLimit-Window'], headers['Retry-After']]];
    }
  }
  return [times];
}

test('unless told otherwise 5,000 requests in 5 minutes are for a token, 50,000 for the application', () => {
  expect(admitted({}, ['ada'], 60_000)).toEqual([5_000, ['token', '300', '300']]);
  const eleven = Array.from({ length: 11 }, (_, n) => `token-${n}`);
  expect(admitted({}, eleven, 60_000)).toEqual([50_000, ['application', '300', '300']]);
});

test('of very many keys the window that began first is forgotten', () => {
  const counter = createRateCounter({ requests: 1, seconds: 60 }, 'address', () => new Date('2025-03-10T12:00:00Z'));
  const isFull = (key: string) => {
    try {
      counter?.check(key);
      return false;
    } catch {
      return true;
    }
  };
  counter?.count('first');
  for (let n = 1; n < 100_000; n++) counter?.count(`${n}`);
  expect([isFull('first'), isFull('1')]).toEqual([true, true]);
  counter?.count('one more');
  expect([isFull('99999'), isFull('one more'), isFull('first')]).toEqual([true, true, false]);
});

test('a limit that is off counts nothing', () => {
  expect(admitted({ rateLimit: 'off' }, ['ada'], 60_000)).toEqual([50_000, ['application', '300', '300']]);
  expect(admitted({ rateLimit: 'off', appRateLimit: 'off' }, ['ada'], 60_000)).toEqual([60_000]);
});
