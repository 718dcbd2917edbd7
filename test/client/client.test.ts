import { expect, test } from 'vitest';
import { UsageError } from '../../src/base/errors.ts';
import { Client } from '../../src/client/client.ts';
import { errorOf, page, RANGE, READINESS, readAll, readiness, set, TOKEN } from './setting.ts';

const dismiss = () => undefined;

test('one document: its moment lasts until it is taken, also where that fails', async () => {
  const { client, open, noted } = await set({ [`${READINESS}/*`]: { json: { id: 'a', score: 80 } } });
  const taken = await client.document(readiness, 'a', { token: TOKEN }, async ({ document, requestedAt }) => {
    expect([...open]).toEqual([requestedAt]);
    return document;
  });
  expect(taken).toEqual({ id: 'a', score: 80 });
  expect(noted).toEqual([`GET ${READINESS}/{document_id} 200`]);
  const failing = client.document(readiness, 'a', { token: TOKEN }, () => Promise.reject(new Error('not stored')));
  await expect(failing).rejects.toThrow('not stored');
  expect([...open]).toEqual([]);
});

test.each([
  ['a/../b?c=d#e', '/a%2F..%2Fb%3Fc%3Dd%23e'],
  ['...', '/...'],
  ['ü %', '/%C3%BC%20%25'],
])('an identifier is data: %s', async (id, sent) => {
  const { service, client } = await set({ [`${READINESS}/*`]: { json: { id } } });
  await client.document(readiness, id, { token: TOKEN }, dismiss);
  expect(service.asked[0]).toMatchObject({ path: READINESS + sent, rawQuery: '' });
});

test('an identifier that no document can have is not asked for', async () => {
  const { service, client } = await set();
  for (const id of ['', '.', '..', '\ud800']) {
    expect(await errorOf(client.document(readiness, id, { token: TOKEN }, dismiss))).toMatchObject({ kind: 'invalid_request' });
  }
  expect(service.asked).toEqual([]);
});

test('a document that is missing, or is none', async () => {
  const { service, client } = await set({ [`${READINESS}/*`]: { status: 404, json: { detail: 'Document not found.' } } });
  const error = await errorOf(client.document(readiness, 'identifier', { token: TOKEN }, dismiss));
  expect(error).toMatchObject({ kind: 'not_found', route: `${READINESS}/{document_id}` });
  expect([error.message, error.detail]).toEqual([`GET ${READINESS}/{document_id}: answered 404`, 'Document not found.']);
  for (const json of [null, [], 'text']) {
    service.on(`${READINESS}/*`, { json });
    expect(await errorOf(client.document(readiness, 'a', { token: TOKEN }, dismiss))).toMatchObject({ kind: 'malformed' });
  }
});

test('personal_info: what it says, undefined where it is not offered, and its errors', async () => {
  const { service, client } = await set({ '/v2/usercollection/personal_info': { json: { id: 'u1' } } });
  expect(await client.personalInfo(TOKEN)).toEqual({ id: 'u1' });
  service.on('/v2/usercollection/personal_info', { status: 404 });
  expect(await client.personalInfo(TOKEN)).toBeUndefined();
  service.on('/v2/usercollection/personal_info', { status: 401 });
  expect(await errorOf(client.personalInfo(TOKEN))).toMatchObject({ kind: 'unauthorized' });
});

test('a probe asks once, for little, and throws what it finds', async () => {
  const { service, client } = await set({ [READINESS]: [page([]), { status: 401, json: { detail: 'Token revoked.' } }, { status: 403 }] });
  await client.probe(TOKEN);
  const { query } = service.asked[0]!;
  expect(query.get('start_date')).toMatch(/^\d{4}-\d\d-\d\d$/);
  expect(query.get('end_date')).toBe(query.get('start_date'));
  expect(await errorOf(client.probe(TOKEN))).toMatchObject({ kind: 'unauthorized' });
  expect(await errorOf(client.probe(TOKEN))).toMatchObject({ kind: 'forbidden' });
  expect(service.asked).toHaveLength(3);
});

test('a token that no header can carry is its user’s trouble, not a crash', async () => {
  const { service, client } = await set();
  for (const token of ['', 'a\nb', 'naïve ✓', 'a b']) {
    const error = await errorOf(readAll(client.documents(readiness, { token })));
    expect(error.kind).toBe('unauthorized');
    if (token) expect(error.message).not.toContain(token);
  }
  expect(service.asked).toEqual([]);
});

test.each(['', '/', '/api/v9', '/api/v9/', '/api//'])('a base URL that ends with %j', async suffix => {
  const prefix = suffix.replace(/\/+$/, '');
  const { service } = await set({ [prefix + READINESS]: page(['a']) });
  const { client } = await set({}, { baseUrl: service.url + suffix });
  expect(await readAll(client.documents(readiness, RANGE))).toHaveLength(1);
});

test.each([
  ['', 'not a URL'],
  ['api.example.com', 'not a URL'],
  ['ftp://example.com', 'ftp:'],
  ['file:///etc', 'file:'],
  ['https://anna:password@example.com', 'user name or password'],
  ['https://example.com/?token=password', 'query'],
  ['https://example.com/#x', 'fragment'],
])('a base URL %j is wrong usage', (baseUrl, reason) => {
  const make = () => new Client({ baseUrl, clock: { lease: () => 0, release() {} } });
  expect(make).toThrow(UsageError);
  expect(make).toThrow(reason);
  expect(make).not.toThrow('password@');
  expect(make).not.toThrow('token=');
});

test('connections are kept and used again', async () => {
  const { service, client } = await set({ [READINESS]: (_, nth) => page(['x'], nth < 20 ? `T${nth}` : null) });
  expect(await readAll(client.documents(readiness, RANGE))).toHaveLength(20);
  // Two: undici counts a connection as busy for a moment after its answer.
  expect(service.connections).toBeLessThanOrEqual(2);
});
