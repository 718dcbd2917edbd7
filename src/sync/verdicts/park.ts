import { signInAgain } from '../../base/sign-in-again.ts';
import { ServiceError } from '../../client/error.ts';
import type { Account } from '../../ledger/accounts.ts';
import { changeAccounts, findAccount, isAsRead, setAccountState } from '../../ledger/accounts.ts';
import { cureOf } from '../../ledger/unproven.ts';
import type { Pipeline } from '../pipeline.ts';
import { isNotOffered, isRefusal, probeAccount } from './probe.ts';

export const errorKindOf = (error: unknown) => (error instanceof ServiceError ? error.kind : 'not_stored');

/** What a refusal concerns: all of the account, which is parked then, one collection, or a token that has been replaced meanwhile. */
export type Refused = 'account' | 'collection' | 'replaced_token';

/**
 * A refusal may mean a dead token, a lapsed membership, or one missing permission: one probe of a base collection tells, for all
 * jobs of the account that are refused at the same time. Where the service has none that is probed, nothing says that all is refused.
 * Throws when the probe gets no clear answer.
 */
export async function park(
  pipeline: Pipeline,
  account: Account,
  refusal: unknown,
  probing: Map<string, Promise<Refused>>,
): Promise<Refused> {
  const probe = async (): Promise<Refused> => {
    const token = pipeline.tokens.find(account.userId);
    const before = await findAccount(pipeline.warehouse, account.userId);
    const isReplaced = () => pipeline.tokens.find(account.userId) !== token;
    try {
      const scopes = pipeline.tokens.findSignIn(account.userId)?.scopes;
      await probeAccount(pipeline, token ?? '', { scopes }).catch(error => {
        if (!isNotOffered(error)) throw error;
      });
      if (isReplaced()) return 'replaced_token';
      pipeline.log.warn({ account: account.userId, kind: errorKindOf(refusal) }, 'the service refuses one collection of the account');
      return 'collection';
    } catch (error) {
      if (!isRefusal(error)) throw error;
      const isDead = error.kind === 'unauthorized';
      // It may have expired without the service's saying so.
      if (isDead && token !== undefined && (await pipeline.signIns.renewRefused(token, true))) return 'replaced_token';
      const reason = isDead && pipeline.tokens.findSignIn(account.userId) ? signInAgain(account.userId) : `${error.kind}: ${error.message}`;
      const parked = await changeAccounts(pipeline.warehouse, async () => {
        if (isReplaced()) return undefined;
        const current = await findAccount(pipeline.warehouse, account.userId);
        if (current?.state !== 'active') return { ...account, state: 'removed' as const, ...current };
        // Resumed, or added again: the service may have been asked before that.
        if (!(await isAsRead(pipeline.warehouse, account.userId, before))) return undefined;
        return setAccountState(pipeline.warehouse, current, 'parked', reason);
      });
      if (!parked) return 'replaced_token';
      if (parked.state !== 'parked') return 'account';
      const fix = cureOf(account.userId, reason);
      pipeline.log.warn({ account: account.userId, kind: error.kind, fix }, 'the service refuses the account: parked');
      pipeline.onFailure({
        reason: 'account_parked',
        user: account.userId,
        message: [reason, fix].filter(Boolean).join(': '),
      });
      return 'account';
    }
  };
  const running = probing.get(account.userId) ?? probe().finally(() => probing.delete(account.userId));
  probing.set(account.userId, running);
  return running;
}
