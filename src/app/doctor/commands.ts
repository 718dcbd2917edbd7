import { messageOf } from '../../base/errors.ts';
import type { App } from '../app.ts';
import type { StandbyOptions } from '../app-options.ts';
import { tellHolder } from '../lake/hold.ts';
import { checkAccounts, checkKeptTokens, checkSamePersons } from './accounts.ts';
import { type CheckResult, fail, ok, runCheck } from './check-result.ts';
import { checkClock } from './clock.ts';
import { checkDays } from './days.ts';
import { checkDocuments } from './documents.ts';
import { checkUnreadable } from './folder.ts';
import { checkSignIns } from './sign-ins.ts';
import { checkSnapshot } from './snapshot.ts';
import { checkSubscriptions, checkUnknownPersons } from './subscriptions.ts';
import { checkWarehouse } from './warehouse.ts';

/** For all accounts together: each is given less. */
const ACCOUNTS_MS = 60_000;
const DAYS_MS = 20_000;
const SUBSCRIPTIONS_MS = 30_000;
const WAREHOUSE_MS = 20_000;
/** The last statement may begin just before the time is over. */
const LAST_STATEMENT_MS = 20_000;
const QUEUE_MS = 5_000;
const SNAPSHOT_MS = 20_000;

/** What only the owner of a data folder can look at. */
export const doctorCommands = { check };

async function check(app: App): Promise<CheckResult[]> {
  const { serviceUrl } = app.settings;
  if (app.standby) return checkStandby(app, app.standby);
  const parts = await Promise.all([
    runCheck('clock', QUEUE_MS, async () => checkClock(app.warehouse)),
    runCheck('queue', QUEUE_MS, () => checkOwnQueue(app)),
    serviceUrl ? runCheck('accounts', ACCOUNTS_MS, () => checkAccounts(app, serviceUrl)) : [],
    runCheck('accounts', QUEUE_MS, () => checkSamePersons(app)),
    runCheck('accounts', QUEUE_MS, () => checkKeptTokens(app)),
    runCheck('sign-ins', QUEUE_MS, () => checkSignIns(app)),
    runCheck('days', DAYS_MS, () => checkDays(app)),
    runCheck('documents', DAYS_MS, () => checkDocuments(app)),
    runCheck('subscriptions', SUBSCRIPTIONS_MS, () => checkSubscriptions(app)),
    runCheck('inbox', QUEUE_MS, async () => checkUnreadable((await app.inbox()).damaged)),
    runCheck('events', QUEUE_MS, () => checkUnknownPersons(app)),
    runCheck('warehouse', WAREHOUSE_MS + LAST_STATEMENT_MS, () => checkWarehouse(app.warehouse, WAREHOUSE_MS)),
    runCheck('snapshot', SNAPSHOT_MS, () => checkSnapshot(app)),
  ]);
  return parts.flat();
}

/** What a machine can look at that waits. */
async function checkStandby(app: App, { holder }: StandbyOptions): Promise<CheckResult[]> {
  const rest = 'accounts, sign-ins, subscriptions and the queue are checked there';
  const parts = await Promise.all([
    [ok('owner', `${tellHolder(holder())}; this machine waits: ${rest}`)],
    runCheck('clock', QUEUE_MS, async () => checkClock(app.warehouse)),
    runCheck('days', DAYS_MS, () => checkDays(app)),
    runCheck('documents', DAYS_MS, () => checkDocuments(app)),
    runCheck('events', QUEUE_MS, () => checkUnknownPersons(app)),
    runCheck('warehouse', WAREHOUSE_MS + LAST_STATEMENT_MS, () => checkWarehouse(app.warehouse, WAREHOUSE_MS)),
  ]);
  return parts.flat();
}

async function checkOwnQueue(app: App): Promise<CheckResult[]> {
  const pipeline = await app.opened;
  if (!pipeline) return app.settings.queueUrl ? [] : [ok('queue', 'embedded; opened by whoever works with it')];
  try {
    await pipeline.queues.ping();
    return [ok('queue', `${pipeline.queues.kind}, answers its owner`)];
  } catch (error) {
    const fix =
      pipeline.queues.kind === 'redis'
        ? 'see to Redis: ringneck up goes on by itself once it answers; what is planned is in the ledger'
        : 'restart ringneck up; what is planned is in the ledger and taken up again';
    return [fail('queue', messageOf(error), fix)];
  }
}
