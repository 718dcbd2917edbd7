import { kindOf, messageOf, RingneckError, TryLaterError, unlessRefused } from '../../base/errors.ts';
import { accountEntry, accountExists, changeAccounts, findAccount, listAccounts } from '../../ledger/accounts.ts';
import { consentEntry, listHolding } from '../../ledger/consents.ts';
import { findLink } from '../../ledger/links.ts';
import { ANOTHER_PERSON, askAgain, isOfAnother, isWithdrawn, withdrawnReason } from '../../ledger/unproven.ts';
import type { Warehouse } from '../../warehouse/warehouse.ts';
import type { App } from '../app.ts';
import { findReadableSignIn, listLeftOf, takeBackEnded } from '../take-back.ts';

/**
 * How a link to withdraw stands. `left`: done, and not known to be taken back at the service; `givenUp`: nor tried any more; `ended`: the
 * study has removed the account.
 */
type Withdrawal = 'open' | 'done' | 'left' | 'givenUp' | 'ended';

/** When the link of an account to withdraw was used last, by the clock that nobody sets. */
const withdrawals = new WeakMap<Warehouse, Map<string, number>>();

/**
 * Within `changeAccounts`.
 * @param since by `performance.now`
 */
export const hasWithdrawnSince = ({ warehouse }: Pick<App, 'warehouse'>, name: string, since: number): boolean =>
  (withdrawals.get(warehouse)?.get(name) ?? Number.NEGATIVE_INFINITY) >= since;

function noteWithdrawal({ warehouse }: App, name: string): void {
  const noted = withdrawals.get(warehouse) ?? new Map<string, number>();
  withdrawals.set(warehouse, noted.set(name, performance.now()));
}

/** Undefined where there is no such link. It is open while there is anything to end, also where that came of another invitation or sign-in. */
export async function findWithdrawal(app: App, secret: string): Promise<Withdrawal | undefined> {
  const link = await findLink(app.warehouse, 'withdraw', secret);
  return link && standingOf(app, link.userId);
}

async function standingOf({ warehouse, secrets }: App, name: string): Promise<Withdrawal> {
  const account = await findAccount(warehouse, name);
  if (!account && (await accountExists(warehouse, name))) return 'ended';
  const isLeft = account?.state === 'active' || hasTokens(secrets, name) || (await listHolding(warehouse, name)).length > 0;
  if (isLeft) return 'open';
  return howTakenBack(secrets, name);
}

/** Whether an account is known to have tokens: a file that cannot be read keeps nobody from withdrawing. */
const hasTokens = (secrets: App['secrets'], name: string): boolean => unlessRefused(() => secrets.names())?.includes(name) === true;

function howTakenBack(secrets: App['secrets'], name: string): 'done' | 'left' | 'givenUp' {
  const ended = unlessRefused(() => listLeftOf(secrets, name));
  if (!ended) return 'left';
  if (!ended.length) return 'done';
  return ended.every(({ isGivenUp }) => isGivenUp) ? 'givenUp' : 'left';
}

/**
 * Ends all that a person has agreed to: the account is paused, nothing can be read with its tokens any more, the study is told, the tokens
 * are taken back at the service and forgotten. What was read stays. Killed at any moment, or where the tokens cannot be read or written, the
 * link does the rest, or `up` at its next start and each day.
 * @returns undefined where there is no such link
 * @throws RingneckError naming the account where the withdrawal could not be recorded
 */
export async function withdraw(app: App, secret: string): Promise<Exclude<Withdrawal, 'open'> | undefined> {
  const link = await findLink(app.warehouse, 'withdraw', secret);
  if (!link) return undefined;
  const name = link.userId;
  let areTokensEnded = true;
  const standing = await changeAccounts(app.warehouse, async () => {
    const standing = await standingOf(app, name);
    // Also of who has withdrawn already: they may be about to come back, and think better of it.
    noteWithdrawal(app, name);
    if (standing === 'open') areTokensEnded = await endReading(app, name);
    return standing;
  }).catch(error => {
    if (error instanceof TryLaterError) throw error;
    const why = error instanceof RingneckError ? error.message : kindOf(error);
    throw new RingneckError(`the withdrawal of ${name} could not be recorded: ${why}. It takes the link again.`, 1, { cause: error });
  });
  if (standing === 'ended') return 'ended';
  if (!areTokensEnded) return 'left';
  await takeBackEnded(app, name).catch(error => tellLeft(app, name, error));
  const taken = howTakenBack(app.secrets, name);
  // It may not have been asked for any more, and be on the list by the name that a move gives the account.
  return taken === 'done' && app.ending.aborted ? 'left' : taken;
}

/**
 * Does what is left of withdrawals that were recorded and then interrupted, and of taking sign-ins back. What fails is logged: it keeps
 * nobody from being read.
 */
export async function finishWithdrawals(app: App): Promise<void> {
  try {
    await changeAccounts(app.warehouse, () => finishEnding(app));
    await takeBackEnded(app);
  } catch (error) {
    app.log.error({ reason: messageOf(error) }, 'withdrawals that were interrupted could not be finished: it is tried again each day');
  }
}

/** Within `changeAccounts`. */
async function finishEnding(app: App): Promise<void> {
  const { warehouse, secrets, log } = app;
  for (const { userId: name, reason, since } of await listAccounts(warehouse)) {
    if (!isWithdrawn(reason) || !secrets.names().includes(name)) continue;
    if (secrets.hasSignIn(name) && !findReadableSignIn(app, name)) {
      log.warn({ account: name }, 'a sign-in of a person who has withdrawn cannot be read, and stays as it is: it may be of their return');
      continue;
    }
    if (isReturning(app, { name, since })) {
      log.warn(
        { account: name },
        `a sign-in of a person who had withdrawn was interrupted, and nothing is read with it: ${askAgain(name)}`,
      );
      continue;
    }
    await endReading(app, name).catch(error => tellLeft(app, name, error));
  }
}

function tellLeft({ log }: App, name: string, error: unknown): void {
  const facts = { account: name, reason: messageOf(error) };
  log.error(facts, 'the tokens of a person who has withdrawn could not be forgotten or taken back: it is tried again each day');
}

/** Whether a withdrawn account has tokens of a sign-in that its person made since then, which was cut off before the account was recorded. */
export const isReturning = (app: Pick<App, 'secrets'>, { name, since }: { name: string; since: number }): boolean =>
  findReadableSignIn(app, name)?.afterWithdrawal === since;

const DAY_MS = 86_400_000;

/** Finishes withdrawals each day, until what it returns is called. */
export function finishDaily(app: App): () => Promise<void> {
  let running = Promise.resolve();
  const timer = setInterval(() => {
    running = running.then(() => finishWithdrawals(app));
  }, DAY_MS).unref();
  return () => {
    clearInterval(timer);
    return running;
  };
}

/**
 * Pauses an account and ends what it is read with, for good before the service is asked: `takeBackEnded` has what is to be taken back.
 * Within `changeAccounts`.
 * @returns whether the tokens are ended; where they cannot be the log says so, and all else is done
 */
async function endReading(app: App, name: string): Promise<boolean> {
  const { warehouse, secrets, now, log, onFailure } = app;
  const [holding, account] = [await listHolding(warehouse, name), await findAccount(warehouse, name)];
  const isPaused = account === undefined || isWithdrawn(account.reason);
  const at = now();
  const isOthers = account !== undefined && isOfAnother(account.reason);
  // Before the account forgets that they are somebody else's: those are not to be taken back. It remembers it where they are still there.
  const areOthersLeft = isOthers && !endTokens(app, name, at, { isKept: false });
  const reason = areOthersLeft ? `${withdrawnReason(name)}; ${ANOTHER_PERSON}` : withdrawnReason(name);
  const entries = [
    ...holding.map(consent => consentEntry({ ...consent, withdrawnAt: at * 1000 })),
    ...(isPaused ? [] : [accountEntry({ ...account, state: 'paused', reason, since: warehouse.clock.next() })]),
  ];
  // Whoever has the link may press as often as they like.
  const again = isPaused ? ({ message: `${withdrawnReason(name)} (this may have been told before)`, isRepeat: true } as const) : {};
  const tell = () => onFailure({ reason: 'consent_withdrawn', user: name, message: withdrawnReason(name), ...again });
  // Tokens are what has it told after a kill; without them only what is not recorded yet is done again.
  const isToldAgain = hasTokens(secrets, name);
  if (!isToldAgain) tell();
  await warehouse.record(entries, { usesReserve: true });
  log.warn({ account: name }, 'a person has withdrawn: the account is paused');
  if (isToldAgain) tell();
  // Last: the command that tells it has begun.
  return isOthers ? !areOthersLeft : endTokens(app, name, at);
}

function endTokens(app: App, name: string, at: number, options?: { isKept: boolean }): boolean {
  try {
    app.secrets.end(name, at, options);
    return true;
  } catch (error) {
    // What is being read with them is not stored.
    app.secrets.withhold(name);
    tellLeft(app, name, error);
    return false;
  }
}
