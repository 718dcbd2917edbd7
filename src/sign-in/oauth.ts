import * as oauth from 'oauth4webapi';
import type { SignInSettings } from '../base/config.ts';
import { kindOf, messageOf, shownMessageOf } from '../base/errors.ts';
import { SignInError } from './error.ts';

/** What the service gives for a code or a refresh token. */
export interface TokenAnswer {
  accessToken: string;
  /** Undefined: none came. */
  refreshToken: string | undefined;
  /** Seconds; undefined: it did not say. */
  expiresIn: number | undefined;
  /** Undefined: as they were asked for, or as they were. */
  scopes: readonly string[] | undefined;
}

/** What the browser is sent to the service with, and what later proves that the answer is ours. */
export interface AuthorizeRequest {
  url: string;
  state: string;
  verifier: string;
}

/** A code is no proof of anything to who lacks the verifier: one of each for each sign-in. */
export async function createAuthorizeRequest(
  settings: Pick<SignInSettings, 'authorizeUrl' | 'redirectUrl' | 'scopes' | 'clientId'>,
): Promise<AuthorizeRequest> {
  const [state, verifier] = [oauth.generateRandomState(), oauth.generateRandomCodeVerifier()];
  const url = new URL(settings.authorizeUrl);
  const parameters = {
    response_type: 'code',
    client_id: settings.clientId,
    redirect_uri: settings.redirectUrl,
    scope: settings.scopes.join(' '),
    state,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
  };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return { url: url.href, state, verifier };
}

/** Somebody waits. */
const PATIENCE_MS = 60_000;
/** Somebody waits who only wants to know whether the settings are right. */
const TRIED_MS = 10_000;
/** An answer that comes later than this is lost, and with it the refresh token that it brings. Node itself waits for five minutes. */
const RENEWAL_PATIENCE_MS = 240_000;
/** Tokens of some thousand characters are known; a body without an end must not fill the memory. */
const MOST_BYTES = 1_048_576;

/** Asks the service for tokens, as a client that it knows by its secret. */
export class OAuthClient {
  readonly #server: oauth.AuthorizationServer;
  readonly #client: oauth.Client;
  readonly #authenticate: oauth.ClientAuth;
  readonly tokenUrl: string;
  readonly #revokeUrl: string;

  constructor({ tokenUrl, clientId, clientSecret }: Pick<SignInSettings, 'tokenUrl' | 'clientId' | 'clientSecret'>) {
    this.#server = { issuer: new URL(tokenUrl).origin, token_endpoint: tokenUrl };
    this.#client = { client_id: clientId };
    this.#authenticate = oauth.ClientSecretPost(clientSecret);
    this.tokenUrl = tokenUrl;
    this.#revokeUrl = new URL('revoke', tokenUrl).href;
  }

  /**
   * Where no answer comes the code is given once more: one that was used has the service end what nobody has (RFC 6749, 4.1.2).
   * @param answer.scope what was granted, as the address says to which the browser was sent; the token's answer may say nothing of it
   * @throws SignInError
   */
  async exchange({ scope, ...exchange }: Exchange): Promise<TokenAnswer> {
    const ask = (patienceMs: number) => this.#ask(patienceMs, options => this.#exchange(exchange, options));
    const tokens = await ask(PATIENCE_MS).catch(error => {
      if (!(error instanceof SignInError) || error.kind !== 'unavailable') throw error;
      return ask(TRIED_MS).catch(() => {
        throw error;
      });
    });
    return { ...tokens, scopes: tokens.scopes ?? splitScope(scope) };
  }

  async #exchange({ code, verifier, redirectUrl }: Omit<Exchange, 'scope'>, options: oauth.TokenEndpointRequestOptions) {
    const [server, client, authenticate] = [this.#server, this.#client, this.#authenticate];
    const answer = oauth.validateAuthResponse(server, client, new URLSearchParams({ code }), oauth.expectNoState);
    const response = await oauth.authorizationCodeGrantRequest(server, client, authenticate, answer, redirectUrl, verifier, options);
    return oauth.processAuthorizationCodeResponse(server, client, response);
  }

  /** Whether the service takes the client: asked with a code that nobody gave, which is refused as such where it does. */
  async tryClient(redirectUrl: string): Promise<TriedClient> {
    const madeUp = oauth.generateRandomCodeVerifier();
    try {
      await this.#exchange({ code: madeUp, verifier: madeUp, redirectUrl }, this.#options(TRIED_MS));
      return { is: 'taken' };
    } catch (error) {
      const told = toSignInError(error, this.tokenUrl, TRIED_MS);
      if (told.kind === 'invalid_grant') return { is: 'taken' };
      return told.kind === 'client' ? { is: 'refused', said: told.detail } : { is: 'untold', why: shownMessageOf(told) };
    }
  }

  /** Uses a refresh token up. Throws SignInError. */
  refresh(refreshToken: string): Promise<TokenAnswer> {
    return this.#ask(RENEWAL_PATIENCE_MS, async options => {
      const [server, client] = [this.#server, this.#client];
      const response = await oauth.refreshTokenGrantRequest(server, client, this.#authenticate, refreshToken, options);
      return oauth.processRefreshTokenResponse(server, client, response);
    });
  }

  /**
   * Takes tokens back, where the service can; those that it knows no more are taken back (RFC 7009, 2.2). Of a pair no error is proof: it may
   * speak of the access token alone. Throws SignInError.
   */
  async revoke({ accessToken, refreshToken }: Pick<TokenAnswer, 'accessToken' | 'refreshToken'>): Promise<void> {
    const url = this.#revokeUrl;
    const said = await this.#revoke(accessToken, refreshToken ?? accessToken);
    if (said === undefined || (isOver(said) && refreshToken === undefined)) return;
    if (!isOver(said)) throw new SignInError('unavailable', `${url} answered 200 with an error`, { detail: said });
    throw new SignInError('unavailable', `${url} says that the access token is over, which may leave the refresh token`);
  }

  /** What error the service names, where it says that the tokens are over, or answers 200 all the same. Undefined: they are taken back. */
  async #revoke(accessToken: string, token: string): Promise<string | undefined> {
    // Standard is the body (RFC 7009), and that of a pair the refresh token is named; the public service reads the query.
    const revocation_endpoint = `${this.#revokeUrl}?${new URLSearchParams({ access_token: accessToken })}`;
    try {
      const server = { ...this.#server, revocation_endpoint };
      const response = await oauth.revocationRequest(server, this.#client, this.#authenticate, token, this.#options(PATIENCE_MS));
      const text = await response.clone().text();
      const said = parseObject(text);
      // Whoever stands between, as a page to log in to a network, answers 200 too.
      if (response.status === 200 && text.trim() && !isJson(text)) throw new NoAnswerError();
      await oauth.processRevocationResponse(response);
      return nameError(said);
    } catch (error) {
      if (error instanceof oauth.ResponseBodyError && isOver(error.error)) return error.error;
      throw toSignInError(error, this.#revokeUrl, PATIENCE_MS);
    }
  }

  async #ask(
    patienceMs: number,
    ask: (options: oauth.TokenEndpointRequestOptions) => Promise<oauth.TokenEndpointResponse>,
  ): Promise<TokenAnswer> {
    try {
      const answer = await ask(this.#options(patienceMs));
      return {
        accessToken: answer.access_token,
        refreshToken: answer.refresh_token,
        expiresIn: answer.expires_in,
        scopes: splitScope(answer.scope),
      };
    } catch (error) {
      throw toSignInError(error, this.tokenUrl, patienceMs);
    }
  }

  #options(patienceMs: number) {
    // Whether plain HTTP is right the settings have said.
    return { signal: AbortSignal.timeout(patienceMs), [oauth.allowInsecureRequests]: true, [oauth.customFetch]: fetchTokens } as const;
  }
}

/** What the token address says of a client; `said` in its own words. */
export type TriedClient = { is: 'taken' } | { is: 'refused'; said?: string | undefined } | { is: 'untold'; why: string };

/** Whether the service's sign-in page knows the client by its id; undefined where it shows no difference to an id that nobody has. */
export async function findKnownClient(settings: Parameters<typeof createAuthorizeRequest>[0]): Promise<'known' | 'unknown' | undefined> {
  const { url } = await createAuthorizeRequest(settings);
  const look = async (clientId: string) => {
    const asked = new URL(url);
    asked.searchParams.set('client_id', clientId);
    const response = await fetch(asked, { redirect: 'manual', signal: AbortSignal.timeout(TRIED_MS) });
    const { status } = response;
    if (status >= 500) throw new Error(`answered ${status}`);
    if (status >= 400) return `${status} ${(await readText(response)).replaceAll(clientId, '')}`;
    await response.body?.cancel();
    return 'shown';
  };
  try {
    const [ours, nobodys] = [await look(settings.clientId), await look(oauth.generateRandomState())];
    if (ours === 'shown') return nobodys === 'shown' ? undefined : 'known';
    // A redirect address that is not registered is refused too, in other words.
    return ours === nobodys ? 'unknown' : undefined;
  } catch {
    return undefined;
  }
}

interface Exchange {
  code: string;
  verifier: string;
  redirectUrl: string;
  scope?: string | undefined;
}

/** Undefined where nothing was said. Some services have commas between them. */
function splitScope(scope: string | undefined): string[] | undefined {
  const scopes = (scope ?? '').split(/[ ,]+/).filter(Boolean);
  return scopes.length ? scopes : undefined;
}

/** Asks, and reads of an answer with tokens what is usable: what was used up for it is gone. The rest is as it came. */
async function fetchTokens(url: string, init: RequestInit): Promise<Response> {
  const response = await fetch(url, init);
  const { status, headers } = response;
  const text = await readText(response);
  const tokens = status === 200 ? findTokens(text) : undefined;
  if (tokens) return Response.json(tokens);
  const kept = new Headers(headers);
  // What the body says of the error is more than that of a header, which the library reads first.
  if (nameError(parseObject(text)) !== undefined) kept.delete('www-authenticate');
  // Some take tokens back with an answer of no body, which the standard does not know.
  return new Response(text, { status: status === 204 ? 200 : status, headers: kept });
}

/** The error that an answer names in its body; undefined: none. */
function nameError({ error }: Record<string, unknown>): string | undefined {
  if (!error) return undefined;
  return typeof error === 'string' ? error : JSON.stringify(error);
}

async function readText({ status, body }: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  const read = () => Buffer.concat(parts).toString('utf8');
  let bytes = 0;
  try {
    for await (const part of body ?? []) {
      bytes += part.length;
      if (bytes > MOST_BYTES) throw new TooLongError();
      parts.push(part);
    }
  } catch (error) {
    // What has come does not come a second time.
    if (status !== 200 || !findTokens(read())) throw error;
  }
  return read();
}

/**
 * The tokens of an answer. Of one that was cut off, which may come without an error, those that are whole; undefined where one of them is not.
 */
function findTokens(text: string): Record<string, unknown> | undefined {
  if (isJson(text)) return readTokens(text);
  const ends = [...text.matchAll(/,/g)].slice(-MOST_MEMBERS).map(({ index }) => `${text.slice(0, index)}}`);
  const begun = [...ends, ...(text.endsWith('"') ? [`${text}}`] : [])].findLast(isJson);
  const tokens = begun === undefined ? undefined : readTokens(begun);
  return tokens?.refresh_token ? tokens : undefined;
}

const MOST_MEMBERS = 20;

class TooLongError extends Error {}

/** A page in place of an answer. */
class NoAnswerError extends Error {}

/** Undefined where there is no access token in it. What is of no form that means anything counts as not said. */
function readTokens(text: string): Record<string, unknown> | undefined {
  const said = parseObject(text);
  const { access_token, token_type, refresh_token, expires_in, scope } = said;
  if (typeof access_token !== 'string' || !access_token) return undefined;
  const seconds = Number(typeof expires_in === 'string' && expires_in.trim() ? expires_in : (expires_in ?? Number.NaN));
  const scopes = Array.isArray(scope) ? scope.join(' ') : scope;
  return {
    access_token,
    token_type: isText(token_type) ? token_type.trim() || 'bearer' : 'bearer',
    ...(isText(refresh_token) ? { refresh_token } : {}),
    // A life of no time at all would have each request renew it.
    ...(seconds > 0 && seconds <= LONGEST_LIFE_S ? { expires_in: seconds } : {}),
    ...(isText(scopes) ? { scope: scopes } : {}),
  };
}

/** Some hundred years: what is longer is no time of any calendar. */
const LONGEST_LIFE_S = 1e10;

const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' ? { ...value } : {};
  } catch {
    return {};
  }
}

/** Of what the library throws nothing is passed on but its kind: it may hold the answer, and with it tokens. */
function toSignInError(thrown: unknown, url: string, patienceMs: number): SignInError {
  const cause = new Error(kindOf(thrown));
  if (thrown instanceof oauth.ResponseBodyError && thrown.status < 500) {
    const { error, error_description: said, status } = thrown;
    const detail = said ?? error;
    if (error === 'invalid_grant') return new SignInError('invalid_grant', `${url} does not take it any more`, { cause, detail });
    if (isTemporary(error)) return new SignInError('unavailable', `${url} answered ${status}`, { cause, detail });
    if (error === 'invalid_client' || (status === 401 && !isOfRequest(error))) return clientsFault(url, status, { cause, detail });
    const unclear = `${url} answered ${status}, and does not say whether it takes the client: is RINGNECK_TOKEN_URL right?`;
    return new SignInError('request', unclear, { cause, detail: said === undefined ? error : `${error}: ${said}` });
  }
  if (thrown instanceof oauth.WWWAuthenticateChallengeError && thrown.status === 401) return clientsFault(url, 401, { cause });
  return new SignInError('unavailable', whyUnavailable(thrown, url, patienceMs), { cause });
}

/** Of a token that the service knows no more (RFC 7009, 2.2). */
const isOver = (error: string) => ['invalid_token', 'invalid_grant'].includes(error);

/** What speaks of the request, and not of who asks (RFC 6749, 5.2; RFC 7009, 2.2.1). */
const isOfRequest = (error: string) =>
  ['invalid_request', 'unsupported_grant_type', 'invalid_scope', 'invalid_token', 'unsupported_token_type'].includes(error);

const isTemporary = (error: string) => ['temporarily_unavailable', 'server_error', 'slow_down'].includes(error);

const clientsFault = (url: string, status: number, options: ErrorOptions & { detail?: string }) =>
  new SignInError(
    'client',
    `${url} answered ${status} and does not take the client: are RINGNECK_CLIENT_ID, RINGNECK_CLIENT_SECRET and RINGNECK_TOKEN_URL right?`,
    options,
  );

function whyUnavailable(cause: unknown, tokenUrl: string, patienceMs: number): string {
  if (cause instanceof oauth.ResponseBodyError) return `${tokenUrl} answered ${cause.status}`;
  const noTokens = 'which is no answer to a request for tokens';
  if (cause instanceof oauth.WWWAuthenticateChallengeError) return `${tokenUrl} answered ${cause.status}, ${noTokens}`;
  if (cause instanceof oauth.UnsupportedOperationError)
    return `${tokenUrl} answered with tokens that are not of the type bearer: is RINGNECK_TOKEN_URL right?`;
  if (cause instanceof oauth.OperationProcessingError) {
    const status = cause.cause instanceof Response ? cause.cause.status : undefined;
    if (status !== undefined && status !== 200) return `${tokenUrl} answered ${status}, ${noTokens}`;
    return `${tokenUrl} answered something else than tokens: is RINGNECK_TOKEN_URL right?`;
  }
  if (cause instanceof DOMException && cause.name === 'TimeoutError') return `${tokenUrl} has not answered in ${patienceMs / 1000} s`;
  if (cause instanceof NoAnswerError)
    return `${tokenUrl} answered 200 with something that is neither empty nor JSON, which is no proof that tokens are taken back`;
  if (cause instanceof TooLongError)
    return `${tokenUrl} answered more than ${MOST_BYTES} bytes, which are no tokens: is RINGNECK_TOKEN_URL right?`;
  const below = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause;
  const code = below instanceof Error && 'code' in below ? String(below.code) : messageOf(below);
  return `${tokenUrl} cannot be reached (${code})`;
}
