import { groupBy } from '../../base/items.ts';
import { listAccounts } from '../../ledger/accounts.ts';
import { askAgain, isSignInOver } from '../../ledger/unproven.ts';
import type { App } from '../app.ts';
import { isReturning } from '../enrolment/withdrawal.ts';
import { findSignInStatus, fixEnding, tellSignIn } from '../sign-in-status.ts';
import { type CheckResult, ok, warn } from './check-result.ts';

/** Who has to do something has so long to do it. */
const SOON_MS = 3 * 86_400_000;

/** Until when the tokens of those who have signed in are good, the next that ends first; and what is not taken back of those that have ended. */
export async function checkSignIns(
  app: Pick<App, 'warehouse' | 'secrets' | 'settings' | 'now' | 'findSignInTrouble'>,
): Promise<CheckResult[]> {
  const accounts = await listAccounts(app.warehouse);
  const returning = accounts.filter(({ userId: name, since }) => isReturning(app, { name, since }));
  const found = accounts.flatMap(account => {
    const { userId: name, reason } = account;
    // Of one that is over the account says it.
    if (returning.includes(account) || isSignInOver(reason)) return [];
    const status = findSignInStatus(app, name, reason);
    return status
      ? [{ name, status, endsMs: status.token_ends_at === null ? Number.POSITIVE_INFINITY : Date.parse(status.token_ends_at) }]
      : [];
  });
  const failing = found.filter(({ status }) => status.problem !== null);
  const kept = found.filter(({ status }) => status.is_renewed && status.problem === null).sort((a, b) => a.endsMs - b.endsMs);
  const ending = found.filter(({ status, endsMs }) => !status.is_renewed && endsMs - app.now() < SOON_MS);
  const [first] = kept;
  return [
    ...failing.map(({ name, status }) =>
      warn('sign-ins', `${name}: ${tellSignIn(status)}, and it cannot be renewed for now: ${status.problem}`, 'it is tried again'),
    ),
    ...(first ? [ok('sign-ins', `${countOf(kept.length)} kept alive; ${first.name}: ${tellSignIn(first.status)}`)] : []),
    ...ending.map(({ name, status }) =>
      warn('sign-ins', `${name}: ${tellSignIn(status)}, and it cannot be renewed`, fixEnding(name, app.settings)),
    ),
    ...returning.map(({ userId: name }) =>
      warn('sign-ins', `${name}: who had withdrawn signed in again, which was interrupted: nothing is read with it`, askAgain(name)),
    ),
    ...tellEnded(app),
  ];
}

/** Also of accounts that were removed, of which nothing else is said. */
function tellEnded({ secrets }: Pick<App, 'secrets'>): CheckResult[] {
  return [...groupBy(secrets.listEnded(), ({ name }) => name).values()].map(([first, ...rest]) => {
    const { name } = first;
    const since = new Date(Math.min(...[first, ...rest].map(({ at }) => at))).toISOString();
    const isTried = [first, ...rest].some(({ isGivenUp }) => !isGivenUp);
    return warn(
      'sign-ins',
      `${name}: a sign-in that ended on ${since.slice(0, 10)} is not known to be taken back at the service`,
      isTried
        ? 'ringneck up tries it again each day for 30 days; the person can end the access at the service'
        : 'nobody tries it any more: the person can end the access at the service',
    );
  });
}

const countOf = (count: number) => (count === 1 ? '1 sign-in is' : `${count} sign-ins are`);
