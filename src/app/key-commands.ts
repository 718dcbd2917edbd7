import { join } from 'node:path';
import { type RotateReport, rotateKey } from '../base/secrets/rotate.ts';
import { changeAccounts } from '../ledger/accounts.ts';
import { clientKeyHolder } from '../service/webhooks/client.ts';
import type { App } from './app.ts';
import { removeSealedHalves } from './erase/leftovers.ts';

/** What the owner of a data folder does with its key. */
export const keyCommands = { rotateKey: rotate };

/** @param input.former the key of before, where it is neither in RINGNECK_SECRET_KEY nor in `secret.key` */
function rotate({ settings, secrets, warehouse }: App, { former }: { former?: string }): Promise<RotateReport> {
  const { data: folder, secretKey: given } = settings;
  // Nobody adds an account meanwhile; what is renewed is written in one step, before or after.
  return changeAccounts(warehouse, async () => {
    // Also where nothing is left to change: an earlier call may have been killed.
    removeSealedHalves(folder);
    return rotateKey({ folder, given, holders: [secrets, clientKeyHolder(join(folder, 'service'))], former });
  });
}
