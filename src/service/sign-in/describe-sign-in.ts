import { scopeMeanings, scopes } from '../../../schema/scopes.ts';
import { SIGN_IN_ROUTES, type SignInRoute, TOKEN_PATH } from './sign-in-routes.ts';

/** Signing in as a part of the OpenAPI document. */

type Json = Record<string, unknown>;

const text = (description: string, more: Json = {}): Json => ({ type: 'string', description, ...more });
const object = (properties: Record<string, Json>, required: readonly string[]): Json => ({ type: 'object', properties, required });
const refer = (name: string): Json => ({ $ref: `#/components/schemas/${name}` });
const content = (type: string, schema: Json): Json => ({ content: { [type]: { schema } } });
const FORM = 'application/x-www-form-urlencoded';

export const signInSchemas: Json = {
  TokenAnswer: object(
    {
      access_token: text('For the header Authorization: Bearer'),
      token_type: text('How it is sent', { enum: ['bearer'] }),
      expires_in: { type: 'integer', description: 'Until the access token expires [s]' },
      refresh_token: text('For the next tokens; it works once'),
      scope: text('What the user has granted, separated by blanks'),
    },
    ['access_token', 'token_type', 'expires_in', 'refresh_token', 'scope'],
  ),
  OAuthError: object({ error: text('For programs, as in RFC 6749'), error_description: text('For people') }, ['error']),
};

export const signInSecurity: Json = {
  oauth: {
    type: 'oauth2',
    description: 'Beyond the specification: a user signs in and grants scopes (RFC 6749).',
    flows: {
      authorizationCode: { authorizationUrl: '/oauth/authorize', tokenUrl: TOKEN_PATH, refreshUrl: TOKEN_PATH, scopes: scopeMeanings },
    },
  },
};

/** The parameters of RFC 6749, 4.1.1, and RFC 7636, 4.3. */
const REQUEST: Record<string, Json> = {
  client_id: text('The id of the client'),
  redirect_uri: text('Where the answer goes, as it is registered', { format: 'uri' }),
  response_type: text('What is asked for', { enum: ['code'] }),
  state: text('Comes back with the answer'),
  scope: text(`Of ${scopes.join(', ')}, separated by blanks; all when omitted`),
  code_challenge: text('SHA-256 of a secret of the client, in base64url', { pattern: '^[A-Za-z0-9_-]{43}$' }),
  code_challenge_method: text('How the challenge was made', { enum: ['S256'] }),
};
const REQUIRED = ['client_id', 'redirect_uri', 'response_type'];

const DECISION = object(
  {
    ...REQUEST,
    person: text('The user_id of who signs in'),
    grant: { type: 'array', items: { type: 'string', enum: scopes }, description: 'What may be read' },
    decision: text('Anything but allow refuses', { enum: ['allow', 'refuse'] }),
  },
  [...REQUIRED, 'decision'],
);

const TOKEN_REQUEST = object(
  {
    grant_type: text('What the tokens are for', { enum: ['authorization_code', 'refresh_token'] }),
    client_id: text('The id of the client, unless the header Authorization: Basic has it'),
    client_secret: text('The secret of the client, unless the header Authorization: Basic has it'),
    code: text('For authorization_code'),
    redirect_uri: text('For authorization_code: as it was in the request'),
    code_verifier: text('For authorization_code, where there was a code_challenge'),
    refresh_token: text('For refresh_token'),
  },
  ['grant_type'],
);

const query = (properties: Record<string, Json>, required: readonly string[]): Json[] =>
  Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    description,
    schema,
  }));

const REVOKE: Record<string, Json> = {
  access_token: text('An access token or a refresh token'),
  token: text('The same, by the name that RFC 7009 has'),
};

const page = (description: string): Json => ({ description, ...content('text/html', { type: 'string' }) });
const oauthError = (description: string): Json => ({ description, ...content('application/json', refer('OAuthError')) });
const location: Json = {
  Location: { description: 'The address of the client, with code, scope and state, or an error.', schema: { type: 'string' } },
};
const failure = (status: number): Json => ({ [status]: { $ref: `#/components/responses/${status}` } });

const SENT_BACK: Json = { 303: { description: 'The user is sent back to the client.', headers: location } };
const NOT_SENT_BACK: Json = { 400: page('The client or its address is unknown: a page, and nobody is sent anywhere.') };
const REVOKED: Json = {
  200: {
    description: 'Whatever came of the same sign-in is revoked, if there was any.',
    ...content('application/json', { type: 'object' }),
  },
  400: oauthError('There is no token in the request.'),
};

const OPERATIONS: Record<string, Json> = {
  'get /oauth/authorize': {
    operationId: 'askForAuthorization',
    summary: 'The page on which a user grants scopes or refuses',
    parameters: query(REQUEST, REQUIRED),
    responses: { 200: page('The page.'), ...SENT_BACK, ...NOT_SENT_BACK },
  },
  'post /oauth/authorize': {
    operationId: 'decideAuthorization',
    summary: 'What the user has decided',
    requestBody: { required: true, ...content(FORM, DECISION) },
    responses: { ...SENT_BACK, ...NOT_SENT_BACK, 403: page('The form was sent from another site.') },
  },
  [`post ${TOKEN_PATH}`]: {
    operationId: 'issueTokens',
    summary: 'Tokens for a code, or the next ones for a refresh token',
    description: 'A code works once, and a refresh token works once: a second use revokes all that came of the sign-in.',
    requestBody: { required: true, ...content(FORM, TOKEN_REQUEST) },
    responses: {
      200: { description: 'The tokens.', ...content('application/json', refer('TokenAnswer')) },
      400: oauthError('The request, its code or its refresh token is wrong.'),
      401: oauthError('Id or secret of the client is missing or wrong.'),
      ...failure(429),
    },
  },
  'get /oauth/revoke': {
    operationId: 'revokeByAddress',
    summary: 'Revoke what came of a sign-in',
    parameters: query(REVOKE, []),
    responses: REVOKED,
  },
  'post /oauth/revoke': {
    operationId: 'revokeByForm',
    summary: 'Revoke what came of a sign-in',
    parameters: query(REVOKE, []),
    requestBody: { required: false, ...content(FORM, object(REVOKE, [])) },
    responses: REVOKED,
  },
};

/** The paths of the sign-in. */
export function describeSignIn(): Record<string, Json> {
  const paths: Record<string, Json> = {};
  for (const route of SIGN_IN_ROUTES) paths[route.path] = { ...paths[route.path], [route.method]: describeRoute(route) };
  return paths;
}

function describeRoute({ method, path }: SignInRoute): Json {
  const { responses, ...operation } = OPERATIONS[`${method} ${path}`] ?? {};
  return {
    tags: ['sign-in'],
    ...operation,
    security: [],
    responses: Object.assign({}, responses, ...[413, 431, 500, 503].map(failure)),
    'x-extension': true,
  };
}
