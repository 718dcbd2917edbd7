import { dataTypesOf } from '../../schema/resource.ts';
import { NO_WEBHOOKS, type Settings } from '../base/config.ts';
import { TryLaterError, UsageError } from '../base/errors.ts';
import { keyOf, kindsOf } from '../ledger/subscriptions.ts';
import { reportSubscriptions, type SubscriptionReport } from '../sync/webhook-status.ts';
import type { App } from './app.ts';

export interface EnsureReport {
  active: number;
  wanted: number;
  problems: { event_type: string; data_type: string; state: string; reason: string | null; detail?: string }[];
}

export interface RemoveReport {
  /** Those that were cancelled; with --on-next-event none is yet. */
  removed: number;
  failed: { event_type: string; data_type: string; reason: string }[];
  /** False: the service offers no list, and only those that we knew could be cancelled. */
  listed: boolean;
  on_next_event: boolean;
}

/** What the owner of a data folder does about our subscriptions. */
export const subscriptionCommands = { subscriptionsEnsure, subscriptionsList, subscriptionsRemove };

async function subscriptionsEnsure(app: App): Promise<EnsureReport> {
  const manager = await app.manager();
  if (!manager.started) throw nobodyListens(app.settings);
  const { rows, details } = await manager.ensure();
  const dataTypes = dataTypesOf(app.warehouse.resources);
  const problems = rows.filter(({ state }) => state !== 'active');
  return {
    active: rows.length - problems.length,
    wanted: kindsOf(dataTypes).length,
    problems: problems.map(row => {
      const detail = details.get(keyOf(row));
      return { event_type: row.eventType, data_type: row.dataType, state: row.state, reason: row.reason, ...(detail ? { detail } : {}) };
    }),
  };
}

async function subscriptionsList(app: App): Promise<SubscriptionReport[]> {
  const { remote, rows } = await (await app.manager()).list();
  return reportSubscriptions(rows, remote);
}

async function subscriptionsRemove(app: App, { onNextEvent }: { onNextEvent: boolean }): Promise<RemoveReport> {
  const { removed, failed, listed } = await (await app.manager()).remove({ onNextEvent });
  return {
    removed,
    failed: failed.map(({ eventType, dataType, reason }) => ({ event_type: eventType, data_type: dataType, reason })),
    listed,
    on_next_event: onNextEvent,
  };
}

export const nobodyListens = ({ webhooks }: Settings) =>
  webhooks
    ? new TryLaterError('the service verifies our callback, where only a running `ringneck up` listens: start it first')
    : new UsageError(NO_WEBHOOKS);
