import { statSync } from 'node:fs';
import { isoOf } from '../../schema/instant.ts';
import { messageOf } from '../base/errors.ts';
import type { ServiceClock } from '../client/client.ts';
import { readHeartRatePath } from '../ledger/routes.ts';
import { countPlanned } from '../ledger/window-rows.ts';
import type { Holder } from '../machines/lease.ts';
import { collectQueue } from '../sync/runs/runs.ts';
import { readSilence, type Silence } from '../sync/silence.ts';
import { type AccountStatus, type DriftStatus, reportAccounts, reportDrift } from '../sync/status.ts';
import { reportWebhooks, type WebhookStatus } from '../sync/webhook-status.ts';
import type { Warehouse } from '../warehouse/warehouse.ts';
import type { App } from './app.ts';
import { type InvitationReport, listInvitations } from './enrolment/invitations.ts';
import { withFix } from './fixes.ts';
import { findSignInStatus, type SignInStatus } from './sign-in-status.ts';
import type { SnapshotFailure } from './snapshot/snapshots.ts';

export interface StatusReport {
  /** `sign_in`: null where the account has a token alone. */
  accounts: (AccountStatus & { sign_in: SignInStatus | null })[];
  /** Windows that are planned, and events that are accepted and not settled, in the queue or not; `problem`: why the queue cannot be asked. */
  queue: {
    waiting: number;
    active: number;
    delayed: number;
    failed: number;
    events: number;
    /** Events of the inbox that could not be read since its owner began: they are lost. */
    unreadable_events: number;
    problem: string | null;
  };
  /** Who works on the lake, where this machine waits. */
  works_elsewhere?: { host: string; since: string };
  /** Those that were not used yet. */
  invitations: InvitationReport[];
  /** Null: not configured. */
  webhooks: WebhookStatus | null;
  /** Since when it could not be made, and why. Null: it was, or nobody who keeps the folder has tried. */
  snapshot: { at: string | null; failure: SnapshotFailure | null };
  /** The file, and when it was compacted last. */
  warehouse: { bytes: number; compacted_at: string | null };
  heart_rate_path: string | null;
  /** Of the last 30 days. */
  drift: DriftStatus[];
  /** What time it is at the service, and how many seconds that is ahead of our clock. Null: no answer has told. */
  service_clock: { at: string; ahead: number } | null;
  /** From what this process has asked, else an earlier one. Null: somebody answered last. */
  service_unreachable: Silence | null;
}

/** How a data folder stands. */
export const statusCommands = { status };

async function status(app: App): Promise<StatusReport> {
  const { warehouse, collections, now, serviceClock, settings } = app;
  const { size: waiting, damaged } = await app.inbox();
  const tokens = { whyMissing: (name: string) => app.secrets.whyUnusable(name) };
  const accounts = await reportAccounts({ warehouse, now, serviceClock, tokens }, collections, await app.workedOn());
  return {
    accounts: accounts.map(account => ({ ...withFix(account), sign_in: findSignInStatus(app, account.user_id, account.reason) })),
    queue: { ...(await countQueue(app)), events: waiting, unreadable_events: damaged },
    ...(app.standby ? { works_elsewhere: tellPlace(app.standby.holder()) } : {}),
    invitations: await listInvitations(app),
    webhooks: await reportWebhooks(warehouse, settings, now, { refused: app.refusals(), waiting }),
    snapshot: { at: modifiedAt(settings.snapshot), failure: app.snapshots.failure ?? null },
    warehouse: await tellSize(warehouse),
    heart_rate_path: await readHeartRatePath(warehouse, settings.serviceUrl),
    drift: await reportDrift({ warehouse, now }),
    service_clock: tellClock(serviceClock),
    service_unreachable: await readSilence({ warehouse, client: await app.openedClient, service: settings.serviceUrl, now }),
  };
}

const tellPlace = ({ host, since }: Holder) => ({ host, since: `${since.replace(' ', 'T')}Z` });

async function tellSize(warehouse: Warehouse): Promise<StatusReport['warehouse']> {
  const { bytes, compacted } = await warehouse.size();
  return { bytes, compacted_at: compacted ? isoOf(compacted.at) : null };
}

function tellClock({ now, aheadMs }: ServiceClock): StatusReport['service_clock'] {
  return aheadMs === undefined ? null : { at: isoOf(Math.floor(now()) * 1000), ahead: Math.round(aheadMs / 1000) };
}

/** What is planned waits, in the queue or not yet: the ledger knows of it, also while the queue is away. */
async function countQueue({
  warehouse,
  log,
  queueProblem,
  opened,
}: App): Promise<Omit<StatusReport['queue'], 'events' | 'unreadable_events'>> {
  const planned = await countPlanned(warehouse);
  // An attempt to open it may take its time.
  if (queueProblem !== undefined) return { ...NO_JOBS, waiting: planned, problem: queueProblem };
  const pipeline = await opened;
  try {
    const { failed } = (await pipeline?.queues.counts(await collectQueue(warehouse))) ?? NO_JOBS;
    const { active, delayed } = pipeline?.runs.countWindows() ?? NO_JOBS;
    return { waiting: Math.max(0, planned - active - delayed), active, delayed, failed, problem: null };
  } catch (error) {
    log.warn({ reason: messageOf(error) }, 'the queue does not answer');
    return { ...NO_JOBS, waiting: planned, problem: messageOf(error) };
  }
}

const NO_JOBS = { waiting: 0, active: 0, delayed: 0, failed: 0 };

function modifiedAt(path: string): string | null {
  try {
    return isoOf(Math.floor(statSync(path).mtimeMs * 1000));
  } catch {
    return null;
  }
}
