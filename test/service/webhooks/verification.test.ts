import { createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { type AnswerCallback, agree, startCallback } from './callback.ts';
import { openTestWebhooks } from './webhook-service.ts';

const challengeOf = (url: string) => new URL(url, 'http://callback').searchParams.get('challenge');
const json = { 'content-type': 'application/json' };

test('the verification is a GET with the token and a random challenge, after whatever query the callback has', async () => {
  const callback = await startCallback();
  const { verify } = openTestWebhooks();
  await verify(`${callback.url}?key=a%20b+c&x='1'`, 'a token & more=ü');
  await verify(callback.url, 'token');
  const [first, second] = callback.received;
  expect(first!.method).toBe('GET');
  expect(first!.url).toMatch(/^\/hook\?key=a%20b\+c&x=%271%27&verification_token=a%20token%20%26%20more%3D%C3%BC&challenge=[\w-]{32}$/);
  expect(second!.url).toMatch(/^\/hook\?verification_token=token&challenge=[\w-]{32}$/);
  expect(challengeOf(first!.url)).not.toBe(challengeOf(second!.url));
});

test.each<[string, AnswerCallback]>([
  ['as 6.2 writes it', agree],
  [
    'with blanks and a character set',
    (response, { url }) =>
      response.writeHead(200, { 'content-type': 'Application/JSON; charset=utf-8' }).end(`{ "challenge" :\n"${challengeOf(url)}" }`),
  ],
  [
    'with whatever else beside it',
    (response, { url }) => response.writeHead(200, json).end(JSON.stringify({ status: 'ok', challenge: challengeOf(url), at: [1] })),
  ],
])('an echo %s is taken', async (_name, answer) => {
  const callback = await startCallback(answer);
  await expect(openTestWebhooks().verify(callback.url, 'token')).resolves.toBeUndefined();
});

test.each<[string, AnswerCallback, string]>([
  ['401, as the reference does for a wrong token', response => response.writeHead(401).end(), 'answered the verification with 401'],
  [
    '201 with the echo',
    (response, { url }) => response.writeHead(201, json).end(JSON.stringify({ challenge: challengeOf(url) })),
    'answered the verification with 201',
  ],
  ['204', response => response.writeHead(204).end(), 'answered the verification with 204'],
  ['500', response => response.writeHead(500).end(), 'answered the verification with 500'],
  [
    'a redirect to itself',
    (response, { url }) => response.writeHead(302, { location: url }).end(),
    'answered the verification with 302, a redirect, which is not followed',
  ],
  [
    'the bare challenge as text',
    (response, { url }) => response.writeHead(200, { 'content-type': 'text/plain' }).end(challengeOf(url)),
    'something other than JSON',
  ],
  [
    'the right JSON as HTML',
    (response, { url }) => response.writeHead(200, { 'content-type': 'text/html' }).end(JSON.stringify({ challenge: challengeOf(url) })),
    'something other than JSON',
  ],
  [
    'the right JSON without a type',
    (response, { url }) => response.writeHead(200).end(JSON.stringify({ challenge: challengeOf(url) })),
    'something other than JSON',
  ],
  ['another challenge', response => response.writeHead(200, json).end('{"challenge":"another"}'), 'did not return the challenge'],
  [
    'the challenge as an array',
    (response, { url }) => response.writeHead(200, json).end(JSON.stringify([challengeOf(url)])),
    'did not return',
  ],
  [
    'the bare challenge as JSON',
    (response, { url }) => response.writeHead(200, json).end(JSON.stringify(challengeOf(url))),
    'did not return',
  ],
  ['no JSON', (response, { url }) => response.writeHead(200, json).end(`challenge: ${challengeOf(url)}`), 'did not return the challenge'],
  ['null', response => response.writeHead(200, json).end('null'), 'did not return the challenge'],
  ['nothing', response => response.writeHead(200, json).end(), 'did not return the challenge'],
  [
    'the echo after 4 kB of blanks',
    (response, { url }) => response.writeHead(200, json).end(' '.repeat(4096) + JSON.stringify({ challenge: challengeOf(url) })),
    'more than 4096 bytes',
  ],
  [
    'compressed',
    (response, { url }) => response.writeHead(200, { ...json, 'content-encoding': 'gzip' }).end(Buffer.from(`\u001f${challengeOf(url)}`)),
    'did not return the challenge',
  ],
  ['a connection that breaks', response => response.destroy(), 'it gave no answer (UND_ERR_SOCKET)'],
])('a callback that answers with %s is refused', async (_name, answer, reason) => {
  const callback = await startCallback(answer);
  await expect(openTestWebhooks().verify(callback.url, 'token')).rejects.toThrow(reason);
  expect(callback.received).toHaveLength(1);
});

test('an endless answer is cut off, and one that drips is given up in time', async () => {
  const closed: string[] = [];
  const endless = await startCallback(response => {
    response.writeHead(200, json).on('close', () => closed.push('endless'));
    const more = setInterval(() => response.write(' '.repeat(1000)), 1);
    response.on('close', () => clearInterval(more));
  });
  const drip = await startCallback(response => {
    response.writeHead(200, json).on('close', () => closed.push('drip'));
    const more = setInterval(() => response.write(' '), 20);
    response.on('close', () => clearInterval(more));
  });
  const { verify } = openTestWebhooks({ timeoutMs: 400 });
  await expect(verify(endless.url, 'token')).rejects.toThrow('more than 4096 bytes');
  const started = Date.now();
  await expect(verify(drip.url, 'token')).rejects.toThrow('it gave no whole answer within 0.4 s');
  expect(Date.now() - started).toBeLessThan(1500);
  await expect.poll(() => closed).toEqual(['endless', 'drip']);
});

test('a callback that takes the connection and says nothing, one that is not HTTP, and one that nobody serves', async () => {
  const silent = createServer(() => {}).listen(0, '127.0.0.1');
  const strange = createServer(socket => socket.on('error', () => {}).end('220 mail.example ESMTP\r\n')).listen(0, '127.0.0.1');
  onTestFinished(() => {
    silent.close();
    strange.close();
  });
  const urlOf = (server: typeof silent) => `http://127.0.0.1:${(server.address() as { port: number }).port}/`;
  const { verify } = openTestWebhooks({ timeoutMs: 400 });
  await expect.poll(() => silent.listening && strange.listening).toBe(true);
  await expect(verify(urlOf(silent), 'token')).rejects.toThrow('it gave no whole answer within 0.4 s');
  await expect(verify(urlOf(strange), 'token')).rejects.toThrow('it gave no answer (HTTPParserError)');
  await expect(verify('http://127.0.0.1:9/', 'token')).rejects.toThrow('it gave no answer (ECONNREFUSED)');
});

test('a name whose look-up never ends is given up in time', async () => {
  const { verify } = openTestWebhooks({ timeoutMs: 300, resolve: () => new Promise(() => {}) });
  const started = Date.now();
  await expect(verify('http://hangs.example/', 'token')).rejects.toThrow('it gave no whole answer within 0.3 s');
  expect(Date.now() - started).toBeLessThan(1500);
});
