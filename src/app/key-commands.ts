import { hostname } from 'node:os';
import { join } from 'node:path';
import { UsageError } from '../base/errors.ts';
import { type RotateReport, rotateKey } from '../base/secrets/rotate.ts';
import { changeAccounts } from '../ledger/accounts.ts';
import { clientKeyHolder } from '../service/webhooks/client.ts';
import type { App } from './app.ts';
import { removeSealedHalves } from './erase/leftovers.ts';
import { findMachines } from './lake/machines.ts';

/** What the owner of a data folder does with its key. */
export const keyCommands = { rotateKey: rotate };

/** @param input.former the key of before, where it is neither in RINGNECK_SECRET_KEY nor in `secret.key` */
async function rotate({ settings, secrets, warehouse }: App, { former }: { former?: string }): Promise<RotateReport> {
  const { data: folder, secretKey: given } = settings;
  if (given === undefined && settings.warehouse) await ensureNobodyWaits(settings);
  // Nobody adds an account meanwhile; what is renewed is written in one step, before or after.
  return changeAccounts(warehouse, async () => {
    // Also where nothing is left to change: an earlier call may have been killed.
    removeSealedHalves(folder);
    return rotateKey({ folder, given, holders: [secrets, clientKeyHolder(join(folder, 'service'))], former });
  });
}

/** @throws UsageError where a machine waits that has the key of before from its settings: with that it could not take over */
async function ensureNobodyWaits(settings: App['settings']): Promise<void> {
  const isOther = ({ host, folder }: { host: string; folder: string }) => host !== hostname() || folder !== settings.data;
  const waiting = (await findMachines({ settings })).filter(machine => machine.state === 'waits' && isOther(machine));
  if (!waiting.length) return;
  throw new UsageError(
    `other machines wait with the key that there is, and could not take over with another one: end ringneck up on ${[...new Set(waiting.map(({ host }) => host))].join(', ')}, ` +
      'half a minute later run this again, then set RINGNECK_SECRET_KEY there to what secret.key holds',
  );
}
