import { accountEntry, changeAccounts, findAccount } from '../../ledger/accounts.ts';
import { consentEntry, listHolding } from '../../ledger/consents.ts';
import { findLink } from '../../ledger/links.ts';
import { isWithdrawn, withdrawnReason } from '../../ledger/unproven.ts';
import type { App } from '../app.ts';
import { findReadableSignIn, revokeSignIn } from '../sign-ins.ts';

/** Whether a link to withdraw was used; undefined where there is no such link. One that was interrupted is open. */
export async function findWithdrawal(app: App, secret: string): Promise<'open' | 'done' | undefined> {
  const link = await findLink(app.warehouse, 'withdraw', secret);
  if (!link) return undefined;
  const { warehouse, secrets } = app;
  const account = await findAccount(warehouse, link.userId);
  const hasTokens = isWithdrawn(account?.reason ?? null) && secrets.names().includes(link.userId);
  return hasTokens || (await listHolding(warehouse, link.userId)).length ? 'open' : 'done';
}

/**
 * Ends all that a person has agreed to: the account is paused, its tokens are taken back at the service and forgotten, the study is told.
 * What was read stays. Killed at any moment, the link does the rest.
 * @returns undefined where there is no such link
 */
export async function withdraw(app: App, secret: string): Promise<{ isTakenBack: boolean } | undefined> {
  const { warehouse, secrets, now, log, onFailure } = app;
  if ((await findWithdrawal(app, secret)) === 'done') return { isTakenBack: true };
  const link = await findLink(warehouse, 'withdraw', secret);
  if (!link) return undefined;
  const name = link.userId;
  const isFirst = await changeAccounts(warehouse, async () => {
    const [holding, account] = [await listHolding(warehouse, name), await findAccount(warehouse, name)];
    const paused = account && { ...account, state: 'paused' as const, reason: withdrawnReason(name), since: warehouse.clock.next() };
    await warehouse.record([
      ...holding.map(consent => consentEntry({ ...consent, withdrawnAt: now() * 1000 })),
      ...(paused ? [accountEntry(paused)] : []),
    ]);
    return holding.length > 0;
  });
  const signIn = findReadableSignIn(app, name);
  const isTakenBack = signIn === undefined || (await revokeSignIn(app, name, signIn));
  // Last: as long as they are there, the link says that something is left to be done.
  secrets.remove(name);
  if (isFirst) {
    log.warn({ account: name }, 'a person has withdrawn: the account is paused');
    onFailure({ reason: 'consent_withdrawn', user: name, message: withdrawnReason(name) });
  }
  return { isTakenBack };
}
