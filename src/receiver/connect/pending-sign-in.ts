import { randomBytes } from 'node:crypto';
import { isSameText } from '../../base/is-same-text.ts';
import { seal, unseal } from '../../base/secrets/seal.ts';
import type { Language } from './texts.ts';

/** A sign-in that a browser has begun, as its cookie holds it. */
export interface PendingSignIn {
  /** Of the invitation. */
  secret: string;
  state: string;
  /** Of PKCE. */
  verifier: string;
  textHash: string | null;
  language: Language;
  /** Milliseconds since the epoch. */
  begunAt: number;
}

const NAME = 'ringneck_connect';
export const SIGN_IN_MS = 30 * 60_000;

/**
 * Keeps what a sign-in has begun with in a cookie of its browser, sealed with a key that this process alone has: nothing is kept for who never
 * comes back, and after a restart one begins again.
 */
export class PendingSignIns {
  readonly #key = randomBytes(32);
  readonly #name: string;
  readonly #attributes: string;
  readonly #now: () => number;

  /** @param publicUrl where the pages are reached from outside */
  constructor(publicUrl: string, now: () => number) {
    const { protocol, pathname } = new URL(`${publicUrl}/connect`);
    const isSecure = protocol === 'https:';
    // Browsers take one of this name from this very host alone, not from a host beside it, and only for all of its paths.
    const isOfHost = isSecure && pathname === '/connect';
    this.#name = `${isOfHost ? '__Host-' : isSecure ? '__Secure-' : ''}${NAME}`;
    this.#attributes = ['HttpOnly', 'SameSite=Lax', `Path=${isOfHost ? '/' : pathname}`, ...(isSecure ? ['Secure'] : [])].join('; ');
    this.#now = now;
  }

  /** The Set-Cookie of a sign-in that begins. */
  cookieOf(pending: Omit<PendingSignIn, 'begunAt'>): string {
    const sealed = seal(JSON.stringify({ ...pending, begunAt: this.#now() } satisfies PendingSignIn), NAME, this.#key);
    return `${this.#name}=${Buffer.from(sealed, 'base64').toString('base64url')}; Max-Age=${SIGN_IN_MS / 1000}; ${this.#attributes}`;
  }

  /** The sign-in of a browser's cookies that an answer with this state belongs to. */
  find(cookies: string | undefined, state: string): PendingSignIn | undefined {
    for (const part of (cookies ?? '').split(';')) {
      const [name, value = ''] = part.trim().split('=', 2);
      const pending = name === this.#name ? this.#open(value) : undefined;
      if (pending && isSameText(state, pending.state)) return pending;
    }
    return undefined;
  }

  #open(value: string): PendingSignIn | undefined {
    const text = unseal(Buffer.from(value, 'base64url').toString('base64'), NAME, this.#key);
    if (text === undefined) return undefined;
    // Nobody but this process can have sealed it.
    const pending: PendingSignIn = JSON.parse(text);
    const age = this.#now() - pending.begunAt;
    return age >= 0 && age < SIGN_IN_MS ? pending : undefined;
  }
}
