import type { RemoteSubscription } from '../../client/subscriptions.ts';
import type { Kind, SubscriptionRow } from '../../ledger/subscriptions.ts';
import type { Warehouse } from '../../warehouse/warehouse.ts';
import { concealQuery } from './callback-url.ts';

/** The row of a subscription that sends its events to our callback. */
export function activeEntry(
  { warehouse, callbackUrl }: { warehouse: Warehouse; callbackUrl: string },
  { eventType, dataType }: Kind,
  before: SubscriptionRow | undefined,
  remote: RemoteSubscription,
  renewed: boolean,
): SubscriptionRow {
  const now = warehouse.clock.next();
  const same = before?.id === remote.id;
  const unbroken = same && before.state === 'active' && before.callbackUrl === concealQuery(callbackUrl);
  return {
    eventType,
    dataType,
    id: remote.id,
    callbackUrl: concealQuery(callbackUrl),
    state: 'active',
    reason: null,
    since: unbroken ? before.since : now,
    renewedAt: renewed ? now : same ? before.renewedAt : null,
    expiresAt: remote.expiresAt,
  };
}

/** The row of one that sends us nothing. The id is kept: what answered 404 may have been something on the way. */
export function inactiveEntry(
  { warehouse }: { warehouse: Warehouse },
  { eventType, dataType }: Kind,
  before: SubscriptionRow | undefined,
  state: SubscriptionRow['state'],
  reason: string,
): SubscriptionRow {
  return {
    eventType,
    dataType,
    id: before?.id ?? null,
    callbackUrl: before?.callbackUrl ?? null,
    state,
    reason,
    since: before?.state === state ? before.since : warehouse.clock.next(),
    renewedAt: before?.renewedAt ?? null,
    expiresAt: before?.expiresAt ?? null,
  };
}
