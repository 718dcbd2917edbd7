import { createServer } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { errorOf, RANGE, READINESS, readAll, readiness, set } from './setting.ts';

/** A service that answers these bytes to everything. */
async function serve(status: number, body: Buffer): Promise<string> {
  const server = createServer((_, response) => response.writeHead(status, { 'content-type': 'application/json' }).end(body));
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`;
}

const envelope = (id: Buffer) => Buffer.concat([Buffer.from('{"data":[{"id":"'), id, Buffer.from('"}],"next_token":null}')]);

test.each<[string, Buffer]>([
  ['Latin-1', Buffer.from('caf\xe9', 'latin1')],
  ['a sign that is cut off', Buffer.from('café').subarray(0, -1)],
  ['half of a surrogate pair', Buffer.from([0xed, 0xa0, 0x80])],
  ['a sign that is longer than it may be', Buffer.from([0xc0, 0xaf])],
])('a page with %s is a malformed answer', async (_, id) => {
  const { client } = await set({}, { baseUrl: await serve(200, envelope(id)), retries: 1 });
  const error = await errorOf(readAll(client.documents(readiness, RANGE)));
  expect(error).toMatchObject({ kind: 'malformed' });
  expect(error.message).toBe(`GET ${READINESS}: answered 200 with bytes that are not UTF-8, after 2 attempts`);
});

test('any UTF-8 is read as it is', async () => {
  const { client } = await set({}, { baseUrl: await serve(200, envelope(Buffer.from('café 🦆 �'))) });
  expect(await readAll(client.documents(readiness, RANGE))).toEqual([{ id: 'café 🦆 �' }]);
});

test('a refusal that is not UTF-8 is nobody’s verdict', async () => {
  const { client } = await set({}, { baseUrl: await serve(403, Buffer.from('{"detail": "d\xe9fendu"}', 'latin1')), retries: 0 });
  expect(await errorOf(readAll(client.documents(readiness, RANGE)))).toMatchObject({ kind: 'unavailable', status: 403 });
});
