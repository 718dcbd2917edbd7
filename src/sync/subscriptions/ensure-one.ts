import { dataTypeOf, namesOf } from '../../../schema/webhook.ts';
import { detailOf, messageOf } from '../../base/errors.ts';
import { ServiceError } from '../../client/error.ts';
import type { RemoteSubscription, SubscriptionClient } from '../../client/subscriptions.ts';
import { type Kind, keyOf, type SubscriptionRow, type SubscriptionState } from '../../ledger/subscriptions.ts';
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
export function ensureOne(round: Round, kind: Kind, before: SubscriptionRow | undefined): Promise<SubscriptionRow> {
  return new OneSubscription(round, kind, before).ensure();
}

class OneSubscription {
  readonly #round: Round;
  readonly #kind: Kind;
  readonly #key: string;
  /** As it was known before the round. */
  readonly #before: SubscriptionRow | undefined;

  constructor(round: Round, kind: Kind, before: SubscriptionRow | undefined) {
    this.#round = round;
    this.#kind = kind;
    this.#key = keyOf(kind);
    this.#before = before;
  }

  async ensure(): Promise<SubscriptionRow> {
    const { listed, lost } = this.#round;
    const before = this.#before;
    try {
      const kept = listed ? await this.#keepListed(listed) : await this.#keepKnown();
      if (kept) return kept;
      if (before?.state === 'active') lost.push(this.#key);
      return await this.#create();
    } catch (error) {
      if (!isOfOne(error)) throw error;
      this.#fail(detailOf(error));
      if (before?.state === 'active' && !lost.includes(this.#key)) return this.#stand(before, error);
      const state = before?.state === 'active' || before?.state === 'lost' ? 'lost' : 'refused';
      return this.#inactive(state, `not made yet: ${messageOf(error)}`);
    }
  }

  /** Keeps one that the service lists; undefined when there is none. */
  async #keepListed(listed: readonly RemoteSubscription[]): Promise<SubscriptionRow | undefined> {
    const same = listed.filter(({ eventType, dataType }) => keyOf({ eventType, dataType: dataTypeOf(dataType) }) === this.#key);
    const found = same.find(({ callbackUrl }) => isOurs(this.#round, callbackUrl)) ?? same[0];
    if (!found) return undefined;
    if (!isOurs(this.#round, found.callbackUrl)) return this.#redirect(found.id);
    const row = this.#active(found, false);
    return dueAt(row) > this.#round.warehouse.clock.next() ? row : this.#renew(row);
  }

  /** Without a list: one that is renewed still exists. */
  async #keepKnown(): Promise<SubscriptionRow | undefined> {
    const before = this.#before;
    if (!before?.id) return undefined;
    return before.callbackUrl === concealQuery(this.#round.callbackUrl) ? this.#renew(before) : this.#redirect(before.id);
  }

  /** Asks for a longer life; undefined when there is none to renew. */
  async #renew(standing: SubscriptionRow): Promise<SubscriptionRow | undefined> {
    const { client, warehouse } = this.#round;
    const { id } = standing;
    if (id === null) return undefined;
    try {
      return await orUndefined404(async () => this.#active(await client.renew(id), true));
    } catch (error) {
      if (!isOfOne(error) || (standing.state !== 'active' && !isExpired(standing, warehouse))) throw error;
      return this.#stand(standing, error);
    }
  }

  /** What an error leaves of one: it takes nothing away before the life that it has is over. */
  #stand(row: SubscriptionRow, error: ServiceError): SubscriptionRow {
    const reason = messageOf(error);
    this.#fail(detailOf(error));
    this.#round.notKept.set(this.#key, reason);
    return isExpired(row, this.#round.warehouse) ? expiredRow(this.#round, row, reason) : row;
  }

  /** Sends its events to our callback from now on; a service that leaves the address as it is gets a new subscription. */
  async #redirect(id: string): Promise<SubscriptionRow | undefined> {
    const { client, callbackRefused, redirected } = this.#round;
    const before = this.#before;
    if (callbackRefused) return this.#refuseCallback(callbackRefused);
    try {
      const remote = await orUndefined404(() => client.update(id));
      if (remote && isOurs(this.#round, remote.callbackUrl)) {
        redirected.push(this.#key);
        // Whatever came of it until now did not come to us.
        return this.#active(remote, false, before && { ...before, state: 'lost' });
      }
      if (remote) await client.remove(id);
      return undefined;
    } catch (error) {
      if (isAbout(error, 'callback_url')) return this.#refuseCallback(messageOf(error), detailOf(error));
      throw error;
    }
  }

  async #create(): Promise<SubscriptionRow> {
    const { client, callbackRefused, notOffered } = this.#round;
    const { eventType, dataType } = this.#kind;
    if (callbackRefused) return this.#refuseCallback(callbackRefused);
    for (const name of namesOf(dataType)) {
      if (notOffered.has(name)) continue;
      try {
        return this.#active(await client.create(eventType, name), true);
      } catch (error) {
        if (isAbout(error, 'callback_url')) return this.#refuseCallback(messageOf(error), detailOf(error));
        const exists = error instanceof ServiceError && saysItExists(error);
        if (!exists && isAbout(error, 'data_type')) {
          notOffered.add(name);
          continue;
        }
        if (!(error instanceof ServiceError) || error.kind !== 'invalid_request') throw error;
        this.#fail(detailOf(error));
        return this.#inactive('refused', exists ? existsUnknown(this.#round) : messageOf(error));
      }
    }
    return this.#inactive('not_offered', 'the service knows no such kind of data; asked again at the next start');
  }

  #fail(detail: string | undefined): void {
    this.#round.failed.add(this.#key);
    if (detail) this.#round.details.set(this.#key, detail);
  }

  /** The one callback is shared by all: they are not tried one after the other. */
  #refuseCallback(said: string, detail?: string): SubscriptionRow {
    this.#round.callbackRefused = said;
    this.#fail(detail);
    const check = 'check RINGNECK_CALLBACK_URL, the reverse proxy and RINGNECK_VERIFICATION_TOKEN';
    return this.#inactive('refused', `the service could not verify our callback: ${check} (${said})`);
  }

  #active(remote: RemoteSubscription, renewed: boolean, before = this.#before): SubscriptionRow {
    return activeEntry(this.#round, this.#kind, before, remote, renewed);
  }

  #inactive(state: SubscriptionState, reason: string): SubscriptionRow {
    return inactiveEntry(this.#round, this.#kind, this.#before, state, reason);
  }
}

const existsUnknown = ({ listed }: Round) =>
  `the service has this subscription already, ${listed ? 'but does not list it' : 'offers no list, and we do not know its id'}: if its events come to our callback, ` +
  'ringneck subscriptions remove --on-next-event ends it, and ringneck subscriptions ensure then makes it anew; else it goes when it expires';
