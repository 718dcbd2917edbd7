import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { checkAccounts } from '../../src/app/doctor/accounts.ts';
import { type CheckResult, runCheck } from '../../src/app/doctor/check-result.ts';
import { checkClient } from '../../src/app/doctor/client.ts';
import { checkDocuments } from '../../src/app/doctor/documents.ts';
import { checkDisk, checkFolder, checkInbox, checkUnreadable } from '../../src/app/doctor/folder.ts';
import { checkQueue } from '../../src/app/doctor/queue.ts';
import { checkCallback, checkInvitations, checkService } from '../../src/app/doctor/service.ts';
import { checkSettings } from '../../src/app/doctor/settings.ts';
import { checkSnapshot } from '../../src/app/doctor/snapshot.ts';
import { checkWarehouse } from '../../src/app/doctor/warehouse.ts';
import { readSettings, type Settings } from '../../src/base/config.ts';
import { freePort, hasRedis, startRedis } from '../queue/redis-server.ts';
import { startAuthorizationServer } from '../sign-in/authorization-server.ts';
import { SUBSCRIPTIONS } from '../support/declared.ts';
import { openHarness } from '../support/harness.ts';
import { openListeningHarness, TOKENS } from '../support/listening-harness.ts';
import { runHere } from '../support/run-here.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse, resourceNamed, withDuckDB } from '../support/warehouse.ts';

const folder = tempFolder();
let folders = 0;
const newFolder = () => join(folder, `d${++folders}`);

/** What was found, without how to fix it; what is wrong must say that. */
function said(results: readonly CheckResult[]): string[] {
  for (const { state, fix } of results) expect(state === 'ok').toBe(fix === null);
  return results.map(({ check, state, message }) => `${state} ${check}: ${message}`);
}

/** A server whose answers are typed by hand. */
async function serve(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const run = async (env: Record<string, string>) => {
  const { code, stdout, stderr } = await runHere(['doctor', '--json'], { env });
  expect(`${stdout}${stderr}`).not.toMatch(/not-for-logs|token-of-ada/);
  const { state, results } = JSON.parse(stdout) as { state: string; results: CheckResult[] };
  return { code, state, results: said(results), stderr };
};

test('all is well where all is well, through the control socket of a running owner', async () => {
  const { harness, manager, receiver, env } = await openListeningHarness(newFolder(), { queue: 'embedded' });
  chmodSync(env.RINGNECK_DATA!, 0o700);
  await harness.add([{ name: 'ada', token: TOKENS.person }]);
  await harness.backfill({ last: 3 });
  manager.start();
  await manager.ensure();
  const { code, state, results, stderr } = await run(env);
  expect(results).toEqual([
    'ok settings: all are understood',
    `ok folder: ${env.RINGNECK_DATA} is writable`,
    `ok owner: ${env.RINGNECK_DATA} is owned by a running ringneck (PID ${process.pid})`,
    expect.stringMatching(/^(ok|warn) disk: [\d,]+ MB free$/),
    'ok clock: our clock agrees with the service’s',
    'ok queue: embedded, answers its owner',
    `ok service: ${env.RINGNECK_SERVICE_URL} answers`,
    'ok accounts: 1 of 1 accounts are well',
    `ok callback: ${env.RINGNECK_CALLBACK_URL!.replace(/\?.*/, '')} returns the challenge, and refuses a wrong token`,
    `ok subscriptions: all ${SUBSCRIPTIONS} are at the service`,
    'ok warehouse: no row is there twice, and every document has its samples',
    'ok snapshot: there is none yet: ringneck snapshot publishes one, ringneck up keeps one',
  ]);
  expect([code, stderr]).toEqual([0, '']);
  expect(['ok', 'warn']).toContain(state);
  // Its own try of a wrong token is nobody's attack.
  expect(receiver.refusals()).toEqual({});
});

test('what is wrong is said with how to fix it, and the exit code is 1', async () => {
  const { harness, webhooks, manager, receiver, env } = await openListeningHarness(newFolder());
  await harness.add([
    { name: 'ada', token: TOKENS.person },
    { name: 'ben', token: 'nobody-knows-it' },
  ]);
  await harness.commands.resumeAccounts({ names: ['ben'] });
  manager.start();
  await manager.ensure();
  const [first] = webhooks.subscriptions.list(webhooks.client.id);
  webhooks.subscriptions.cancel(webhooks.client.id, first!.id);
  await receiver.close();
  const { code, state, results } = await run({ ...env, RINGNECK_SIGNATURE_WINDOWS: '1' });
  expect([code, state]).toEqual([1, 'fail']);
  expect(results).toEqual(
    expect.arrayContaining([
      'warn settings: RINGNECK_SIGNATURE_WINDOWS is not a setting: did you mean RINGNECK_SIGNATURE_WINDOW?',
      expect.stringMatching(/^fail accounts: the service refuses ben \(GET .*answered 401/),
      expect.stringMatching(/^fail callback: .* gives no answer \(ECONNREFUSED\)$/),
      `fail subscriptions: 1 of ${SUBSCRIPTIONS} are missing: ${first!.event_type} ${first!.data_type} (they were never made, or were lost)`,
    ]),
  );
});

test('days before today that nobody has read are told of, with the accounts', async () => {
  const { harness, env } = await openListeningHarness(newFolder());
  const names = ['ada', 'ben', 'cleo', 'dan', 'eve', 'fay', 'gus'];
  await harness.keep(names.map(name => ({ name, token: TOKENS.person })));
  const day = (before: number) => new Date(Date.now() - before * 86_400_000).toISOString().slice(0, 10);
  await harness.backfill({ users: names, collections: ['sleep', 'heart_rate'], from: day(20), to: day(15) });
  await harness.backfill({ users: names, collections: ['sleep', 'heart_rate'], last: 4 });
  const { results } = await run(env);
  expect(results.filter(said => said.includes(' days:'))).toEqual([
    'warn days: days of collections lie before today that were never read to their end, or failed when last read: 24 of ada, 24 of ben, 24 of cleo, 24 of dan, 24 of eve, those of 2 others',
  ]);
  const { stdout } = await runHere(['status'], { env });
  expect(stdout).toMatch(new RegExp(`\n  sleep +holes .* 12 days are unread, or failed when last read, from ${day(14)} to ${day(3)}\n`));
  expect(stdout).toContain('\nWhat is missing is read by: ringneck coverage --repair\n');
});

test('without up it looks into the folder itself, and leaves it free', async () => {
  const { manager, env, leave } = await openListeningHarness(newFolder());
  await manager.remove({ onNextEvent: false });
  await leave();
  const { code, results } = await run(env);
  expect(results).toEqual(
    expect.arrayContaining([
      'warn owner: no `ringneck up` is running: no event is taken',
      'warn accounts: there is no account yet',
      'warn subscriptions: they were removed by command and are not made again',
      'ok warehouse: no row is there twice, and every document has its samples',
    ]),
  );
  expect(code).toBe(0);
  expect((await run({ RINGNECK_DATA: env.RINGNECK_DATA! })).results).toEqual(
    expect.arrayContaining([
      'fail settings: RINGNECK_SERVICE_URL is not set: there is nobody to ask',
      'ok settings: webhooks are not configured: changes are found by sweeps',
      'ok owner: nobody has the folder now',
    ]),
  );
});

test('where the client is set, an account without a token is told to sign in', async () => {
  const url = `http://127.0.0.1:${await freePort()}`;
  const { signIn } = readSettings({ RINGNECK_SERVICE_URL: url, RINGNECK_CLIENT_ID: 'id', RINGNECK_CLIENT_SECRET: 'secret' });
  const harness = await openHarness(newFolder(), url, { settings: { signIn } });
  await harness.keep([{ name: 'dan', token: 'token-of-dan' }]);
  harness.app.secrets.remove('dan');
  expect(await checkAccounts(harness.app, url)).toContainEqual({
    check: 'accounts',
    state: 'fail',
    message: 'dan has no token for this service (no token: ringneck account login dan)',
    fix: 'ringneck account login dan',
  });
});

test('while the service gives no answer no account is tried, and one line says so', async () => {
  const url = `http://127.0.0.1:${await freePort()}`;
  const harness = await openHarness(newFolder(), url);
  await harness.add(['ada', 'ben', 'cleo', 'dan'].map(name => ({ name, token: `token-of-${name}` })));
  await harness.commands.pauseAccount({ name: 'cleo' });
  harness.app.secrets.remove('dan');
  expect(said(await checkAccounts(harness.app, url))).toEqual([
    'fail accounts: not tried: the service gives no answer (ECONNREFUSED)',
    'fail accounts: dan has no token for this service (no token: ringneck account add dan)',
  ]);
});

test('subscriptions are not tried where the service gives no answer, and a client that is refused is told what to check', async () => {
  const { env, leave } = await openListeningHarness(newFolder());
  await leave();
  const found = async (changes: Record<string, string>) => {
    const { stdout } = await runHere(['doctor', '--json'], { env: { ...env, ...changes } });
    return (JSON.parse(stdout).results as CheckResult[]).filter(({ check }) => check === 'subscriptions');
  };
  expect(await found({ RINGNECK_SERVICE_URL: `http://127.0.0.1:${await freePort()}` })).toEqual([
    {
      check: 'subscriptions',
      state: 'fail',
      message: 'not tried: the service gives no answer (ECONNREFUSED)',
      fix: 'see what is said of the service',
    },
  ]);
  expect(await found({ RINGNECK_CLIENT_SECRET: 'not-the-secret-of-this-client' })).toEqual([
    {
      check: 'subscriptions',
      state: 'fail',
      message: expect.stringMatching(/^GET \S+: answered 401: check RINGNECK_CLIENT_ID and RINGNECK_CLIENT_SECRET/),
      fix: 'do what it says',
    },
  ]);
});

test('why subscriptions cannot be made is told in the service’s own words', async () => {
  const { manager, receiver, env } = await openListeningHarness(newFolder());
  manager.start();
  await receiver.close();
  await manager.ensure();
  const { results } = await run(env);
  const callback =
    'the service could not verify our callback: check RINGNECK_CALLBACK_URL, the reverse proxy and RINGNECK_VERIFICATION_TOKEN';
  expect(results.filter(said => said.includes(' subscriptions: '))).toEqual([
    expect.stringMatching(
      new RegExp(
        `^fail subscriptions: ${SUBSCRIPTIONS} of ${SUBSCRIPTIONS} are missing: .* \\(${callback} .* \\(it says: .*ECONNREFUSED.*\\)\\)$`,
      ),
    ),
  ]);
});

test('a client is tried with a code that nobody gave, and the half of it is named that is wrong', async () => {
  const server = await startAuthorizationServer();
  const { settings } = server;
  const { tokenUrl, clientId } = settings;
  const refused = `fail client: ${tokenUrl} refuses the client:`;
  expect(said(await checkClient(settings))).toEqual([`ok client: ${tokenUrl} takes the client`]);
  expect(said(await checkClient({ ...settings, clientSecret: 'another' }))).toEqual([
    `${refused} ${clientId} is known there, and the secret is wrong (it says: client authentication failed)`,
  ]);
  expect(said(await checkClient({ ...settings, clientId: 'nobody' }))).toEqual([
    `${refused} the service knows no client nobody (it says: client authentication failed)`,
  ]);
  // The page refuses also who gives a redirect address that is not registered.
  const redirectUrl = `${settings.redirectUrl}/another`;
  expect(said(await checkClient({ ...settings, redirectUrl, clientSecret: 'another' }))).toEqual([
    `${refused} the id or the secret is wrong (it says: client authentication failed)`,
  ]);
  // A sign-in page that shows itself to any client tells nothing of this one.
  const authorizeUrl = await serve((_, response) => response.end('<p>Who are you?'));
  expect(said(await checkClient({ ...settings, authorizeUrl, clientSecret: 'another' }))).toEqual([
    `${refused} the id or the secret is wrong (it says: client authentication failed)`,
  ]);
  server.fault = { status: 503, body: '<html>', type: 'text/html' };
  expect(said(await checkClient(settings))).toEqual([
    `warn client: it is not known whether the service takes the client: ${tokenUrl} answered 503, which is no answer to a request for tokens`,
  ]);
  server.fault = { status: 400, body: '{"error":"invalid_request","error_description":"code_verifier is unknown"}' };
  expect(said(await checkClient(settings))).toEqual([
    `warn client: it is not known whether the service takes the client: ${tokenUrl} answered 400, and does not say whether it takes the client: is RINGNECK_TOKEN_URL right? (it says: invalid_request: code_verifier is unknown)`,
  ]);
});

test('wrong settings are a result, and the only one; a missing folder is not made', async () => {
  const data = newFolder();
  const wrong = await run({ RINGNECK_DATA: data, RINGNECK_PORT: 'x', RINGNECK_CLIENT_ID: 'y' });
  expect(wrong).toMatchObject({ code: 1, state: 'fail' });
  expect(wrong.results).toEqual([expect.stringMatching(/^fail settings: Wrong settings\. .*webhooks need all four\.$/)]);
  const { results } = await run({ RINGNECK_DATA: data });
  expect(results).toContain(`warn folder: ${data} does not exist yet`);
  expect(said(checkFolder(data))).toEqual([`warn folder: ${data} does not exist yet`]);
});

test('as text each result is a line, and below it how to fix it', async () => {
  const data = newFolder();
  const { code, stdout } = await runHere(['doctor'], { env: { RINGNECK_DATA: data } });
  expect(code).toBe(1);
  const lines = stdout.split('\n');
  expect(lines.slice(0, 2)).toEqual([
    'fail  settings  RINGNECK_SERVICE_URL is not set: there is nobody to ask',
    '                → ringneck init asks for it and writes .env; or set it to the base address of the service, as http://127.0.0.1:4000',
  ]);
  expect(lines).toContain(`warn  folder    ${data} does not exist yet`);
});

test('a folder that others may look into, or that is none', () => {
  const data = newFolder();
  mkdirSync(data, { mode: 0o700 });
  chmodSync(data, 0o755);
  writeFileSync(join(data, 'secret.key'), 'x');
  chmodSync(join(data, 'secret.key'), 0o644);
  const results = checkFolder(data);
  expect(said(results)).toEqual([
    `ok folder: ${data} is writable`,
    `warn folder: ${data} is open to others (0755)`,
    'warn folder: secret.key is open to others (0644)',
  ]);
  expect(results[2]!.fix).toBe(`chmod go= ${data}/secret.key`);
  expect(said(checkFolder(join(data, 'secret.key')))).toEqual([`fail folder: ${data}/secret.key is not a folder`]);
  expect(said(checkDisk(data))[0]).toMatch(/^\w+ disk: [\d,]+ MB free/);
});

test('settings that are allowed and still hardly meant', () => {
  const env = {
    RINGNECK_SERVICE_URL: 'https://api.example.com',
    RINGNECK_CALLBACK_URL: 'http://example.org/webhook?key=not-for-logs',
    RINGNECK_CLIENT_ID: 'a',
    RINGNECK_CLIENT_SECRET: 'b',
    RINGNECK_VERIFICATION_TOKEN: 'c',
  };
  expect(said(checkSettings(readSettings({ ...env, RINGNECK_SIGNATURE_WINDOW: '0' })))).toEqual([
    'warn settings: events come to http://example.org/webhook unencrypted',
    'warn settings: RINGNECK_SIGNATURE_WINDOW is 0: an old event that is sent again is taken',
  ]);
  for (const url of ['https://example.org/webhook', 'http://localhost:8080/webhook', 'http://127.0.0.1/', 'http://[::1]:1/']) {
    expect(said(checkSettings(readSettings({ ...env, RINGNECK_CALLBACK_URL: url })))).toEqual(['ok settings: all are understood']);
  }
});

test('the clock is compared with the service’s', async () => {
  const NOON = Date.parse('2025-06-01T12:00:00Z');
  const serviceUrl = await serve((_, response) => response.writeHead(401, { date: 'Sun, 01 Jun 2025 12:00:00 GMT' }).end());
  const webhooks = { callbackUrl: 'x', clientId: 'x', clientSecret: 'x', secrets: [], verificationToken: 'x' };
  const clock = async (now: number, signatureWindow = 300, webhook: typeof webhooks | null = webhooks) =>
    said(await checkService({ serviceUrl, webhooks: webhook, signatureWindow }, () => now))[1];
  expect(await clock(NOON)).toBe('ok clock: our clock agrees with the service’s');
  expect(await clock(NOON + 999)).toBe('ok clock: our clock agrees with the service’s');
  expect(await clock(NOON + 21_000)).toBe('ok clock: our clock is 20 s away from the service’s');
  expect(await clock(NOON - 31_000)).toBe('warn clock: our clock is 31 s away from the service’s');
  expect(await clock(NOON - 301_000)).toBe('fail clock: our clock is 301 s away from the service’s: events are refused beyond 300 s');
  expect(await clock(NOON + 400_000)).toBe('fail clock: our clock is 399 s away from the service’s: events are refused beyond 300 s');
  expect(await clock(NOON + 400_000, 0)).toBe('warn clock: our clock is 399 s away from the service’s');
  expect(await clock(NOON + 400_000, 300, null)).toBe('warn clock: our clock is 399 s away from the service’s');
});

test.each([
  [401, 'application/json', '{"detail":"Unauthorized"}', 'ok service: URL answers'],
  [404, 'application/problem+json', '{"title":"Not found"}', 'warn service: URL answers 404: it does not have personal_info'],
  [200, 'application/json', '{"id":"user-1"}', 'ok service: URL answers'],
  [200, 'text/html', '<html>welcome to our network</html>', 'fail service: URL answers 200, but not in the form of the service'],
  [401, 'text/html', '<html>sign in</html>', 'fail service: URL answers 401, but not in the form of the service'],
  [403, 'text/html', '<html>blocked</html>', 'fail service: URL answers 403, but not in the form of the service'],
  [404, 'application/json', '{"ok":false}', 'fail service: URL answers 404, but not in the form of the service'],
])('a %i of %s with %s', async (status, type, body, expected) => {
  const url = await serve((_, response) => response.writeHead(status, { 'content-type': type }).end(body));
  expect(said(await checkService({ serviceUrl: url, webhooks: null, signatureWindow: 300 }))[0]).toBe(expected.replace('URL', url));
});

test('a service that redirects, is in trouble or is not there', async () => {
  const options = { webhooks: null, signatureWindow: 300 };
  const moved = await serve((_, response) => response.writeHead(301, { location: 'https://example.org' }).end());
  expect(said(await checkService({ serviceUrl: moved, ...options }))[0]).toBe(
    `fail service: ${moved} answers 301, a redirect, which is not followed`,
  );
  const ill = await serve((_, response) => response.writeHead(502).end('<html>'));
  expect(said(await checkService({ serviceUrl: ill, ...options }))[0]).toBe(`fail service: ${ill} answers 502`);
  const nobody = `http://127.0.0.1:${await freePort()}`;
  expect(said(await checkService({ serviceUrl: nobody, ...options }))).toEqual([`fail service: ${nobody} gives no answer (ECONNREFUSED)`]);
});

test.each<[string, RequestListener, string]>([
  ['redirects', (_, response) => response.writeHead(308, { location: '/' }).end(), 'fail invitations: URL answers 308, a redirect'],
  [
    'is another study',
    (_, response) => response.writeHead(404).end('Ask for a new one: Dr. Zoe Example'),
    'fail invitations: URL answers 404, and not with a page of this study',
  ],
  [
    'has a proxy with nobody behind it',
    (_, response) => response.writeHead(502).end('<html>'),
    'fail invitations: URL answers 502, and not with a page of this study',
  ],
  [
    'is as it should be',
    ({ url = '' }, response) =>
      response.writeHead(/^\/connect\/[A-Za-z0-9_-]{43}$/.test(url) ? 404 : 400).end('Ask for a new one: Dr. Ann &lt;ann@example.org&gt;'),
    'ok invitations: URL shows their pages; the service must know URL/connect/callback as a redirect address',
  ],
])('the address of invitations %s', async (_, answer, expected) => {
  const publicUrl = await serve(answer);
  const study = { publicUrl, studyName: 'Nights', studyContact: 'Dr. Ann <ann@example.org>', studyText: undefined };
  expect(said(await checkInvitations(study))).toEqual([expected.replaceAll('URL', publicUrl)]);
});

test.each<[string, RequestListener, string]>([
  [
    'redirects',
    (_, response) => response.writeHead(302, { location: '/' }).end(),
    'fail callback: URL answers 302, a redirect, which the service does not follow',
  ],
  ['has another token', (_, response) => response.writeHead(401).end(), 'fail callback: URL refuses our verification token'],
  ['has another path', (_, response) => response.writeHead(404).end(), 'fail callback: URL answers 404'],
  ['has a proxy with nobody behind it', (_, response) => response.writeHead(502).end('<html>'), 'fail callback: URL answers 502'],
  ['is a page', (_, response) => response.end('<html>'), 'fail callback: URL answers 200 without our challenge'],
  ['is another JSON', (_, response) => response.end('null'), 'fail callback: URL answers 200 without our challenge'],
  ['is endless', (_, response) => response.end(`"${'x'.repeat(1_000_000)}"`), 'fail callback: URL answers 200 without our challenge'],
  [
    'echoes whatever comes',
    (request, response) => response.end(JSON.stringify({ challenge: new URL(request.url!, 'http://x').searchParams.get('challenge') })),
    'fail callback: URL answers 200 to a wrong token, not 401',
  ],
  [
    'is as it should be',
    (request, response) => {
      const query = new URL(request.url!, 'http://x').searchParams;
      if (query.get('verification_token') !== 'word' || query.get('key') !== 'not-for-logs') response.writeHead(401).end();
      else response.end(JSON.stringify({ challenge: query.get('challenge') }));
    },
    'ok callback: URL returns the challenge, and refuses a wrong token',
  ],
])('a callback that %s', async (_, answer, expected) => {
  const url = `${await serve(answer)}/webhook`;
  const webhooks = { callbackUrl: `${url}?key=not-for-logs`, clientId: 'x', clientSecret: 'x', secrets: [], verificationToken: 'word' };
  expect(said(await checkCallback(webhooks))).toEqual([expected.replace('URL', url)]);
});

test('duplicates and samples without documents are counted', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  onTestFinished(() => warehouse.close());
  expect(said(await checkWarehouse(warehouse, 20_000))).toEqual([
    'ok warehouse: no row is there twice, and every document has its samples',
  ]);
  const row = (id: string, sk: number) => ({ user_id: 'ann', id, sk, day: '2025-01-01' });
  const beat = (user_id: string, at: string) => ({
    table: 'heart_rate',
    row: { user_id, ts: Date.parse(at) * 1000, source: 'rest', bpm: 60 },
  });
  await warehouse.record([
    { table: 'daily_sleep', row: row('a', 1) },
    { table: 'daily_sleep', row: row('a', 2) },
    { table: 'daily_sleep', row: { ...row('a', 3), user_id: 'ben' } },
    { table: 'sleep', row: { ...row('n', 4), hrv_count: 1 } },
    { table: 'sleep', row: { ...row('m', 5), hrv_count: 1 } },
    { table: 'sleep_hrv', row: { user_id: 'ann', sk: 5, value: 1 } },
    { table: 'sleep_hrv', row: { user_id: 'ann', sk: 6, value: 1 } },
    beat('ann', '2024-12-31T23:59:00Z'),
    beat('ann', '2025-01-01T00:00:00Z'),
    beat('ann', '2025-01-01T00:00:00Z'),
    beat("o'neill", '2025-01-01T00:00:00Z'),
  ]);
  expect(said(await checkWarehouse(warehouse, 20_000))).toEqual([
    'fail warehouse: 1 documents of daily_sleep are there more than once',
    'fail warehouse: 2 documents of sleep and sleep_hrv disagree on how many samples there are',
    'fail warehouse: 1 measurements of heart_rate of ann in 2025 are there more than once',
  ]);
  expect(said(await checkWarehouse(warehouse, -1))).toEqual([
    expect.stringMatching(/^warn warehouse: only 0 of \d+ counts were done in time$/),
  ]);
});

test('documents that could not be stored, and those that two persons have in common', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  onTestFinished(() => warehouse.close());
  const person = (user_id: string, service_user_id: string | null, state = 'active') => ({
    table: 'sync.accounts',
    key: { user_id },
    row: { service_user_id, state, since: 1 },
  });
  const row = (user_id: string, id: string, sk: number) => ({ user_id, id, sk, day: '2025-01-01' });
  const refused = (user_id: string, collection: string, id: string) => ({
    table: 'sync.rejected',
    key: { user_id, collection, id },
    row: { reason: 'day is missing', document: '{}', fetched_at: 1 },
  });
  await warehouse.record([
    person('ada', 'p1'),
    person('ada-again', 'p1'),
    person('ben', 'p2'),
    person('cleo', null),
    person('dan', 'p3', 'removed'),
    ...['ada', 'ada-again', 'cleo', 'dan'].map((user, i) => ({ table: 'daily_sleep', row: row(user, 'a', i) })),
    ...['ada', 'ben'].flatMap((user, i) => ['s', 't'].map((id, j) => ({ table: 'session', row: row(user, id, 10 + 2 * i + j) }))),
  ]);
  // What a moment tells apart is two people's at one moment.
  const level = { timestamp: '2025-01-01T12:00:00Z', timestamp_unix: 1_735_732_800_000, level: 80 };
  for (const userId of ['ada', 'ben'])
    await warehouse.storeDocuments({
      userId,
      resource: resourceNamed('ring_battery_level'),
      requestedAt: warehouse.clock.lease(),
      documents: [level],
    });
  const common = (one: string, other: string, documents: string) => `warn documents: ${one} and ${other} have ${documents}`;
  expect(said(await checkDocuments({ warehouse }))).toEqual([
    common('ada', 'ben', '2 documents in common (session)'),
    common('ada', 'cleo', '1 documents in common (daily_sleep)'),
    common('ada-again', 'cleo', '1 documents in common (daily_sleep)'),
  ]);
  await warehouse.record([refused('ada', 'vo2_max', 'v1'), refused('ben', 'vo2_max', 'v2'), refused('ben', 'sleep', 'n')]);
  expect(said(await checkDocuments({ warehouse })).slice(0, 1)).toEqual([
    'warn documents: what came could not be stored: 2 of vo2_max (2 accounts), 1 of sleep',
  ]);
});

test('tables of somebody else that have a key or an index', async () => {
  const path = newPath(folder);
  await (await openWarehouse(path)).close();
  await withDuckDB(path, async connection => {
    await connection.run(
      'CREATE TABLE keyed (id INTEGER PRIMARY KEY); CREATE TABLE single (id INTEGER UNIQUE); CREATE TABLE plain (id INTEGER NOT NULL CHECK (id > 0))',
    );
    await connection.run('CREATE TABLE indexed (id INTEGER); CREATE INDEX by_id ON indexed (id)');
  });
  const warehouse = await openWarehouse(path);
  onTestFinished(() => warehouse.close());
  const danger = 'has a key or an index: killed while it replaces many of its rows, this DuckDB can leave a file that no one opens';
  expect(said(await checkWarehouse(warehouse, 20_000)).filter(line => line.includes('index'))).toEqual([
    `warn warehouse: main.indexed ${danger}`,
    `warn warehouse: main.keyed ${danger}`,
    `warn warehouse: main.single ${danger}`,
  ]);
});

test('a snapshot that is old, of another version, damaged or something else', async () => {
  let now = Date.parse('2025-06-01T00:00:00Z');
  const warehouse = await openWarehouse(newPath(folder), { now: () => now });
  onTestFinished(() => warehouse.close());
  const snapshot = join(newFolder(), 'snapshot.duckdb');
  const examine = () =>
    checkSnapshot({ settings: { snapshot, snapshotMode: 0o640 } as Settings, warehouse, snapshots: { failure: undefined } });
  const changed = (at: string) =>
    warehouse.record([{ table: 'sync.windows', row: { user_id: 'ann', committed_at: Date.parse(at) * 1000 } }]);
  expect(said(await examine())).toEqual(['ok snapshot: there is none yet: ringneck snapshot publishes one, ringneck up keeps one']);
  await warehouse.snapshot(snapshot, 0o600);
  expect(said(await examine())).toEqual([expect.stringMatching(`^ok snapshot: ${snapshot} is of 2025-06-01T00:00:00\\S*$`)]);
  chmodSync(snapshot, 0o644);
  expect((await examine()).slice(0, 1)).toMatchObject([
    {
      state: 'warn',
      message: `${snapshot} is open to others (0644), and RINGNECK_SNAPSHOT_MODE is 0640`,
      fix: `chmod 0640 ${snapshot}`,
    },
  ]);
  chmodSync(snapshot, 0o640);
  await changed('2025-06-01T00:09:59Z');
  expect(said(await examine())).toEqual([expect.stringMatching(/^ok snapshot: /)]);
  await changed('2025-06-01T02:00:30Z');
  // Of a time when the clock was wrong: it says nothing.
  expect(said(await examine())).toEqual([expect.stringMatching(/^ok snapshot: /)]);
  now += 3 * 3_600_000;
  expect(said(await examine())).toEqual([
    expect.stringMatching(`^warn snapshot: ${snapshot} is of 2025-06-01T00:00:00\\S*: the warehouse has changed until 120 min after it$`),
  ]);
  await withDuckDB(snapshot, connection => connection.run(`UPDATE sync.snapshot SET program = '0.0.9', declarations = 'others'`));
  expect(said(await examine())).toEqual([`warn snapshot: ${snapshot} was made by another version (0.0.9)`]);
  const damaged = readFileSync(snapshot).subarray(0, 5_000);
  rmSync(snapshot);
  await withDuckDB(snapshot, connection => connection.run('CREATE TABLE theirs (n INTEGER)'));
  expect(said(await examine())).toEqual([`fail snapshot: ${snapshot} is no snapshot`]);
  writeFileSync(snapshot, damaged);
  expect(said(await examine())).toEqual([expect.stringMatching(`^fail snapshot: cannot open ${snapshot}: `)]);
});

test.runIf(hasRedis)('a Redis that would lose jobs, and one that is not there', async () => {
  const careless = await startRedis('--appendonly', 'no', '--maxmemory-policy', 'allkeys-lru');
  onTestFinished(() => careless.remove());
  expect(said(await checkQueue(careless.url))).toEqual([
    expect.stringMatching(/^ok queue: Redis \S+ at 127\.0\.0\.1:\d+ answers$/),
    'warn queue: Redis may forget jobs when it is killed',
    'warn queue: Redis may drop jobs when its memory is full (maxmemory-policy allkeys-lru)',
  ]);
  const port = await freePort();
  expect(said(await checkQueue(`redis://user:not-for-logs@127.0.0.1:${port}`))).toEqual([
    expect.stringMatching(new RegExp(`^fail queue: Redis at 127.0.0.1:${port} gives no answer \\(.*ECONNREFUSED.*\\)$`)),
  ]);
});

test.runIf(hasRedis)('a Redis that went away is to be started again, and ringneck up left alone', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.remove());
  const harness = await openHarness(newFolder(), `http://127.0.0.1:${await freePort()}`, { settings: { queueUrl: redis.url } });
  await harness.app.pipeline();
  await redis.kill();
  const results = (await harness.commands.check({})).filter(({ check }) => check === 'queue');
  expect(results).toEqual([
    {
      check: 'queue',
      state: 'fail',
      message: 'the queue gives no answer; try again',
      fix: 'see to Redis: ringneck up goes on by itself once it answers; what is planned is in the ledger',
    },
  ]);
});

test('a check that does not end, or throws, is a result', async () => {
  expect(said(await runCheck('x', 20, () => new Promise(() => undefined)))).toEqual(['fail x: no answer in 0.02 s']);
  expect(said(await runCheck('x', 20, () => Promise.reject(new Error('why'))))).toEqual(['fail x: why']);
});

test('an inbox that takes nothing, or that held what could not be read, is told of', () => {
  const data = newFolder();
  const inbox = join(data, 'inbox');
  expect(checkInbox(data)).toEqual([]);
  mkdirSync(inbox, { recursive: true });
  expect(said(checkInbox(data))).toEqual([`ok inbox: ${inbox} is writable`]);
  writeFileSync(join(inbox, '0000000007.journal.damaged'), '');
  expect(said(checkInbox(data))).toEqual([
    `ok inbox: ${inbox} is writable`,
    `warn inbox: ${join(inbox, '0000000007.journal.damaged')} holds lines that cannot be read: events in them may have been acknowledged, and are lost`,
  ]);
  expect(said([...checkUnreadable(0), ...checkUnreadable(2)])).toEqual([
    'warn inbox: 2 lines of the inbox cannot be read: events in them may have been acknowledged, and are lost',
  ]);
  rmSync(inbox, { recursive: true });
  writeFileSync(inbox, '');
  expect(said(checkInbox(data))).toEqual([expect.stringMatching(/^fail inbox: .*\/inbox cannot be written to: ENOTDIR/)]);
});
