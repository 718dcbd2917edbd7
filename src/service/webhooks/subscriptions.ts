import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import { dataTypeOf, type WebhookEvent, type WebhookSubscription, webhookSubscription } from '../../../schema/webhook.ts';
import { writeFileAtomically } from '../../base/files.ts';
import { openJsonFile } from '../../base/json-file.ts';
import { Problem } from '../problem.ts';

/** The lifecycle of section 3. A subscription that ended in either way is unknown to its client. */
export const SUBSCRIPTION_STATES = ['awaiting_verification', 'active', 'cancelled', 'expired'] as const;
export type SubscriptionState = (typeof SUBSCRIPTION_STATES)[number];

const storedSubscription = webhookSubscription.extend({
  client_id: z.string(),
  state: z.enum(SUBSCRIPTION_STATES),
  /** When it came into its state. */
  since: z.iso.datetime(),
});
export type StoredSubscription = z.infer<typeof storedSubscription>;

const subscriptionsFile = z.strictObject({ format: z.literal(1), subscriptions: z.array(storedSubscription) });

/** What a client asks for: 4.4 without the verification token, which is not kept. */
export type DesiredSubscription = Pick<WebhookSubscription, 'callback_url' | 'event_type' | 'data_type'>;

/** Whether a callback expects events (6.2); throws when it does not. */
export type Verify = (callbackUrl: string) => Promise<void>;

/** How many that ended are kept, for whoever looks into the file. */
const KEPT_ENDED = 200;

/**
 * The subscriptions of a service, kept in `subscriptions.json` in its folder; every change is durable before it is answered. What they
 * return is active at that moment.
 */
export class Subscriptions {
  readonly #path: string;
  readonly #lifetimeMs: number;
  readonly #now: () => number;
  #all: readonly StoredSubscription[];
  /** What subscriptions are about to become, by id: taken while the verification runs. */
  readonly #changing = new Map<string, DesiredSubscription>();

  constructor(folder: string, { lifetimeMs, now }: { lifetimeMs: number; now: () => number }) {
    this.#path = join(folder, 'subscriptions.json');
    this.#lifetimeMs = lifetimeMs;
    this.#now = now;
    const stored = openJsonFile(this.#path, subscriptionsFile).read()?.subscriptions ?? [];
    // The verification ended with the process that waited for it, and so did the client's request.
    this.#all = stored.filter(({ state }) => state !== 'awaiting_verification');
  }

  list(clientId: string): StoredSubscription[] {
    return this.#listActive().filter(one => one.client_id === clientId);
  }

  /** Throws 404. */
  get(clientId: string, id: string): StoredSubscription {
    const found = this.find(id);
    if (found?.client_id !== clientId) throw new Problem(404, 'Subscription not found.');
    return found;
  }

  /** Throws 409 when there is one for the same (event_type, data_type), and what `verify` throws; then nothing is kept. */
  async create(clientId: string, wanted: DesiredSubscription, verify: Verify): Promise<StoredSubscription> {
    this.#refuseTaken(clientId, wanted);
    const { callback_url, event_type, data_type } = wanted;
    const times = () => ({ since: iso(this.#now()), expiration_time: this.#newExpiration() });
    const id = randomUUID();
    const begun = { id, client_id: clientId, callback_url, event_type, data_type, state: 'awaiting_verification', ...times() } as const;
    this.#save([...this.#all, begun]);
    try {
      await verify(callback_url);
      const active = { ...begun, state: 'active', ...times() } as const;
      this.#replace(id, active);
      return active;
    } catch (error) {
      this.#all = this.#all.filter(one => one.id !== id);
      this.#save(this.#all);
      throw error;
    }
  }

  /** Throws 404, 409, and what `verify` throws; then the old state stays. */
  async update(clientId: string, id: string, change: Partial<DesiredSubscription>, verify: Verify): Promise<StoredSubscription> {
    const next = { ...this.get(clientId, id), ...change };
    if (this.#changing.has(id)) throw new Problem(409, 'Another update of this subscription is being verified.');
    this.#refuseTaken(clientId, next, id);
    this.#changing.set(id, next);
    try {
      await verify(next.callback_url);
      // It may have ended meanwhile, or been renewed.
      const changed = { ...this.get(clientId, id), ...change };
      this.#replace(id, change);
      return changed;
    } finally {
      this.#changing.delete(id);
    }
  }

  /** Its whole life again from now. Throws 404. */
  renew(clientId: string, id: string): StoredSubscription {
    this.get(clientId, id);
    this.#replace(id, { expiration_time: this.#newExpiration() });
    return this.get(clientId, id);
  }

  /** Throws 404. */
  cancel(clientId: string, id: string): void {
    this.get(clientId, id);
    this.#enter(id, 'cancelled');
  }

  /** Cancelled by its callback's 410 (6.1); one that has ended stays as it is. */
  noteGone(id: string): void {
    if (this.find(id)) this.#enter(id, 'cancelled');
  }

  listFor({ event_type, data_type }: Pick<WebhookEvent, 'event_type' | 'data_type'>): StoredSubscription[] {
    return this.#listActive().filter(one => one.event_type === event_type && dataTypeOf(one.data_type) === dataTypeOf(data_type));
  }

  find(id: string): StoredSubscription | undefined {
    return this.#listActive().find(one => one.id === id);
  }

  #save(next: readonly StoredSubscription[]): void {
    const ended = next.filter(({ state }) => state === 'cancelled' || state === 'expired');
    const dropped = new Set(ended.slice(0, Math.max(0, ended.length - KEPT_ENDED)));
    const subscriptions = next.filter(one => !dropped.has(one));
    writeFileAtomically(this.#path, `${JSON.stringify({ format: 1, subscriptions }, null, 2)}\n`);
    this.#all = subscriptions;
  }

  #replace(id: string, change: Partial<StoredSubscription>): void {
    this.#save(this.#all.map(one => (one.id === id ? { ...one, ...change } : one)));
  }

  #enter(id: string, state: SubscriptionState): void {
    this.#replace(id, { state, since: iso(this.#now()) });
  }

  #newExpiration(): string {
    return iso(this.#now() + this.#lifetimeMs);
  }

  #expireDue(): void {
    const isDue = (one: StoredSubscription) => one.state === 'active' && Date.parse(one.expiration_time) <= this.#now();
    if (!this.#all.some(isDue)) return;
    this.#save(this.#all.map(one => (isDue(one) ? { ...one, state: 'expired', since: one.expiration_time } : one)));
  }

  #listActive(): StoredSubscription[] {
    this.#expireDue();
    return this.#all.filter(({ state }) => state === 'active');
  }

  /** One for each (event_type, data_type) and client (4.4, rule 1); those that still await their verification count. */
  #refuseTaken(clientId: string, wanted: DesiredSubscription, exceptId?: string): void {
    this.#expireDue();
    const living = this.#all.filter(
      ({ state, client_id }) => client_id === clientId && (state === 'active' || state === 'awaiting_verification'),
    );
    const taken = living.flatMap(one => (one.id === exceptId ? [] : [one, this.#changing.get(one.id) ?? one]));
    if (taken.some(one => one.event_type === wanted.event_type && dataTypeOf(one.data_type) === dataTypeOf(wanted.data_type)))
      throw new Problem(409, `There is a subscription for ${wanted.event_type} of ${wanted.data_type}; update, renew or delete that one.`);
  }
}

const iso = (ms: number) => new Date(ms).toISOString();
