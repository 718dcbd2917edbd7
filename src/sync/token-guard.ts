import type { Tokens } from '../base/secrets/secrets.ts';

/** A token was replaced or taken away while the service answered it: the answer may be of another person, and is asked for again. */
export class TokenReplaced extends Error {}

/** Throws TokenReplaced once the account has another token than the one that was asked with. */
export const tokenGuard =
  (tokens: Pick<Tokens, 'find'>, userId: string, token: string): (() => void) =>
  () => {
    if (tokens.find(userId) !== token) throw new TokenReplaced(`the token of ${userId} was replaced meanwhile`);
  };
