import type { Log } from '../../base/log.ts';
import { keyOf, kindsOf, readSubscriptions, type SubscriptionRow, subscriptionEntry } from '../../ledger/subscriptions.ts';
import { ensureOne, type Round } from './ensure-one.ts';
import { forEachConcurrent } from './for-each-concurrent.ts';

export interface EnsureParts extends Pick<Round, 'client' | 'warehouse' | 'callbackUrl' | 'notOffered'> {
  /** The kinds of data that we hold. */
  dataTypes: readonly string[];
  log: Log;
}

export interface Ensured extends Pick<Round, 'failed' | 'notKept' | 'details'> {
  /** One for each kind of data and operation, but for those that could not be asked for at all. */
  rows: SubscriptionRow[];
}

/**
 * Makes what is missing, renews what ends soon, turns to our callback what goes elsewhere. Each is committed when it is done. What exists is
 * taken from the service's list; where it offers none, from our table, and each is renewed to see whether it still exists.
 * @throws ServiceError that concerns all of them
 */
export async function ensureSubscriptions({ dataTypes, log, ...parts }: EnsureParts): Promise<Ensured> {
  const { client, warehouse } = parts;
  const known = await readSubscriptions(warehouse);
  const listed = await client.list();
  const round: Round = { ...parts, listed, lost: [], redirected: [], failed: new Set(), notKept: new Map(), details: new Map() };
  const rows: SubscriptionRow[] = [];
  const news: SubscriptionRow[] = [];
  try {
    await forEachConcurrent(kindsOf(dataTypes), async kind => {
      const before = known.get(keyOf(kind));
      const row = await ensureOne(round, kind, before);
      rows.push(row);
      if (before && JSON.stringify(before) === JSON.stringify(row)) return;
      await warehouse.record([subscriptionEntry(row)]);
      if (row.state !== 'active' && row.reason !== before?.reason) news.push(row);
    });
  } finally {
    if (round.lost.length) log.warn({ lost: round.lost }, 'subscriptions were lost at the service: they are made again');
    if (round.redirected.length)
      log.warn({ redirected: round.redirected }, 'subscriptions went to another callback: they come to ours now');
    for (const [reason, some] of groupByReason(news)) {
      const [{ state }] = some;
      log[state === 'not_offered' ? 'info' : 'warn']({ subscriptions: some.map(keyOf), state, reason }, 'there is no subscription');
    }
  }
  return { rows, failed: round.failed, notKept: round.notKept, details: round.details };
}

function groupByReason(rows: readonly SubscriptionRow[]) {
  const groups = new Map<string | null, [SubscriptionRow, ...SubscriptionRow[]]>();
  for (const row of rows) {
    const group = groups.get(row.reason);
    if (group) group.push(row);
    else groups.set(row.reason, [row]);
  }
  return groups;
}
