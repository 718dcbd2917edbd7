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

/** The subscriptions of a service. What they return is active at that moment. */
export interface Subscriptions {
  list(clientId: string): StoredSubscription[];
  /** Throws 404. */
  get(clientId: string, id: string): StoredSubscription;
  /** Throws 409 when there is one for the same (event_type, data_type), and what `verify` throws; then nothing is kept. */
  create(clientId: string, wanted: DesiredSubscription, verify: Verify): Promise<StoredSubscription>;
  /** Throws 404, 409, and what `verify` throws; then the old state stays. */
  update(clientId: string, id: string, change: Partial<DesiredSubscription>, verify: Verify): Promise<StoredSubscription>;
  /** Its whole life again from now. Throws 404. */
  renew(clientId: string, id: string): StoredSubscription;
  /** Throws 404. */
  cancel(clientId: string, id: string): void;
  /** Cancelled by its callback's 410 (6.1); one that has ended stays as it is. */
  noteGone(id: string): void;
  listFor(event: Pick<WebhookEvent, 'event_type' | 'data_type'>): StoredSubscription[];
  find(id: string): StoredSubscription | undefined;
}

/** How many that ended are kept, for whoever looks into the file. */
const KEPT_ENDED = 200;

/** Opens the subscriptions that are kept in `subscriptions.json` in the service's folder. Every change is durable before it is answered. */
export function openSubscriptions(folder: string, { lifetimeMs, now }: { lifetimeMs: number; now: () => number }): Subscriptions {
  const path = join(folder, 'subscriptions.json');
  const stored = openJsonFile(path, subscriptionsFile).read()?.subscriptions ?? [];
  // The verification ended with the process that waited for it, and so did the client's request.
  let all: readonly StoredSubscription[] = stored.filter(({ state }) => state !== 'awaiting_verification');
  /** What subscriptions are about to become, by id: taken while the verification runs. */
  const changing = new Map<string, DesiredSubscription>();

  function save(next: readonly StoredSubscription[]): void {
    const ended = next.filter(({ state }) => state === 'cancelled' || state === 'expired');
    const dropped = new Set(ended.slice(0, Math.max(0, ended.length - KEPT_ENDED)));
    const subscriptions = next.filter(one => !dropped.has(one));
    writeFileAtomically(path, `${JSON.stringify({ format: 1, subscriptions }, null, 2)}\n`);
    all = subscriptions;
  }

  const iso = (ms: number) => new Date(ms).toISOString();
  const replace = (id: string, change: Partial<StoredSubscription>) => save(all.map(one => (one.id === id ? { ...one, ...change } : one)));
  const enter = (id: string, state: SubscriptionState) => replace(id, { state, since: iso(now()) });

  function expireDue(): void {
    const isDue = (one: StoredSubscription) => one.state === 'active' && Date.parse(one.expiration_time) <= now();
    if (all.some(isDue)) save(all.map(one => (isDue(one) ? { ...one, state: 'expired', since: one.expiration_time } : one)));
  }

  function listActive(): StoredSubscription[] {
    expireDue();
    return all.filter(({ state }) => state === 'active');
  }

  const find = (id: string) => listActive().find(one => one.id === id);

  function get(clientId: string, id: string): StoredSubscription {
    const found = find(id);
    if (found?.client_id !== clientId) throw new Problem(404, 'Subscription not found.');
    return found;
  }

  /** One for each (event_type, data_type) and client (4.4, rule 1); those that still await their verification count. */
  function refuseTaken(clientId: string, wanted: DesiredSubscription, exceptId?: string): void {
    expireDue();
    const living = all.filter(
      ({ state, client_id }) => client_id === clientId && (state === 'active' || state === 'awaiting_verification'),
    );
    const taken = living.flatMap(one => (one.id === exceptId ? [] : [one, changing.get(one.id) ?? one]));
    if (taken.some(one => one.event_type === wanted.event_type && dataTypeOf(one.data_type) === dataTypeOf(wanted.data_type)))
      throw new Problem(409, `There is a subscription for ${wanted.event_type} of ${wanted.data_type}; update, renew or delete that one.`);
  }

  return {
    list: clientId => listActive().filter(one => one.client_id === clientId),
    get,
    async create(clientId, wanted, verify) {
      refuseTaken(clientId, wanted);
      const id = randomUUID();
      const times = () => ({ since: iso(now()), expiration_time: iso(now() + lifetimeMs) });
      const { callback_url, event_type, data_type } = wanted;
      save([...all, { id, client_id: clientId, callback_url, event_type, data_type, state: 'awaiting_verification', ...times() }]);
      try {
        await verify(callback_url);
        replace(id, { state: 'active', ...times() });
      } catch (error) {
        all = all.filter(one => one.id !== id);
        save(all);
        throw error;
      }
      return all.find(one => one.id === id)!;
    },
    async update(clientId, id, change, verify) {
      const next = { ...get(clientId, id), ...change };
      if (changing.has(id)) throw new Problem(409, 'Another update of this subscription is being verified.');
      refuseTaken(clientId, next, id);
      changing.set(id, next);
      try {
        await verify(next.callback_url);
        // It may have ended meanwhile.
        get(clientId, id);
        replace(id, change);
      } finally {
        changing.delete(id);
      }
      return all.find(one => one.id === id)!;
    },
    renew(clientId, id) {
      get(clientId, id);
      replace(id, { expiration_time: iso(now() + lifetimeMs) });
      return get(clientId, id);
    },
    cancel(clientId, id) {
      get(clientId, id);
      enter(id, 'cancelled');
    },
    noteGone(id) {
      if (find(id)) enter(id, 'cancelled');
    },
    listFor: ({ event_type, data_type }) =>
      listActive().filter(one => one.event_type === event_type && dataTypeOf(one.data_type) === dataTypeOf(data_type)),
    find,
  };
}
