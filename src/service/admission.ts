import type { Scope } from '../../schema/scopes.ts';
import { Problem } from './problem.ts';
import { createRateCounter } from './rate-limit.ts';
import type { ServiceSettings } from './settings.ts';
import { type Authenticate, hashToken, type TokenHolder } from './tokens.ts';

const BEARER = /^bearer +([A-Za-z0-9._~+/-]+=*) *$/i;

const unauthorized = (detail: string, challenge = 'Bearer') => new Problem(401, detail, { 'WWW-Authenticate': challenge });

/** A token that was sent and is worth nothing (RFC 6750, 3.1). */
const worthless = (detail: string) => unauthorized(detail, `Bearer error="invalid_token", error_description="${detail}"`);

/** Admits a request by its Authorization header: returns whom it speaks for, or throws 401, 403 (without `scope` too) or 429. */
export type Admit = (authorization: string | undefined, scope: Scope) => TokenHolder;

/**
 * Each authorised request counts against its token and against the application; one that is refused by a limit uses up nothing of the
 * other. A stranger uses up nothing, and learns nothing of the limits.
 */
export function createAdmit(authenticate: Authenticate, settings: ServiceSettings, clock: () => Date): Admit {
  const limits = [
    { counter: createRateCounter(settings.appRateLimit, 'application', clock), keyOf: () => '' },
    { counter: createRateCounter(settings.rateLimit, 'token', clock), keyOf: hashToken },
  ];

  return (authorization, scope) => {
    if (authorization === undefined) throw unauthorized('Access token is missing: send the header Authorization: Bearer <ACCESS_TOKEN>.');
    const token = BEARER.exec(authorization)?.[1];
    if (token === undefined) throw unauthorized('Authorization header is malformed: send Authorization: Bearer <ACCESS_TOKEN>.');
    const holder = authenticate(token);
    if (!holder) throw worthless('Access token is unknown.');
    if (holder.state === 'expired') throw worthless('Access token has expired.');
    if (holder.state === 'revoked') throw worthless('Access token has been revoked.');
    if (holder.state === 'lapsed') throw new Problem(403, 'The subscription of the user has expired; data is unavailable.');

    for (const { counter, keyOf } of limits) counter?.check(keyOf(token));
    for (const { counter, keyOf } of limits) counter?.count(keyOf(token));
    if (holder.scopes && !holder.scopes.includes(scope))
      throw new Problem(403, `Scope ${scope} is missing: the user has not granted it.`, {
        'WWW-Authenticate': `Bearer error="insufficient_scope", scope="${scope}"`,
      });
    return holder;
  };
}
