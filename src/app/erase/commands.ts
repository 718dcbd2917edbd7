import { parseAccountName } from '../../ledger/accounts.ts';
import type { App } from '../app.ts';
import type { EraseReport } from './report.ts';

export function eraseCommands(app: App) {
  const { settings, log, now, warehouse } = app;
  const options = { settings, log, now };
  return {
    /** Whether an account can be erased now, before anybody is asked to confirm it. */
    async ensureErasable(input: { name: string }): Promise<{ user_id: string }> {
      const name = parseAccountName(input.name);
      const { ensureErasable } = await import('./erase.ts');
      await ensureErasable(options, warehouse, name);
      return { user_id: name };
    },

    /** Removes all that is kept of a person, with everything else at rest meanwhile. */
    async eraseAccount(input: { name: string }): Promise<EraseReport> {
      const name = parseAccountName(input.name);
      const { ensureErasable, eraseAccount } = await import('./erase.ts');
      await ensureErasable(options, warehouse, name);
      return app.withExclusive(() => eraseAccount(options, name));
    },
  };
}
