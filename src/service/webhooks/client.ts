import { createHash, randomBytes, randomUUID, timingSafeEqual } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import { UsageError } from '../../base/errors.ts';
import { writeFileAtomically } from '../../base/files.ts';
import { openJsonFile } from '../../base/json-file.ts';
import type { KeyHolder } from '../../base/secrets/rotate.ts';
import { keyFrom, seal, unseal } from '../../base/secrets/seal.ts';

/** The one client of a service: whoever has its secret may subscribe (5), and can check what the service signs (5.3). */
export interface WebhookClient {
  id: string;
  secret: string;
  /** The secret was made just now: the one time to show it. */
  isNew: boolean;
  /** Whether these are id and secret, in constant time. */
  isAuthentic(id: unknown, secret: unknown): boolean;
}

const sealed = { salt: z.base64(), secret: z.base64() };
/** `also`: the secret under another key, while that is being changed. */
const clientFile = z.strictObject({ format: z.literal(1), id: z.uuidv4(), ...sealed, also: z.strictObject(sealed).optional() });
type ClientFile = z.infer<typeof clientFile>;
type Sealed = Pick<ClientFile, 'salt' | 'secret'>;

const clientPath = (folder: string) => join(folder, 'client.json');
const readClient = (folder: string) => openJsonFile(clientPath(folder), clientFile).read();

function writeClient(folder: string, content: ClientFile): void {
  writeFileAtomically(clientPath(folder), `${JSON.stringify(content, null, 2)}\n`);
}

function sealSecret(id: string, secret: string, key: string): Sealed {
  const salt = randomBytes(16).toString('base64');
  return { salt, secret: seal(secret, id, keyFrom(key, salt)) };
}

/** The secret, and as what this key has sealed it; undefined where it opens nothing. */
function openSecret({ id, also, salt, secret }: ClientFile, key: string): { text: string; sealed: Sealed } | undefined {
  for (const sealed of [{ salt, secret }, ...(also ? [also] : [])]) {
    const text = unseal(sealed.secret, id, keyFrom(key, sealed.salt));
    if (text !== undefined) return { text, sealed };
  }
  return undefined;
}

/**
 * Opens, or at the first start makes, `client.json` in the service's folder. The secret is an HMAC key and must be had again, so it
 * is sealed and not hashed.
 * @param secretKey the text of the key that it is sealed with
 */
export function openWebhookClient(folder: string, secretKey: string, newSecret: boolean): WebhookClient {
  const stored = readClient(folder);
  const id = stored?.id ?? randomUUID();
  let secret: string;
  if (stored && !newSecret) {
    const found = openSecret(stored, secretKey)?.text;
    if (found === undefined)
      throw new UsageError(
        `the client secret in ${clientPath(folder)} was sealed with another key: set RINGNECK_SECRET_KEY to it or put the former secret.key back; --new-tokens makes a new secret`,
      );
    secret = found;
  } else {
    secret = `rs_${randomBytes(32).toString('base64url')}`;
    writeClient(folder, { format: 1, id, ...sealSecret(id, secret, secretKey) });
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

/** What changes the key of `client.json` in the service's folder, where there is one. */
export function clientKeyHolder(folder: string): KeyHolder {
  return {
    isOpenedBy: key => {
      const stored = readClient(folder);
      return stored && openSecret(stored, key) !== undefined;
    },
    addKey: (former, next) => {
      const stored = readClient(folder);
      const found = stored && openSecret(stored, former);
      if (!found) return;
      const { id } = stored;
      writeClient(folder, { format: 1, id, ...found.sealed, also: sealSecret(id, found.text, next) });
    },
    keepKey: key => {
      const stored = readClient(folder);
      const found = stored?.also && openSecret(stored, key);
      if (!found) return false;
      writeClient(folder, { format: 1, id: stored.id, ...found.sealed });
      return true;
    },
    listClosed: key => {
      const stored = readClient(folder);
      return stored && !openSecret(stored, key) ? [clientPath(folder)] : [];
    },
  };
}

/** Of equal length, so that a comparison tells nothing of the length either. */
const hash = (given: unknown) =>
  createHash('sha256')
    .update(typeof given === 'string' ? given : '')
    .digest();
