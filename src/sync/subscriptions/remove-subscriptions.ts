import { dataTypeOf } from '../../../schema/webhook.ts';
import { shownMessageOf } from '../../base/errors.ts';
import type { SubscriptionClient } from '../../client/subscriptions.ts';
import { keyOf, readSubscriptions, type SubscriptionRow, subscriptionEntry } from '../../ledger/subscriptions.ts';
import type { LedgerEntry } from '../../warehouse/sql.ts';
import type { Warehouse } from '../../warehouse/warehouse.ts';
import { isOurs } from './callback-url.ts';
import { forEachConcurrent } from './for-each-concurrent.ts';
import { isOfOne } from './service-errors.ts';

export interface Removed {
  /** How many there were and are no more. */
  removed: number;
  failed: { eventType: string; dataType: string; reason: string }[];
  /** Without the service's list others of ours may be left. */
  listed: boolean;
}

/** Cancels what goes to our callback. */
export async function removeSubscriptions(parts: {
  client: SubscriptionClient;
  warehouse: Warehouse;
  callbackUrl: string;
}): Promise<Removed> {
  const { client, warehouse } = parts;
  const known = await readSubscriptions(warehouse);
  const listed = await client.list();
  const ours = listed
    ? listed
        .filter(({ callbackUrl }) => isOurs(parts, callbackUrl))
        .map(({ eventType, dataType, id }) => ({ eventType, dataType: dataTypeOf(dataType), id }))
    : [...known.values()].flatMap(({ eventType, dataType, id }) => (id ? [{ eventType, dataType, id }] : []));
  const result: Removed = { removed: 0, failed: [], listed: listed !== undefined };
  await forEachConcurrent(ours, async ({ id, ...kind }) => {
    try {
      if (await client.remove(id)) result.removed++;
    } catch (error) {
      if (!isOfOne(error)) throw error;
      result.failed.push({ ...kind, reason: shownMessageOf(error) });
      return;
    }
    const before = known.get(keyOf(kind));
    if (before) await warehouse.record([removedEntry(warehouse, before, 'removed by command')]);
  });
  if (listed) {
    const left = new Set(listed.map(({ eventType, dataType }) => keyOf({ eventType, dataType: dataTypeOf(dataType) })));
    const ourKinds = new Set(ours.map(keyOf));
    const others = [...known.values()].filter(row => row.state !== 'removed' && !ourKinds.has(keyOf(row)));
    const reasonOf = (row: SubscriptionRow) =>
      left.has(keyOf(row)) ? 'it goes to another callback by now: left to that' : 'removed by command';
    await warehouse.record(others.map(row => removedEntry(warehouse, row, reasonOf(row))));
  }
  return result;
}

export const removedEntry = (warehouse: Warehouse, row: SubscriptionRow, reason: string): LedgerEntry =>
  subscriptionEntry({ ...row, id: null, state: 'removed', reason, since: warehouse.clock.next() });
