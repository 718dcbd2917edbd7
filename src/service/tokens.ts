import { createHash, randomBytes } from 'node:crypto';
import type { Scope } from '../../schema/scopes.ts';

/** What a known token is worth: expired and revoked are unauthorized (5.1), lapsed is forbidden (5.2). */
export const TOKEN_STATES = ['active', 'expired', 'revoked', 'lapsed'] as const;
export type TokenState = (typeof TOKEN_STATES)[number];

/** What a token was, and what became of it. */
export interface TokenChange {
  before: TokenState;
  after: TokenState;
}

/** Who a token speaks for. */
export interface TokenHolder {
  userId: string;
  state: TokenState;
  /** What was granted; all where nothing is said. */
  scopes?: readonly Scope[];
}

/** The holder of a token; undefined when nobody ever had it. */
export type Authenticate = (token: string) => TokenHolder | undefined;

/** A new token of 256 random bits, an access token unless its prefix says otherwise. Shown once; only its hash is kept. */
export function createToken(prefix = 'rn'): string {
  return `${prefix}_${randomBytes(32).toString('base64url')}`;
}

/** What is stored of a token. One SHA-256 is enough: 256 random bits cannot be guessed, so nothing is gained by a slow hash. */
export function hashToken(token: string): string {
  return createHash('sha256').update(token).digest('base64url');
}

/**
 * Looks tokens up by their hash. What the time of a look-up may tell is about hashes, and nobody can choose a token by the beginning
 * of its hash: it is as good as a comparison in constant time.
 */
export function createAuthenticate(holders: ReadonlyMap<string, TokenHolder>): Authenticate {
  return token => holders.get(hashToken(token));
}
