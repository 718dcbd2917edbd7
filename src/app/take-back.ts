import type { Settings } from '../base/config.ts';
import { messageOf, RingneckError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { EndedSignIn, Secrets } from '../base/secrets/secrets.ts';
import { type SignIn, tokensOf } from '../base/secrets/sign-in.ts';
import { mustSignInAgain } from '../base/sign-in-again.ts';
import { withTimeout } from '../base/timeout.ts';
import { findAccount, listAccounts } from '../ledger/accounts.ts';
import { isOfAnother, isOfSomebodyElse, isWithdrawn } from '../ledger/unproven.ts';
import type { OAuthClient } from '../sign-in/oauth.ts';
import type { Warehouse } from '../warehouse/warehouse.ts';
import { openOAuth } from './open-oauth.ts';

/** Of the app that takes sign-ins back. */
interface Parts {
  settings: Pick<Settings, 'signIn'>;
  secrets: Secrets;
  log: Log;
}

/** What is to be taken back; what cannot be read any more is forgotten all the same. */
export function findReadableSignIn({ secrets }: Pick<Parts, 'secrets'>, name: string): SignIn | undefined {
  try {
    return secrets.findSignIn(name);
  } catch (error) {
    if (error instanceof RingneckError) return undefined;
    throw error;
  }
}

/** The accounts that are read, or may be again without another sign-in: what they are read with is not to be ended at the service. */
export async function listReaders(warehouse: Warehouse): Promise<string[]> {
  const accounts = await listAccounts(warehouse);
  const isNever = (reason: string | null) => isOfSomebodyElse(reason) || isWithdrawn(reason) || mustSignInAgain(reason);
  return accounts.filter(({ reason }) => !isNever(reason)).map(({ userId }) => userId);
}

/** `spared`: taken back it would end there what somebody else is read with. */
type Revoked = 'revoked' | 'failed' | 'spared';

/**
 * Takes a sign-in back at the service, which may count the people of a client. Where it gives no answer, or the sign-in is spared, the log
 * says so, and no more.
 * @param parts.readers of `listReaders`
 * @param parts.renew gives the pair to take back by, in place of one that has ended
 * @param reason of the account, as it was while it had the sign-in
 */
export async function revokeSignIn(
  parts: Parts & { readers: readonly string[]; renew?: (client: OAuthClient, signIn: SignIn) => Promise<SignIn> },
  { name, reason }: { name: string; reason: string | null },
  signIn: SignIn,
): Promise<Revoked> {
  const { tokenUrl } = signIn;
  const spared = whySpared(parts, reason, signIn);
  if (spared !== undefined) {
    parts.log.warn({ account: name }, `a sign-in was not taken back at the service: ${spared}`);
    return 'spared';
  }
  try {
    const client = await openOAuth(parts);
    const { ensureGivenBy } = await import('../sign-in/sign-ins.ts');
    ensureGivenBy(name, { tokenUrl }, client.tokenUrl);
    const revoke = async () => {
      const { accessToken, refreshToken } = (await parts.renew?.(client, signIn)) ?? signIn;
      await client.revoke({ accessToken, refreshToken: refreshToken ?? undefined });
    };
    await withTimeout(revoke(), REVOKED_MS);
    return 'revoked';
  } catch (error) {
    const facts = { account: name, reason: messageOf(error) };
    parts.log.warn(facts, 'a sign-in could not be taken back at the service: its person can do that there');
    return 'failed';
  }
}

export const OTHERS = 'it is known to be of another person, who may be read with it';

function whySpared(
  { secrets, readers }: Pick<Parts, 'secrets'> & { readers: readonly string[] },
  reason: string | null,
  signIn: SignIn,
): string | undefined {
  if (signIn.isLeftToOriginal) return 'the folder that this one is a copy of goes on to use it';
  if (isOfAnother(reason)) return OTHERS;
  return secrets.isHeld(tokensOf(signIn), readers) ? 'another account is read with the same tokens' : undefined;
}

/** Nobody who removes an account is to wait longer for a service that is ill. */
const REVOKED_MS = 10_000;

/** How long it is tried to take back a sign-in that has ended; its tokens are kept no longer. */
const TRIED_FOR_MS = 30 * 86_400_000;

const LEFT = 'a sign-in that has ended could not be taken back';

/**
 * Takes back at the service what has ended and is not taken back yet, of one account or of all, and forgets it. What fails, the log says; it
 * is tried again by the next call.
 */
export async function takeBackEnded(parts: Parts & { warehouse: Warehouse; now: () => number }, of?: string): Promise<void> {
  const { secrets, log, now, warehouse } = parts;
  const taking = secrets.listEnded().filter(({ name, isGivenUp }) => !isGivenUp && (of === undefined || name === of));
  if (!taking.length) return;
  const readers = await listReaders(warehouse);
  const takeOneBack = async (ended: EndedSignIn) => {
    const { name, at, signIn } = ended;
    if (!signIn) log.warn({ account: name }, `${LEFT}: it cannot be read, or is not of this service`);
    const renew = (client: OAuthClient, former: SignIn) => renewEnded(parts, client, ended, former);
    const revoked = signIn ? await revokeSignIn({ ...parts, readers, renew }, { name, reason: null }, signIn) : 'failed';
    if (revoked === 'revoked') return secrets.removeEnded(ended);
    // A clock that was put back makes it no longer.
    if (revoked === 'failed' && Math.abs(now() - at) < TRIED_FOR_MS) return;
    log.warn({ account: name }, `${LEFT}, and it is not tried again`);
    // The page of who has withdrawn goes on to say it.
    if (isWithdrawn((await findAccount(warehouse, name))?.reason ?? null)) secrets.emptyEnded(ended);
    else secrets.removeEnded(ended);
  };
  await Promise.all(
    taking.map(ended =>
      takeOneBack(ended).catch(error =>
        log.error({ account: ended.name, reason: messageOf(error) }, 'what was taken back cannot be written'),
      ),
    ),
  );
}

/** The public service takes a sign-in back by its access token, which must be alive: one that has ended is renewed for that. */
async function renewEnded(
  { secrets, now }: Pick<Parts, 'secrets'> & { now: () => number },
  client: OAuthClient,
  ended: EndedSignIn,
  signIn: SignIn,
): Promise<SignIn> {
  const { refreshToken, expiresAt } = signIn;
  if (refreshToken === null || expiresAt === null || now() < expiresAt) return signIn;
  const answer = await client.refresh(refreshToken).catch(() => undefined);
  if (!answer) return signIn;
  const { renewed } = await import('../sign-in/sign-ins.ts');
  const next = renewed(signIn, answer, refreshToken, now());
  secrets.renewEnded(ended, next);
  return next;
}
