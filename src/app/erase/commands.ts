import type { EndedSignIn } from '../../base/secrets/secrets.ts';
import { findAccount, parseAccountName } from '../../ledger/accounts.ts';
import type { App } from '../app.ts';
import { findReadableSignIn, inTurn, listReaders, revokeSignIn, waitAWhile } from '../take-back.ts';
import type { EraseReport } from './report.ts';

/** What the owner of a data folder does to erase a person. */
export const eraseCommands = { ensureErasable, eraseAccount };

/** Whether an account can be erased now, before anybody is asked to confirm it. */
async function ensureErasable(app: App, input: { name: string }): Promise<{ user_id: string }> {
  const name = parseAccountName(input.name);
  const { settings, log, now, warehouse } = app;
  const erase = await import('./erase.ts');
  await erase.ensureErasable({ settings, log, now }, warehouse, name);
  return { user_id: name };
}

/** Removes all that is kept of a person, with everything else at rest meanwhile, and takes the sign-in back at the service. */
async function eraseAccount(app: App, { name }: { name: string }): Promise<EraseReport> {
  await ensureErasable(app, { name });
  const { settings, log, now, secrets, warehouse } = app;
  const erase = await import('./erase.ts');
  const reason = (await findAccount(warehouse, name))?.reason ?? null;
  const readers = (await listReaders(warehouse)).filter(reader => reader !== name);
  let left: Pick<EndedSignIn, 'signIn'>[] = [];
  // What is being taken back may bring a pair to be kept by the name.
  const report = await inTurn(warehouse, name, () =>
    app.withExclusive(() => {
      // With the folder closed nothing is renewed any more.
      left = listLeft(app, name);
      return erase.eraseAccount({ settings, log, now }, name);
    }),
  );
  await Promise.all(
    left.map(async ({ signIn }) => {
      if (signIn) return waitAWhile(app, name, revokeSignIn({ settings, log, secrets, now, readers }, { name, reason }, signIn));
      return log.warn(
        { account: name },
        'a sign-in of who was erased could not be taken back at the service: its person can do that there',
      );
    }),
  );
  return report;
}

/** What an account has signed in with, and what has ended of that and is not taken back. */
function listLeft(app: App, name: string): Pick<EndedSignIn, 'signIn'>[] {
  const { secrets } = app;
  const ended = secrets.listEnded().filter(ended => ended.name === name);
  return secrets.hasSignIn(name) ? [{ signIn: findReadableSignIn(app, name) }, ...ended] : ended;
}
