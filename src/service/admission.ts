import { Problem } from './problem.ts';
import { createRateCounter } from './rate-limit.ts';
import type { ServiceSettings } from './settings.ts';
import { type Authenticate, hashToken } from './tokens.ts';

const BEARER = /^bearer +([A-Za-z0-9._~+/-]+=*) *$/i;

const unauthorized = (detail: string) => new Problem(401, detail, { 'WWW-Authenticate': 'Bearer' });

/** Admits a request by its Authorization header: returns the user it speaks for, or throws 401, 403 or 429. */
export type Admit = (authorization: string | undefined) => string;

/**
 * Each authorised request counts against its token and against the application; one that is refused by a limit uses up nothing of the
 * other. A stranger uses up nothing, and learns nothing of the limits.
 */
export function createAdmit(authenticate: Authenticate, settings: ServiceSettings, clock: () => Date): Admit {
  const limits = [
    { counter: createRateCounter(settings.appRateLimit, 'application', clock), keyOf: () => '' },
    { counter: createRateCounter(settings.rateLimit, 'token', clock), keyOf: hashToken },
  ];

  return authorization => {
    if (authorization === undefined) throw unauthorized('Access token is missing: send the header Authorization: Bearer <ACCESS_TOKEN>.');
    const token = BEARER.exec(authorization)?.[1];
    if (token === undefined) throw unauthorized('Authorization header is malformed: send Authorization: Bearer <ACCESS_TOKEN>.');
    const holder = authenticate(token);
    if (!holder) throw unauthorized('Access token is unknown.');
    if (holder.state === 'expired') throw unauthorized('Access token has expired.');
    if (holder.state === 'revoked') throw unauthorized('Access token has been revoked.');
    if (holder.state === 'lapsed') throw new Problem(403, 'The subscription of the user has expired; data is unavailable.');

    for (const { counter, keyOf } of limits) counter?.check(keyOf(token));
    for (const { counter, keyOf } of limits) counter?.count(keyOf(token));
    return holder.userId;
  };
}
