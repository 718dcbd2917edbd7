import * as oauth from 'oauth4webapi';
import { expect, test } from 'vitest';
import { CALLBACK, startSignIn } from './sign-in-service.ts';

const options = { [oauth.allowInsecureRequests]: true } as const;

test.each([
  ['its form', oauth.ClientSecretPost],
  ['the header Basic', oauth.ClientSecretBasic],
])('a library that knows nothing of us signs in with PKCE, refreshes and revokes, its secret in %s', async (_, authenticateBy) => {
  const { url, client: ours, decide, get } = await startSignIn();
  const server = { issuer: url, token_endpoint: `${url}/oauth/token`, revocation_endpoint: `${url}/oauth/revoke` };
  const client = { client_id: ours.id };
  const authenticate = authenticateBy(ours.secret);
  const [verifier, state] = [oauth.generateRandomCodeVerifier(), oauth.generateRandomState()];
  const challenge = await oauth.calculatePKCECodeChallenge(verifier);
  const { location } = await decide({ code_challenge: challenge, code_challenge_method: 'S256', state });
  const answer = oauth.validateAuthResponse(server, client, new URL(location ?? ''), state);
  const tokens = await oauth.processAuthorizationCodeResponse(
    server,
    client,
    await oauth.authorizationCodeGrantRequest(server, client, authenticate, answer, CALLBACK, verifier, options),
  );
  expect(tokens).toEqual({
    access_token: expect.stringMatching(/^rn_/),
    refresh_token: expect.stringMatching(/^rr_/),
    token_type: 'bearer',
    expires_in: 86_400,
    scope: 'daily session',
  });
  const refresh = async (token: string) =>
    oauth.processRefreshTokenResponse(server, client, await oauth.refreshTokenGrantRequest(server, client, authenticate, token, options));
  const next = await refresh(tokens.refresh_token ?? '');
  const resource = new URL(`${url}/v2/usercollection/sleep`);
  expect((await oauth.protectedResourceRequest(next.access_token, 'GET', resource, undefined, undefined, options)).status).toBe(200);

  await oauth.processRevocationResponse(await oauth.revocationRequest(server, client, authenticate, next.refresh_token ?? '', options));
  expect((await get('/v2/usercollection/sleep', next.access_token)).status).toBe(401);
  await expect(refresh(next.refresh_token ?? '')).rejects.toMatchObject({ error: 'invalid_grant', status: 400 });
});

test('such a library hears of a refusal, and that the client is unknown', async () => {
  const { url, client: ours, decide } = await startSignIn();
  const server = { issuer: url, token_endpoint: `${url}/oauth/token` };
  const client = { client_id: ours.id };
  const { location } = await decide({ decision: 'refuse' });
  expect(() => oauth.validateAuthResponse(server, client, new URL(location ?? ''), 'a state')).toThrow(oauth.AuthorizationResponseError);
  const response = await oauth.refreshTokenGrantRequest(server, client, oauth.ClientSecretPost('wrong'), 'x', options);
  await expect(oauth.processRefreshTokenResponse(server, client, response)).rejects.toMatchObject({ status: 401 });
});
