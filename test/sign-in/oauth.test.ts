import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { inspect } from 'node:util';
import { expect, onTestFinished, test, vi } from 'vitest';
import { shownMessageOf } from '../../src/base/errors.ts';
import { createAuthorizeRequest, OAuthClient } from '../../src/sign-in/oauth.ts';
import { type AuthorizationServer, SCOPES, startAuthorizationServer } from './authorization-server.ts';

/** A code that was just given, and the verifier that belongs to it. */
async function askForCode(server: AuthorizationServer) {
  const { url, state, verifier } = await createAuthorizeRequest(server.settings);
  const answer = new URL(await server.visit(url)).searchParams;
  expect(answer.get('state')).toBe(state);
  return { code: answer.get('code') ?? '', verifier, redirectUrl: server.settings.redirectUrl };
}

test('a code brings tokens, a refresh token the next pair, and works once', async () => {
  const server = await startAuthorizationServer();
  const client = new OAuthClient(server.settings);
  const first = await client.exchange(await askForCode(server));
  expect(first).toEqual({ accessToken: expect.any(String), refreshToken: expect.any(String), expiresIn: 120, scopes: SCOPES });
  expect(await server.findPerson(first.accessToken)).toBe('ada-1');
  const second = await client.refresh(first.refreshToken!);
  expect(await server.findPerson(second.accessToken)).toBe('ada-1');
  expect(second.refreshToken).not.toBe(first.refreshToken);
  await expect(client.refresh(first.refreshToken!)).rejects.toMatchObject({ kind: 'invalid_grant' });
  // Its second use has ended the sign-in.
  await expect(client.refresh(second.refreshToken!)).rejects.toMatchObject({ kind: 'invalid_grant' });
});

test('a code is worth nothing without its verifier, or a second time', async () => {
  const server = await startAuthorizationServer();
  const client = new OAuthClient(server.settings);
  const answer = await askForCode(server);
  await expect(client.exchange({ ...answer, verifier: 'of-somebody-else-'.repeat(4) })).rejects.toMatchObject({ kind: 'invalid_grant' });
  const again = await askForCode(server);
  await client.exchange(again);
  await expect(client.exchange(again)).rejects.toMatchObject({ kind: 'invalid_grant' });
});

test('a code whose answer was lost is given once more, which ends what nobody has; one that was not used brings its tokens', async () => {
  const server = await startAuthorizationServer();
  const client = new OAuthClient(server.settings);
  const [used, unused] = [await askForCode(server), await askForCode(server)];
  const { fetch } = globalThis;
  const spy = vi.spyOn(globalThis, 'fetch');
  onTestFinished(() => spy.mockRestore());
  let lost = '';
  spy.mockImplementationOnce(async (...asked) => {
    ({ access_token: lost } = (await (await fetch(...asked)).json()) as { access_token: string });
    return new Response('<html>', { status: 502 });
  });
  await expect(client.exchange(used)).rejects.toMatchObject({ kind: 'unavailable', message: expect.stringContaining('answered 502') });
  expect([lost, await server.findPerson(lost)]).toEqual([expect.any(String), undefined]);
  spy.mockResolvedValueOnce(new Response('', { status: 503 }));
  expect(await server.findPerson((await client.exchange(unused)).accessToken)).toBe('ada-1');
});

test('what the person does not allow is not among the scopes', async () => {
  const server = await startAuthorizationServer();
  server.person = { id: 'ada-1', scopes: ['personal', 'daily'] };
  const { scopes } = await new OAuthClient(server.settings).exchange(await askForCode(server));
  expect(scopes).toEqual(['personal', 'daily']);
});

test('revoked tokens are worth nothing', async () => {
  const server = await startAuthorizationServer();
  const client = new OAuthClient(server.settings);
  const tokens = await client.exchange(await askForCode(server));
  await client.revoke(tokens);
  await expect(client.refresh(tokens.refreshToken!)).rejects.toMatchObject({ kind: 'invalid_grant' });
});

test('that an access token is over is no proof that its refresh token is taken back', async () => {
  const server = await startAuthorizationServer();
  const client = new OAuthClient(server.settings);
  for (const error of ['invalid_token', 'invalid_grant']) {
    server.fault = { status: 400, body: JSON.stringify({ error }) };
    await expect(client.revoke({ accessToken: 'a', refreshToken: 'r' })).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringMatching(/\/oauth\/revoke says that the access token is over, which may leave the refresh token$/),
    });
    await client.revoke({ accessToken: 'a', refreshToken: undefined });
  }
});

test('an answer of 200 that names an error takes nothing back, unless it says that the token is over', async () => {
  const server = await startAuthorizationServer();
  const client = new OAuthClient(server.settings);
  const revokeUrl = server.settings.tokenUrl.replace('token', 'revoke');
  for (const body of ['{"error":"unsupported_token_type","error_description":"no token-of-ada"}', '{"error":{"code":7}}']) {
    server.fault = { status: 200, body };
    await expect(client.revoke({ accessToken: 'a', refreshToken: undefined })).rejects.toMatchObject({
      kind: 'unavailable',
      message: `${revokeUrl} answered 200 with an error`,
    });
  }
  server.fault = { status: 200, body: '{"error":"invalid_token"}' };
  await expect(client.revoke({ accessToken: 'a', refreshToken: 'r' })).rejects.toThrow('which may leave the refresh token');
  await client.revoke({ accessToken: 'a', refreshToken: undefined });
});

test('an answer of 200 with a page takes nothing back; an empty one and JSON do', async () => {
  const server = await startAuthorizationServer();
  const client = new OAuthClient(server.settings);
  const tokens = { accessToken: 'a', refreshToken: undefined };
  for (const body of ['<html><title>Log in to the network', 'Welcome']) {
    server.fault = { status: 200, body, type: 'text/html' };
    await expect(client.revoke(tokens)).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringContaining('answered 200 with something that is neither empty nor JSON'),
    });
  }
  for (const body of ['', ' \n', '{}', '"OK"', '{"error":null}', '{"error":""}']) {
    server.fault = { status: 200, body };
    await client.revoke(tokens);
  }
});

test('tokens are taken back by an answer without a body too', async () => {
  const server = await startAuthorizationServer();
  const client = new OAuthClient(server.settings);
  server.fault = { status: 204, body: '' };
  await client.revoke({ accessToken: 'a', refreshToken: 'r' });
  await expect(client.refresh('r')).rejects.toMatchObject({
    kind: 'unavailable',
    message: expect.stringContaining('answered something else than tokens'),
  });
});

test('errors are sorted by what is to be done, and none holds a secret', async () => {
  const server = await startAuthorizationServer();
  const { settings } = server;
  const errorOf = (ask: Promise<unknown>) =>
    ask.then(
      () => undefined,
      error => {
        expect(inspect(error, { depth: 9, showHidden: true })).not.toContain('token-of-ada');
        return [error.kind, shownMessageOf(error)];
      },
    );
  const wrong = new OAuthClient({ ...settings, clientSecret: 'another-secret' });
  expect(await errorOf(wrong.refresh('token-of-ada'))).toEqual([
    'client',
    `${settings.tokenUrl} answered 401 and does not take the client: are RINGNECK_CLIENT_ID, RINGNECK_CLIENT_SECRET and RINGNECK_TOKEN_URL right?` +
      ' (it says: client authentication failed)',
  ]);
  const client = new OAuthClient(settings);
  const faults: [NonNullable<AuthorizationServer['fault']>, string, string][] = [
    [{ status: 503, body: '<html>', type: 'text/html' }, 'unavailable', 'answered 503, which is no answer to a request for tokens'],
    [{ status: 500, body: '{"error":"server_error"}' }, 'unavailable', 'answered 500, which is no answer to a request for tokens'],
    [{ status: 429, body: '{"error":"slow_down"}' }, 'unavailable', 'answered 429 (it says: slow_down)'],
    [
      { status: 200, body: '<p>token-of-ada', type: 'text/html' },
      'unavailable',
      'answered something else than tokens: is RINGNECK_TOKEN_URL right?',
    ],
    [
      { status: 200, body: '{"access_token":"token-of-ada"' },
      'unavailable',
      'answered something else than tokens: is RINGNECK_TOKEN_URL right?',
    ],
    [
      { status: 400, body: '{"error":"invalid_grant","error_description":"revoked"}' },
      'invalid_grant',
      'does not take it any more (it says: revoked)',
    ],
  ];
  for (const [fault, kind, said] of faults) {
    server.fault = fault;
    expect(await errorOf(client.refresh('token-of-ada'))).toEqual([kind, `${settings.tokenUrl} ${said}`]);
  }
  const nobody = new OAuthClient({ ...settings, tokenUrl: 'http://127.0.0.1:1/oauth/token' });
  expect(await errorOf(nobody.refresh('token-of-ada'))).toEqual([
    'unavailable',
    expect.stringContaining('http://127.0.0.1:1/oauth/token cannot be reached'),
  ]);
});

test('the client is at fault where the answer says so, and nowhere else', async () => {
  const server = await startAuthorizationServer();
  const client = new OAuthClient(server.settings);
  const { tokenUrl, redirectUrl } = server.settings;
  const find = async (fault: NonNullable<AuthorizationServer['fault']>) => {
    server.fault = fault;
    const error = await client.refresh('token-of-ada').catch(error => error);
    return [error.kind, shownMessageOf(error).replace(`${tokenUrl} `, ''), (await client.tryClient(redirectUrl)).is];
  };
  const refused = (status: number, said = '') => [
    'client',
    `answered ${status} and does not take the client: are RINGNECK_CLIENT_ID, RINGNECK_CLIENT_SECRET and RINGNECK_TOKEN_URL right?${said}`,
    'refused',
  ];
  const unclear = (status: number, said: string) => [
    'request',
    `answered ${status}, and does not say whether it takes the client: is RINGNECK_TOKEN_URL right? (it says: ${said})`,
    'untold',
  ];
  const challenge = 'Basic realm="x"';
  expect(await find({ status: 400, body: '{"error":"invalid_client"}' })).toEqual(refused(400, ' (it says: invalid_client)'));
  expect(await find({ status: 401, body: '{"error":"unauthorized"}' })).toEqual(refused(401, ' (it says: unauthorized)'));
  expect(await find({ status: 401, body: '', challenge })).toEqual(refused(401));
  expect(await find({ status: 400, body: '{"error":"invalid_request"}' })).toEqual(unclear(400, 'invalid_request'));
  expect(await find({ status: 401, body: '{"error":"invalid_request"}', challenge })).toEqual(unclear(401, 'invalid_request'));
  expect(await find({ status: 400, body: '{"error":"unauthorized_client","error_description":"no refresh"}' })).toEqual(
    unclear(400, 'unauthorized_client: no refresh'),
  );
  expect(await find({ status: 403, body: '', challenge })).toEqual([
    'unavailable',
    'answered 403, which is no answer to a request for tokens',
    'untold',
  ]);
  expect(await find({ status: 401, body: '{"error":"invalid_grant"}', challenge })).toEqual([
    'invalid_grant',
    'does not take it any more (it says: invalid_grant)',
    'taken',
  ]);
});

test.each<[string, object, object]>([
  ['life null, scope null, next refresh token null', { expires_in: null, scope: null, refresh_token: null }, {}],
  ['life of no time, an empty refresh token and scope', { expires_in: 0, scope: '', refresh_token: '' }, {}],
  ['life of another form', { expires_in: 'never' }, {}],
  ['life longer than any calendar', { expires_in: 9.2e18 }, {}],
  [
    'life in digits, scopes with commas',
    { expires_in: '3600', scope: 'personal,daily' },
    { expiresIn: 3600, scopes: ['personal', 'daily'] },
  ],
  ['a type of blanks', { token_type: ' ' }, {}],
  ['a type with a blank behind it', { token_type: 'Bearer ' }, {}],
  ['scopes in a list, an empty type', { scope: ['personal', 'daily'], token_type: '' }, { scopes: ['personal', 'daily'] }],
])('of an answer with %s what is usable is taken: the refresh token for it is used up', async (_, said, expected) => {
  const server = await startAuthorizationServer();
  server.fault = { status: 200, body: JSON.stringify({ access_token: 'a', id_token: 'of no use', ...said }), type: 'text/plain' };
  const nothing = { accessToken: 'a', refreshToken: undefined, expiresIn: undefined, scopes: undefined };
  expect(await new OAuthClient(server.settings).refresh('r')).toEqual({ ...nothing, ...expected });
});

/** A token address that breaks its answer off where a body ends; `isTold`: its reader hears of that, for the answer said how long it is. */
async function breakOff(body: string, isTold = true): Promise<OAuthClient> {
  const http = createServer((request, response) => {
    request.resume().on('end', () => {
      response.writeHead(200, { 'content-type': 'application/json', ...(isTold && { 'content-length': WHOLE.length + 100 }) });
      response.write(body, () => response.destroy());
    });
  });
  // As HTTP/1.0 has it: where a body ends is known by the end of the connection alone.
  if (!isTold) http.on('request', (_, response) => Object.assign(response, { useChunkedEncodingByDefault: false, shouldKeepAlive: false }));
  await new Promise<void>(resolve => http.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void http.close());
  const { port } = http.address() as AddressInfo;
  return new OAuthClient({
    tokenUrl: `http://127.0.0.1:${port}/oauth/token`,
    clientId: 'ringneck',
    clientSecret: 'the-secret-of-the-client',
  });
}

const WHOLE = '{"access_token":"a","expires_in":120,"refresh_token":"r","scope":"daily,personal"}';
const upTo = (end: string) => WHOLE.slice(0, WHOLE.indexOf(end) + end.length);

test.each([
  ['at its end', WHOLE, ['daily', 'personal']],
  ['within what it says of scopes', upTo('"daily,'), undefined],
  ['after its tokens', upTo('"refresh_token":"r"'), undefined],
])('of an answer that is broken off %s the tokens are taken: they come no second time', async (_, body, scopes) => {
  const taken = { accessToken: 'a', refreshToken: 'r', expiresIn: 120, scopes };
  expect(await (await breakOff(body)).refresh('r')).toEqual(taken);
  expect(await (await breakOff(body, false)).refresh('r')).toEqual(taken);
});

test.each([upTo('"refresh_token":"'), upTo('"expires_in":12'), upTo('"expires_in":120,'), '{"a":"b"}', ''])(
  'an answer that is broken off before it has both tokens is none: %s',
  async body => {
    await expect((await breakOff(body)).refresh('r')).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringContaining('cannot be reached'),
    });
  },
);

test('tokens of another type than bearer are no failure of the way to the service', async () => {
  const server = await startAuthorizationServer();
  server.fault = { status: 200, body: '{"access_token":"a","token_type":"mac"}' };
  await expect(new OAuthClient(server.settings).refresh('r')).rejects.toThrow(
    `${server.settings.tokenUrl} answered with tokens that are not of the type bearer: is RINGNECK_TOKEN_URL right?`,
  );
});

test('what the browser brought says what was granted where the answer with the tokens does not', async () => {
  const server = await startAuthorizationServer();
  const client = new OAuthClient(server.settings);
  const answer = { code: 'c', verifier: 'v'.repeat(43), redirectUrl: server.settings.redirectUrl };
  server.fault = { status: 200, body: '{"access_token":"a","token_type":"bearer"}' };
  expect((await client.exchange({ ...answer, scope: 'personal daily' })).scopes).toEqual(['personal', 'daily']);
  expect((await client.exchange(answer)).scopes).toBeUndefined();
  server.fault = { status: 200, body: '{"access_token":"a","token_type":"bearer","scope":"daily"}' };
  expect((await client.exchange({ ...answer, scope: 'personal daily' })).scopes).toEqual(['daily']);
});

test('an answer without an end is left, and a renewal waits four minutes for its answer', async () => {
  const server = await startAuthorizationServer();
  const client = new OAuthClient(server.settings);
  server.fault = { status: 200, body: `{"access_token":"${'a'.repeat(2 ** 20)}"}` };
  await expect(client.refresh('r')).rejects.toThrow('answered more than 1048576 bytes, which are no tokens: is RINGNECK_TOKEN_URL right?');
  const late = new AbortController();
  const timeout = vi.spyOn(AbortSignal, 'timeout').mockReturnValue(late.signal);
  late.abort(new DOMException('late', 'TimeoutError'));
  await expect(client.refresh('r')).rejects.toThrow('has not answered in 240 s');
  expect(timeout).toHaveBeenCalledWith(240_000);
  timeout.mockRestore();
});
