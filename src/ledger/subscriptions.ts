import { OPERATIONS } from '../../schema/webhook.ts';
import { number, oneOf, orNull, type Readable, type Row, readRows, text } from '../warehouse/rows.ts';
import type { LedgerEntry } from '../warehouse/sql.ts';
import { factEntry, readFacts } from './meta.ts';

const SUBSCRIPTION = {
  eventType: oneOf(OPERATIONS),
  dataType: text,
  id: orNull(text),
  callbackUrl: orNull(text),
  state: oneOf(['active', 'not_offered', 'refused', 'lost', 'removed']),
  reason: orNull(text),
  since: number,
  renewedAt: orNull(number),
  expiresAt: orNull(number),
};

/** A row of `sync.subscriptions`; moments are microseconds since the epoch. */
export type SubscriptionRow = Row<typeof SUBSCRIPTION>;

export type SubscriptionState = SubscriptionRow['state'];

const DESIRED = ['ensured', 'removed', 'gone'] as const;

/** What is to be with our subscriptions: kept; cancelled by a command; or cancelled one by one, by answering 410 to the next event of each (6.1). */
export type Desired = (typeof DESIRED)[number];

export type Kind = Pick<SubscriptionRow, 'eventType' | 'dataType'>;

export const keyOf = ({ eventType, dataType }: Record<keyof Kind, string>): string => `${eventType} ${dataType}`;

/** Every subscription that we want: one for each kind of data and operation (4.4). */
export const kindsOf = (dataTypes: readonly string[]): Kind[] =>
  dataTypes.flatMap(dataType => OPERATIONS.map(eventType => ({ eventType, dataType })));

/** Our subscriptions as last seen, by `keyOf`. */
export async function readSubscriptions(warehouse: Readable): Promise<Map<string, SubscriptionRow>> {
  const rows = await readRows(
    warehouse,
    SUBSCRIPTION,
    `SELECT event_type, data_type, id, callback_url, state, reason, since, renewed_at, expiration_time
     FROM sync.subscriptions ORDER BY data_type, event_type`,
  );
  return new Map(rows.map(row => [keyOf(row), row]));
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

/** What is wanted, and what was in the way of it last, as a sentence. */
export async function readDesired(warehouse: Readable): Promise<{ desired: Desired; problem: string | null }> {
  const facts = await readFacts(warehouse);
  const desired = DESIRED.find(word => word === facts.get('subscriptions')) ?? 'ensured';
  return { desired, problem: facts.get('subscriptions_problem') ?? null };
}

export const desiredEntry = (desired: Desired): LedgerEntry => factEntry('subscriptions', desired);

export const problemEntry = (problem: string | null): LedgerEntry => factEntry('subscriptions_problem', problem);
