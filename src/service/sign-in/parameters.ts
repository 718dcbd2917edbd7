import { isScope, type Scope, scopes } from '../../../schema/scopes.ts';
import { OAuthError } from './oauth-error.ts';

/** A parameter of a query or form; undefined where it is absent or empty. Throws OAuthError when it is there twice (RFC 6749, 3.1). */
export function findParameter(parameters: URLSearchParams, name: string): string | undefined {
  const [first, ...others] = parameters.getAll(name);
  if (others.length > 0) throw new OAuthError('invalid_request', `${name} is there more than once.`);
  return first === '' ? undefined : first;
}

/** A parameter that must be there. Throws OAuthError. */
export function requireParameter(parameters: URLSearchParams, name: string): string {
  const value = findParameter(parameters, name);
  if (value === undefined) throw new OAuthError('invalid_request', `${name} is missing.`);
  return value;
}

/** The scopes that `scope` names, of those that there may be; all of these where it is absent. Throws OAuthError for any other word. */
export function readScopes(parameters: URLSearchParams, allowed: readonly Scope[] = scopes): readonly Scope[] {
  const words = findParameter(parameters, 'scope')?.split(' ').filter(Boolean) ?? allowed;
  if (!words.every(word => isScope(word) && allowed.includes(word)))
    throw new OAuthError('invalid_scope', `scope may hold ${allowed.join(', ')}, separated by blanks.`);
  return allowed.filter(scope => words.includes(scope));
}
