import { resources } from '../../schema/index.ts';
import type { SignInSettings } from '../base/config.ts';
import { messageOf, RingneckError } from '../base/errors.ts';
import type { Secrets } from '../base/secrets/secrets.ts';
import { isReplaced, newSignInId, type SignIn, tokensOf } from '../base/secrets/sign-in.ts';
import { loginCommand } from '../base/sign-in-again.ts';
import { type Account, changeAccounts, findAccount, findServiceUserId, parseAccountName } from '../ledger/accounts.ts';
import { isWithdrawn } from '../ledger/unproven.ts';
import { SignInError } from '../sign-in/error.ts';
import type { TokenAnswer } from '../sign-in/oauth.ts';
import { beginSignIn } from '../sign-in/sign-ins.ts';
import { collectionsOf } from '../sync/collections.ts';
import { findTwin } from '../sync/verdicts/same-person.ts';
import { noteUngranted } from '../sync/verdicts/ungranted.ts';
import type { LedgerEntry } from '../warehouse/sql.ts';
import { type AddedReport, formerEndsAt, reportAdded, takeBackFormer } from './account-commands.ts';
import { askWhose, askWhoseSurely, beginAccount, WrongPersonError } from './add-account.ts';
import type { App } from './app.ts';
import { hasWithdrawnSince } from './enrolment/withdrawal.ts';
import { ensureSignIn } from './ensure-there.ts';
import { openOAuth } from './open-oauth.ts';
import { findOtherOwner, findReadableSignIn, listReaders } from './take-back.ts';

/** What a person is sent to the service with; nothing of it is secret. */
export type LoginSettings = Omit<SignInSettings, 'tokenUrl' | 'clientSecret'>;

export interface LoginInput {
  name: string;
  code: string;
  /** Of PKCE. */
  verifier: string;
  /** As it was sent to the service. */
  redirectUrl: string;
  /** What was granted, as the answer of the browser says. */
  scope?: string | undefined;
}

/** What the owner of a data folder does while a person signs in, who may take their time: in between nothing waits for them. */
export const loginCommands = { beginLogin, finishLogin };

/** @throws RingneckError, before the person is sent to the service, where what they give could not be kept */
async function beginLogin({ settings, secrets }: App, { name }: { name: string }): Promise<LoginSettings> {
  parseAccountName(name);
  const { authorizeUrl, redirectUrl, scopes, clientId } = ensureSignIn(settings);
  secrets.acceptKey();
  return { authorizeUrl, redirectUrl, scopes, clientId };
}

/**
 * Exchanges the code, and adds the account or gives a known one the new sign-in.
 * @throws RingneckError where nothing is kept: the code is worth nothing, or the person is another one
 */
async function finishLogin(app: App, { name, ...answer }: LoginInput): Promise<AddedReport & { warning: string | null }> {
  parseAccountName(name);
  app.ending.throwIfAborted();
  return app.inHand.add(exchangeAndStore(app, { name, ...answer }));
}

async function exchangeAndStore(app: App, { name, ...answer }: LoginInput): ReturnType<typeof finishLogin> {
  const tokens = await exchangeCode(app, answer).catch(error => {
    if (!(error instanceof SignInError) || error.kind !== 'invalid_grant') throw error;
    throw new SignInError('invalid_grant', `the service does not take the code, which works once and not for long: ${loginCommand(name)}`, {
      cause: error,
      detail: error.detail,
    });
  });
  return storeSignIn(app, name, tokens);
}

/**
 * What a code is good for; it is used up by that.
 * @throws RingneckError, before the service is asked, where what comes of it could not be kept
 */
export async function exchangeCode(app: App, answer: Omit<LoginInput, 'name'>): Promise<ExchangedCode> {
  const begunAt = performance.now();
  app.secrets.acceptKey();
  return { ...(await (await openOAuth(app)).exchange(answer)), begunAt };
}

type ExchangedCode = TokenAnswer & { begunAt: number };

/**
 * Keeps what a code was exchanged for, where it is of the person of the account, and asks the service about it.
 * @param invited says what is recorded together with the account of who came by a link, of whom the service must have said who they are, or
 *   that it does not say; done while nobody else changes accounts, and what it throws keeps anything from being stored
 * @throws WrongPersonError, or what kept it from being stored; the tokens are taken back at the service then
 */
export async function storeSignIn(
  app: App,
  name: string,
  tokens: ExchangedCode,
  invited?: (signIn: SignIn, person: string | undefined) => Promise<LedgerEntry[]>,
): Promise<AddedReport & { warning: string | null }> {
  const { secrets, now, settings } = app;
  const signIn = beginSignIn(newSignInId(), tokens, settings.signIn?.scopes ?? [], now(), settings.signIn?.tokenUrl);
  let former: SignIn | undefined;
  let hadSignIn = false;
  let before: Account | undefined;
  let isRecorded = false;
  const credential = {
    token: signIn.accessToken,
    scopes: signIn.scopes,
    isSignIn: true as const,
    keep: () => {
      ensureNotWithdrawnSince(app, name, tokens.begunAt);
      former = findReadableSignIn(app, name);
      hadSignIn = secrets.hasSignIn(name);
      const isReturning = before !== undefined && isWithdrawn(before.reason);
      // On the list before nobody knows of it any more, also where it cannot be read.
      secrets.putSignIn(name, isReturning ? { ...signIn, afterWithdrawal: before?.since } : signIn, formerEndsAt(app, before));
    },
  };
  try {
    const person = await (invited ? askWhoseSurely : askWhose)(app, tokens.accessToken);
    const added = await changeAccounts(app.warehouse, async () => {
      if (person !== undefined) await ensureSamePerson(app, name, person);
      await ensureNew(app, name, signIn);
      const entries = await invited?.(signIn, person);
      before = await findAccount(app.warehouse, name);
      return beginAccount(app, name, { ...credential, person, entries, isProven: invited !== undefined }, undefined);
    });
    isRecorded = !added.isUnproven;
    const report = await reportAdded(app, added);
    await noteUngranted({ warehouse: app.warehouse, collections: collectionsOf(resources), tokens: secrets });
    const isSeenToWork = report.tried && report.state === 'active' && secrets.findSignIn(name)?.id === signIn.id;
    return hadSignIn && isSeenToWork ? await takeBackFormer(app, report) : report;
  } catch (error) {
    const isKept = findReadableSignIn(app, name)?.id === signIn.id;
    const isToPutBack = isKept && invited !== undefined && !isRecorded;
    try {
      if (isToPutBack) putBack(app, name, former);
    } finally {
      // What is not kept shall not be good for anybody.
      if (!isKept || isToPutBack) await revokeTokens(app, name, signIn);
    }
    throw error;
  }
}

/** @throws RingneckError: their last word is that they are not to be read */
function ensureNotWithdrawnSince(app: App, name: string, begunAt: number): void {
  if (!hasWithdrawnSince(app, name, begunAt)) return;
  throw new RingneckError(
    `the person of ${name} has withdrawn while they signed in, and nothing was stored: where they want to be read all the same, ${loginCommand(name)}`,
  );
}

/** The account could not be recorded. */
function putBack({ secrets }: App, name: string, former: SignIn | undefined): void {
  if (!former) {
    secrets.remove(name);
    return;
  }
  secrets.putSignIn(name, former);
  for (const ended of secrets.listEnded()) if (ended.name === name && ended.signIn?.id === former.id) secrets.removeEnded(ended);
}

/** By tokens that are new, and so known to be alive. Where that fails it is tried again as with what has ended. */
async function revokeTokens(app: App, name: string, signIn: SignIn): Promise<void> {
  const { secrets, log, warehouse } = app;
  const { accessToken, refreshToken } = signIn;
  let ended: ReturnType<typeof noteEnded>;
  try {
    // A cache may have answered with what somebody else is read with.
    if (secrets.findOwner([accessToken, refreshToken], await listReaders(warehouse)) !== undefined) return;
    ended = noteEnded(app, name, signIn);
    const oauth = await openOAuth(app);
    await oauth.revoke({ accessToken, refreshToken: refreshToken ?? undefined });
    if (ended) secrets.removeEnded(ended);
  } catch (error) {
    // The disk may take it by now.
    ended ??= noteEnded(app, name, signIn);
    const left = ended ? 'ringneck up tries it each day for 30 days' : 'its person can do that there';
    const facts = { account: name, reason: messageOf(error) };
    log.warn(facts, `a sign-in that is not kept could not be taken back at the service: ${left}`);
  }
}

/** A process that ends while the service is asked leaves it to the next one. */
function noteEnded({ secrets, log, now }: App, name: string, signIn: SignIn): ReturnType<Secrets['putEnded']> | undefined {
  try {
    return secrets.putEnded(name, signIn, now());
  } catch (error) {
    log.error({ account: name, reason: messageOf(error) }, 'a sign-in that is not kept could not be noted to be taken back');
    return undefined;
  }
}

/** @throws RingneckError where the service, or a cache before it, has answered with what another account is read with, or what this one had before */
async function ensureNew(app: App, name: string, signIn: SignIn): Promise<void> {
  const tell = (what: string) =>
    new RingneckError(
      `the service answered with ${what}, and nothing was stored: is there a cache before RINGNECK_TOKEN_URL? Then ${loginCommand(name)}`,
    );
  const other = await findOtherOwner(app, name, tokensOf(signIn));
  if (other !== undefined) throw tell(`the tokens of ${other}`);
  const former = findReadableSignIn(app, name);
  if (former && isReplaced(former, signIn.accessToken)) throw tell(`tokens that ${name} had before`);
}

/** @throws WrongPersonError where the account, or this person, is known to be another one */
async function ensureSamePerson({ warehouse }: App, name: string, person: string): Promise<void> {
  const known = await findServiceUserId(warehouse, name);
  const other = await findTwin(warehouse, name, person);
  if (known !== null && known !== person) {
    const who = other ?? `somebody else (${person} at the service)`;
    throw new WrongPersonError(
      `the person who signed in is ${who}, not ${name}, and nothing was stored: sign out there, then ${loginCommand(name)}`,
      { person, other },
    );
  }
  if (other !== undefined) {
    throw new WrongPersonError(`the person who signed in is already the account ${other}, and nothing was stored: ${loginCommand(other)}`, {
      person,
      other,
    });
  }
}
