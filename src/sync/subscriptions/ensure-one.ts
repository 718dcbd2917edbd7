import { dataTypeOf, namesOf } from '../../../schema/webhook.ts';
import { detailOf, messageOf } from '../../base/errors.ts';
import { ServiceError } from '../../client/error.ts';
import type { RemoteSubscription, SubscriptionClient } from '../../client/subscriptions.ts';
import { type Kind, keyOf, type SubscriptionRow } from '../../ledger/subscriptions.ts';
import type { Warehouse } from '../../warehouse/warehouse.ts';
import { concealQuery, isOurs } from './callback-url.ts';
import { dueAt, expiredRow, isExpired } from './expiry.ts';
import { isAbout, isOfOne, orUndefined404, saysItExists } from './service-errors.ts';
import { activeEntry, inactiveEntry } from './subscription-entry.ts';

/** What is the same for all in one round, and what it has met so far, by `keyOf`. */
export interface Round {
  client: SubscriptionClient;
  warehouse: Warehouse;
  callbackUrl: string;
  /** Kinds of data that the service turned out not to know: not asked for again. */
  notOffered: Set<string>;
  /** Undefined: the service offers no list. */
  listed: readonly RemoteSubscription[] | undefined;
  /** Said of our callback, which all share, by the first that was refused for it. */
  callbackRefused?: string;
  lost: string[];
  redirected: string[];
  /** Those that are to be asked for again. */
  failed: Set<string>;
  /** Why some could not be renewed or turned to our callback. */
  notKept: Map<string, string>;
  /** What the service said of those that failed, for whoever asked. */
  details: Map<string, string>;
}

/**
 * Makes a subscription that is missing, renews one that ends soon, turns to our callback one that goes elsewhere.
 * @throws ServiceError that concerns all of them
 */
export async function ensureOne(round: Round, kind: Kind, before: SubscriptionRow | undefined): Promise<SubscriptionRow> {
  try {
    const { listed } = round;
    const kept = listed ? await keepListed(round, listed, kind, before) : await keepKnown(round, kind, before);
    if (kept) return kept;
    if (before?.state === 'active') round.lost.push(keyOf(kind));
    return await create(round, kind, before);
  } catch (error) {
    if (!isOfOne(error)) throw error;
    noteFailure(round, kind, error);
    if (before?.state === 'active' && !round.lost.includes(keyOf(kind))) return stand(round, kind, before, error);
    const state = before?.state === 'active' || before?.state === 'lost' ? 'lost' : 'refused';
    return inactiveEntry(round, kind, before, state, `not made yet: ${messageOf(error)}`);
  }
}

/** Keeps one that the service lists; undefined when there is none. */
async function keepListed(
  round: Round,
  listed: readonly RemoteSubscription[],
  kind: Kind,
  before: SubscriptionRow | undefined,
): Promise<SubscriptionRow | undefined> {
  const { warehouse } = round;
  const same = listed.filter(({ eventType, dataType }) => eventType === kind.eventType && dataTypeOf(dataType) === kind.dataType);
  const found = same.find(({ callbackUrl }) => isOurs(round, callbackUrl)) ?? same[0];
  if (!found) return undefined;
  if (!isOurs(round, found.callbackUrl)) return redirect(round, kind, before, found.id);
  const row = activeEntry(round, kind, before, found, false);
  if (dueAt(row) > warehouse.clock.next()) return row;
  return renew(round, kind, before, row);
}

/** Without a list: one that is renewed still exists. */
async function keepKnown(round: Round, kind: Kind, before: SubscriptionRow | undefined): Promise<SubscriptionRow | undefined> {
  if (!before?.id) return undefined;
  if (before.callbackUrl !== concealQuery(round.callbackUrl)) return redirect(round, kind, before, before.id);
  return renew(round, kind, before, before);
}

/** Asks for a longer life; undefined when there is none to renew. */
async function renew(
  round: Round,
  kind: Kind,
  before: SubscriptionRow | undefined,
  standing: SubscriptionRow,
): Promise<SubscriptionRow | undefined> {
  const { id } = standing;
  if (id === null) return undefined;
  try {
    return await orUndefined404(async () => activeEntry(round, kind, before, await round.client.renew(id), true));
  } catch (error) {
    if (!isOfOne(error) || (standing.state !== 'active' && !isExpired(standing, round.warehouse))) throw error;
    return stand(round, kind, standing, error);
  }
}

/** What an error leaves of one: it takes nothing away before the life that it has is over. */
function stand(round: Round, kind: Kind, row: SubscriptionRow, error: ServiceError): SubscriptionRow {
  noteFailure(round, kind, error);
  round.notKept.set(keyOf(kind), messageOf(error));
  return isExpired(row, round.warehouse) ? expiredRow(round, row, messageOf(error)) : row;
}

/** Sends its events to our callback from now on; a service that leaves the address as it is gets a new subscription. */
async function redirect(round: Round, kind: Kind, before: SubscriptionRow | undefined, id: string): Promise<SubscriptionRow | undefined> {
  const { client } = round;
  if (round.callbackRefused) return refuseCallback(round, kind, before, round.callbackRefused);
  try {
    const remote = await orUndefined404(() => client.update(id));
    // Whatever came of it until now did not come to us.
    const elsewhere = before && { ...before, state: 'lost' as const };
    if (remote && isOurs(round, remote.callbackUrl)) {
      round.redirected.push(keyOf(kind));
      return activeEntry(round, kind, elsewhere, remote, false);
    }
    if (remote) await client.remove(id);
    return undefined;
  } catch (error) {
    if (isAbout(error, 'callback_url')) return refuseCallback(round, kind, before, messageOf(error), detailOf(error));
    throw error;
  }
}

async function create(round: Round, kind: Kind, before: SubscriptionRow | undefined): Promise<SubscriptionRow> {
  const { eventType, dataType } = kind;
  if (round.callbackRefused) return refuseCallback(round, kind, before, round.callbackRefused);
  for (const name of namesOf(dataType)) {
    if (round.notOffered.has(name)) continue;
    try {
      return activeEntry(round, kind, before, await round.client.create(eventType, name), true);
    } catch (error) {
      if (isAbout(error, 'callback_url')) return refuseCallback(round, kind, before, messageOf(error), detailOf(error));
      const exists = error instanceof ServiceError && saysItExists(error);
      if (!exists && isAbout(error, 'data_type')) {
        round.notOffered.add(name);
        continue;
      }
      if (!(error instanceof ServiceError) || error.kind !== 'invalid_request') throw error;
      noteFailure(round, kind, error);
      return inactiveEntry(round, kind, before, 'refused', exists ? existsUnknown(round) : messageOf(error));
    }
  }
  return inactiveEntry(round, kind, before, 'not_offered', 'the service knows no such kind of data; asked again at the next start');
}

function noteFailure(round: Round, kind: Kind, error: unknown): void {
  round.failed.add(keyOf(kind));
  const detail = detailOf(error);
  if (detail) round.details.set(keyOf(kind), detail);
}

/** The one callback is shared by all: they are not tried one after the other. */
function refuseCallback(round: Round, kind: Kind, before: SubscriptionRow | undefined, said: string, detail?: string): SubscriptionRow {
  round.callbackRefused = said;
  round.failed.add(keyOf(kind));
  if (detail) round.details.set(keyOf(kind), detail);
  return inactiveEntry(
    round,
    kind,
    before,
    'refused',
    `the service could not verify our callback: check RINGNECK_CALLBACK_URL, the reverse proxy and RINGNECK_VERIFICATION_TOKEN, or run ringneck doctor (${said})`,
  );
}

const existsUnknown = ({ listed }: Round) =>
  `the service has this subscription already, ${listed ? 'but does not list it' : 'offers no list, and we do not know its id'}: if its events come to our callback, ` +
  'ringneck subscriptions remove --on-next-event ends it, and ringneck subscriptions ensure then makes it anew; else it goes when it expires';
