import { execFile } from 'node:child_process';
import { readdirSync, rmSync, statSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { openConsoleHere } from '../support/console-harness.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath } from '../support/warehouse.ts';

const folder = tempFolder();
const newFolder = () => newPath(folder).replace(/\/[^/]+$/, '');
const codeOf = (link: string) => link.split('#')[1]!;

test('a link opens a session once', async () => {
  const console = await openConsoleHere(newFolder());
  const code = codeOf(console.createLink({ role: 'reader', person: null }));
  const first = await console.send('POST', '/api/enter', { body: { code } });
  expect(first.status).toBe(200);
  expect(first.headers.get('set-cookie')).toMatch(/^ringneck-127-0-0-1-\d+=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=604800$/);
  const second = await console.send('POST', '/api/enter', { body: { code } });
  expect(second.status).toBe(401);
  expect(second.body).toEqual({
    error: { kind: 'session', message: 'This link was used already, or is older than a minute.', help: 'A fresh link: ringneck console' },
  });
});

test('a link is worth nothing after a minute', async () => {
  let now = 1_748_736_000_000;
  const console = await openConsoleHere(newFolder(), { now: () => now });
  const code = codeOf(console.createLink({ role: 'reader', person: null }));
  now += 61_000;
  expect((await console.send('POST', '/api/enter', { body: { code } })).status).toBe(401);
});

test('a session ends after twelve hours without a request, after seven days in all, and when it is ended', async () => {
  let now = 1_748_736_000_000;
  const console = await openConsoleHere(newFolder(), { now: () => now });
  const ada = await console.enter();
  for (let hours = 11; hours < 7 * 24; hours += 11) {
    now += 11 * 3_600_000;
    expect((await ada.ask('GET session')).status).toBe(200);
  }
  now += 11 * 3_600_000;
  expect((await ada.ask('GET session')).status).toBe(401);
  const ben = await console.enter();
  now += 12 * 3_600_000;
  expect((await ben.ask('GET session')).status).toBe(401);
  const cleo = await console.enter();
  expect((await cleo.ask('DELETE session')).status).toBe(200);
  expect((await cleo.ask('GET session')).status).toBe(401);
});

const isRootOfLinux = process.platform === 'linux' && process.getuid?.() === 0;

test.skipIf(!isRootOfLinux)('a cookie that another user of the machine has got opens nothing for them', async () => {
  const console = await openConsoleHere(newFolder());
  const { cookie } = await console.enter();
  const ask = `fetch(process.argv[1], { headers: { cookie: process.argv[2] } }).then(({ status }) => process.stdout.write(String(status)))`;
  const statusFor = async (uid: number) =>
    (await promisify(execFile)(process.execPath, ['-e', ask, `${console.url}/api/people`, cookie], { uid, gid: uid, cwd: '/', env: {} }))
      .stdout;
  expect([await statusFor(0), await statusFor(65_534)]).toEqual(['200', '401']);
});

test('a cookie of the same name that another port has set keeps nobody out', async () => {
  const console = await openConsoleHere(newFolder());
  const { cookie } = await console.enter();
  const [name] = cookie.split('=');
  const { status } = await console.send('GET', '/api/session', { headers: { cookie: `${name}=somebody-else; ${cookie}` } });
  expect(status).toBe(200);
});

test('a session outlives the process that opened it', async () => {
  const data = newFolder();
  const first = await openConsoleHere(data);
  const { cookie } = await first.enter({ role: 'reader' });
  const { port } = new URL(first.url);
  await first.close();
  const second = await openConsoleHere(data);
  const name = `ringneck-127-0-0-1-${new URL(second.url).port}`;
  const again = await second.send('GET', '/api/session', { headers: { cookie: cookie.replace(`ringneck-127-0-0-1-${port}`, name) } });
  expect(again.body).toMatchObject({ role: 'reader', person: null, can_act: false, taken_at: null, freshness: 'alone' });
});

test('without the folder of sessions nobody is in, and others come in anew', async () => {
  const data = newFolder();
  const console = await openConsoleHere(data);
  const ada = await console.enter();
  const sessions = join(data, 'console-sessions');
  rmSync(sessions, { recursive: true });
  expect((await ada.ask('GET session')).status).toBe(401);
  expect((await (await console.enter()).ask('GET session')).status).toBe(200);
  const modes = [sessions, ...readdirSync(sessions).map(name => join(sessions, name))].map(path => statSync(path).mode & 0o777);
  expect(modes).toEqual([0o700, 0o600]);
});

test('nothing is told without a session, or with a cookie that is none', async () => {
  const console = await openConsoleHere(newFolder());
  for (const [cookie, message] of [
    ['', 'This browser has no session.'],
    [`ringneck-127-0-0-1-${new URL(console.url).port}=AAAA`, 'The session is over.'],
  ] as const) {
    const { status, body } = await console.send('GET', '/api/people', { headers: { cookie } });
    expect(status).toBe(401);
    expect(body.error).toEqual({ kind: 'session', message, help: 'A fresh link: ringneck console' });
  }
});

test('only names that it is known by are answered', async () => {
  const console = await openConsoleHere(newFolder());
  const { port } = new URL(console.url);
  // fetch does not let a Host be given.
  const statusFor = (host: string) =>
    new Promise(resolve => {
      request(`${console.url}/`, { headers: { host } }, response => resolve(response.resume().statusCode)).end();
    });
  expect(await statusFor(`evil.example:${port}`)).toBe(421);
  expect(await statusFor('127.0.0.1')).toBe(421);
  expect(await statusFor(`localhost:${port}`)).toBe(200);
});

test('what changes something must come from a page of the session', async () => {
  const console = await openConsoleHere(newFolder());
  const { cookie, csrf } = await console.enter();
  const end = (headers: Record<string, string>) =>
    console.send('DELETE', '/api/session', { headers: { cookie, 'x-csrf': csrf, ...headers } });
  expect((await end({ origin: 'http://evil.example' })).status).toBe(403);
  expect((await end({ origin: 'null' })).status).toBe(403);
  expect((await end({ 'sec-fetch-site': 'cross-site' })).status).toBe(403);
  expect((await end({ 'x-csrf': 'another' })).status).toBe(403);
  expect((await end({ 'content-type': 'text/plain' })).status).toBe(415);
  expect((await end({})).status).toBe(200);
});

test('every answer forbids what the page does not need', async () => {
  const console = await openConsoleHere(newFolder());
  for (const path of ['/', '/api/session', '/nothing']) {
    const { headers } = await console.send('GET', path);
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-store',
    });
  }
});

test('behind a proxy it is known by the outside address, whether the path in front is taken away or not', async () => {
  const console = await openConsoleHere(newFolder(), { settings: { consoleUrl: 'https://study.example/ring' } });
  const here = new URL(console.listening);
  expect(console.url).toBe('https://study.example/ring');
  const ask = (method: string, path: string, body = '') =>
    new Promise<{ status: number | undefined; cookie: string | undefined; text: string }>((resolve, reject) => {
      const headers = { host: 'study.example', origin: 'https://study.example', 'content-type': 'application/json' };
      request({ host: here.hostname, port: here.port, method, path, headers }, response => {
        let text = '';
        response.setEncoding('utf8').on('data', part => {
          text += part;
        });
        response.on('end', () => resolve({ status: response.statusCode, cookie: response.headers['set-cookie']?.[0], text }));
      })
        .on('error', reject)
        .end(body);
    });
  // The page says which of its addresses are none, and so does the status.
  const html = async (path: string) => (await ask('GET', path)).status;
  for (const path of [
    '/ring',
    '/ring?x=1',
    '/ring/?x=1',
    '/?x=1',
    '/ring/coverage?from=x',
    '/ring/people/ann/raster/',
    '/people/a%2Fb?day=x',
  ])
    expect([path, await html(path)]).toEqual([path, 200]);
  for (const path of ['/rings', '/rings?x=1', '/ring/coverage/', '/people/', '/people/ann/nights', '/people/ann/raster/x'])
    expect([path, await html(path)]).toEqual([path, 404]);
  for (const prefix of ['', '/ring']) {
    const page = await ask('GET', `${prefix}/`);
    expect(page).toMatchObject({ status: 200 });
    const [, script = ''] = /src="(\/ring\/assets\/[\w.-]+)"/.exec(page.text) ?? [];
    expect((await ask('GET', script.slice(prefix ? 0 : '/ring'.length))).status).toBe(200);
    const code = codeOf(console.createLink({ role: 'reader', person: null }));
    const entered = await ask('POST', `${prefix}/api/enter`, JSON.stringify({ code }));
    expect(entered.cookie).toMatch(/^ringneck-study-example=[\w-]{43}; Path=\/ring\/; HttpOnly; SameSite=Strict; Max-Age=604800; Secure$/);
  }
});
