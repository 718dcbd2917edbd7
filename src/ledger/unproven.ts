import { loginCommand, mustSignInAgain } from '../base/sign-in-again.ts';

/** Why an account waits that has got a new token: the answer that tells whose it is has not come. */
export const UNCHECKED = 'unchecked: nobody knows yet whether the new token is of the same person; each night asks';

export const ANOTHER_PERSON = 'the token is that of another person';

const TWIN = 'the token is of the same person as the account ';

/** Why an account waits whose person another account is already: one person is read under one name. */
export const twinOf = (other: string): string => TWIN + other;

export const isTwin = (reason: string | null): boolean => reason?.includes(TWIN) === true;

/** The account that the person is already, of such a reason. */
export const twinIn = (reason: string | null): string | undefined =>
  reason?.includes(TWIN) ? /^[^;\s]*/.exec(reason.slice(reason.indexOf(TWIN) + TWIN.length))?.[0] : undefined;

/** Why an account waits whose new token is refused before it is known whose it is. */
export const refusedUnchecked = (refusal: string): string => `${refusal}; unchecked: nor is it known whose it is`;

/** Whether nobody knows yet whose the token of a parked account is, be it refused or not. */
export const isUnchecked = (reason: string | null): boolean => /^unchecked: |; unchecked: /.test(reason ?? '');

/** Whether the token of an account is known to be of another person. */
export const isOfAnother = (reason: string | null): boolean => reason?.includes(ANOTHER_PERSON) === true;

/** Whether the token of an account is known to be of who is, or may be, another account. */
export const isOfSomebodyElse = (reason: string | null): boolean => isOfAnother(reason) || isTwin(reason);

/** Whether an account is parked because its token may be somebody else's: it is resumed by its name alone. */
export const isOfUnknownPerson = (reason: string | null): boolean => isOfAnother(reason) || isTwin(reason) || isUnchecked(reason);

export const newToken = (name: string): string => `give it a new token: ${giveToken(name)}`;

/** Who has signed in has no token to give. */
const giveToken = (name: string) => `ringneck account add ${name}, or ${loginCommand(name)}`;

/** What gets a parked account out of that; undefined where its reason ends with it. */
export function cureOf(name: string, reason: string | null): string | undefined {
  if (mustSignInAgain(reason)) return undefined;
  const resume = (where: string) => `${where}: ringneck account resume ${name}`;
  if (isTwin(reason)) return `keep one of the two: ringneck account remove ${name}`;
  if (isOfAnother(reason)) return `give it one of the same: ${giveToken(name)}; or, ${resume('if the person is the same')}`;
  if (reason?.startsWith('unchecked: ')) return `to ask now, give it again: ${giveToken(name)}; or, ${resume('if the person is the same')}`;
  return isUnchecked(reason) ? newToken(name) : `${newToken(name)}; or, ${resume('if it was fixed there')}`;
}

const PAUSED = 'paused by command';

/** Why an account is paused; that nobody knows whose its token is stays said. */
export const pausedReason = (before: string | null): string =>
  isOfUnknownPerson(before) ? `${PAUSED}; ${before?.replace(`${PAUSED}; `, '')}` : PAUSED;

const WITHDRAWN = 'withdrawn by the person';

/** Why an account is paused whose person has withdrawn, with what is left to be done. */
export const withdrawnReason = (name: string): string => `${WITHDRAWN}; its rows stay until: ringneck account remove ${name} --erase`;

export const isWithdrawn = (reason: string | null): boolean => reason?.startsWith(WITHDRAWN) === true;

/** Whether what an account has signed in with is renewed no more: it is over, is another person's, or its own person has withdrawn. */
export const isSignInOver = (reason: string | null): boolean => mustSignInAgain(reason) || isOfAnother(reason) || isWithdrawn(reason);

/** What has an account read again whose person has withdrawn. */
export const askAgain = (name: string): string => `ringneck account invite ${name}, or ${loginCommand(name)}`;
