import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeFolder } from '../webhooks/webhook-service.ts';
import { CALLBACK, CHALLENGE, NOON, openGrants, startSignIn, VERIFIER } from './sign-in-service.ts';

const DAILY = '/v2/usercollection/daily_sleep';
const HEART_RATE = '/v2/usercollection/heartrate';
const noPlan = { redirectUri: CALLBACK, challenge: null };

test('a code gives tokens, which read what was granted and nothing else', async () => {
  const { signIn, token, get } = await startSignIn();
  const { code } = await signIn({ code_challenge: CHALLENGE, code_challenge_method: 'S256' });
  const { status, headers, text } = await token({
    grant_type: 'authorization_code',
    code,
    redirect_uri: CALLBACK,
    code_verifier: VERIFIER,
  });
  expect([status, headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8']);
  expect([headers.get('cache-control'), headers.get('pragma')]).toEqual(['no-store', 'no-cache']);
  const tokens = JSON.parse(text);
  expect(tokens).toEqual({
    access_token: expect.stringMatching(/^rn_[\w-]{43}$/),
    token_type: 'bearer',
    expires_in: 86_400,
    refresh_token: expect.stringMatching(/^rr_[\w-]{65}$/),
    scope: 'daily session',
  });
  const ask = (path: string) => get(path, tokens.access_token);
  expect((await ask(DAILY)).body).toEqual({ data: [], next_token: null });
  expect((await ask('/v2/usercollection/session')).body).toEqual({ data: [], next_token: null });
  for (const [path, scope] of [
    [HEART_RATE, 'heartrate'],
    ['/v2/sandbox/usercollection/heartrate', 'heartrate'],
    ['/v2/usercollection/daily_spo2', 'spo2Daily'],
    ['/v2/usercollection/daily_spo2/some-id', 'spo2Daily'],
    ['/v2/sandbox/usercollection/daily_spo2', 'spo2Daily'],
    ['/v2/usercollection/ring_configuration', 'personal'],
    ['/v2/usercollection/personal_info', 'personal'],
  ] as const) {
    const refused = await ask(path);
    expect([refused.status, refused.body]).toEqual([403, { detail: `Scope ${scope} is missing: the user has not granted it.` }]);
    expect(refused.headers.get('www-authenticate')).toBe(`Bearer error="insufficient_scope", scope="${scope}"`);
  }
});

test('the address of a person is for who was granted it', async () => {
  const { obtain, get } = await startSignIn();
  const info = async (scope: string) => {
    const { access_token } = await obtain({ scope, grant: scope.split(' ') });
    return (await get('/v2/usercollection/personal_info', access_token)).body;
  };
  expect(await info('personal')).toEqual({ id: 'ada', age: 40 });
  expect(await info('personal email')).toEqual({ id: 'ada', age: 40, email: 'ada@example.org' });
});

test('the header Basic names the client as well', async () => {
  const { signIn, token, client } = await startSignIn();
  const exchange = async (authorization: string) => {
    const { code } = await signIn();
    const form = { client_id: undefined, client_secret: undefined, grant_type: 'authorization_code', code, redirect_uri: CALLBACK };
    return (await token(form, { authorization })).status;
  };
  const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;
  expect(await exchange(basic(`${client.id}:${client.secret}`))).toBe(200);
  expect(await exchange(basic(`${client.id}:${client.secret.replaceAll('_', '%5F')}`))).toBe(200);
  for (const wrong of [basic(`${client.id}:wrong`), basic(client.id), basic('%:%'), 'Basic ?', 'Bearer x'])
    expect(await exchange(wrong)).toBe(401);
});

test('a client that is unknown is 401 invalid_client', async () => {
  const { token } = await startSignIn();
  for (const change of [{ client_secret: 'wrong' }, { client_secret: undefined }, { client_id: 'nobody' }]) {
    const { status, headers, text } = await token({ grant_type: 'refresh_token', refresh_token: 'x', ...change });
    expect([status, headers.get('www-authenticate'), headers.get('cache-control')]).toEqual([401, 'Basic realm="oauth"', 'no-store']);
    expect(JSON.parse(text)).toEqual({
      error: 'invalid_client',
      error_description: 'client_id or client_secret is missing or wrong: ringneck service shows both.',
    });
  }
});

test('what is wrong with a request for tokens is 400, and named', async () => {
  const { token } = await startSignIn();
  const wrong = [
    [{}, 'invalid_request', 'grant_type is missing.'],
    [{ grant_type: ['a', 'b'] }, 'invalid_request', 'grant_type is there more than once.'],
    [{ grant_type: 'password' }, 'unsupported_grant_type', 'grant_type should be authorization_code or refresh_token.'],
    [{ grant_type: 'authorization_code' }, 'invalid_request', 'code is missing.'],
    [{ grant_type: 'authorization_code', code: 'x' }, 'invalid_request', 'redirect_uri is missing.'],
    [{ grant_type: 'authorization_code', code: 'x', redirect_uri: 'x' }, 'invalid_grant', 'The code is unknown.'],
    [{ grant_type: 'refresh_token' }, 'invalid_request', 'refresh_token is missing.'],
    [{ grant_type: 'refresh_token', refresh_token: 'x' }, 'invalid_grant', 'The refresh token is unknown.'],
  ] as const;
  for (const [form, error, error_description] of wrong) {
    const { status, text } = await token(form);
    expect([status, JSON.parse(text)]).toEqual([400, { error, error_description }]);
  }
});

test('a body that is no form, and a secret that is there twice, are invalid requests', async () => {
  const { token, url } = await startSignIn();
  const json = await fetch(`${url}/oauth/token`, { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } });
  expect([json.status, await json.json()]).toEqual([
    400,
    { error: 'invalid_request', error_description: 'The body should be a form: send Content-Type: application/x-www-form-urlencoded.' },
  ]);
  expect(JSON.parse((await token({}, { authorization: 'Basic eDp5' })).text)).toEqual({
    error: 'invalid_request',
    error_description: 'client_secret is there twice: in the form and in the header Authorization.',
  });
});

test('a code is for the address and the challenge that it was asked for with, and for a minute', async () => {
  const { signIn, token, pass } = await startSignIn();
  const exchange = async (asked: Record<string, string>, form: Record<string, string>, seconds = 0) => {
    const { code } = await signIn(asked);
    pass(seconds);
    const { status, text } = await token({ grant_type: 'authorization_code', code, redirect_uri: CALLBACK, ...form });
    return status === 200 ? 200 : [status, JSON.parse(text)];
  };
  const refused = (error_description: string) => [400, { error: 'invalid_grant', error_description }];
  const challenged = { code_challenge: CHALLENGE, code_challenge_method: 'S256' };
  const elsewhere = refused('redirect_uri is not the one that the code was asked for with.');
  const unfit = refused('code_verifier does not fit the code_challenge that the code was asked for with.');
  expect(await exchange({}, { redirect_uri: 'https://study.example.org/back?study=7' })).toEqual(elsewhere);
  expect(await exchange(challenged, { code_verifier: `${VERIFIER}x` })).toEqual(unfit);
  expect(await exchange(challenged, {})).toEqual(unfit);
  expect(await exchange({}, { code_verifier: VERIFIER })).toEqual(unfit);
  expect(await exchange({}, {}, 59)).toBe(200);
  expect(await exchange({}, {}, 60)).toEqual(refused('The code has expired.'));
});

test('a code that is used again revokes what it gave', async () => {
  const { signIn, token, get, refresh } = await startSignIn();
  const { code } = await signIn();
  const exchange = () => token({ grant_type: 'authorization_code', code, redirect_uri: CALLBACK });
  const tokens = JSON.parse((await exchange()).text);
  expect((await get(DAILY, tokens.access_token)).status).toBe(200);
  expect(JSON.parse((await exchange()).text)).toEqual({
    error: 'invalid_grant',
    error_description: 'The code was used before: what it gave is revoked.',
  });
  const refused = await get(DAILY, tokens.access_token);
  expect([refused.status, refused.body]).toEqual([401, { detail: 'Access token has been revoked.' }]);
  expect(refused.headers.get('www-authenticate')).toBe('Bearer error="invalid_token", error_description="Access token has been revoked."');
  expect(JSON.parse((await refresh(tokens.refresh_token)).text)).toEqual({
    error: 'invalid_grant',
    error_description: 'What was granted is revoked.',
  });
});

test('a refresh token gives the next pair once; a second use revokes all that came of the sign-in, and of no other', async () => {
  const { obtain, refresh, get } = await startSignIn();
  const other = await obtain();
  const first = await obtain();
  const second = JSON.parse((await refresh(first.refresh_token)).text);
  expect(second).toEqual({
    access_token: expect.stringMatching(/^rn_/),
    token_type: 'bearer',
    expires_in: 86_400,
    refresh_token: expect.stringMatching(/^rr_/),
    scope: 'daily session',
  });
  expect(new Set([first, second].flatMap(pair => [pair.access_token, pair.refresh_token])).size).toBe(4);
  const statuses = async () => Promise.all([first, second, other].map(async pair => (await get(DAILY, pair.access_token)).status));
  expect(await statuses()).toEqual([200, 200, 200]);
  const third = JSON.parse((await refresh(second.refresh_token)).text);
  const again = await refresh(first.refresh_token);
  expect([again.status, JSON.parse(again.text)]).toEqual([
    400,
    { error: 'invalid_grant', error_description: 'The refresh token was used before: all tokens that came of this sign-in are revoked.' },
  ]);
  expect(await statuses()).toEqual([401, 401, 200]);
  expect((await refresh(third.refresh_token)).status).toBe(400);
  expect((await refresh(other.refresh_token)).status).toBe(200);
});

test('an access token expires in real time, is refused by that name, and can be refreshed then', async () => {
  const { obtain, refresh, get, pass } = await startSignIn({ tokenLifeSeconds: 120 });
  const { access_token, refresh_token } = await obtain();
  pass(119);
  expect((await get(DAILY, access_token)).status).toBe(200);
  pass(1);
  const { status, body, headers } = await get(DAILY, access_token);
  expect([status, body]).toEqual([401, { detail: 'Access token has expired.' }]);
  expect(headers.get('www-authenticate')).toBe('Bearer error="invalid_token", error_description="Access token has expired."');
  const next = JSON.parse((await refresh(refresh_token)).text);
  expect(next.expires_in).toBe(120);
  expect((await get(DAILY, next.access_token)).status).toBe(200);
});

test('access token or refresh token, by GET or POST, revokes all that came of the sign-in, and nobody is told whether there was any', async () => {
  const { obtain, refresh, get, url } = await startSignIn();
  const byQuery = (method: string) => (token: string) => fetch(`${url}/oauth/revoke?access_token=${token}`, { method });
  const byForm = (token: string) => fetch(`${url}/oauth/revoke`, { method: 'POST', body: new URLSearchParams({ token }) });
  for (const [which, revoke] of [
    ['access_token', byQuery('GET')],
    ['access_token', byQuery('POST')],
    ['refresh_token', byForm],
  ] as const) {
    const tokens = await obtain();
    for (const token of ['unknown', tokens[which], tokens[which]]) {
      const answer = await revoke(token);
      expect([answer.status, await answer.json()]).toEqual([200, {}]);
      expect((await get(DAILY, tokens.access_token)).status).toBe(token === 'unknown' ? 200 : 401);
    }
    expect((await refresh(tokens.refresh_token)).status).toBe(400);
  }
});

test('of several tokens in a request to revoke each counts', async () => {
  const { obtain, get, url } = await startSignIn();
  const [ada, ben] = [await obtain(), await obtain({ person: 'ben' })];
  const query = new URLSearchParams({ access_token: ada.access_token });
  await fetch(`${url}/oauth/revoke?${query}`, { method: 'POST', body: new URLSearchParams({ token: ben.refresh_token }) });
  for (const { access_token } of [ada, ben]) expect((await get(DAILY, access_token)).status).toBe(401);
});

test('a request to revoke nothing is an invalid one', async () => {
  const { url } = await startSignIn();
  for (const method of ['GET', 'POST']) {
    const answer = await fetch(`${url}/oauth/revoke`, { method });
    expect([answer.status, await answer.json()]).toEqual([
      400,
      { error: 'invalid_request', error_description: 'access_token is missing.' },
    ]);
  }
});

test('an address that guesses has to wait, also with what is right', async () => {
  const { token, obtain, refresh, pass } = await startSignIn();
  const { refresh_token } = await obtain();
  for (let guess = 0; guess < 100; guess++)
    await token({ grant_type: 'refresh_token', refresh_token: 'guess', ...(guess % 2 ? { client_secret: 'guess' } : {}) });
  pass(20);
  const refused = await refresh(refresh_token);
  expect([refused.status, refused.headers.get('retry-after'), refused.headers.get('x-ratelimit-tier')]).toEqual([429, '40', 'address']);
  expect(JSON.parse(refused.text)).toEqual({ detail: 'Rate limit exceeded: 100 requests in 60 seconds for each address.' });
  pass(40);
  expect((await refresh(refresh_token)).status).toBe(200);
});

test('nothing of a code or token is written to the log', async () => {
  const said: unknown[] = [];
  const say = (facts: object) => void said.push(facts);
  const { ask, obtain, refresh, url } = await startSignIn({}, false, { log: { debug: say, error: say } });
  await ask();
  const { access_token, refresh_token } = await obtain();
  await refresh(refresh_token);
  await fetch(`${url}/oauth/revoke?access_token=${access_token}`);
  const ms = expect.any(Number);
  expect(said).toEqual([
    { method: 'GET', route: '/oauth/authorize', status: 200, ms },
    { method: 'POST', route: '/oauth/authorize', status: 303, ms },
    { method: 'POST', route: '/oauth/token', status: 200, ms },
    { method: 'POST', route: '/oauth/token', status: 200, ms },
    { method: 'GET', route: '/oauth/revoke', status: 200, ms },
  ]);
});

test('what was granted outlives a restart, hashed; with new tokens it is revoked', () => {
  const folder = makeFolder();
  const before = openGrants({ folder });
  const pending = before.grant('ada', ['daily'], noPlan);
  const first = before.exchange(before.grant('ada', ['daily', 'tag'], noPlan), CALLBACK, undefined);
  const second = before.refresh(first.refreshToken);
  const text = readFileSync(join(folder, 'grants.json'), 'utf8');
  for (const secret of [pending, first.accessToken, first.refreshToken, second.accessToken, second.refreshToken])
    for (const part of [secret.slice(3), secret.slice(3, 25), secret.slice(-43)]) expect(text).not.toContain(part);

  const after = openGrants({ folder });
  for (const { accessToken } of [first, second])
    expect(after.findHolder(accessToken)).toEqual({ userId: 'ada', state: 'active', scopes: ['daily', 'tag'] });
  expect(after.exchange(pending, CALLBACK, undefined).scopes).toEqual(['daily']);
  const third = after.refresh(second.refreshToken);
  const renewed = openGrants({ folder, forget: true });
  expect(renewed.findHolder(third.accessToken)?.state).toBe('revoked');
  expect(() => renewed.refresh(third.refreshToken)).toThrow('What was granted is revoked.');
  expect(() => openGrants({ folder }).refresh(first.refreshToken)).toThrow('What was granted is revoked.');
});

test('what is over leaves the file', () => {
  const folder = makeFolder();
  let now = NOON;
  const grants = openGrants({ folder, now: () => now, tokenLifeSeconds: 120 });
  const kept = () =>
    (
      JSON.parse(readFileSync(join(folder, 'grants.json'), 'utf8')).grants as { user_id: string; access: unknown[]; revoked: boolean }[]
    ).map(({ user_id, access, revoked }) => [user_id, access.length, revoked]);
  grants.grant('ada', ['daily'], noPlan);
  grants.revoke(grants.exchange(grants.grant('ben', ['daily'], noPlan), CALLBACK, undefined).accessToken);
  let { refreshToken } = grants.exchange(grants.grant('cy', ['daily'], noPlan), CALLBACK, undefined);
  expect(kept()).toEqual([
    ['ada', 0, false],
    ['ben', 1, true],
    ['cy', 1, false],
  ]);
  now += 60_000;
  for (let i = 0; i < 7; i++) ({ refreshToken } = grants.refresh(refreshToken));
  expect(kept()).toEqual([
    ['ben', 1, true],
    ['cy', 5, false],
  ]);
  now += 60_000;
  grants.refresh(refreshToken);
  expect(kept()).toEqual([['cy', 5, false]]);
});

test('of one person ten sign-ins are alive at a time: one more ends the oldest, and those of nobody else', () => {
  const grants = openGrants();
  const signIn = (userId: string) => grants.exchange(grants.grant(userId, ['daily'], noPlan), CALLBACK, undefined).accessToken;
  const ben = signIn('ben');
  const tokens = Array.from({ length: 11 }, () => signIn('ada'));
  expect([ben, ...tokens].map(token => grants.findHolder(token)?.state)).toEqual(['active', 'revoked', ...Array(10).fill('active')]);
});

test('tokens of a person are let expire, are revoked, and lapse with the person', () => {
  const lapsed = new Set<string>();
  const grants = openGrants({ isLapsed: userId => lapsed.has(userId) });
  const signIn = (userId: string) => grants.exchange(grants.grant(userId, ['daily'], noPlan), CALLBACK, undefined);
  const [ada, ben] = [signIn('ada'), signIn('ben')];
  const states = () => [ada, ben].map(({ accessToken }) => grants.findHolder(accessToken)?.state);
  lapsed.add('ada');
  expect(states()).toEqual(['lapsed', 'active']);
  lapsed.clear();
  grants.setTokenState('ada', 'expired');
  expect(states()).toEqual(['expired', 'active']);
  expect(grants.findHolder(grants.refresh(ada.refreshToken).accessToken)?.state).toBe('active');
  grants.setTokenState('ben', 'revoked');
  expect(states()).toEqual(['expired', 'revoked']);
  expect(() => grants.refresh(ben.refreshToken)).toThrow('What was granted is revoked.');
});
