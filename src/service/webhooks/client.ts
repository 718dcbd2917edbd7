import { createHash, randomBytes, randomUUID, timingSafeEqual } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import { UsageError } from '../../base/errors.ts';
import { writeFileAtomically } from '../../base/files.ts';
import { openJsonFile } from '../../base/json-file.ts';
import { keyFrom, seal, unseal } from '../../base/secrets/secrets.ts';

/** The one client of a service: whoever has its secret may subscribe (5), and can check what the service signs (5.3). */
export interface WebhookClient {
  id: string;
  secret: string;
  /** The secret was made just now: the one time to show it. */
  isNew: boolean;
  /** Whether these are id and secret, in constant time. */
  isAuthentic(id: unknown, secret: unknown): boolean;
}

const clientFile = z.strictObject({ format: z.literal(1), id: z.uuidv4(), salt: z.base64(), secret: z.base64() });

/**
 * Opens, or at the first start makes, `client.json` in the service's folder. The secret is an HMAC key and must be had again, so it
 * is sealed and not hashed.
 * @param secretKey the text of the key that it is sealed with
 */
export function openWebhookClient(folder: string, secretKey: string, newSecret: boolean): WebhookClient {
  const path = join(folder, 'client.json');
  const stored = openJsonFile(path, clientFile).read();
  const id = stored?.id ?? randomUUID();
  let secret: string;
  if (stored && !newSecret) {
    const found = unseal(stored.secret, id, keyFrom(secretKey, stored.salt));
    if (found === undefined)
      throw new UsageError(
        `the client secret in ${path} was sealed with another key: set RINGNECK_SECRET_KEY to it or put the former secret.key back; --new-tokens makes a new secret`,
      );
    secret = found;
  } else {
    secret = `rs_${randomBytes(32).toString('base64url')}`;
    const salt = randomBytes(16).toString('base64');
    const sealed = seal(secret, id, keyFrom(secretKey, salt));
    writeFileAtomically(path, `${JSON.stringify({ format: 1, id, salt, secret: sealed }, null, 2)}\n`);
  }
  const expected = { id: hash(id), secret: hash(secret) };
  return {
    id,
    secret,
    isNew: !stored || newSecret,
    isAuthentic(givenId, givenSecret) {
      const right = [timingSafeEqual(hash(givenId), expected.id), timingSafeEqual(hash(givenSecret), expected.secret)];
      return !right.includes(false);
    },
  };
}

/** Of equal length, so that a comparison tells nothing of the length either. */
const hash = (given: unknown) =>
  createHash('sha256')
    .update(typeof given === 'string' ? given : '')
    .digest();
