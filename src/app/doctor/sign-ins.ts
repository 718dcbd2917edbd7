import { listAccounts } from '../../ledger/accounts.ts';
import type { App } from '../app.ts';
import { findSignInStatus, fixEnding, tellSignIn } from '../sign-in-status.ts';
import { type CheckResult, ok, warn } from './check-result.ts';

/** Who has to do something has so long to do it. */
const SOON_MS = 3 * 86_400_000;

/** Until when the tokens of those who have signed in are good, the next that ends first. */
export async function checkSignIns(
  app: Pick<App, 'warehouse' | 'secrets' | 'settings' | 'now' | 'findSignInTrouble'>,
): Promise<CheckResult[]> {
  const found = (await listAccounts(app.warehouse)).flatMap(({ userId: name }) => {
    const status = findSignInStatus(app, name);
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
  ];
}

const countOf = (count: number) => (count === 1 ? '1 sign-in is' : `${count} sign-ins are`);
