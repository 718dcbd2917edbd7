import type { WebhookEvent } from '../../schema/webhook.ts';

/** Something that happened to a document, to be told to whoever subscribed to it. */
export interface Change {
  /** Names the change for good, so that telling it twice makes no second delivery. */
  eventId: string;
  event: WebhookEvent;
  /** Beyond the usual delay. */
  delayMs?: number;
}

/** Tells of changes; resolves when all are kept durably. */
export type Announce = (changes: readonly Change[]) => Promise<void>;
