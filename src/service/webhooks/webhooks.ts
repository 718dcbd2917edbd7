import type { WebhookEvent } from '../../../schema/webhook.ts';
import { createCallCallback } from './call-callback.ts';
import { type AddressRange, createCallbackGuard, type Resolve } from './callback-guard.ts';
import { openWebhookClient, type WebhookClient } from './client.ts';
import { type Posted, postEvent } from './post-event.ts';
import { type StoredSubscription, Subscriptions } from './subscriptions.ts';
import { verifyCallback } from './verify-callback.ts';

export interface WebhookOptions {
  /** Of the service. */
  folder: string;
  /** The text of the key that the client secret is sealed with. */
  secretKey: string;
  newSecret: boolean;
  headerPrefix: string;
  /** Where callbacks may lie although it is not public. */
  allowedRanges: readonly AddressRange[];
  /** Divides the life of a subscription. */
  timeScale: number;
  now: () => number;
  /** For one exchange with a callback; 10 seconds (6.1). */
  timeoutMs?: number;
  resolve?: Resolve;
}

/** Webhooks as the service has them: who may subscribe, what is subscribed to, and the calls to callbacks. */
export interface Webhooks {
  client: WebhookClient;
  subscriptions: Subscriptions;
  /** Asks a callback to show that it expects events. Throws CallbackRefused or CallbackUnanswered. */
  verify(callbackUrl: string, token: string): Promise<void>;
  /** Sends an event once. */
  post(subscription: StoredSubscription, event: WebhookEvent, signal?: AbortSignal): Promise<Posted>;
  close(): Promise<void>;
}

/** How long a subscription lasts without being renewed. */
const LIFETIME_MS = 90 * 86_400_000;

export function openWebhooks(options: WebhookOptions): Webhooks {
  const { folder, headerPrefix, now } = options;
  const client = openWebhookClient(folder, options.secretKey, options.newSecret);
  const subscriptions = new Subscriptions(folder, { lifetimeMs: LIFETIME_MS / options.timeScale, now });
  const guard = createCallbackGuard(options.allowedRanges, options.resolve);
  const call = createCallCallback(guard, options.timeoutMs);
  return {
    client,
    subscriptions,
    verify: (callbackUrl, token) => verifyCallback(call, guard, callbackUrl, token),
    // By the name that was subscribed to: `activity` stays `activity` (2.15).
    post: ({ callback_url, data_type }, event, signal) =>
      postEvent({ call, guard, secret: client.secret, headerPrefix, now }, callback_url, { ...event, data_type }, signal),
    close: () => call.close(),
  };
}
