import { TryLaterError } from '../base/errors.ts';
import type { LeftToOriginal } from '../base/secrets/secrets.ts';
import { renewWarehouseId, warehouseId } from '../sync/runs/runs.ts';
import { accountCommands } from './account-commands.ts';
import { addAccountsCommands } from './add-accounts.ts';
import type { App } from './app.ts';
import { backupCommands } from './backup/commands.ts';
import { consoleCommands } from './console-link.ts';
import { coverageCommands } from './coverage-commands.ts';
import { doctorCommands } from './doctor/commands.ts';
import { invitationCommands } from './enrolment/invitations.ts';
import { inviteManyCommands } from './enrolment/invite-many.ts';
import { eraseCommands } from './erase/commands.ts';
import { keyCommands } from './key-commands.ts';
import { lakeCommands } from './lake/commands.ts';
import { loginCommands } from './login.ts';
import { metricsCommands } from './metrics-commands.ts';
import { moveCommands } from './move/commands.ts';
import { operationCommands } from './operation-commands.ts';
import { participantCommands } from './participants.ts';
import { runCommands } from './run-commands.ts';
import { snapshotCommands } from './snapshot/commands.ts';
import { statusCommands } from './status-commands.ts';
import { subscriptionCommands } from './subscription-commands.ts';
import { whyCommands } from './why.ts';

/** All that the owner of a data folder does, for its own command or for another one. Input, events and results are plain JSON. */
const appCommands = {
  ...accountCommands,
  ...addAccountsCommands,
  ...loginCommands,
  ...participantCommands,
  ...invitationCommands,
  ...inviteManyCommands,
  ...keyCommands,
  ...runCommands,
  ...operationCommands,
  ...metricsCommands,
  ...statusCommands,
  ...whyCommands,
  ...subscriptionCommands,
  ...coverageCommands,
  ...doctorCommands,
  ...eraseCommands,
  ...moveCommands,
  ...snapshotCommands,
  ...backupCommands,
  ...lakeCommands,
  ...consoleCommands,
  adopt,
};

type OfApp<Item> = Item extends (app: App, ...rest: infer Rest) => infer Result
  ? (...rest: Rest extends [] ? [input?: Record<string, never>] : Rest) => Result
  : never;

/** The same commands as their callers see them, who do not say of which app. */
export type AppCommands = { [Name in keyof typeof appCommands]: OfApp<(typeof appCommands)[Name]> };

/** @param findApp is asked at each call, and may refuse */
export function commandsOf(findApp: () => App): AppCommands {
  const commands: Record<string, (app: App, ...rest: never[]) => Promise<unknown>> = appCommands;
  return Object.fromEntries(
    Object.entries(commands).map(([name, command]) => [name, async (...rest: never[]) => command(findApp(), ...rest)]),
  ) as AppCommands;
}

export interface AdoptReport extends LeftToOriginal {
  id: string;
  before: string;
}

/** Gives the warehouse an id, and with it queues, of its own: for a copied data folder. */
async function adopt({ warehouse, secrets, opened, queueProblem }: App): Promise<AdoptReport> {
  if (opened || queueProblem !== undefined) throw new TryLaterError('ringneck is at work in this data folder: end it first');
  const before = await warehouseId(warehouse);
  const left = secrets.forgetRenewals();
  return { id: await renewWarehouseId(warehouse), before, ...left };
}
