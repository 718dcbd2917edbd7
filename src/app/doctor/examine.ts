import { messageOf } from '../../base/errors.ts';
import type { Owner } from '../app.ts';
import { examineAccounts, examineSamePersons } from './accounts.ts';
import { examineMoments } from './clock.ts';
import { examineDays } from './days.ts';
import { examineDocuments } from './documents.ts';
import { examined, type Finding, fail, ok } from './finding.ts';
import { examineSnapshot } from './snapshot.ts';
import { examineSubscriptions, examineUnknownPersons } from './subscriptions.ts';
import { examineWarehouse } from './warehouse.ts';

/** For all accounts together: each is given less. */
const ACCOUNTS_MS = 60_000;
const DAYS_MS = 20_000;
const SUBSCRIPTIONS_MS = 30_000;
const WAREHOUSE_MS = 20_000;
/** The last statement may begin just before the time is over. */
const LAST_STATEMENT_MS = 20_000;
const QUEUE_MS = 5_000;
const SNAPSHOT_MS = 20_000;

/** What only the owner of a data folder can look at. Plain JSON, as all operations. */
export function doctorOperations(owner: Owner) {
  return {
    async examine(_: Record<string, never>): Promise<Finding[]> {
      const { serviceUrl } = owner.settings;
      const parts = await Promise.all([
        examined('clock', QUEUE_MS, async () => examineMoments(owner.warehouse)),
        examined('queue', QUEUE_MS, () => examineOwnQueue(owner)),
        serviceUrl ? examined('accounts', ACCOUNTS_MS, () => examineAccounts(owner, serviceUrl)) : [],
        examined('accounts', QUEUE_MS, () => examineSamePersons(owner)),
        examined('days', DAYS_MS, () => examineDays(owner)),
        examined('documents', DAYS_MS, () => examineDocuments(owner)),
        examined('subscriptions', SUBSCRIPTIONS_MS, () => examineSubscriptions(owner)),
        examined('events', QUEUE_MS, () => examineUnknownPersons(owner)),
        examined('warehouse', WAREHOUSE_MS + LAST_STATEMENT_MS, () => examineWarehouse(owner.warehouse, WAREHOUSE_MS)),
        examined('snapshot', SNAPSHOT_MS, () => examineSnapshot(owner)),
      ]);
      return parts.flat();
    },
  };
}

async function examineOwnQueue(owner: Owner): Promise<Finding[]> {
  const pipeline = await owner.opened;
  if (!pipeline) return owner.settings.queueUrl ? [] : [ok('queue', 'embedded; opened by whoever works with it')];
  try {
    await pipeline.queues.ping();
    return [ok('queue', `${pipeline.queues.kind}, answers its owner`)];
  } catch (error) {
    const mend =
      pipeline.queues.kind === 'redis'
        ? 'see to Redis: ringneck up goes on by itself once it answers; what is planned is in the ledger'
        : 'restart ringneck up; what is planned is in the ledger and taken up again';
    return [fail('queue', messageOf(error), mend)];
  }
}
