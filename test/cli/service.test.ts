import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { hasRedis, type RedisServer, startRedis } from '../queue/redis-server.ts';
import { ringneck, startRingneck } from '../support/ringneck.ts';
import { runHere } from '../support/run-here.ts';
import type { SandboxProcess } from '../support/sandbox-process.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
let folders = 0;
let redis: RedisServer | undefined;
// With the embedded queue, which others show, each start takes half a second more.
beforeAll(async () => {
  if (hasRedis) redis = await startRedis();
});
afterAll(() => redis?.remove());
const newEnv = () => ({
  RINGNECK_DATA: join(folder, `d${++folders}`),
  RINGNECK_LOG_LEVEL: 'warn',
  ...(redis ? { RINGNECK_QUEUE_URL: redis.url } : {}),
});
const OPTIONS = ['--people', '2', '--seed', '7', '--from', '2025-01-01', '--to', '2025-01-10', '--port', '0'];

/** Starts it, reads its first line, and ends it. */
async function visit(env: Record<string, string>, args: readonly string[]) {
  const service = startRingneck(['service', ...args], { env });
  const first = await service.line();
  return {
    first,
    service,
    async end() {
      service.kill('SIGTERM');
      return service.end();
    },
  };
}

const status = async (url: string, token: string) =>
  (
    await fetch(`${url}/v2/usercollection/daily_sleep?start_date=2025-01-02&end_date=2025-01-03`, {
      headers: { authorization: `Bearer ${token}` },
    })
  ).status;

const post = (url: string, fields: Record<string, string>) =>
  fetch(url, { method: 'POST', body: new URLSearchParams(fields), redirect: 'manual' });

/** What the client is told when somebody allows it to read the values of a day. */
async function signIn({ client, sign_in }: SandboxProcess, person: string): Promise<Record<string, string>> {
  const [redirect_uri = ''] = sign_in.redirect_urls;
  const asked = { client_id: client.id, redirect_uri, response_type: 'code', scope: 'daily' };
  const { headers } = await post(sign_in.authorize_url, { ...asked, person, grant: 'daily', decision: 'allow' });
  return Object.fromEntries(new URL(headers.get('location') ?? '').searchParams);
}

test('one line of JSON, the tokens at the first start only, and new ones when asked for', async () => {
  const env = newEnv();
  const first = await visit(env, [...OPTIONS, '--json']);
  const made = JSON.parse(first.first);
  expect(Object.keys(made)).toEqual(['url', 'people', 'client', 'sign_in', 'control']);
  expect(made.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  expect(made.people).toEqual([
    { name: 'ada', user_id: expect.stringMatching(/^[0-9a-f-]{36}$/), token: expect.stringMatching(/^rn_[\w-]{43}$/) },
    { name: 'ben', user_id: expect.stringMatching(/^[0-9a-f-]{36}$/), token: expect.stringMatching(/^rn_[\w-]{43}$/) },
  ]);
  expect(made.client).toEqual({ id: expect.stringMatching(/^[0-9a-f-]{36}$/), secret: expect.any(String) });
  expect(made.sign_in).toEqual({
    authorize_url: `${made.url}/oauth/authorize`,
    token_url: `${made.url}/oauth/token`,
    revoke_url: `${made.url}/oauth/revoke`,
    redirect_urls: ['http://127.0.0.1:8976/callback', 'http://127.0.0.1:8080/connect/callback'],
  });
  expect(made.control).toEqual({
    url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/control$/),
    secret: expect.stringMatching(/^rc_[\w-]{43}$/),
  });
  const token = made.people[0].token;
  expect(await status(made.url, token)).toBe(200);
  const { code = '' } = await signIn(made, made.people[0].user_id);
  const credentials = { client_id: made.client.id, client_secret: made.client.secret };
  const exchange = { ...credentials, grant_type: 'authorization_code', code, redirect_uri: made.sign_in.redirect_urls[0] };
  const granted = JSON.parse(await (await post(made.sign_in.token_url, exchange)).text());
  expect([granted.expires_in, granted.scope, await status(made.url, granted.access_token)]).toEqual([86_400, 'daily', 200]);
  expect([(await post(made.sign_in.revoke_url, { token })).status, await status(made.url, token)]).toEqual([200, 200]);
  expect(await first.end()).toEqual({ code: 0, stdout: `${first.first}\n`, stderr: '' });

  const studys = ['--redirect-url', 'https://study.example.org/back', '--people-limit', '1', '--token-life', '7200', '--time-scale', '2'];
  const second = await visit(env, ['--port', '0', '--json', ...studys]);
  const again = JSON.parse(second.first);
  expect(again.people).toEqual(made.people.map((person: object) => ({ ...person, token: null })));
  expect([again.client.secret, again.control.secret]).toEqual([null, null]);
  expect(await status(again.url, token)).toBe(200);
  expect(again.sign_in.redirect_urls).toEqual(['https://study.example.org/back']);
  expect(await signIn(again, made.people[1].user_id)).toMatchObject({ error: 'access_denied' });
  expect(await status(again.url, granted.access_token)).toBe(200);
  const refresh = { ...credentials, grant_type: 'refresh_token', refresh_token: granted.refresh_token };
  const refreshed = JSON.parse(await (await post(again.sign_in.token_url, refresh)).text());
  expect(refreshed).toMatchObject({ expires_in: 3600, scope: 'daily' });
  const statuses = [];
  for (const state of ['active', 'lapsed', 'active', 'expired', 'active']) {
    const headers = { authorization: `Bearer ${made.control.secret}`, 'content-type': 'application/json' };
    await fetch(`${again.control.url}/token`, { method: 'POST', headers, body: JSON.stringify({ person: 'ada', state }) });
    statuses.push([state, await status(again.url, token), await status(again.url, refreshed.access_token)]);
  }
  // What has expired stays so until it is refreshed.
  expect(statuses).toEqual([
    ['active', 200, 200],
    ['lapsed', 403, 403],
    ['active', 200, 200],
    ['expired', 401, 401],
    ['active', 200, 401],
  ]);
  await second.end();

  const third = await visit(env, [...OPTIONS, '--json', '--new-tokens']);
  const renewed = JSON.parse(third.first);
  expect(renewed.people[0].token).toMatch(/^rn_/);
  expect(renewed.control.secret).toMatch(/^rc_/);
  expect(renewed.control.secret).not.toBe(made.control.secret);
  expect([await status(renewed.url, token), await status(renewed.url, refreshed.access_token)]).toEqual([401, 401]);
  expect(await status(renewed.url, renewed.people[0].token)).toBe(200);
  await third.end();

  for (const [option, value, stored] of [
    ['--people', '3', '2'],
    ['--seed', '8', '7'],
    ['--from', '2024-12-01', '2025-01-01'],
  ] as const) {
    const other = await runHere(['service', ...OPTIONS, option, value], { env });
    expect([other.code, other.stdout]).toEqual([2, '']);
    expect(other.stderr).toMatch(new RegExp(`^ringneck: ${option} is ${value}, but .*state\\.json was made with ${stored}; .*\n$`));
  }
});

test('rate limits are as it is told, in real time, and it needs no settings of a callback', async () => {
  const env = { ...newEnv(), RINGNECK_CLIENT_ID: 'client-1', RINGNECK_CLIENT_SECRET: 'secret-1' };
  const limits = ['--rate-limit', '2/300', '--app-rate-limit', 'off', '--clock-speed', '10000'];
  const { first, end } = await visit(env, [...OPTIONS, '--json', ...limits]);
  const { url, people } = JSON.parse(first);
  const statuses = [];
  for (const who of [0, 0, 0, 1]) statuses.push(await status(url, people[who].token));
  // A minute of the people's passes in 6 ms.
  await new Promise(resolve => setTimeout(resolve, 50));
  expect([...statuses, await status(url, people[0].token)]).toEqual([200, 200, 429, 200, 429]);
  await end();

  const { first: again, end: endAgain } = await visit(env, ['--port', '0', '--json', '--rate-limit', 'off', '--app-rate-limit', '1/300']);
  const { url: newUrl } = JSON.parse(again);
  expect([await status(newUrl, people[0].token), await status(newUrl, people[1].token)]).toEqual([200, 429]);
  await endAgain();
});

test('up wants the settings of webhooks whole', async () => {
  const env = {
    ...newEnv(),
    RINGNECK_CLIENT_ID: 'client-1',
    RINGNECK_CLIENT_SECRET: 'secret-1',
    RINGNECK_CALLBACK_URL: 'http://127.0.0.1:8080/webhook',
  };
  const { code, stderr } = await runHere(['up'], { env });
  expect([code, stderr]).toEqual([2, expect.stringContaining('RINGNECK_VERIFICATION_TOKEN: not set')]);
});

test('for people the tokens are a table, and a second service in the folder is told who has it', async () => {
  const env = newEnv();
  const { first, service, end } = await visit(env, OPTIONS);
  expect(first).toMatch(/^name +user_id +token$/);
  while (!/account login ada\n/.test(service.stdout)) await service.line();
  expect(service.stdout).toMatch(
    /^name .*\nada +[0-9a-f-]{36} +rn_\S+\nben +\S+ +rn_\S+\n\nclient [0-9a-f-]{36}, secret \S+\nsign-in http:\/\/\S+\/oauth\/authorize, tokens http:\/\/\S+\/oauth\/token, back to http:\/\/127\.0\.0\.1:8976\/callback or http:\/\/127\.0\.0\.1:8080\/connect\/callback\ncontrol http:\/\/127\.0\.0\.1:\d+\/control, secret rc_\S+\nserving at http:\/\/127\.0\.0\.1:\d+, described at http:\S+\/docs\n\nTo follow it from another terminal \(`ringneck up` listens there\):\n {2}export RINGNECK_SERVICE_URL=http:\S+\n {2}export RINGNECK_CLIENT_ID=\S+\n {2}export RINGNECK_CLIENT_SECRET=\S+\n {2}export RINGNECK_REDIRECT_URL=http:\/\/127\.0\.0\.1:8976\/callback\n {2}export RINGNECK_CALLBACK_URL=http:\/\/127\.0\.0\.1:8080\/webhook\n {2}export RINGNECK_VERIFICATION_TOKEN=\S+\nand to sign in as ada, or another of them: ringneck account login ada\n$/,
  );
  const refused =
    'Webhooks alone need more: the service refuses a callback on this machine until it is started again with --allow-callback 127.0.0.0/8.\n';
  await service.said(refused);
  expect(await ringneck(['service', ...OPTIONS], { env })).toMatchObject({
    code: 75,
    stdout: '',
    stderr: expect.stringContaining(`is in use by the service with PID ${service.process.pid}`),
  });
  expect((await end()).code).toBe(0);
  const again = await visit(env, OPTIONS);
  while (!again.service.stdout.includes('serving at')) await again.service.line();
  await again.service.said('--new-tokens replaces them');
  expect(again.service.stderr).not.toContain(refused);
  expect(again.service.stdout).toMatch(/\nada +\S+ +\(as before\)\n/);
  expect(again.service.stdout).toMatch(/\ncontrol http:\S+, secret \(as before\)\n/);
  await again.end();
});

test('the callback that it shows is refused unless callbacks may lie there, and what it says then opens it', async () => {
  const env = newEnv();
  const settingOf = (text: string, name: string) => new RegExp(`export ${name}=(\\S+)`).exec(text)![1]!;
  const first = await visit(env, [...OPTIONS, '--allow-callback', '10.0.0.0/8']);
  while (!first.service.stdout.includes('VERIFICATION_TOKEN')) await first.service.line();
  await first.service.said('until it is started again with ');
  const subscribe = async (text: string) => {
    const answer = await fetch(`${settingOf(text, 'RINGNECK_SERVICE_URL')}/v2/webhook/subscription`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-client-id': settingOf(text, 'RINGNECK_CLIENT_ID'),
        'x-client-secret': settingOf(text, 'RINGNECK_CLIENT_SECRET'),
      },
      body: JSON.stringify({
        callback_url: settingOf(text, 'RINGNECK_CALLBACK_URL'),
        verification_token: 'word',
        event_type: 'create',
        data_type: 'sleep',
      }),
    });
    return answer.text();
  };
  expect(await subscribe(first.service.stdout)).toContain('not public');
  await first.end();
  const advised = / until it is started again with (.*)\.\n/.exec(first.service.stderr)![1]!.split(' ');
  const second = await visit(env, [...OPTIONS, ...advised, '--new-tokens']);
  while (!second.service.stdout.includes('VERIFICATION_TOKEN')) await second.service.line();
  // Whether or not somebody listens there: it is called.
  const answer = await subscribe(second.service.stdout);
  expect(answer).toContain('callback');
  expect(answer).not.toContain('not public');
  expect((await second.end()).stderr).not.toContain('refuses');
});

/** A port that is in use until the test ends. */
async function takePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await new Promise(resolve => server.once('listening', resolve));
  return (server.address() as { port: number }).port;
}

test('a port that is in use is one line, leaves the folder free, and the tokens of a first start unmade until they can be shown', async () => {
  const env = newEnv();
  const port = await takePort();
  const refused = {
    code: 1,
    stdout: '',
    stderr: `ringneck: cannot listen at 127.0.0.1:${port} (the port is in use); --port chooses another place\n`,
  };
  expect(await ringneck(['service', ...OPTIONS.slice(0, -1), String(port)], { env })).toEqual(refused);
  const controlPort = await runHere(['service', ...OPTIONS, '--json', '--control-port', String(port)], { env });
  expect(controlPort).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/; --control-port chooses another place\n$/) });
  const service = await visit(env, [...OPTIONS, '--json']);
  const { people, client, control } = JSON.parse(service.first);
  const shown = [people[0].token, people[1].token, client.secret, control.secret];
  expect(shown).toEqual(Array.from({ length: 4 }, () => expect.stringMatching(/^r[ncs]_/)));
  await service.end();
});

test('what was made and could not be shown is told of, as JSON too', async () => {
  const port = await takePort();
  const told = 'Tokens or secrets were made but not shown: start with --new-tokens, which makes and shows new ones.\n';
  const env = newEnv();
  await (await visit(env, [...OPTIONS, '--json'])).end();
  const taken = ['service', ...OPTIONS.slice(0, -1), String(port)];
  const place = expect.stringMatching(/^ringneck: cannot listen at .*; --port chooses another place\n$/);
  expect(await ringneck(taken, { env })).toEqual({ code: 1, stdout: '', stderr: place });
  for (const json of [[], ['--json']]) {
    const renewed = await ringneck([...taken, '--new-tokens', ...json], { env });
    expect([renewed.code, renewed.stdout]).toEqual([1, '']);
    expect(renewed.stderr).toContain(told);
    expect(renewed.stderr).toContain('; --port chooses another place\n');
  }
});

test('its people live: the clock moves, data appear over HTTP, faults go on and off, and a restart goes on from there', async () => {
  const env = newEnv();
  const first = await visit(env, [...OPTIONS, '--json', '--fault', 'status=503']);
  const { url, people, control } = JSON.parse(first.first);
  const headers = { authorization: `Bearer ${control.secret}`, 'content-type': 'application/json' };
  interface Report {
    clock: { now: string; speed: number };
    faults: object;
  }
  const ask = async (place: string, body?: object) => {
    const answer = await fetch(place, { headers, ...(body && { method: 'POST', body: JSON.stringify(body) }) });
    return (await answer.json()) as Report;
  };
  const nights = async () => {
    const query = 'start_date=2025-01-11&end_date=2025-01-14';
    const answer = await fetch(`${url}/v2/usercollection/sleep?${query}`, { headers: { authorization: `Bearer ${people[0].token}` } });
    return answer.ok ? ((await answer.json()) as { data: { day: string }[] }).data.map(({ day }) => day) : [answer.status];
  };

  expect(await nights()).toEqual([503]);
  expect((await ask(`${control.url}/faults`, { status: null })).faults).toEqual({});
  const stressKeys = async () => {
    const answer = await fetch(`${url}/v2/usercollection/daily_stress`, { headers: { authorization: `Bearer ${people[0].token}` } });
    return Object.keys((await answer.json()) as object);
  };
  expect(await stressKeys()).toEqual(['data', 'next_token']);
  await ask(`${control.url}/faults`, { 'specification-only': true });
  expect(await stressKeys()).toEqual(['data']);
  await ask(`${control.url}/faults`, { 'specification-only': null });
  // The last day has ended for everybody when it is 4 a.m. for ben, in New York.
  expect((await ask(control.url)).clock).toEqual({ now: '2025-01-11T09:00:00.000Z', speed: 0 });
  expect(await nights()).toEqual([]);
  expect((await ask(`${control.url}/clock`, { advance: 2 * 86_400 })).clock.now).toBe('2025-01-13T09:00:00.000Z');
  // ada's ring has not synced yet on the 13th.
  expect([...new Set<unknown>(await nights())]).toEqual(['2025-01-11', '2025-01-12']);
  expect((await first.end()).code).toBe(0);

  const second = await visit(env, ['--port', '0', '--json', '--clock-speed', '3600']);
  const again = JSON.parse(second.first);
  const { now, speed } = (await ask(again.control.url)).clock;
  expect(speed).toBe(3600);
  expect(now >= '2025-01-13T09:00:00.000Z' && now < '2025-01-15').toBe(true);
  expect((await ask(again.control.url)).clock.now > now).toBe(true);
  expect(await second.end()).toMatchObject({ code: 0, stderr: '' });

  for (const [option, value, message] of [
    ['--fault', 'sulk', 'no fault is called "sulk"; there are status=CODE[/RATE], slow=MS'],
    ['--fault', 'slow', 'slow is no fault: expected slow=MS'],
    ['--clock-speed', '-1', 'expected a whole number from 0 to 10000'],
    [
      '--redirect-url',
      'study.example.org/back',
      'expected an address like http://127.0.0.1:8976/callback, without a fragment or credentials',
    ],
    ['--redirect-url', 'https://study.example.org/#back', 'without a fragment or credentials'],
  ] as const) {
    const refused = await runHere(['service', ...OPTIONS, option, value], { env: newEnv() });
    expect([refused.code, refused.stdout]).toEqual([2, '']);
    expect(refused.stderr).toContain(message);
  }
});
