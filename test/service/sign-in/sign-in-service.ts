import { createHash } from 'node:crypto';
import type { WireDocument } from '../../../schema/resource.ts';
import type { ServiceOptions } from '../../../src/service/service.ts';
import { type GrantOptions, Grants } from '../../../src/service/sign-in/grants.ts';
import { type Answer, type RunningService, startService } from '../literal-service.ts';
import { makeFolder, openTestWebhooks } from '../webhooks/webhook-service.ts';

export const CALLBACK = 'http://127.0.0.1:8976/callback';
export const NOON = Date.parse('2025-03-10T12:00:00Z');
/** A verifier of RFC 7636, and its challenge. */
export const VERIFIER = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk';
export const CHALLENGE = createHash('sha256').update(VERIFIER).digest('base64url');

export interface SignInService extends Pick<RunningService, 'url' | 'get'> {
  client: { id: string; secret: string };
  grants: Grants;
  /** Moves real time on. */
  pass(seconds: number): void;
  /** GET of the page, with what is usual unless it is said otherwise; undefined leaves out. */
  ask(change?: Fields, path?: string): Promise<Answered>;
  /** What the page sends: ada allows all that was asked for, unless it is said otherwise. */
  decide(change?: Fields, headers?: Record<string, string>): Promise<Answered>;
  /** The parameters at the client's address after a decision. */
  signIn(change?: Fields): Promise<Record<string, string>>;
  token(form: Fields, headers?: Record<string, string>): Promise<Answered>;
  /** The tokens for a new code. */
  obtain(change?: Fields): Promise<{ access_token: string; refresh_token: string }>;
  refresh(token: string): Promise<Answered>;
}

type Fields = Record<string, string | readonly string[] | undefined>;
export type Answered = Omit<Answer, 'body'> & { location: string | null };

export function openGrants(options: Partial<GrantOptions> = {}): Grants {
  return new Grants({
    folder: options.folder ?? makeFolder(),
    tokenLifeSeconds: 86_400,
    peopleLimit: Number.POSITIVE_INFINITY,
    forget: false,
    now: () => NOON,
    isLapsed: () => false,
    ...options,
  });
}

const noDocuments = { documents: {}, personalInfo: { id: 'ada', age: 40, email: 'ada@example.org' } satisfies WireDocument };

/** A service at which ada, ben and cy may sign in, in a folder of its own unless one is given. */
export async function startSignIn(
  options: Partial<GrantOptions> = {},
  specificationOnly = false,
  more: Partial<ServiceOptions> = {},
): Promise<SignInService> {
  let now = NOON;
  const grants = openGrants({ now: () => now, ...options });
  const { client } = openTestWebhooks();
  const people = ['ada', 'ben', 'cy'].map(name => ({ name, user_id: name }));
  const { url, get } = await startService(
    { ada: noDocuments, ben: noDocuments },
    { specificationOnly },
    {
      signIn: { client, people, redirectUrls: [CALLBACK, 'https://study.example.org/back?study=7'], grants },
      authenticate: token => grants.findHolder(token),
      realClock: () => new Date(now),
      ...more,
    },
  );
  const asked = { client_id: client.id, redirect_uri: CALLBACK, response_type: 'code', state: 'a state', scope: 'daily session' };
  const send = async (path: string, init: RequestInit) => {
    const response = await fetch(url + path, { redirect: 'manual', ...init });
    const { status, headers } = response;
    return { status, headers, location: headers.get('location'), text: await response.text() };
  };
  const form = (path: string, fields: Fields, headers = {}) => send(path, { method: 'POST', body: parametersOf(fields), headers });
  const token = (fields: Fields, headers?: Record<string, string>) =>
    form('/oauth/token', { client_id: client.id, client_secret: client.secret, ...fields }, headers);
  const decide = (change: Fields = {}, headers = {}) =>
    form('/oauth/authorize', { ...asked, person: 'ada', grant: ['daily', 'session'], decision: 'allow', ...change }, headers);
  const signIn = async (change: Fields = {}) => Object.fromEntries(new URL((await decide(change)).location ?? '').searchParams);
  const obtain = async (change: Fields = {}) => {
    const { code } = await signIn(change);
    return JSON.parse((await token({ grant_type: 'authorization_code', code, redirect_uri: CALLBACK })).text);
  };
  return {
    url,
    get,
    client,
    grants,
    pass: seconds => {
      now += seconds * 1000;
    },
    ask: (change = {}, path = '/oauth/authorize') => send(`${path}?${parametersOf({ ...asked, ...change })}`, {}),
    decide,
    signIn,
    token,
    obtain,
    refresh: refresh_token => token({ grant_type: 'refresh_token', refresh_token }),
  };
}

function parametersOf(fields: Fields): URLSearchParams {
  const pairs = Object.entries(fields).flatMap(([name, value]) => [value ?? []].flat().map(one => [name, one] as [string, string]));
  return new URLSearchParams(pairs);
}
