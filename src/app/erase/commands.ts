import { parseAccountName } from '../../ledger/accounts.ts';
import type { App } from '../app.ts';
import { inTurn } from '../take-back.ts';
import type { EraseReport } from './report.ts';

/** What the owner of a data folder does to erase a person. */
export const eraseCommands = { ensureErasable, eraseAccount };

/** Whether an account can be erased now, before anybody is asked to confirm it. */
async function ensureErasable(app: App, input: { name: string }): Promise<{ user_id: string }> {
  const name = parseAccountName(input.name);
  const { settings, log, now, warehouse } = app;
  const erase = await import('./erase.ts');
  await erase.ensureErasable({ settings, log, now }, warehouse, name);
  await app.ensureSignInsWritten();
  return { user_id: name };
}

/** Removes all that is kept of a person, with everything else at rest meanwhile, and takes the sign-in back at the service. */
async function eraseAccount(app: App, { name }: { name: string }): Promise<EraseReport> {
  await ensureErasable(app, { name });
  const { settings, log, now, ofErased, onFailure, warehouse } = app;
  const erase = await import('./erase.ts');
  // What is being taken back may bring a pair to be kept by the name.
  const work = async () => {
    const report = await erase.eraseAccount({ settings, log, now, ofErased }, name);
    onFailure.forget(name);
    return report;
  };
  return inTurn(warehouse, name, () => app.withExclusive(work));
}
