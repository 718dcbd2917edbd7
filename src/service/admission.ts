import { Problem } from './problem.ts';
import { createRateCounter } from './rate-limit.ts';
import type { ServiceSettings } from './settings.ts';
import { type Authenticate, hashToken } from './tokens.ts';

const BEARER = /^bearer +([A-Za-z0-9._~+/-]+=*) *$/i;

const unauthorized = (detail: string) => new Problem(401, detail, { 'WWW-Authenticate': 'Bearer' });

/** Admits a request by its Authorization header: returns the user it speaks for, or throws 401, 403 or 429. */
export type Admit = (authorization: string | undefined) => string;

/**
 * Every request counts against the application, one with a living token against its token too; a request that is refused by one limit
 * uses up nothing of the other.
 */
export function createAdmit(authenticate: Authenticate, settings: ServiceSettings, clock: () => Date): Admit {
  const application = settings.appRateLimit && createRateCounter(settings.appRateLimit, 'application', clock);
  const perToken = settings.rateLimit && createRateCounter(settings.rateLimit, 'token', clock);

  return authorization => {
    const token = authorization === undefined ? undefined : BEARER.exec(authorization)?.[1];
    const holder = token === undefined ? undefined : authenticate(token);
    const living = token !== undefined && (holder?.state === 'active' || holder?.state === 'lapsed');
    const key = living && perToken ? hashToken(token) : undefined;

    application?.check('');
    if (key !== undefined) perToken?.check(key);
    application?.count('');
    if (key !== undefined) perToken?.count(key);

    if (authorization === undefined) throw unauthorized('Access token is missing: send the header Authorization: Bearer <ACCESS_TOKEN>.');
    if (token === undefined) throw unauthorized('Authorization header is malformed: send Authorization: Bearer <ACCESS_TOKEN>.');
    if (!holder) throw unauthorized('Access token is unknown.');
    if (holder.state === 'expired') throw unauthorized('Access token has expired.');
    if (holder.state === 'revoked') throw unauthorized('Access token has been revoked.');
    if (holder.state === 'lapsed') throw new Problem(403, 'The subscription of the user has expired; data is unavailable.');
    return holder.userId;
  };
}
