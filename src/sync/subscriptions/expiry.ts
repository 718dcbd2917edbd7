import { readSubscriptions, type SubscriptionRow, subscriptionEntry } from '../../ledger/subscriptions.ts';
import type { Warehouse } from '../../warehouse/warehouse.ts';
import { inactiveEntry } from './subscription-entry.ts';

const DAY = 86_400_000_000;
/** Taken where the service does not say how long one lasts: less than the 90 days that are known. */
const SUPPOSED_LIFE = 30 * DAY;

/** When one is to be renewed: with a third of its life left. Microseconds. */
export function dueAt({ since, renewedAt, expiresAt }: SubscriptionRow): number {
  const life = renewedAt !== null && expiresAt !== null ? expiresAt - renewedAt : SUPPOSED_LIFE;
  return (expiresAt ?? (renewedAt ?? since) + SUPPOSED_LIFE) - life / 3;
}

export const isExpired = ({ expiresAt }: SubscriptionRow, { clock }: Warehouse): boolean => expiresAt !== null && expiresAt <= clock.next();

/** The row of one that has expired. */
export const expiredRow = (parts: { warehouse: Warehouse }, row: SubscriptionRow, reason: string): SubscriptionRow =>
  inactiveEntry(parts, row, row, 'lost', `it has expired and could not be renewed: ${reason}`);

/** For a round that came to nothing: what has expired meanwhile is lost. */
export async function noteExpired(parts: { warehouse: Warehouse }, reason: string): Promise<void> {
  const { warehouse } = parts;
  const known = await readSubscriptions(warehouse);
  const expired = [...known.values()].filter(row => row.state === 'active' && isExpired(row, warehouse));
  await warehouse.record(expired.map(row => subscriptionEntry(expiredRow(parts, row, reason))));
}
