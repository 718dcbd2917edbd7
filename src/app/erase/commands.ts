import { findAccount, parseAccountName } from '../../ledger/accounts.ts';
import type { App } from '../app.ts';
import { findReadableSignIn, revokeSignIn } from '../sign-ins.ts';
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
  const { settings, log, now, secrets } = app;
  const erase = await import('./erase.ts');
  const reason = (await findAccount(app.warehouse, name))?.reason ?? null;
  const ended = secrets.listEnded().filter(ended => ended.name === name);
  const signIns = [findReadableSignIn(app, name), ...ended.map(({ signIn }) => signIn)];
  const report = await app.withExclusive(() => erase.eraseAccount({ settings, log, now }, name));
  await Promise.all(signIns.map(async signIn => signIn && revokeSignIn({ settings, log, secrets }, { name, reason }, signIn)));
  return report;
}
