import { messageOf } from '../../base/errors.ts';
import { accountEntry, accountExists, changeAccounts, findAccount, listAccounts } from '../../ledger/accounts.ts';
import { consentEntry, listHolding } from '../../ledger/consents.ts';
import { findLink } from '../../ledger/links.ts';
import { isOfSomebodyElse, isWithdrawn, withdrawnReason } from '../../ledger/unproven.ts';
import type { App } from '../app.ts';
import { revokeSignIn } from '../sign-ins.ts';

/** How a link to withdraw stands. `left`: done, and not known to be taken back at the service; `ended`: the study has removed the account. */
type Withdrawal = 'open' | 'done' | 'left' | 'ended';

/** Undefined where there is no such link. It is open while there is anything to end, also where that came of another invitation or sign-in. */
export async function findWithdrawal(app: App, secret: string): Promise<Withdrawal | undefined> {
  const link = await findLink(app.warehouse, 'withdraw', secret);
  return link && standingOf(app, link.userId);
}

async function standingOf({ warehouse, secrets }: App, name: string): Promise<Withdrawal> {
  const account = await findAccount(warehouse, name);
  if (!account && (await accountExists(warehouse, name))) return 'ended';
  const isLeft = account?.state === 'active' || secrets.names().includes(name) || (await listHolding(warehouse, name)).length > 0;
  if (isLeft) return 'open';
  return secrets.listEnded().some(ended => ended.name === name) ? 'left' : 'done';
}

/**
 * Ends all that a person has agreed to: the account is paused, nothing can be read with its tokens any more, the study is told, the tokens
 * are taken back at the service and forgotten. What was read stays. Killed at any moment, the link does the rest, or the next start of `up`.
 * @returns undefined where there is no such link
 */
export async function withdraw(app: App, secret: string): Promise<{ isTakenBack: boolean } | 'ended' | undefined> {
  const link = await findLink(app.warehouse, 'withdraw', secret);
  if (!link) return undefined;
  const name = link.userId;
  const standing = await changeAccounts(app.warehouse, async () => {
    const standing = await standingOf(app, name);
    if (standing === 'open') await endReading(app, name);
    return standing;
  });
  if (standing === 'ended') return 'ended';
  await takeBack(app, name);
  return { isTakenBack: !app.secrets.listEnded().some(ended => ended.name === name) };
}

/** Does what is left of withdrawals that were recorded and then interrupted. One that fails is logged: the others are to be read all the same. */
export async function finishWithdrawals(app: App): Promise<void> {
  const { warehouse, secrets, log } = app;
  await changeAccounts(warehouse, async () => {
    for (const { userId: name, reason } of await listAccounts(warehouse)) {
      if (!isWithdrawn(reason) || !secrets.names().includes(name)) continue;
      try {
        await endReading(app, name);
      } catch (error) {
        const facts = { account: name, reason: messageOf(error) };
        log.error(facts, 'the tokens of a person who has withdrawn could not be forgotten: the next start of up tries again');
      }
    }
  });
  await takeBack(app);
}

/** How long it is tried to take back what a person has withdrawn. */
const TRIED_FOR_MS = 30 * 86_400_000;

const LEFT = 'the sign-in of a person who has withdrawn could not be taken back';

/** Takes back at the service what has ended and is not taken back yet, of one account or of all. What fails, the log says. */
async function takeBack({ secrets, settings, log, now }: App, of?: string): Promise<void> {
  const taking = secrets.listEnded().filter(({ name }) => of === undefined || name === of);
  const takeOneBack = async (ended: (typeof taking)[number]) => {
    const { name, at, signIn } = ended;
    if (!signIn) return log.warn({ account: name }, `${LEFT}: it cannot be read, is not of this service, or was given up`);
    const revoked = await revokeSignIn({ secrets, settings, log }, { name, reason: null }, signIn);
    if (revoked === 'revoked') return secrets.removeEnded(ended);
    if (revoked === 'failed' && now() - at < TRIED_FOR_MS) return;
    log.warn({ account: name }, `${LEFT}, and it is not tried again`);
    secrets.emptyEnded(ended);
  };
  await Promise.all(
    taking.map(ended =>
      takeOneBack(ended).catch(error =>
        log.error({ account: ended.name, reason: messageOf(error) }, 'what was taken back cannot be written'),
      ),
    ),
  );
}

/**
 * Pauses an account and ends what it is read with, for good before the service is asked: `takeBack` has what is to be taken back. Within
 * `changeAccounts`.
 */
async function endReading(app: App, name: string): Promise<void> {
  const { warehouse, secrets, now, log, onFailure } = app;
  const [holding, account] = [await listHolding(warehouse, name), await findAccount(warehouse, name)];
  const isPaused = account === undefined || isWithdrawn(account.reason);
  const at = now();
  // Before the account forgets that they are somebody else's: those are not to be taken back.
  if (account && isOfSomebodyElse(account.reason)) {
    secrets.end(name, at);
    secrets.emptyEnded({ name, at });
  }
  await warehouse.record([
    ...holding.map(consent => consentEntry({ ...consent, withdrawnAt: at * 1000 })),
    ...(isPaused ? [] : [accountEntry({ ...account, state: 'paused', reason: withdrawnReason(name), since: warehouse.clock.next() })]),
  ]);
  secrets.end(name, at);
  // Last: tokens that are left show that nobody was told.
  log.warn({ account: name }, 'a person has withdrawn: the account is paused');
  onFailure({ reason: 'consent_withdrawn', user: name, message: withdrawnReason(name) });
}
