import type { Settings } from '../base/config.ts';
import { messageOf, RingneckError, unlessRefused } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { Mutex } from '../base/mutex.ts';
import type { EndedSignIn, Secrets } from '../base/secrets/secrets.ts';
import { isReplaced, type SignIn, tokensOf } from '../base/secrets/sign-in.ts';
import { mustSignInAgain } from '../base/sign-in-again.ts';
import { withTimeout } from '../base/timeout.ts';
import { findAccount, listAccounts } from '../ledger/accounts.ts';
import { isOfAnother, isOfSomebodyElse, isOfUnknownPerson, isWithdrawn } from '../ledger/unproven.ts';
import { SignInError } from '../sign-in/error.ts';
import type { Warehouse } from '../warehouse/warehouse.ts';
import type { InHand } from './in-hand.ts';
import { ensureHeld } from './lake/hold.ts';
import { openOAuth } from './open-oauth.ts';

/** Of the app that takes sign-ins back. */
interface Parts {
  settings: Pick<Settings, 'signIn' | 'data'>;
  secrets: Secrets;
  log: Log;
}

type Taking = Parts & { warehouse: Warehouse; now: () => number; inHand: InHand };

/** What is to be taken back; what cannot be read any more is forgotten all the same. */
export const findReadableSignIn = ({ secrets }: Pick<Parts, 'secrets'>, name: string): SignIn | undefined =>
  unlessRefused(() => secrets.findSignIn(name));

/** The accounts that are read, or may be again without another sign-in: what they are read with is not to be ended at the service. */
export async function listReaders(warehouse: Warehouse): Promise<string[]> {
  const accounts = await listAccounts(warehouse);
  const isNever = (reason: string | null) => isOfSomebodyElse(reason) || isWithdrawn(reason) || mustSignInAgain(reason);
  return accounts.filter(({ reason }) => !isNever(reason)).map(({ userId }) => userId);
}

/** The other accounts, but those whose tokens may be somebody else's there. */
export async function listOthers(warehouse: Warehouse, name: string): Promise<string[]> {
  const others = (await listAccounts(warehouse)).filter(({ userId, reason }) => userId !== name && !isOfUnknownPerson(reason));
  return others.map(({ userId }) => userId);
}

/** Which of them has one of these tokens. */
export const findOtherOwner = async (
  { warehouse, secrets }: Pick<Taking, 'warehouse' | 'secrets'>,
  name: string,
  tokens: Parameters<Secrets['findOwner']>[0],
): Promise<string | undefined> => secrets.findOwner(tokens, await listOthers(warehouse, name));

/** `spared`: taken back it would end there what somebody else is read with. */
type Revoked = 'revoked' | 'failed' | 'spared';

type Revoking = Parts & { now: () => number; readers: readonly string[]; keep?: (renewed: SignIn) => void };

/**
 * Takes a sign-in back at the service, which may count the people of a client. Where it gives no answer, or the sign-in is spared, the log
 * says so, and no more.
 * @param parts.readers of `listReaders`
 * @param parts.keep writes down what it is renewed to for that, as long as it is not known to be taken back
 * @param reason of the account, as it was while it had the sign-in
 */
export async function revokeSignIn(
  parts: Revoking,
  { name, reason }: { name: string; reason: string | null },
  signIn: SignIn,
): Promise<Revoked> {
  const spared = whySpared(parts, reason, signIn);
  if (spared !== undefined) {
    parts.log.warn({ account: name }, `a sign-in was not taken back at the service: ${spared}`);
    return 'spared';
  }
  try {
    await renewAndRevoke(parts, name, signIn);
    return 'revoked';
  } catch (error) {
    tellFailed(parts, name, error);
    return 'failed';
  }
}

/**
 * The public service takes a sign-in back by an access token that is alive, which none but a new one is known to be: a dead one it answers
 * with 200 too.
 */
async function renewAndRevoke(parts: Revoking, name: string, signIn: SignIn): Promise<void> {
  const { log, now, keep, secrets, readers } = parts;
  const { accessToken, refreshToken, tokenUrl } = signIn;
  const client = await openOAuth(parts);
  const { ensureGivenBy, renewed, useRefreshToken } = await import('../sign-in/sign-ins.ts');
  ensureGivenBy(name, { tokenUrl }, client.tokenUrl);
  await ensureHeld(parts.settings.data);
  const brought =
    refreshToken === null
      ? undefined
      : await useRefreshToken(client, signIn).catch(error => {
          if (error instanceof SignInError && error.kind === 'invalid_grant') return undefined;
          throw error;
        });
  // No refresh token is good: the access token is all that is left.
  if (!brought) return client.revoke({ accessToken, refreshToken: undefined });
  const next = renewed(signIn, brought.answer, brought.used, now());
  if (secrets.findOwner([next.accessToken], readers) !== undefined)
    throw new RingneckError('the renewal has brought what another account is read with');
  if (isReplaced(next, next.accessToken)) throw new RingneckError('the renewal has brought a token that was replaced before');
  let isKept = true;
  try {
    keep?.(next);
  } catch (error) {
    isKept = false;
    log.error({ account: name, reason: messageOf(error) }, 'what a sign-in that has ended was renewed to cannot be written');
  }
  try {
    await client.revoke({ accessToken: next.accessToken, refreshToken: next.refreshToken ?? undefined });
  } catch (error) {
    if (!isKept) keep?.(next);
    throw error;
  }
}

function tellFailed({ log }: Pick<Parts, 'log'>, name: string, error: unknown): void {
  const facts = { account: name, reason: messageOf(error) };
  log.warn(facts, 'a sign-in could not be taken back at the service: its person can do that there');
}

/**
 * Nobody who removes an account is to wait longer for a service that is ill; the work goes on, and what it brings is kept.
 * @returns what came of it; undefined where it failed, or takes longer
 */
export async function waitAWhile<T>(parts: Pick<Parts, 'log'>, name: string, work: Promise<T>): Promise<T | undefined> {
  return withTimeout(work, REVOKED_MS).catch(error => {
    tellFailed(parts, name, error);
    return undefined;
  });
}

const REVOKED_MS = 10_000;

export const OTHERS = 'it is known to be of another person, who may be read with it';

function whySpared(
  { secrets, readers }: Pick<Parts, 'secrets'> & { readers: readonly string[] },
  reason: string | null,
  signIn: SignIn,
): string | undefined {
  if (signIn.isLeftToOriginal) return 'the folder that this one is a copy of goes on to use it';
  if (isOfAnother(reason)) return OTHERS;
  return secrets.findOwner(tokensOf(signIn), readers) !== undefined ? 'another account is read with the same tokens' : undefined;
}

/**
 * How long it is tried to take back a sign-in that has ended, and how often at least: of a machine that begins with a wrong clock each start
 * may see years go by. Its tokens are kept no longer.
 */
const TRIED_FOR_MS = 30 * 86_400_000;
const LEAST_TRIES = 30;

const LEFT = 'a sign-in that has ended could not be taken back';

/**
 * Takes back at the service what has ended and is not taken back yet, of one account or of all, and forgets it. What fails, the log says; it
 * is tried again by the next call.
 */
export async function takeBackEnded(parts: Taking, of?: string): Promise<void> {
  const names = listTaken(parts.secrets).map(({ name }) => name);
  const taken = [...new Set(names)].filter(name => of === undefined || name === of);
  const { inHand, warehouse } = parts;
  const takeBack = (name: string) =>
    inTurn(warehouse, name, async () => {
      // What is listed the next start takes back.
      if (!inHand.isEnding) await inHand.add(takeBackOf(parts, name));
    });
  await Promise.all(taken.map(name => waitAWhile(parts, name, takeBack(name))));
}

const listTaken = (secrets: Secrets) => secrets.listEnded().filter(({ isGivenUp }) => !isGivenUp);

/** What has ended of who has a name now, and is not taken back. */
export const listLeftOf = (secrets: Secrets, name: string): EndedSignIn[] =>
  secrets.listEnded().filter(ended => ended.name === name && !ended.isOfFormer);

const turns = new WeakMap<Warehouse, Map<string, Mutex>>();

/** Does one thing at a time with what has ended of an account: a refresh token works once. */
export function inTurn<T>(warehouse: Warehouse, name: string, work: () => Promise<T>): Promise<T> {
  const ofNames = turns.get(warehouse) ?? new Map<string, Mutex>();
  turns.set(warehouse, ofNames);
  const turn = ofNames.get(name) ?? new Mutex();
  ofNames.set(name, turn);
  return turn.run(work);
}

async function takeBackOf(parts: Taking, of: string): Promise<void> {
  const { secrets, log, warehouse } = parts;
  const readers = await listReaders(warehouse);
  await Promise.all(
    listTaken(secrets)
      .filter(({ name }) => name === of)
      .map(ended =>
        takeOneBack({ ...parts, readers }, ended).catch(error =>
          log.error({ account: of, reason: messageOf(error) }, 'what was taken back cannot be written'),
        ),
      ),
  );
}

async function takeOneBack(parts: Taking & { readers: string[] }, ended: EndedSignIn): Promise<void> {
  const { secrets, log, now, warehouse } = parts;
  const { name, at, signIn, isOfFormer, tries } = ended;
  if (!signIn) log.warn({ account: name }, `${LEFT}: it cannot be read, or is not of this service`);
  const keep = (renewed: SignIn) => secrets.renewEnded(ended, renewed);
  const revoked = signIn ? await revokeSignIn({ ...parts, keep }, { name, reason: null }, signIn) : 'failed';
  if (revoked === 'revoked') return secrets.removeEnded(ended);
  // A clock that was put back makes it no longer.
  const isOver = Math.abs(now() - at) >= TRIED_FOR_MS && tries >= LEAST_TRIES;
  if (revoked === 'failed' && !isOver) return secrets.noteTry(ended);
  log.warn({ account: name }, `${LEFT}, and it is not tried again`);
  // The page of who has withdrawn goes on to say it.
  if (!isOfFormer && isWithdrawn((await findAccount(warehouse, name))?.reason ?? null)) secrets.emptyEnded(ended);
  else secrets.removeEnded(ended);
}
