import { OPERATIONS, type Operation } from '../../schema/webhook.ts';
import type { LedgerEntry } from '../warehouse/sql.ts';
import type { Warehouse } from '../warehouse/warehouse.ts';

export type SubscriptionState = 'active' | 'not_offered' | 'refused' | 'lost' | 'removed';

/** A row of `sync.subscriptions`; moments are microseconds since the epoch. */
export interface SubscriptionRow {
  eventType: Operation;
  dataType: string;
  id: string | null;
  callbackUrl: string | null;
  state: SubscriptionState;
  reason: string | null;
  since: number;
  renewedAt: number | null;
  expiresAt: number | null;
}

/** What is to be with our subscriptions: kept; cancelled by a command; or cancelled one by one, by answering 410 to the next event of each (6.1). */
export type Desired = 'ensured' | 'removed' | 'gone';

export type Kind = Pick<SubscriptionRow, 'eventType' | 'dataType'>;

export const keyOf = ({ eventType, dataType }: Kind): string => `${eventType} ${dataType}`;

/** Every subscription that we want: one for each kind of data and operation (4.4). */
export const kindsOf = (dataTypes: readonly string[]): Kind[] =>
  dataTypes.flatMap(dataType => OPERATIONS.map(eventType => ({ eventType, dataType })));

/** Our subscriptions as last seen, by `keyOf`. */
export async function readSubscriptions(warehouse: Warehouse): Promise<Map<string, SubscriptionRow>> {
  const rows = await warehouse.read(
    `SELECT event_type, data_type, id, callback_url, state, reason, since, renewed_at, expiration_time
     FROM sync.subscriptions ORDER BY data_type, event_type`,
  );
  return new Map(
    rows.map(([eventType, dataType, id, callbackUrl, state, reason, since, renewedAt, expiresAt]) => {
      const row: SubscriptionRow = {
        eventType: eventType as Operation,
        dataType: dataType as string,
        id: id as string | null,
        callbackUrl: callbackUrl as string | null,
        state: state as SubscriptionState,
        reason: reason as string | null,
        since: since as number,
        renewedAt: renewedAt as number | null,
        expiresAt: expiresAt as number | null,
      };
      return [keyOf(row), row];
    }),
  );
}

export function subscriptionEntry(row: SubscriptionRow): LedgerEntry {
  return {
    table: 'sync.subscriptions',
    key: { event_type: row.eventType, data_type: row.dataType },
    row: {
      id: row.id,
      callback_url: row.callbackUrl,
      state: row.state,
      reason: row.reason,
      since: row.since,
      renewed_at: row.renewedAt,
      expiration_time: row.expiresAt,
    },
  };
}

const WANTED_KEY = 'subscriptions';
const PROBLEM_KEY = 'subscriptions_problem';

/** What is wanted, and what was in the way of it last, as a sentence. */
export async function readDesired(warehouse: Warehouse): Promise<{ desired: Desired; problem: string | null }> {
  const rows = await warehouse.read(`SELECT key, value FROM sync.meta WHERE key IN ('${WANTED_KEY}', '${PROBLEM_KEY}')`);
  const facts = new Map(rows.map(([key, value]) => [key, value as string]));
  return { desired: (facts.get(WANTED_KEY) as Desired | undefined) ?? 'ensured', problem: facts.get(PROBLEM_KEY) ?? null };
}

export const desiredEntry = (desired: Desired): LedgerEntry => ({ table: 'sync.meta', key: { key: WANTED_KEY }, row: { value: desired } });

export const problemEntry = (problem: string | null): LedgerEntry => ({
  table: 'sync.meta',
  key: { key: PROBLEM_KEY },
  ...(problem === null ? {} : { row: { value: problem } }),
});
