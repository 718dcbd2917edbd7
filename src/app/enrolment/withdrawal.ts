import { messageOf } from '../../base/errors.ts';
import type { SignIn } from '../../base/secrets/sign-in.ts';
import { accountEntry, accountExists, changeAccounts, findAccount, listAccounts } from '../../ledger/accounts.ts';
import { consentEntry, listHolding } from '../../ledger/consents.ts';
import { findLink } from '../../ledger/links.ts';
import { isWithdrawn, withdrawnReason } from '../../ledger/unproven.ts';
import type { App } from '../app.ts';
import { findReadableSignIn, revokeSignIn } from '../sign-ins.ts';

/** How a link to withdraw stands. `ended`: the study has removed the account. */
type Withdrawal = 'open' | 'done' | 'ended';

/** Undefined where there is no such link. It is open while there is anything to end, also where that came of another invitation or sign-in. */
export async function findWithdrawal(app: App, secret: string): Promise<Withdrawal | undefined> {
  const link = await findLink(app.warehouse, 'withdraw', secret);
  return link && standingOf(app, link.userId);
}

async function standingOf({ warehouse, secrets }: App, name: string): Promise<Withdrawal> {
  const account = await findAccount(warehouse, name);
  if (!account && (await accountExists(warehouse, name))) return 'ended';
  const isLeft = account?.state === 'active' || secrets.names().includes(name) || (await listHolding(warehouse, name)).length > 0;
  return isLeft ? 'open' : 'done';
}

/**
 * Ends all that a person has agreed to: the account is paused, its tokens are forgotten, the study is told, the tokens are taken back at the
 * service. What was read stays. Killed at any moment, the link does the rest, or the next start of `up`.
 * @returns undefined where there is no such link
 */
export async function withdraw(app: App, secret: string): Promise<{ isTakenBack: boolean } | 'ended' | undefined> {
  const link = await findLink(app.warehouse, 'withdraw', secret);
  if (!link) return undefined;
  const name = link.userId;
  const { standing, signIn } = await changeAccounts(app.warehouse, async () => {
    const standing = await standingOf(app, name);
    return { standing, signIn: standing === 'open' ? await endReading(app, name) : undefined };
  });
  if (standing === 'ended') return 'ended';
  return { isTakenBack: signIn === undefined || (await revokeSignIn(app, name, signIn)) };
}

/** Does what is left of withdrawals that were recorded and then interrupted. One that fails is logged: the others are to be read all the same. */
export async function finishWithdrawals(app: App): Promise<void> {
  const { warehouse, secrets, log } = app;
  const ended: { name: string; signIn: SignIn | undefined }[] = [];
  await changeAccounts(warehouse, async () => {
    for (const { userId: name, reason } of await listAccounts(warehouse)) {
      if (!isWithdrawn(reason) || !secrets.names().includes(name)) continue;
      try {
        ended.push({ name, signIn: await endReading(app, name) });
      } catch (error) {
        const facts = { account: name, reason: messageOf(error) };
        log.error(facts, 'the tokens of a person who has withdrawn could not be forgotten: the next start of up tries again');
      }
    }
  });
  await Promise.all(ended.map(async ({ name, signIn }) => signIn && revokeSignIn(app, name, signIn)));
}

/**
 * Pauses an account and forgets what it is read with, for good before the service is asked. Within `changeAccounts`.
 * @returns what is to be taken back at the service
 */
async function endReading(app: App, name: string): Promise<SignIn | undefined> {
  const { warehouse, secrets, now, log, onFailure } = app;
  const [holding, account] = [await listHolding(warehouse, name), await findAccount(warehouse, name)];
  const isPaused = account === undefined || isWithdrawn(account.reason);
  await warehouse.record([
    ...holding.map(consent => consentEntry({ ...consent, withdrawnAt: now() * 1000 })),
    ...(isPaused ? [] : [accountEntry({ ...account, state: 'paused', reason: withdrawnReason(name), since: warehouse.clock.next() })]),
  ]);
  const signIn = findReadableSignIn(app, name);
  secrets.remove(name);
  // Last: tokens that are left show that nobody was told.
  log.warn({ account: name }, 'a person has withdrawn: the account is paused');
  onFailure({ reason: 'consent_withdrawn', user: name, message: withdrawnReason(name) });
  return signIn;
}
