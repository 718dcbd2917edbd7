import { once } from 'node:events';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { findFreePort } from '../../src/app/free-port.ts';
import { Secrets } from '../../src/base/secrets/secrets.ts';
import { shareRedis } from '../queue/redis-server.ts';
import { Browser, withdrawLinkOf } from '../support/enrolment-harness.ts';
import { ringneck, startRingneck } from '../support/ringneck.ts';
import { runHere } from '../support/run-here.ts';
import { openSandboxHere } from '../support/sandbox-here.ts';
import { fillIn, personAt } from '../support/sandbox-page.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';

const folder = tempFolder();
const newQueue = shareRedis();
let port = 0;
let sandbox: Awaited<ReturnType<typeof openSandboxHere>>;

beforeAll(async () => {
  port = await findFreePort();
  const redirectUrl = [`http://127.0.0.1:${port}/connect/callback`, 'http://127.0.0.1:8976/callback'];
  sandbox = await openSandboxHere(join(folder, 'sandbox'), { redirectUrl });
});
afterAll(() => sandbox.close());

const killAfter = (rename: string) => ({
  KILL_AFTER_RENAME: rename,
  NODE_OPTIONS: `--import ${fileURLToPath(new URL('../support/kill-at-rename.mjs', import.meta.url))}`,
});

/** A data folder with what its commands are told, and the sign-in that is kept there. */
function open(name: string, more: Record<string, string> = {}) {
  const data = join(folder, name);
  const env = {
    RINGNECK_DATA: data,
    RINGNECK_SERVICE_URL: sandbox.url,
    RINGNECK_CLIENT_ID: sandbox.client.id,
    RINGNECK_CLIENT_SECRET: sandbox.client.secret,
    RINGNECK_PUBLIC_URL: `http://127.0.0.1:${port}`,
    RINGNECK_PORT: String(port),
    RINGNECK_STUDY_NAME: 'The Night',
    RINGNECK_STUDY_CONTACT: 'night@example.org',
    RINGNECK_HISTORY_DAYS: '1',
    ...newQueue(),
    ...more,
  };
  const startUp = async (also: Record<string, string> = {}) => {
    const up = startRingneck(['up'], { env: { ...env, ...also } });
    await up.said('"msg":"up"');
    return up;
  };
  const end = async (up: Awaited<ReturnType<typeof startUp>>) => {
    up.kill('SIGTERM');
    expect((await up.end()).code).toBe(0);
  };
  const secrets = new Secrets({ folder: data, address: sandbox.url });
  const tokenOf = (user: string) => secrets.find(user) ?? '';
  const accounts = async () => {
    const listed: Record<string, string>[] = JSON.parse((await runHere(['account', 'list', '--json'], { env })).stdout);
    return listed.map(({ user_id, state }) => [user_id, state]);
  };
  return { env, startUp, end, secrets, tokenOf, accounts };
}

const askWith = async (token: string) =>
  (await fetch(`${sandbox.url}/v2/usercollection/personal_info`, { headers: { authorization: `Bearer ${token}` } })).status;

async function enrol(link: string, person: string) {
  const browser = new Browser();
  const sent = await browser.submit(await browser.open(link));
  return browser.open(await fillIn(sent.location ?? '', person));
}

const LEFT = (name: string) => expect.stringContaining(`${name} has a token, a sign-in or a token for the mirror, and is no account`);

test('a login that is killed between its tokens and its account is told by doctor, and the next one ends what is left of it', async () => {
  const { env, startUp, end, tokenOf, accounts } = open('login');
  const login = () => runHere(['account', 'login', 'ada', '--no-browser'], { env, input: personAt('ada') });
  const killed = await startUp(killAfter('accounts.secret 1'));
  expect((await login()).code).not.toBe(0);
  expect((await killed.end()).code).toBe('SIGKILL');
  const left = tokenOf('ada');
  const up = await startUp();
  expect([await askWith(left), await accounts()]).toEqual([200, []]);
  expect((await runHere(['doctor'], { env })).stdout).toEqual(LEFT('ada'));
  expect(await login()).toMatchObject({ code: 0, stdout: expect.stringContaining('ada active\n') });
  expect([await askWith(left), await askWith(tokenOf('ada')), await accounts()]).toEqual([401, 200, [['ada', 'active']]]);
  await end(up);
});

test('an invitation that is killed between its tokens and its account can be used again, and ends what is left', async () => {
  const { env, startUp, end, tokenOf, accounts } = open('invitation');
  const killed = await startUp(killAfter('accounts.secret 1'));
  const { url } = JSON.parse((await runHere(['account', 'invite', 'p01', '--json'], { env })).stdout);
  await expect(enrol(url, 'ben')).rejects.toThrow();
  expect((await killed.end()).code).toBe('SIGKILL');
  const left = tokenOf('p01');
  const up = await startUp();
  expect([await askWith(left), await accounts()]).toEqual([200, []]);
  expect((await enrol(url, 'ben')).title).toBe('Thank you');
  expect([await askWith(left), await askWith(tokenOf('p01')), await accounts()]).toEqual([401, 200, [['p01', 'active']]]);
  await end(up);
});

test('told to end while a withdrawal waits for the service, up waits for it and leaves no access there', async () => {
  let answer: () => void = () => undefined;
  const answered = new Promise<void>(resolve => {
    answer = resolve;
  });
  const asked: string[] = [];
  const slow = createServer(async (request, response) => {
    const { url = '', method = 'GET', headers } = request;
    asked.push(url.split('?')[0] ?? '');
    if (url.startsWith('/oauth/revoke')) await answered;
    const body = method === 'POST' ? Buffer.concat(await request.toArray()) : undefined;
    const given = await fetch(`${sandbox.url}${url}`, { method, body, headers: { 'content-type': headers['content-type'] ?? '' } });
    response.writeHead(given.status, { 'content-type': given.headers.get('content-type') ?? 'text/plain' }).end(await given.text());
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void slow.close());
  await once(slow, 'listening');
  const { port: slowPort } = slow.address() as { port: number };
  const { env, startUp, secrets, tokenOf } = open('withdrawal', { RINGNECK_TOKEN_URL: `http://127.0.0.1:${slowPort}/oauth/token` });
  const up = await startUp();
  const { url } = JSON.parse((await runHere(['account', 'invite', 'p02', '--json'], { env })).stdout);
  const link = withdrawLinkOf(await enrol(url, 'ada'));
  const token = tokenOf('p02');
  const withdrawing = new Browser().open(link, { method: 'POST' }).catch(() => undefined);
  await up.said('a person has withdrawn');
  await until('the service is asked', () => asked.includes('/oauth/revoke'));
  up.kill('SIGTERM');
  await up.said('sign-ins are being made, renewed or taken back, which is waited for');
  answer();
  expect((await up.end()).code).toBe(0);
  await withdrawing;
  expect([await askWith(token), secrets.names(), secrets.listEnded()]).toEqual([401, [], []]);
});

test('key rotate that is killed after any file is put in its place loses nobody’s tokens, and is finished by the next', async () => {
  const { env, secrets } = open('rotated');
  const added = await ringneck(['account', 'add', 'ada'], { env, input: sandbox.people[0]?.token ?? '' });
  expect(added.code).toBe(0);
  const token = secrets.find('ada');
  const codes: unknown[] = [];
  for (let n = 1; codes.at(-1) !== 0; n++) {
    codes.push((await ringneck(['key', 'rotate'], { env: { ...env, ...killAfter(`* ${n}`) } })).code);
    expect(new Secrets({ folder: env.RINGNECK_DATA, address: sandbox.url }).find('ada')).toBe(token);
  }
  expect(codes.slice(0, -1)).toEqual(Array(codes.length - 1).fill('SIGKILL'));
  expect(codes.length).toBeGreaterThan(3);
});
