import { expect, test } from 'vitest';
import type { Answer } from '../support/fault-service.ts';
import { errorOf, page, RANGE, READINESS, readAll, readiness, set, TOKEN } from './setting.ts';

const HTML = '<!doctype html><title>Not here</title>';
const ENTRY = { loc: ['query', 'end'], msg: 'not a date', type: 'date' };
const PROBLEM = { 'content-type': 'application/problem+json; charset=utf-8' };

test.each<[string, Answer, string]>([
  ['a 400 with detail', { status: 400, json: { detail: 'No.' } }, 'invalid_request'],
  ['a 401 with error', { status: 401, json: { error: 'invalid_token' } }, 'unauthorized'],
  ['a 401 with error as an object', { status: 401, json: { error: { code: 7 } } }, 'unauthorized'],
  ['a 403 with message', { status: 403, json: { message: 'lapsed' } }, 'forbidden'],
  ['a 403 as problem+json', { status: 403, json: { title: 'Forbidden' }, headers: PROBLEM }, 'forbidden'],
  ['a 404 with detail', { status: 404, json: { detail: 'Not Found' } }, 'not_found'],
  ['a 422 with its list', { status: 422, json: { detail: [ENTRY] } }, 'invalid_request'],
  [
    'a 401 that names Bearer, whatever its body',
    { status: 401, text: HTML, headers: { 'www-authenticate': 'Basic realm="x", Bearer' } },
    'unauthorized',
  ],
])('%s is the service’s own word, and asked once', async (_, answer, kind) => {
  const { client, noted } = await set({ [READINESS]: answer });
  expect(await errorOf(readAll(client.documents(readiness, RANGE)))).toMatchObject({ kind, status: answer.status });
  expect(client.requests).toBe(1);
  expect(noted).toEqual([`GET ${READINESS} ${answer.status}`]);
});

test.each<[string, Answer]>([
  ...[400, 401, 403, 404, 409, 413, 422].map((status): [string, Answer] => [`a ${status} of HTML`, { status, text: HTML }]),
  ['a 404 without a body', { status: 404, text: '' }],
  ['a 403 of JSON that says nothing', { status: 403, json: {} }],
  ['a 403 of JSON that is no object', { status: 403, json: ['detail'] }],
  ['a 403 of JSON null', { status: 403, json: null }],
  ['a 403 whose detail is null', { status: 403, json: { detail: null } }],
  ['a 403 whose words are empty', { status: 403, json: { detail: '', message: ' ', error: {} } }],
  ['a 403 of JSON that calls itself HTML', { status: 403, json: { detail: 'No.' }, headers: { 'content-type': 'text/html' } }],
  ['a 422 that is no list', { status: 422, json: { detail: 'No.' } }],
  ['a 422 of an empty list', { status: 422, json: { detail: [] } }],
  ['a 422 whose entries lack a type', { status: 422, json: { detail: [{ loc: ['query'], msg: 'no' }] } }],
  ['a 401 that asks for a password', { status: 401, text: HTML, headers: { 'www-authenticate': 'Basic realm="Bearer"' } }],
  ['a 403 that names Bearer', { status: 403, text: HTML, headers: { 'www-authenticate': 'Bearer' } }],
  ['a 429 of HTML without Retry-After', { status: 429, text: HTML }],
  ['a 404 that is cut off', { status: 404, json: { detail: 'Not Found' }, fault: 'truncate' }],
  ['a 404 that is endless', { status: 404, text: `{"detail": "${'x'.repeat(100_000)}"}` }],
])('%s is nobody’s verdict: asked again, and what the service says then counts', async (_, answer) => {
  const { service, client, noted } = await set({ [READINESS]: [answer, answer, answer, page(['a'], null)] });
  expect(await readAll(client.documents(readiness, RANGE))).toEqual([{ id: 'a' }]);
  expect(noted).toEqual([`GET ${READINESS} 200`]);
  service.on(READINESS, answer);
  const error = await errorOf(readAll(client.documents(readiness, RANGE)));
  expect(error).toMatchObject({ kind: 'unavailable', status: answer.status });
  expect(error.message).toContain(`answered ${answer.status}, but not in the form of the service`);
  expect(error.message).not.toMatch(/doctype|No\./);
  expect(noted).toEqual([`GET ${READINESS} 200`]);
});

test('a refusal that drips is nobody’s verdict', async () => {
  const { client } = await set({ [READINESS]: { status: 403, fault: 'drip' } }, { deadlineMs: 1_000, retries: 0 });
  expect(await errorOf(readAll(client.documents(readiness, RANGE)))).toMatchObject({ kind: 'unavailable', status: 403 });
});

test.each([429, 503])('a %i of any shape with Retry-After is waited for', async status => {
  const answer = { status, text: HTML, headers: { 'retry-after': '7' } };
  const { client, slept } = await set({ [READINESS]: [answer, page(['a'], null)] });
  expect(await readAll(client.documents(readiness, RANGE))).toEqual([{ id: 'a' }]);
  expect(slept).toEqual([7_000]);
});

test.each<[string, unknown]>([
  ['no identifier', { day: '2025-03-05' }],
  ['an empty identifier', { id: '' }],
  ['a number for an identifier', { id: 7 }],
  ['a list', [{ id: 'a' }]],
  ['an envelope', { data: [{ id: 'a' }], next_token: null }],
])('a 200 with %s is no document', async (_, json) => {
  const { client, noted } = await set({ [`${READINESS}/*`]: { json }, '/v2/usercollection/personal_info': { json } });
  expect(await errorOf(client.document(readiness, 'a', { token: TOKEN }, () => undefined))).toMatchObject({
    kind: 'malformed',
    status: 200,
  });
  expect(await errorOf(client.personalInfo(TOKEN))).toMatchObject({ kind: 'malformed', status: 200 });
  expect(noted).toEqual([]);
});

test('a 200 that is no collection does not tell the probe that the token is good', async () => {
  const { client, noted } = await set({ [READINESS]: { json: { id: 'a', status: 'ok' } } });
  expect(await errorOf(client.probe(TOKEN))).toMatchObject({ kind: 'malformed', status: 200 });
  expect(noted).toEqual([]);
});

test('a 404 of something on the way does not tell that there is no personal information', async () => {
  const { service, client } = await set({ '/v2/usercollection/personal_info': { status: 404, text: HTML } });
  expect(await errorOf(client.personalInfo(TOKEN))).toMatchObject({ kind: 'unavailable', status: 404 });
  service.on('/v2/usercollection/personal_info', { status: 404, json: { detail: 'Not Found' } });
  expect(await client.personalInfo(TOKEN)).toBeUndefined();
});

test.each<[string, Answer]>([
  ['a 200', page(['a'])],
  ['a 200 without documents', {}],
  ['a 404', { status: 404, json: { detail: 'Not Found' } }],
  ['a 401', { status: 401, json: { detail: 'No.' } }],
])('%s that was kept for more than a minute is a cache’s, and says nothing', async (_, answer) => {
  const headers = { age: '61', date: 'Fri, 20 Jun 2025 12:00:00 GMT' };
  const { client, noted } = await set({ [READINESS]: { ...answer, headers } }, { retries: 1 });
  const error = await errorOf(readAll(client.documents(readiness, RANGE)));
  expect(error).toMatchObject({ kind: 'unavailable' });
  expect(error.message).toContain('from a cache on the way, 61 s old');
  expect(client.requests).toBe(2);
  expect(noted).toEqual([]);
});

test.each(['0', '60', '-61', 'old', ''])('an answer whose Age is %j is an answer', async age => {
  const { client } = await set({ [READINESS]: { ...page(['a']), headers: { age } } });
  expect(await readAll(client.documents(readiness, RANGE))).toEqual([{ id: 'a' }]);
});

test('who stands on the way is asked to keep no answer', async () => {
  const { client, service } = await set({ [READINESS]: page(['a']) });
  await readAll(client.documents(readiness, RANGE));
  expect(service.asked[0]!.headers['cache-control']).toBe('no-cache');
});
