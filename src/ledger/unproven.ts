/** Why an account waits that has got a new token: the answer that tells whose it is has not come. */
export const UNCHECKED =
  'unchecked: nobody knows yet whether the new token is of the same person; each night asks, and so does adding it again; resume where it is';

export const ANOTHER_PERSON =
  'the token is that of another person: give one of the same, or add this one by another name; resume where it is the same person';

/** Why an account waits whose new token is refused before it is known whose it is. */
export const refusedUnchecked = (refusal: string): string => `${refusal}; unchecked: nor is it known whose it is`;

/** Whether nobody knows yet whose the token of a parked account is, be it refused or not. */
export const isUnchecked = (reason: string | null): boolean => /^unchecked: |; unchecked: /.test(reason ?? '');

/** Whether an account is parked because its token may be somebody else's: it is resumed by its name alone. */
export const isOfUnknownPerson = (reason: string | null): boolean => reason?.endsWith(ANOTHER_PERSON) === true || isUnchecked(reason);

const PAUSED = 'paused by command';

/** Why an account is paused; that nobody knows whose its token is stays said. */
export const pausedReason = (before: string | null): string =>
  isOfUnknownPerson(before) ? `${PAUSED}; ${before?.replace(`${PAUSED}; `, '')}` : PAUSED;
