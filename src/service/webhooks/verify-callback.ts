import { randomBytes } from 'node:crypto';
import type { CallCallback } from './call-callback.ts';
import { type CallbackGuard, CallbackRefused } from './callback-guard.ts';

const MAX_ANSWER_BYTES = 4096;

/**
 * Asks a callback to show that it expects events (6.2): only 200 with a JSON object that holds the challenge is a yes. Throws
 * CallbackRefused, or CallbackUnanswered.
 */
export async function verifyCallback(call: CallCallback, guard: CallbackGuard, callbackUrl: string, token: string): Promise<void> {
  const challenge = randomBytes(24).toString('base64url');
  const url = guard.parse(callbackUrl);
  // Appended as text: to write the callback's own query anew could change it.
  url.search += `${url.search ? '&' : '?'}verification_token=${encodeURIComponent(token)}&challenge=${challenge}`;
  const { status, contentType, body } = await call({ method: 'GET', url, headers: {}, maxBytes: MAX_ANSWER_BYTES });
  if (status >= 300 && status < 400)
    throw new CallbackRefused(`it answered the verification with ${status}, a redirect, which is not followed`);
  if (status !== 200) throw new CallbackRefused(`it answered the verification with ${status}`);
  if (!/^application\/json *(;|$)/i.test(contentType))
    throw new CallbackRefused('it answered the verification with something other than JSON');
  if (body === undefined) throw new CallbackRefused(`it answered the verification with more than ${MAX_ANSWER_BYTES} bytes`);
  if (!isEcho(body.toString(), challenge)) throw new CallbackRefused('it did not return the challenge');
}

function isEcho(text: string, challenge: string): boolean {
  try {
    const answer: unknown = JSON.parse(text);
    return typeof answer === 'object' && answer !== null && 'challenge' in answer && answer.challenge === challenge;
  } catch {
    return false;
  }
}
