import type { Scope } from '../../../schema/scopes.ts';
import { OAuthError } from './oauth-error.ts';
import { findParameter, readScopes, requireParameter } from './parameters.ts';

/** What a client asks a person for (RFC 6749, 4.1.1), with the challenge of RFC 7636 where it sends one. */
export interface AuthorizationRequest extends ReturnAddress {
  scopes: readonly Scope[];
  challenge: string | null;
}

/** Where a person is sent back to, and what the client wants to find there again. */
export interface ReturnAddress {
  redirectUri: string;
  state: string | undefined;
}

/** The names of the parameters, which the page sends again. */
export const AUTHORIZATION_PARAMETERS = [
  'client_id',
  'redirect_uri',
  'response_type',
  'state',
  'scope',
  'code_challenge',
  'code_challenge_method',
] as const;

const CHALLENGE = /^[\w-]{43}$/;

/**
 * Where errors may be sent to. Throws OAuthError when the client or its address is not known: then nobody may be sent anywhere.
 */
export function readReturnAddress(
  parameters: URLSearchParams,
  { clientId, redirectUrls }: { clientId: string; redirectUrls: readonly string[] },
): ReturnAddress {
  if (requireParameter(parameters, 'client_id') !== clientId)
    throw new OAuthError('invalid_client', 'The client is unknown: client_id is not the one that ringneck service shows.');
  const redirectUri = requireParameter(parameters, 'redirect_uri');
  if (!redirectUrls.includes(redirectUri))
    throw new OAuthError(
      'invalid_request',
      `The address ${redirectUri} is not registered: ringneck service knows ${redirectUrls.join(', ')}, to the letter; --redirect-url names others.`,
    );
  return { redirectUri, state: parameters.getAll('state').length === 1 ? parameters.get('state') || undefined : undefined };
}

/** All of it. Throws OAuthError, which the client is told at its address. */
export function readAuthorizationRequest(parameters: URLSearchParams, address: ReturnAddress): AuthorizationRequest {
  for (const name of AUTHORIZATION_PARAMETERS) findParameter(parameters, name);
  const type = requireParameter(parameters, 'response_type');
  if (type !== 'code') throw new OAuthError('unsupported_response_type', 'response_type should be code.');
  const challenge = findParameter(parameters, 'code_challenge') ?? null;
  const method = findParameter(parameters, 'code_challenge_method');
  if (challenge === null && method !== undefined) throw new OAuthError('invalid_request', 'code_challenge is missing.');
  if (challenge !== null && method !== 'S256') throw new OAuthError('invalid_request', 'code_challenge_method should be S256.');
  if (challenge !== null && !CHALLENGE.test(challenge))
    throw new OAuthError('invalid_request', 'code_challenge should be a SHA-256 in base64url, 43 characters.');
  return { ...address, scopes: readScopes(parameters), challenge };
}

/** The address with an answer in its query. */
export function answerTo({ redirectUri, state }: ReturnAddress, answer: Readonly<Record<string, string>>): string {
  const url = new URL(redirectUri);
  for (const [name, value] of Object.entries({ ...answer, ...(state === undefined ? {} : { state }) }))
    url.searchParams.append(name, value);
  return url.href;
}
