import { isoOf } from '../../schema/instant.ts';
import { dataTypesOf } from '../../schema/resource.ts';
import { dataTypeOf } from '../../schema/webhook.ts';
import type { WebhookSettings } from '../base/config.ts';
import type { RemoteSubscription } from '../client/subscriptions.ts';
import { countOutcomes, readLastEvent } from '../ledger/events.ts';
import { type Desired, keyOf, kindsOf, readDesired, readSubscriptions, type SubscriptionRow } from '../ledger/subscriptions.ts';
import type { Warehouse } from '../warehouse/warehouse.ts';
import { listUnknownPersons, type UnknownPerson } from './events/unknown-person.ts';
import { withoutQuery } from './subscriptions/callback-url.ts';

export interface WebhookStatus {
  /** Without its query. */
  callback_url: string;
  subscriptions: Desired;
  active: number;
  /** How many there are to be. */
  wanted: number;
  /** What was in the way of all of them, or of renewals, last. */
  problem: string | null;
  problems: { event_type: string; data_type: string; state: string; reason: string | null }[];
  last_event_at: string | null;
  /** Accepted and without an outcome yet. */
  waiting: number;
  /** Of the last 24 hours, by outcome. */
  events_24h: Record<string, number>;
  missed_24h: number;
  /** Of whom events wait, and whom no account is known to be. */
  unknown_users: UnknownPerson[];
  /** What the receiver refused since it started, by reason; empty where none runs. */
  refused: Record<string, number>;
}

const DAY_MS = 86_400_000;

/** How webhooks stand, for `status`; null where they are not configured. */
export async function reportWebhooks(
  warehouse: Warehouse,
  { webhooks }: { webhooks: WebhookSettings | null },
  now: () => number,
  { refused = {}, waiting = 0 }: { refused?: Readonly<Record<string, number>>; waiting?: number } = {},
): Promise<WebhookStatus | null> {
  if (!webhooks) return null;
  const { desired, problem } = await readDesired(warehouse);
  const known = await readSubscriptions(warehouse);
  const kinds = desired === 'ensured' ? kindsOf(dataTypesOf(warehouse.resources)) : [];
  const rows = kinds.flatMap(kind => known.get(keyOf(kind)) ?? []);
  const [dayAgo, atNow] = [Math.floor((now() - DAY_MS) * 1000), Math.ceil(now() * 1000)];
  const outcomes = await countOutcomes(warehouse, dayAgo, atNow);
  const { lastAt, missed } = await readLastEvent(warehouse, dayAgo, atNow);
  return {
    callback_url: withoutQuery(webhooks.callbackUrl),
    subscriptions: desired,
    active: [...known.values()].filter(({ state }) => state === 'active').length,
    wanted: kinds.length,
    problem,
    problems: rows
      .filter(({ state }) => state !== 'active')
      .map(({ eventType, dataType, state, reason }) => ({ event_type: eventType, data_type: dataType, state, reason })),
    waiting,
    last_event_at: isoOrNull(lastAt),
    events_24h: outcomes,
    missed_24h: missed,
    unknown_users: await listUnknownPersons(warehouse),
    refused: { ...refused },
  };
}

export interface SubscriptionReport {
  event_type: string;
  data_type: string;
  state: string;
  reason: string | null;
  /** Null where the service offers no list. */
  at_service: boolean | null;
  id: string | null;
  /** Without its query. */
  callback_url: string | null;
  since: string | null;
  renewed_at: string | null;
  expiration_time: string | null;
}

const isoOrNull = (micros: number | null) => (micros === null ? null : isoOf(micros));

/** What we know, joined with what the service lists; `unknown` is what only the service has. */
export function reportSubscriptions(
  rows: readonly SubscriptionRow[],
  remote: readonly RemoteSubscription[] | undefined,
): SubscriptionReport[] {
  const listed = new Map(remote?.map(their => [keyOfRemote(their), their]));
  const reports = rows.map((row): SubscriptionReport => {
    const their = listed.get(keyOf(row));
    listed.delete(keyOf(row));
    const url = their?.callbackUrl ?? row.callbackUrl;
    return {
      event_type: row.eventType,
      data_type: row.dataType,
      state: row.state,
      reason: row.reason,
      at_service: remote ? their !== undefined : null,
      id: their?.id ?? row.id,
      callback_url: url === null ? null : withoutQuery(url),
      since: isoOf(row.since),
      renewed_at: isoOrNull(row.renewedAt),
      expiration_time: isoOrNull(their?.expiresAt ?? row.expiresAt),
    };
  });
  for (const their of listed.values()) {
    reports.push({
      event_type: their.eventType,
      data_type: their.dataType,
      state: 'unknown',
      reason: 'at the service, but not made by this data folder',
      at_service: true,
      id: their.id,
      callback_url: withoutQuery(their.callbackUrl),
      since: null,
      renewed_at: null,
      expiration_time: isoOrNull(their.expiresAt),
    });
  }
  return reports;
}

const keyOfRemote = ({ eventType, dataType }: RemoteSubscription) => `${eventType} ${dataTypeOf(dataType)}`;
