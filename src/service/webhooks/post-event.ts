import type { WebhookEvent } from '../../../schema/webhook.ts';
import { sign, signatureHeaders } from '../../base/signature.ts';
import { CallbackUnanswered, type CallCallback } from './call-callback.ts';
import { type CallbackGuard, CallbackRefused } from './callback-guard.ts';

/** What an attempt came to: `gone` is 410, which cancels (6.1); a redirect counts as 4xx, no answer of any kind as timeout. */
export type PostOutcome = 'delivered' | 'gone' | '4xx' | '5xx' | 'timeout';

export interface Posted {
  outcome: PostOutcome;
  /** For the log: the status, or why there was none. */
  reason: string;
}

export interface PostOptions {
  call: CallCallback;
  guard: CallbackGuard;
  /** The key of the signatures. */
  secret: string;
  headerPrefix: string;
  now: () => number;
}

/** An answer's body tells nothing; one that is longer is cut off. */
const MAX_ANSWER_BYTES = 65_536;

/** Sends an event once (6.1), signed over the bytes that are sent, with a timestamp of this attempt (5.3). Throws when `signal` ends it. */
export async function postEvent(
  { call, guard, secret, headerPrefix, now }: PostOptions,
  callbackUrl: string,
  event: WebhookEvent,
  signal?: AbortSignal,
): Promise<Posted> {
  const body = Buffer.from(formatEvent(event));
  const timestamp = String(Math.floor(now() / 1000));
  const names = signatureHeaders(headerPrefix);
  const headers = { 'content-type': 'application/json', [names.timestamp]: timestamp, [names.signature]: sign(secret, timestamp, body) };
  try {
    const url = guard.parse(callbackUrl);
    const { status } = await call({ method: 'POST', url, headers, body, maxBytes: MAX_ANSWER_BYTES, signal });
    return { outcome: outcomeOf(status), reason: `answered ${status}` };
  } catch (error) {
    if (signal?.aborted || !(error instanceof CallbackRefused || error instanceof CallbackUnanswered)) throw error;
    return { outcome: 'timeout', reason: error.message };
  }
}

/** The five fields of 2.17 in its order, whatever order they came in. */
function formatEvent({ event_type, data_type, object_id, event_time, user_id }: WebhookEvent): string {
  return JSON.stringify({ event_type, data_type, object_id, event_time, user_id });
}

function outcomeOf(status: number): PostOutcome {
  if (status >= 200 && status < 300) return 'delivered';
  if (status === 410) return 'gone';
  return status < 500 ? '4xx' : '5xx';
}
