import { personalInfo } from '../../schema/resources/personal-info.ts';
import { NO_CLIENT, type Settings } from '../base/config.ts';
import { messageOf, RingneckError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { OnFailure } from '../base/on-failure.ts';
import type { Secrets } from '../base/secrets/secrets.ts';
import { type SignIn, tokensOf } from '../base/secrets/sign-in.ts';
import { mustSignInAgain, signInAgain } from '../base/sign-in-again.ts';
import { withTimeout } from '../base/timeout.ts';
import type { Client } from '../client/client.ts';
import { changeAccounts, findAccount, findServiceUserId, listAccounts, setAccountState } from '../ledger/accounts.ts';
import { isOfAnother, isOfSomebodyElse } from '../ledger/unproven.ts';
import type { OAuthClient } from '../sign-in/oauth.ts';
import type { SignIns, Whose } from '../sign-in/sign-ins.ts';
import { isRefusal } from '../sync/verdicts/probe.ts';
import { parkAnother } from '../sync/verdicts/same-person.ts';
import type { Warehouse } from '../warehouse/warehouse.ts';

/** Of the app that keeps them. */
interface Parts {
  settings: Pick<Settings, 'signIn'>;
  secrets: Secrets;
  warehouse: Warehouse;
  now: () => number;
  log: Log;
  onFailure: OnFailure;
  /** Of a client that asks with the very token that it is given. */
  rawClient(): Promise<Pick<Client, 'personalInfo'>>;
}

/** Begins to keep the sign-ins of a data folder alive. */
export async function openSignIns(parts: Parts): Promise<SignIns> {
  const { secrets, now, log, warehouse } = parts;
  const { SignIns } = await import('../sign-in/sign-ins.ts');
  let client: Promise<OAuthClient> | undefined;
  const signIns = new SignIns({
    secrets,
    now,
    log,
    openOAuth: () => {
      client ??= openOAuth(parts);
      return client;
    },
    // One that is paused would be over when it is resumed.
    listKept: async () => {
      const accounts = await listAccounts(warehouse);
      return accounts.filter(({ reason }) => !mustSignInAgain(reason) && !isOfAnother(reason)).map(({ userId }) => userId);
    },
    askWhose: (name, signIn) => askWhoseRenewed(parts, name, signIn),
    onEnded: (name, signIn) => parkEnded(parts, name, signIn),
    onEnding: (user, reason) =>
      parts.onFailure({ reason: 'sign_in_ending', user, message: `the sign-in of ${user} cannot be renewed: ${reason}` }),
  });
  signIns.start();
  return signIns;
}

/** @throws RingneckError where the settings name no client */
export async function openOAuth({ settings }: Pick<Parts, 'settings'>): Promise<OAuthClient> {
  if (!settings.signIn) throw new RingneckError(NO_CLIENT);
  const { OAuthClient } = await import('../sign-in/oauth.ts');
  return new OAuthClient(settings.signIn);
}

/**
 * Whose the tokens are that a renewal has brought. Of another person they park the account.
 * @throws ServiceError where the service does not say it clearly
 */
async function askWhoseRenewed(parts: Parts, name: string, { accessToken, scopes, areScopesTold }: SignIn): Promise<Whose> {
  const { warehouse, secrets, log, onFailure } = parts;
  if ((await findServiceUserId(warehouse, name)) === null || !scopes.includes(personalInfo.scope)) return 'untold';
  const client = await parts.rawClient();
  const info = await client.personalInfo(accessToken).catch(error => {
    // It may never have been granted.
    if (isRefusal(error) && areScopesTold === false) return undefined;
    throw error;
  });
  if (info === undefined) return 'untold';
  // It may have been mapped meanwhile.
  if ((await findServiceUserId(warehouse, name)) === info.id) return 'same';
  await parkAnother({ warehouse, tokens: secrets, log, onFailure }, name, { token: accessToken, person: info.id });
  return 'another';
}

async function parkEnded({ warehouse, secrets, log, onFailure }: Parts, name: string, { id }: SignIn): Promise<void> {
  const message = signInAgain(name);
  const parked = await changeAccounts(warehouse, async () => {
    const account = await findAccount(warehouse, name);
    // Somebody may have signed in meanwhile, and what is paused stays so: it is asked again when it is resumed.
    if (account?.state !== 'active' || secrets.findSignIn(name)?.id !== id) return false;
    await setAccountState(warehouse, account, 'parked', message);
    return true;
  });
  if (!parked) return;
  log.warn({ account: name }, 'the service takes the sign-in of the account no more: parked');
  onFailure({ reason: 'account_parked', user: name, message });
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

/** `spared`: taken back it would end there what somebody else is read with. */
type Revoked = 'revoked' | 'failed' | 'spared';

/**
 * Takes a sign-in back at the service, which may count the people of a client. Where it gives no answer, or the sign-in is spared, the log
 * says so, and no more.
 * @param reason of the account, as it was while it had the sign-in
 */
export async function revokeSignIn(
  parts: Pick<Parts, 'settings' | 'log' | 'secrets'>,
  { name, reason }: { name: string; reason: string | null },
  signIn: SignIn,
): Promise<Revoked> {
  const { accessToken, refreshToken, tokenUrl } = signIn;
  const spared = whySpared(parts, reason, signIn);
  if (spared !== undefined) {
    parts.log.warn({ account: name }, `a sign-in was not taken back at the service: ${spared}`);
    return 'spared';
  }
  try {
    const client = await openOAuth(parts);
    const { ensureGivenBy } = await import('../sign-in/sign-ins.ts');
    ensureGivenBy(name, { tokenUrl }, client.tokenUrl);
    await withTimeout(client.revoke({ accessToken, refreshToken: refreshToken ?? undefined }), REVOKED_MS);
    return 'revoked';
  } catch (error) {
    const facts = { account: name, reason: messageOf(error) };
    parts.log.warn(facts, 'a sign-in could not be taken back at the service: its person can do that there');
    return 'failed';
  }
}

function whySpared({ secrets }: Pick<Parts, 'secrets'>, reason: string | null, signIn: SignIn): string | undefined {
  if (signIn.isLeftToOriginal) return 'the folder that this one is a copy of goes on to use it';
  if (isOfSomebodyElse(reason)) return 'it is known to be of another person, who may be read with it';
  return secrets.isHeld(tokensOf(signIn)) ? 'another account is read with the same tokens' : undefined;
}

/** Nobody who removes an account is to wait longer for a service that is ill. */
const REVOKED_MS = 10_000;
