import { getAccount } from '../ledger/accounts.ts';
import type { App } from './app.ts';
import type { ConsoleGrant } from './app-options.ts';

/** The way into the console of the owner. */
export const consoleCommands = { consoleLink };

/**
 * Null where the owner serves no console.
 * @throws UsageError where there is no such account
 */
async function consoleLink(app: App, grant: ConsoleGrant): Promise<{ url: string } | null> {
  if (grant.person !== null) await getAccount(app.warehouse, grant.person);
  return app.console ? { url: app.console.createLink(grant) } : null;
}
