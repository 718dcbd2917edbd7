import { request } from 'node:http';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { day, identifier } from '../../schema/fields.ts';
import { resources } from '../../schema/index.ts';
import { resource } from '../../schema/resource.ts';
import { beat, oneOfEach } from './documents.ts';
import { startService } from './literal-service.ts';

const RANGE = '?start_date=2025-03-09&end_date=2025-03-10';

/** Section 4.1, with the document that each route gives. */
const DOCUMENTS = [
  '/v2/usercollection/daily_readiness/readiness-1',
  '/v2/usercollection/daily_sleep/daily-sleep-1',
  '/v2/usercollection/daily_activity/activity-1',
  '/v2/usercollection/daily_spo2/spo2-1',
  '/v2/usercollection/daily_stress/stress-1',
  '/v2/usercollection/vO2_max/vo2-1',
  '/v2/usercollection/sleep_time/sleep-time-1',
  '/v2/usercollection/ring_configuration/ring-1',
];

/** Section 4.2. */
const COLLECTIONS = [
  '/v2/usercollection/daily_readiness',
  '/v2/usercollection/daily_activity',
  '/v2/usercollection/daily_spo2',
  '/v2/usercollection/daily_resilience',
  '/v2/usercollection/daily_stress',
  '/v2/usercollection/vO2_max',
  '/v2/usercollection/sleep',
  '/v2/usercollection/session',
];

/** LIVE-SERVICE.md, "Routes beyond the specification". */
const FURTHER_DOCUMENTS = [
  '/v2/usercollection/sleep/sleep-1',
  '/v2/usercollection/session/session-1',
  '/v2/usercollection/daily_resilience/resilience-1',
];
const FURTHER_COLLECTIONS = ['/v2/usercollection/daily_sleep', '/v2/usercollection/sleep_time', '/v2/usercollection/ring_configuration'];
const MIRRORED_COLLECTIONS = [
  '/v2/sandbox/usercollection/daily_readiness',
  '/v2/sandbox/usercollection/daily_sleep',
  '/v2/sandbox/usercollection/daily_activity',
  '/v2/sandbox/usercollection/daily_spo2',
  '/v2/sandbox/usercollection/vO2_max',
  '/v2/sandbox/usercollection/ring_configuration',
  '/v2/sandbox/usercollection/daily_resilience',
  '/v2/sandbox/usercollection/sleep_time',
  '/v2/sandbox/usercollection/daily_stress',
  '/v2/sandbox/usercollection/sleep',
  '/v2/sandbox/usercollection/session',
];
const MIRRORED_DOCUMENTS = [...DOCUMENTS, ...FURTHER_DOCUMENTS].map(path => path.replace('/v2/', '/v2/sandbox/'));

const HEART_RATE = '/v2/sandbox/usercollection/heartrate';
const PLAIN_HEART_RATE = '/v2/usercollection/heartrate';
const PERSONAL_INFO = '/v2/usercollection/personal_info';

const ada = {
  documents: oneOfEach,
  heartRate: [beat('2025-03-10T08:00:00.000+00:00', 61)],
  personalInfo: { id: 'ada', age: 41, email: null },
};
const ben = { documents: { daily_spo2: [{ id: 'spo2-of-ben', day: '2025-03-09' }] }, heartRate: [], personalInfo: { id: 'ben' } };

const documentAt = (path: string) => {
  const [name, id] = path.split('/').slice(-2) as [string, string];
  return oneOfEach[name]!.find(document => document.id === id);
};

test.each([...DOCUMENTS, ...FURTHER_DOCUMENTS, ...MIRRORED_DOCUMENTS])('the document route %s gives the document', async path => {
  const { get } = await startService({ ada });
  const answer = await get(path);
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(answer.body).toEqual(documentAt(path));
});

test.each([...COLLECTIONS, ...FURTHER_COLLECTIONS, ...MIRRORED_COLLECTIONS])('the collection route %s gives its documents', async path => {
  const { get } = await startService({ ada });
  const answer = await get(path + RANGE);
  expect(answer.status).toBe(200);
  expect(answer.body).toEqual({ data: oneOfEach[path.split('/').at(-1)!], next_token: null });
});

test('heart rate is served at the sandbox path of 4.3 and at the plain path', async () => {
  const { get } = await startService({ ada });
  const rows = [{ timestamp: '2025-03-10T08:00:00.000+00:00', timestamp_unix: 1741593600000, bpm: 61, source: 'awake' }];
  expect((await get(HEART_RATE)).body).toEqual({ data: rows, next_token: null });
  expect((await get(PLAIN_HEART_RATE)).body).toEqual({ data: rows, next_token: null });
});

test('personal_info says who the user is', async () => {
  const { get } = await startService({ ada, ben });
  expect((await get(PERSONAL_INFO)).body).toEqual({ id: 'ada', age: 41, email: null });
  expect((await get(PERSONAL_INFO, 'ben-token')).body).toEqual({ id: 'ben' });
});

test('with specificationOnly exactly the routes of section 4 remain', async () => {
  const { get } = await startService({ ada }, { specificationOnly: true });
  for (const path of [...DOCUMENTS, ...COLLECTIONS, HEART_RATE]) expect([path, (await get(path)).status]).toEqual([path, 200]);
  const extensions = [
    ...FURTHER_DOCUMENTS,
    ...FURTHER_COLLECTIONS,
    ...MIRRORED_COLLECTIONS,
    ...MIRRORED_DOCUMENTS,
    PLAIN_HEART_RATE,
    PERSONAL_INFO,
  ];
  for (const path of extensions) {
    const answer = await get(path);
    expect([path, answer.status, answer.body]).toEqual([path, 404, { detail: 'Not Found' }]);
  }
});

test('with specificationOnly the resilience and stress collections give all at once, without a next_token key', async () => {
  const stress = Array.from({ length: 2500 }, (_, i) => ({ id: `stress-${String(i).padStart(4, '0')}`, day: '2025-03-09' }));
  const documents = { daily_stress: stress, daily_resilience: oneOfEach.daily_resilience!, daily_spo2: oneOfEach.daily_spo2! };
  const { get } = await startService({ ada: { documents } }, { specificationOnly: true, pageSize: 1 });
  expect((await get(`/v2/usercollection/daily_stress${RANGE}`)).body).toEqual({ data: stress });
  expect((await get(`/v2/usercollection/daily_resilience${RANGE}`)).body).toEqual({ data: oneOfEach.daily_resilience });
  expect((await get(`/v2/usercollection/daily_spo2${RANGE}`)).body).toEqual({ data: oneOfEach.daily_spo2, next_token: null });
});

test('with specificationOnly the resilience collection takes only dates', async () => {
  const { get } = await startService({ ada }, { specificationOnly: true });
  const answer = await get(`/v2/usercollection/daily_resilience${RANGE}&fields=level&next_token=garbage`);
  expect(answer.body).toEqual({ data: oneOfEach.daily_resilience });
  const stress = await get(`/v2/usercollection/daily_stress${RANGE}&fields=day`);
  expect(stress.body).toEqual({ data: [{ id: 'stress-1', day: '2025-03-09' }] });
});

test('vO2_max has that capitalisation and no other', async () => {
  const { get } = await startService({ ada });
  for (const name of ['vo2_max', 'VO2_max', 'vO2_Max', 'VO2_MAX']) {
    expect((await get(`/v2/usercollection/${name}`)).body).toEqual({ detail: 'Not Found' });
    expect((await get(`/v2/usercollection/${name}/vo2-1`)).body).toEqual({ detail: 'Not Found' });
  }
  expect((await get('/V2/usercollection/vO2_max')).status).toBe(404);
});

test('a twelfth resource is served with nothing but its declaration', async () => {
  const meal = resource({
    path: 'meal',
    dataType: 'meal',
    paragraph: 'none',
    summary: 'Something eaten.',
    scope: 'daily',
    specified: [],
    endDay: 'included',
    document: z.object({ id: identifier('Identifier'), day: day('Day of eating') }),
  });
  const documents = { meal: [{ id: 'soup', day: '2025-03-10' }] };
  const { get } = await startService({ ada: { documents } }, {}, { resources: [...resources, meal] });
  expect((await get('/v2/usercollection/meal')).body).toEqual({ data: documents.meal, next_token: null });
  expect((await get('/v2/usercollection/meal/soup')).body).toEqual({ id: 'soup', day: '2025-03-10' });
  expect((await get('/openapi.json')).body.paths).toHaveProperty('/v2/sandbox/usercollection/meal/{document_id}');
});

test('another user’s documents are reachable neither by identifier nor by range', async () => {
  const { get } = await startService({ ada, ben });
  const missing = await get('/v2/usercollection/daily_spo2/spo2-of-ben');
  expect([missing.status, missing.body]).toEqual([404, { detail: 'Document not found.' }]);
  expect((await get(`/v2/usercollection/daily_spo2${RANGE}`)).body.data).toEqual(oneOfEach.daily_spo2);
  expect((await get(`/v2/usercollection/daily_spo2${RANGE}`, 'ben-token')).body.data).toEqual(ben.documents.daily_spo2);
  expect((await get(HEART_RATE, 'ben-token')).body.data).toEqual([]);
  expect((await get('/v2/usercollection/daily_spo2/spo2-1', 'ben-token')).status).toBe(404);
});

test('an identifier of one type names no document of another', async () => {
  const { get } = await startService({ ada });
  expect((await get('/v2/usercollection/daily_stress/spo2-1')).status).toBe(404);
});

test('identifiers are data: whatever characters they have, and decoded once', async () => {
  const ids = ['a/b', 'a%2Fb', 'ü ber', '?x=1', '#', 'a+b', '__proto__', '你好', '%'];
  const { get } = await startService({ ada: { documents: { daily_spo2: ids.map(id => ({ id, day: '2025-03-09' })) } } });
  for (const id of ids) {
    expect([id, (await get(`/v2/usercollection/daily_spo2/${encodeURIComponent(id)}`)).body]).toEqual([id, { id, day: '2025-03-09' }]);
  }
  expect((await get('/v2/usercollection/daily_spo2/a/b')).body).toEqual({ detail: 'Not Found' });
});

test('a long or an empty identifier is an unknown document', async () => {
  const { get } = await startService({ ada });
  for (const id of ['x'.repeat(512), 'x'.repeat(9000), '%F0%9F%A6%86'.repeat(600), '']) {
    const answer = await get(`/v2/usercollection/daily_spo2/${id}`);
    expect([answer.status, answer.body]).toEqual([404, { detail: 'Document not found.' }]);
  }
});

test('fields that the schema does not know go out as they are', async () => {
  const document = { id: 'spo2-new', day: '2025-03-09', brand_new: { deep: [1, { x: null }] }, spo2_percentage: null };
  const { get } = await startService({ ada: { documents: { daily_spo2: [document] } } });
  expect((await get('/v2/usercollection/daily_spo2/spo2-new')).text).toBe(JSON.stringify(document));
  expect((await get(`/v2/usercollection/daily_spo2${RANGE}`)).body.data).toEqual([document]);
});

test.each(['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND'])('%s on a known route is 405, on others 404', async method => {
  const { url } = await startService({ ada });
  const send = (path: string) =>
    new Promise<[number | undefined, string | undefined, string]>((resolve, reject) => {
      const sent = request(url + path, { method, headers: { 'content-type': 'text/strange', 'content-length': 8 } }, async response => {
        let text = '';
        for await (const chunk of response) text += chunk;
        resolve([response.statusCode, response.headers.allow, text]);
      });
      sent.on('error', reject).end('not json');
    });
  const notAllowed = [405, 'GET, HEAD', '{"detail":"Method Not Allowed"}'];
  expect(await send('/v2/usercollection/daily_spo2?start_date=x')).toEqual(notAllowed);
  expect(await send('/v2/usercollection/daily_spo2/spo2-1')).toEqual(notAllowed);
  expect(await send(HEART_RATE)).toEqual(notAllowed);
  expect(await send('/v2/usercollection/nothing')).toEqual([404, undefined, '{"detail":"Not Found"}']);
  expect(await send('/v2/usercollection/daily_spo2/a/b')).toEqual([404, undefined, '{"detail":"Not Found"}']);
});

test('HEAD answers as GET does, without the body', async () => {
  const { get } = await startService({ ada });
  const found = await get('/v2/usercollection/daily_spo2/spo2-1', 'ada-token', { method: 'HEAD' });
  expect([found.status, found.text, found.headers.get('content-length')]).toEqual([
    200,
    '',
    String(JSON.stringify(documentAt('daily_spo2/spo2-1')).length),
  ]);
  expect((await get('/v2/usercollection/daily_spo2/none', 'ada-token', { method: 'HEAD' })).status).toBe(404);
  expect((await get('/v2/usercollection/daily_spo2/spo2-1', null, { method: 'HEAD' })).status).toBe(401);
});

test('unknown routes are 404 in the same shape, with a token or without', async () => {
  const { get } = await startService({ ada });
  for (const path of ['/', '/v1/usercollection/sleep', '/v2/usercollection', '/v2/usercollection/meal', '/v2/webhook', '/docs/no']) {
    for (const token of ['ada-token', null]) {
      const answer = await get(path, token);
      expect([path, answer.status, answer.body]).toEqual([path, 404, { detail: 'Not Found' }]);
    }
  }
});
