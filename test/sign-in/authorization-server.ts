import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import Provider from 'oidc-provider';
import { onTestFinished } from 'vitest';
import type { SignInSettings } from '../../src/base/config.ts';

export const SCOPES = ['personal', 'daily', 'heartrate', 'workout', 'tag', 'session', 'spo2Daily'];

/** An authorization server that is not ours, with rotation: a refresh token works once, and a second use ends the sign-in. */
export interface AuthorizationServer {
  settings: SignInSettings;
  /** Who signs in next, and what they allow; undefined: they refuse. */
  person: { id: string; scopes?: readonly string[] } | undefined;
  /** The grants that were asked for, in their order. */
  asked: string[];
  /** What it answers to a request for tokens, in place of an answer of its own. */
  fault: { status: number; body: string; type?: string; challenge?: string } | undefined;
  /** Whose access token it is; undefined where it is worth nothing. */
  findPerson(accessToken: string): Promise<string | undefined>;
  /** Ends the sign-in that a token is of. */
  end(accessToken: string): Promise<void>;
  /** Goes through its pages as a browser does; gives the address to which that is sent at the end. */
  visit(url: string): Promise<string>;
}

/** @param lifeS of an access token */
export async function startAuthorizationServer({
  lifeS = 120,
  redirectUrl = 'http://127.0.0.1:8976/callback',
} = {}): Promise<AuthorizationServer> {
  let handle: (request: IncomingMessage, response: ServerResponse) => void = () => {};
  const http = createServer((request, response) => handle(request, response));
  await new Promise<void>(resolve => http.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    http.closeAllConnections();
    http.close();
  });
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  const provider = createProvider(url, lifeS, redirectUrl);
  const server: AuthorizationServer = {
    settings: {
      authorizeUrl: `${url}/oauth/authorize`,
      tokenUrl: `${url}/oauth/token`,
      redirectUrl,
      scopes: SCOPES,
      clientId: 'ringneck',
      clientSecret: 'the-secret-of-the-client',
    },
    person: { id: 'ada-1' },
    asked: [],
    fault: undefined,
    findPerson: async token => {
      const found = await provider.AccessToken.find(token);
      return found?.isValid ? found.accountId : undefined;
    },
    end: async token => {
      const { grantId = '' } = (await provider.AccessToken.find(token)) ?? {};
      await provider.AccessToken.revokeByGrantId(grantId);
      await provider.RefreshToken.revokeByGrantId(grantId);
    },
    visit,
  };
  provider.on('grant.success', (context: unknown) => server.asked.push(grantOf(context)));
  const callback = provider.callback();
  handle = (request, response) => {
    if (request.url?.startsWith('/interaction/')) void decide(provider, server, request, response);
    else if (server.fault) {
      const { status, body, type = 'application/json', challenge } = server.fault;
      response.writeHead(status, { 'content-type': type, ...(challenge ? { 'www-authenticate': challenge } : {}) }).end(body);
    } else callback(request, response);
  };
  return server;
}

const grantOf = (context: unknown) => String((context as { oidc: { params: { grant_type: string } } }).oidc.params.grant_type);

const createProvider = (url: string, lifeS: number, redirectUrl: string) =>
  new Provider(url, {
    clients: [
      {
        client_id: 'ringneck',
        client_secret: 'the-secret-of-the-client',
        redirect_uris: [redirectUrl],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: 'client_secret_post',
      },
    ],
    scopes: SCOPES,
    pkce: { required: () => true },
    rotateRefreshToken: true,
    issueRefreshToken: async () => true,
    ttl: {
      AccessToken: lifeS,
      RefreshToken: 30 * 86_400,
      Grant: 30 * 86_400,
      Session: 30 * 86_400,
      Interaction: 3_600,
      AuthorizationCode: 60,
    },
    routes: { authorization: '/oauth/authorize', token: '/oauth/token', revocation: '/oauth/revoke' },
    features: { devInteractions: { enabled: false }, revocation: { enabled: true } },
    interactions: { url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    findAccount: async (_: unknown, accountId: string) => ({ accountId, claims: async () => ({ sub: accountId }) }),
    cookies: { keys: ['of a test'] },
  });

async function decide(provider: Provider, { person }: AuthorizationServer, request: IncomingMessage, response: ServerResponse) {
  const { params } = await provider.interactionDetails(request, response);
  if (!person) return provider.interactionFinished(request, response, { error: 'access_denied', error_description: 'no' }, {});
  const asked = (params.scope ?? '').split(' ');
  const { id, scopes = asked } = person;
  const grant = new provider.Grant({ accountId: id, clientId: 'ringneck' });
  grant.addOIDCScope(asked.filter(scope => scopes.includes(scope)).join(' '));
  grant.rejectOIDCScope(asked.filter(scope => !scopes.includes(scope)).join(' '));
  const result = { login: { accountId: id }, consent: { grantId: await grant.save() } };
  return provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
}

async function visit(url: string): Promise<string> {
  const cookies = new Map<string, string>();
  const { origin } = new URL(url);
  let at = url;
  for (let steps = 0; steps < 10; steps++) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(at, { redirect: 'manual', headers: { cookie } });
    for (const line of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (name !== undefined && value !== undefined) cookies.set(name, value);
    }
    const location = response.headers.get('location');
    if (location === null) throw new Error(`${at} answered ${response.status}: ${(await response.text()).slice(0, 500)}`);
    at = new URL(location, at).href;
    if (!at.startsWith(origin)) return at;
  }
  throw new Error('too many redirects');
}
