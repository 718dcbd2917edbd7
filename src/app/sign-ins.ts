import { personalInfo } from '../../schema/resources/personal-info.ts';
import type { Settings } from '../base/config.ts';
import type { Log } from '../base/log.ts';
import type { OnFailure } from '../base/on-failure.ts';
import type { Secrets } from '../base/secrets/secrets.ts';
import type { SignIn } from '../base/secrets/sign-in.ts';
import { signInAgain } from '../base/sign-in-again.ts';
import type { Client } from '../client/client.ts';
import { changeAccounts, findAccount, findServiceUserId, listAccounts, setAccountState } from '../ledger/accounts.ts';
import { isSignInOver } from '../ledger/unproven.ts';
import type { OAuthClient } from '../sign-in/oauth.ts';
import type { SignIns, Unwritten, Whose } from '../sign-in/sign-ins.ts';
import { isRefusal } from '../sync/verdicts/probe.ts';
import { parkAnother } from '../sync/verdicts/same-person.ts';
import type { Warehouse } from '../warehouse/warehouse.ts';
import type { InHand } from './in-hand.ts';
import { ensureHeld } from './lake/hold.ts';
import { openOAuth } from './open-oauth.ts';
import { listOthers, takeBackEnded } from './take-back.ts';

/** Of the app that keeps them. */
interface Parts {
  settings: Pick<Settings, 'signIn' | 'data'>;
  secrets: Secrets;
  warehouse: Warehouse;
  now: () => number;
  log: Log;
  onFailure: OnFailure;
  inHand: InHand;
  ending: AbortSignal;
  unwritten: Unwritten;
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
    unwritten: parts.unwritten,
    now,
    log,
    openOAuth: () => {
      client ??= openOAuth(parts);
      return client;
    },
    // One that is paused would be over when it is resumed; who has withdrawn is not resumed.
    listKept: async () => (await listAccounts(warehouse)).filter(({ reason }) => !isSignInOver(reason)).map(({ userId }) => userId),
    takeBack: async (name, signIn) => {
      secrets.putEnded(name, signIn, now());
      await takeBackEnded(parts, name);
    },
    wait: renewal => parts.inHand.add(renewal),
    ending: parts.ending,
    ensureOurs: () => ensureHeld(parts.settings.data),
    listOthers: name => listOthers(warehouse, name),
    askWhose: (name, signIn) => askWhoseRenewed(parts, name, signIn),
    onEnded: (name, signIn) => parkEnded(parts, name, signIn),
    onEnding: (user, reason) =>
      parts.onFailure({ reason: 'sign_in_ending', user, message: `the sign-in of ${user} cannot be renewed: ${reason}` }),
  });
  signIns.start();
  return signIns;
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
