import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import type { Answer } from '../support/fault-service.ts';
import { errorOf, page, RANGE, READINESS, readAll, readiness, set, TOKEN } from './setting.ts';

const GOOD = page(['a'], null);
const HTML = '<!doctype html><title>Bad gateway</title>';

/** Faults that pass: after three of them the fourth attempt may succeed, and after four the request has failed. */
test.each<[string, Answer, object]>([
  ['500', { status: 500, json: { detail: 'oops' } }, { kind: 'unavailable', status: 500 }],
  ['502 with a page of HTML', { status: 502, text: HTML }, { kind: 'unavailable', status: 502 }],
  ['503', { status: 503, text: '' }, { kind: 'unavailable', status: 503 }],
  ['408', { status: 408, text: '' }, { kind: 'unavailable', status: 408 }],
  ['a reset', { fault: 'reset' }, { kind: 'unavailable' }],
  ['a truncated body', { ...GOOD, fault: 'truncate' }, { kind: 'malformed' }],
  ['malformed JSON', { text: '{"data": [{"id": "a"}' }, { kind: 'malformed', status: 200 }],
  ['an empty body', { text: '' }, { kind: 'malformed', status: 200 }],
  ['202', { status: 202, json: { data: [], next_token: null } }, { kind: 'malformed', status: 202 }],
  ['203', { status: 203, json: { data: [], next_token: null } }, { kind: 'malformed', status: 203 }],
  ['206', { status: 206, json: { data: [], next_token: null } }, { kind: 'malformed', status: 206 }],
  ['204', { status: 204, text: '' }, { kind: 'malformed', status: 204 }],
  ['a page of HTML with 200', { text: HTML }, { kind: 'malformed', status: 200 }],
])('%s is asked again, with longer and longer waits, four times in all', async (_, fault, expected) => {
  const { service, client, slept, open, begun } = await set({ [READINESS]: [fault, fault, fault, GOOD] });
  expect(await readAll(client.documents(readiness, RANGE))).toEqual([{ id: 'a' }]);
  expect(slept).toEqual([500, 1000, 2000]);
  expect(begun()).toBe(4);

  service.on(READINESS, fault);
  const error = await errorOf(readAll(client.documents(readiness, RANGE)));
  expect(error).toMatchObject({ ...expected, route: READINESS });
  expect(error.message).toContain('after 4 attempts');
  expect(error.message).not.toMatch(/oops|doctype|"id"/);
  expect(client.requests).toBe(8);
  expect(open.size).toBe(0);
});

test('the waits have jitter', async () => {
  const { client, slept } = await set({ [READINESS]: [{ status: 500 }, { status: 500 }, GOOD] }, { random: () => 0 });
  await readAll(client.documents(readiness, RANGE));
  expect(slept).toEqual([250, 500]);
});

test.each<[number, object]>([
  [401, { kind: 'unauthorized', status: 401 }],
  [403, { kind: 'forbidden', status: 403 }],
  [404, { kind: 'not_found', status: 404 }],
  [400, { kind: 'invalid_request', status: 400 }],
  [409, { kind: 'invalid_request', status: 409 }],
  [422, { kind: 'invalid_request', status: 422 }],
  [501, { kind: 'unavailable', status: 501 }],
])('%i is asked once', async (status, expected) => {
  const { client, noted } = await set({ [READINESS]: { status } });
  expect(await errorOf(readAll(client.documents(readiness, RANGE)))).toMatchObject(expected);
  expect(client.requests).toBe(1);
  expect(noted).toEqual(status < 500 ? [`GET ${READINESS} ${status}`] : []);
});

test('the service’s sentence is apart from our message: short, in one line, without the token', async () => {
  const { service, client } = await set({
    [READINESS]: { status: 400, json: { detail: `Bad\r\n\u001b[31m ${TOKEN} ${'x'.repeat(999)}` } },
  });
  const { message, detail } = await errorOf(readAll(client.documents(readiness, RANGE)));
  expect(message).toBe('GET /v2/usercollection/daily_readiness: answered 400');
  expect(detail).toMatch(/^Bad \[31m … x+$/);
  expect(detail!.length).toBeLessThan(300);

  service.on(READINESS, { status: 422, json: { detail: [{ loc: ['query', 'end'], msg: 'not a date', type: 'x', input: '2025-01-0x' }] } });
  expect((await errorOf(readAll(client.documents(readiness, RANGE)))).detail).toBe('query.end: not a date');
  service.on(READINESS, { status: 400, json: { error: { code: 7 } } });
  const wordless = await errorOf(readAll(client.documents(readiness, RANGE)));
  expect([wordless.message, wordless.detail]).toEqual([`GET ${READINESS}: answered 400`, undefined]);
});

test('a refused port', async () => {
  const { service, client, slept } = await set();
  await service.close();
  const error = await errorOf(readAll(client.documents(readiness, RANGE)));
  expect(error).toMatchObject({ kind: 'unavailable' });
  expect(error.message).toContain('ECONNREFUSED');
  expect(slept).toHaveLength(3);
});

test('something that does not speak HTTP', async () => {
  const server = createServer(socket => socket.once('data', () => socket.end('SSH-2.0-OpenSSH_9.6\r\n')));
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  const { client } = await set({}, { baseUrl: `http://127.0.0.1:${port}` });
  expect(await errorOf(readAll(client.documents(readiness, RANGE)))).toMatchObject({ kind: 'malformed' });
  server.close();
});

test.each<Answer>([{ fault: 'hang' }, { fault: 'drip' }])('an answer that never ends meets the deadline: %o', async fault => {
  const { client } = await set({ [READINESS]: fault }, { deadlineMs: 100, retries: 1 });
  const error = await errorOf(readAll(client.documents(readiness, RANGE)));
  expect(error).toMatchObject({ kind: 'unavailable' });
  expect(error.message).toContain('no whole answer within 0.1 s, after 2 attempts');
});

test.each([
  ['announced', { text: 'x'.repeat(5000), headers: { 'content-length': '5000' } }],
  ['not announced', { text: 'x'.repeat(5000), headers: { 'transfer-encoding': 'chunked' } }],
])('an answer that is too large (%s) is left and not asked for again', async (_, answer) => {
  const { client } = await set({ [READINESS]: answer }, { maxResponseBytes: 4999 });
  const error = await errorOf(readAll(client.documents(readiness, RANGE)));
  expect(error).toMatchObject({ kind: 'too_large' });
  expect(error.message).toContain('larger than 4999 bytes');
  expect(client.requests).toBe(1);
});

test('an answer of exactly the largest size is read', async () => {
  const { client } = await set({ [READINESS]: GOOD }, { maxResponseBytes: JSON.stringify(GOOD.json).length });
  expect(await readAll(client.documents(readiness, RANGE))).toHaveLength(1);
});

test.each([301, 302, 307, 308])('a redirect (%i) is not followed, and no token goes elsewhere', async status => {
  const other = await set();
  const { client } = await set({ [READINESS]: { status, headers: { location: `${other.service.url}${READINESS}` } } });
  const error = await errorOf(readAll(client.documents(readiness, RANGE)));
  expect(error).toMatchObject({ kind: 'redirected', status });
  expect(error.message).toContain('RINGNECK_SERVICE_URL should be the final address');
  expect(error.message).not.toContain(other.service.url);
  expect(other.service.asked).toEqual([]);
  expect(client.requests).toBe(1);
});

test('early hints before an answer are not the answer', async () => {
  const server = createServer(socket =>
    socket.once('data', () =>
      socket.end('HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n{"data": []}'),
    ),
  );
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  const { client } = await set({}, { baseUrl: `http://127.0.0.1:${port}` });
  expect(await readAll(client.documents(readiness, RANGE))).toEqual([]);
  server.close();
});

test('the n-th request fails, for every n: the read is whole all the same', async () => {
  const pages = { [READINESS]: [page(['a'], 'T1'), page(['b'], 'T2'), page(['c'])] };
  for (const fault of [{ status: 500 }, { fault: 'reset' }, { text: HTML }, { status: 429 }] satisfies Answer[]) {
    for (let n = 1; n <= 3; n++) {
      const { service, client, begun } = await set(pages);
      service.failNth(n, fault);
      expect(await readAll(client.documents(readiness, RANGE))).toEqual([{ id: 'a' }, { id: 'b' }, { id: 'c' }]);
      expect(begun()).toBe(4);
    }
  }
});

test('an answer that is nothing but objects is refused before it is parsed: each costs memory', async () => {
  const { client } = await set({ [READINESS]: { text: `{"data":[${'{},'.repeat(400_000)}{}],"next_token":null}` } });
  const error = await errorOf(readAll(client.documents(readiness, RANGE)));
  expect(error).toMatchObject({ kind: 'too_large' });
  expect(error.message).toContain('answered with more than 250,000 objects and lists at once');
  expect(client.requests).toBe(1);
});
