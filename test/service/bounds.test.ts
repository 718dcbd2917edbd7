import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { spo2 } from './documents.ts';
import { createLiteralSource, startService } from './literal-service.ts';

const PATH = '/v2/usercollection/daily_spo2';
const ada = { documents: { daily_spo2: [spo2('2025-03-09')] } };

/** Sends bytes as they are and reads until the service closes the connection. */
async function exchange(url: string, text: string): Promise<{ status: number; body: string }> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.write(text);
  let answer = '';
  for await (const chunk of socket) answer += chunk;
  return { status: Number(answer.split(' ')[1]), body: answer.slice(answer.indexOf('\r\n\r\n') + 4) };
}

test('headers or a path beyond 16 KB are 431 in the usual shape', async () => {
  const { url } = await startService({ ada });
  const tooLarge = { status: 431, body: '{"detail":"Request Header Fields Too Large"}' };
  expect(await exchange(url, `GET ${PATH}/${'x'.repeat(20_000)} HTTP/1.1\r\nHost: a\r\n\r\n`)).toEqual(tooLarge);
  expect(await exchange(url, `GET ${PATH} HTTP/1.1\r\nHost: a\r\nX-Long: ${'x'.repeat(20_000)}\r\n\r\n`)).toEqual(tooLarge);
});

test('what is no HTTP is 400', async () => {
  const { url } = await startService({ ada });
  expect(await exchange(url, 'hello\r\n\r\n')).toEqual({ status: 400, body: '{"detail":"Bad Request"}' });
});

test('a request that does not arrive in time is 408', async () => {
  const { url } = await startService({ ada }, { requestTimeoutMs: 200 });
  expect(await exchange(url, `GET ${PATH} HTTP/1.1\r\nHost:`)).toEqual({ status: 408, body: '{"detail":"Request Timeout"}' });
});

test('a large body is 413, and its connection is closed without reading it', async () => {
  const { url } = await startService({ ada });
  const head = `GET ${PATH} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ada-token\r\n`;
  expect(await exchange(url, `${head}Content-Length: 70000\r\n\r\n`)).toEqual({ status: 413, body: '{"detail":"Payload Too Large"}' });
  expect((await exchange(url, `${head}Transfer-Encoding: chunked\r\n\r\n`)).status).toBe(200);
  expect((await exchange(url, `${head}Content-Length: 9\r\n\r\n`)).status).toBe(200);
});

test('a path that cannot be decoded is 400', async () => {
  const { get } = await startService({ ada });
  const answer = await get(`${PATH}/%E0%A4%A`);
  expect([answer.status, answer.body]).toEqual([400, { detail: 'Bad Request' }]);
});

test('an internal error is 500 and says nothing of its cause, in the answer or in the log', async () => {
  const logged: string[] = [];
  const write = (facts: object, message: string) => logged.push(JSON.stringify({ ...facts, message }));
  const source = createLiteralSource({ ada });
  source.list = async () => {
    throw new TypeError('ada slept badly');
  };
  const { get } = await startService({ ada }, {}, { source, log: { debug: write, error: write } });
  const answer = await get(`${PATH}?start_date=2025-03-09`);
  expect([answer.status, answer.body]).toEqual([500, { detail: 'Internal Server Error' }]);
  const failed = JSON.parse(logged.find(line => line.includes('failed')) ?? '{}');
  expect(failed).toMatchObject({ method: 'GET', route: PATH, error: 'TypeError', message: 'failed' });
  expect(failed.frames[0]).toContain('bounds.test.ts');
  expect(logged.join()).not.toContain('slept');
});

test('the log tells routes and statuses, never tokens, query strings, identifiers or data', async () => {
  const logged: object[] = [];
  const write = (facts: object) => logged.push(facts);
  const { get } = await startService({ ada }, {}, { log: { debug: write, error: write } });
  await get(`${PATH}?start_date=2025-03-09&next_token=`);
  await get(`${PATH}/spo2-2025-03-09`);
  await get('/some/secret/path?with=query');
  await get(PATH, 'nobody-token');
  expect(logged.map(facts => ({ ...facts, ms: 0 }))).toEqual([
    { method: 'GET', route: PATH, status: 200, ms: 0 },
    { method: 'GET', route: `${PATH}/:document_id`, status: 200, ms: 0 },
    { method: 'GET', route: undefined, status: 404, ms: 0 },
    { method: 'GET', route: PATH, status: 401, ms: 0 },
  ]);
});

test('an answer that takes too long is 503', async () => {
  const source = createLiteralSource({ ada });
  source.find = () => new Promise(() => {});
  const { get } = await startService({ ada }, { answerTimeoutMs: 100 }, { source });
  const answer = await get(`${PATH}/spo2-2025-03-09`);
  expect([answer.status, answer.body]).toEqual([503, { detail: 'Service Unavailable' }]);
});

test('answers with health data are not to be cached', async () => {
  const { get } = await startService({ ada });
  expect((await get(PATH)).headers.get('cache-control')).toBe('no-store');
});

test('closing does not wait for a client that never reads its answer', async () => {
  const documents = {
    daily_spo2: Array.from({ length: 50 }, (_, i) => ({ ...spo2('2025-03-09', `id-${i}`), note: 'x'.repeat(1_000_000) })),
  };
  const { url, service } = await startService({ ada: { documents } }, { closeTimeoutMs: 100 });
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname).on('error', () => {});
  socket.pause().write(`GET ${PATH} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ada-token\r\n\r\n`);
  await new Promise(resolve => setTimeout(resolve, 300));
  const started = Date.now();
  await service.close();
  expect(Date.now() - started).toBeLessThan(3000);
  socket.destroy();
});
