import { TryLaterError } from '../base/errors.ts';
import { renewWarehouseId, warehouseId } from '../sync/runs/runs.ts';
import { accountCommands } from './account-commands.ts';
import type { App } from './app.ts';
import { coverageCommands } from './coverage-commands.ts';
import { doctorCommands } from './doctor/commands.ts';
import { eraseCommands } from './erase/commands.ts';
import { runCommands } from './run-commands.ts';
import { snapshotCommands } from './snapshot/commands.ts';
import { statusCommands } from './status-commands.ts';
import { subscriptionCommands } from './subscription-commands.ts';

/**
 * What the owner of a data folder does, for its own command or for another one through the control socket. Input, events and results are
 * plain JSON.
 */
export function commandsOf(app: App) {
  const { warehouse } = app;

  return {
    ...accountCommands(app),
    ...runCommands(app),
    ...statusCommands(app),
    ...subscriptionCommands(app),
    ...coverageCommands(app),
    ...doctorCommands(app),
    ...eraseCommands(app),
    ...snapshotCommands(app),

    /** Gives the warehouse an id, and with it queues, of its own: for a copied data folder. */
    async adopt(_: Record<string, never>): Promise<{ id: string; before: string }> {
      if (app.opened || app.queueProblem !== undefined) throw new TryLaterError('ringneck is at work in this data folder: end it first');
      const before = await warehouseId(warehouse);
      return { id: await renewWarehouseId(warehouse), before };
    },
  };
}

export type AppCommands = ReturnType<typeof commandsOf>;
