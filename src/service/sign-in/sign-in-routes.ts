import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { createRateCounter } from '../rate-limit.ts';
import { answerTo, readAuthorizationRequest, readReturnAddress } from './authorization-request.ts';
import { requireClient } from './client-credentials.ts';
import type { Issued } from './grants.ts';
import { OAuthError } from './oauth-error.ts';
import { errorPage, type Page, signInPage } from './page.ts';
import { findParameter, requireParameter } from './parameters.ts';
import type { SignIn } from './sign-in.ts';

export interface SignInRoute {
  method: 'get' | 'post';
  path: string;
  kind: 'ask' | 'decide' | 'token' | 'revoke';
  extension: true;
}

export const TOKEN_PATH = '/oauth/token';

/** Beyond the specification, which leaves open how tokens are obtained (5). */
export const SIGN_IN_ROUTES: readonly SignInRoute[] = [
  { method: 'get', path: '/oauth/authorize', kind: 'ask', extension: true },
  { method: 'post', path: '/oauth/authorize', kind: 'decide', extension: true },
  { method: 'post', path: TOKEN_PATH, kind: 'token', extension: true },
  { method: 'get', path: '/oauth/revoke', kind: 'revoke', extension: true },
  { method: 'post', path: '/oauth/revoke', kind: 'revoke', extension: true },
];

/** Wrong secrets, codes and refresh tokens that an address may send before it has to wait. */
export const WRONG_ATTEMPTS = { requests: 100, seconds: 60 };

/** Serves the sign-in of people for the one client (RFC 6749). `clock` is real time. */
export function serveSignIn(service: FastifyInstance, signIn: SignIn, clock: () => Date): void {
  const handlers = {
    ask: (request: FastifyRequest, reply: FastifyReply) => answerPerson(signIn, () => queryOf(request), reply, askPerson),
    decide: (request: FastifyRequest, reply: FastifyReply) => answerDecision(signIn, request, reply),
    token: createAnswerToken(signIn, clock),
    revoke: (request: FastifyRequest, reply: FastifyReply) => answerRevoke(signIn, request, reply),
  };
  service.register(async scope => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body));
    for (const { method, path, kind } of SIGN_IN_ROUTES) scope[method](path, async (request, reply) => handlers[kind](request, reply));
  });
}

const queryOf = ({ url }: FastifyRequest) => new URLSearchParams(url.split('?').slice(1).join('?'));

/** Throws OAuthError when the body is no form. */
function formOf({ headers, body }: FastifyRequest): URLSearchParams {
  if (!/^application\/x-www-form-urlencoded *(;|$)/i.test(headers['content-type'] ?? '') || typeof body !== 'string')
    throw new OAuthError('invalid_request', 'The body should be a form: send Content-Type: application/x-www-form-urlencoded.');
  return new URLSearchParams(body);
}

/** What a person is shown, or the address to be sent to. */
type Next = Page | string;
type Answerer = (signIn: SignIn, parameters: URLSearchParams, address: ReturnType<typeof readReturnAddress>) => Next;

/** Errors go to the client's address, as soon as that is known to be its own. */
function answerPerson(signIn: SignIn, read: () => URLSearchParams, reply: FastifyReply, answer: Answerer): FastifyReply {
  try {
    const parameters = read();
    const address = readReturnAddress(parameters, { clientId: signIn.client.id, redirectUrls: signIn.redirectUrls });
    try {
      return send(reply, answer(signIn, parameters, address));
    } catch (error) {
      if (!(error instanceof OAuthError)) throw error;
      return send(reply, answerTo(address, { error: error.code, ...(error.message && { error_description: error.message }) }));
    }
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error;
    return send(reply, errorPage(error.message));
  }
}

function send(reply: FastifyReply, next: Next): FastifyReply {
  if (typeof next !== 'string') return reply.code(next.status).headers(next.headers).type('text/html; charset=utf-8').send(next.html);
  // The address of the page holds the state of the client.
  return reply.code(303).headers({ Location: next, 'Cache-Control': 'no-store', 'Referrer-Policy': 'no-referrer' }).send();
}

const askPerson: Answerer = (signIn, parameters, address) =>
  signInPage(signIn.people, readAuthorizationRequest(parameters, address), parameters);

function answerDecision(signIn: SignIn, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  // The page sends no referrer, and so no origin: browsers tell by this header where a form comes from.
  if (!['same-origin', 'none', undefined].includes(request.headers['sec-fetch-site']?.toString()))
    return send(reply, errorPage('The form was sent from another site: start the sign-in again.', 403));
  return answerPerson(signIn, () => formOf(request), reply, decide);
}

/** What a person decides is not explained: a description tells of what the service itself has against somebody. */
const NO_WORDS = '';

const decide: Answerer = ({ people, grants }, form, address) => {
  const { scopes, challenge, redirectUri } = readAuthorizationRequest(form, address);
  if (findParameter(form, 'decision') !== 'allow') throw new OAuthError('access_denied', NO_WORDS);
  const granted = scopes.filter(scope => form.getAll('grant').includes(scope));
  if (granted.length === 0) throw new OAuthError('access_denied', NO_WORDS);
  const chosen = findParameter(form, 'person');
  const person = people.find(({ user_id }) => user_id === chosen);
  if (!person) return errorPage('No person was chosen: go back and choose one.');
  const code = grants.grant(person.user_id, granted, { redirectUri, challenge });
  return answerTo(address, { code, scope: granted.join(' ') });
};

/** Section 5 of RFC 6749. Who guesses has to wait. */
function createAnswerToken({ client, grants }: SignIn, clock: () => Date) {
  const wrong = createRateCounter(WRONG_ATTEMPTS, 'address', clock);
  return (request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    wrong?.check(request.ip);
    try {
      const form = formOf(request);
      requireClient(client, request.headers.authorization, form);
      return sendJson(reply, 200, onTheWire(issue(grants, form)));
    } catch (error) {
      if (!(error instanceof OAuthError)) throw error;
      if (error.code === 'invalid_client' || error.code === 'invalid_grant') wrong?.count(request.ip);
      return sendError(reply, error);
    }
  };
}

function issue(grants: SignIn['grants'], form: URLSearchParams): Issued {
  const type = requireParameter(form, 'grant_type');
  if (type === 'refresh_token') return grants.refresh(requireParameter(form, 'refresh_token'));
  if (type === 'authorization_code')
    return grants.exchange(requireParameter(form, 'code'), requireParameter(form, 'redirect_uri'), findParameter(form, 'code_verifier'));
  throw new OAuthError('unsupported_grant_type', 'grant_type should be authorization_code or refresh_token.');
}

const onTheWire = ({ accessToken, refreshToken, expiresIn, scopes }: Issued) => ({
  access_token: accessToken,
  token_type: 'bearer',
  expires_in: expiresIn,
  refresh_token: refreshToken,
  scope: scopes.join(' '),
});

/** Live services take the token in the query; RFC 7009 has it in a form, and calls it `token`. Nobody is told whether there was one. */
function answerRevoke({ grants }: SignIn, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  try {
    const query = queryOf(request);
    const form = request.method === 'POST' && request.body ? formOf(request) : new URLSearchParams();
    const tokens = [query, form].flatMap(from => ['access_token', 'token'].flatMap(name => findParameter(from, name) ?? []));
    if (tokens.length === 0) throw new OAuthError('invalid_request', 'access_token is missing.');
    for (const token of tokens) grants.revoke(token);
    return sendJson(reply, 200, {});
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error;
    return sendError(reply, error);
  }
}

function sendError(reply: FastifyReply, { code, message }: OAuthError): FastifyReply {
  const isUnknown = code === 'invalid_client';
  if (isUnknown) reply.header('WWW-Authenticate', 'Basic realm="oauth"');
  return sendJson(reply, isUnknown ? 401 : 400, { error: code, error_description: message });
}

function sendJson(reply: FastifyReply, status: number, body: object): FastifyReply {
  return reply
    .code(status)
    .headers({ 'Cache-Control': 'no-store', Pragma: 'no-cache' })
    .type('application/json; charset=utf-8')
    .send(JSON.stringify(body));
}
