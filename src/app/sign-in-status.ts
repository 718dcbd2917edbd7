import { isoOf } from '../../schema/instant.ts';
import { RingneckError } from '../base/errors.ts';
import { loginCommand } from '../base/sign-in-again.ts';
import { isSignInOver } from '../ledger/unproven.ts';
import type { App } from './app.ts';

/** How the sign-in of an account stands. Moments are ISO 8601, UTC. */
export interface SignInStatus {
  /** Null: the service did not say. */
  token_ends_at: string | null;
  /** When the token was given. */
  renewed_at: string;
  /** Whether another one is asked for before it ends. */
  is_renewed: boolean;
  /** Why it could not be renewed when that was tried last; null where it could, or nobody who keeps the folder has tried. */
  problem: string | null;
  /** What the person allowed. */
  scopes: readonly string[];
}

/**
 * Null where the account has not signed in here, or the key is missing, which is said elsewhere.
 * @param reason why the account is not read
 */
export function findSignInStatus(
  app: Pick<App, 'secrets' | 'settings' | 'findSignInTrouble'>,
  name: string,
  reason: string | null,
): SignInStatus | null {
  const { secrets, settings } = app;
  try {
    const signIn = secrets.findSignIn(name);
    if (!signIn) return null;
    const { expiresAt, refreshedAt, refreshToken, scopes } = signIn;
    return {
      token_ends_at: expiresAt === null || expiresAt > LAST_MOMENT ? null : isoOf(expiresAt * 1000),
      renewed_at: isoOf(refreshedAt * 1000),
      is_renewed: refreshToken !== null && settings.signIn !== null && !isSignInOver(reason),
      problem: app.findSignInTrouble(name) ?? null,
      scopes,
    };
  } catch (error) {
    if (error instanceof RingneckError) return null;
    throw error;
  }
}

/** The end of the year 9999: what a service says may be any number. */
const LAST_MOMENT = 253_402_300_799_999;

/** `token until 2026-11-24T09:15Z, renewed 2026-11-23T09:15Z` */
export const tellSignIn = ({ token_ends_at: end, renewed_at: since }: SignInStatus): string =>
  `token ${end === null ? 'without a known end' : `until ${toMinute(end)}`}, renewed ${toMinute(since)}`;

/** What is to be done about a token that ends without another one. */
export const fixEnding = (name: string, settings: App['settings']): string =>
  settings.signIn ? loginCommand(name) : 'set RINGNECK_CLIENT_ID and RINGNECK_CLIENT_SECRET, with which tokens are renewed';

const toMinute = (moment: string) => `${moment.slice(0, 16)}Z`;
