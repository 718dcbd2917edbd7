import { createHmac, timingSafeEqual } from 'node:crypto';
import { findInstant } from '../../schema/instant.ts';

/** The names of the two headers of an event (5.3), in lower case. */
export const signatureHeaders = (prefix: string): { timestamp: string; signature: string } => ({
  timestamp: `${prefix}timestamp`.toLowerCase(),
  signature: `${prefix}signature`.toLowerCase(),
});

/** HMAC with SHA-256, keyed with the client secret, over the timestamp header's value and the body's bytes: upper-case hex (5.3). */
export function sign(secret: string, timestamp: string, body: string | Uint8Array): string {
  return createHmac('sha256', secret).update(timestamp).update(body).digest('hex').toUpperCase();
}

/** A wrong verification token that only who knows the right one can make: by it we try whether a wrong one is refused. */
export const wrongTokenOf = (verificationToken: string): string =>
  createHmac('sha256', verificationToken).update('not this word').digest('hex');

/** Whether one of the secrets made this signature. Takes hex of either case; compares in constant time. */
export function isSignedBy(secrets: readonly string[], timestamp: string, body: Uint8Array, signature: string): boolean {
  if (!/^[0-9A-Fa-f]{64}$/.test(signature)) return false;
  const given = Buffer.from(signature, 'hex');
  let signed = false;
  for (const secret of secrets) {
    const expected = createHmac('sha256', secret).update(timestamp).update(body).digest();
    if (timingSafeEqual(given, expected)) signed = true;
  }
  return signed;
}

/** A timestamp header as milliseconds since the epoch: Unix seconds, milliseconds, or ISO 8601 with offset; undefined for anything else. */
export function findTimestampMs(text: string): number | undefined {
  if (/^[1-9]\d{9}$/.test(text)) return Number(text) * 1000;
  if (/^[1-9]\d{12}$/.test(text)) return Number(text);
  const instant = /^\d{4}-\d{2}-\d{2}T.*(Z|[+-]\d{2}:\d{2})$/.test(text) ? findInstant(text) : undefined;
  return instant && Math.floor(instant.micros / 1000);
}
