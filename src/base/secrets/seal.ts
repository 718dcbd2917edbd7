import { createCipheriv, createDecipheriv, hkdfSync, randomBytes, scryptSync } from 'node:crypto';

/** AES-256-GCM of a text, bound to the name it belongs to: base64 of nonce, tag and ciphertext. */
export function seal(text: string, name: string, key: Buffer): string {
  const nonce = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(name));
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64');
}

/** The text again; undefined when the key is another one, the value was altered, or it was sealed for another name. */
export function unseal(sealed: string, name: string, key: Buffer): string | undefined {
  const bytes = Buffer.from(sealed, 'base64');
  // A shorter tag would be accepted otherwise, and a shorter one is easier to guess.
  if (bytes.length < 28) return undefined;
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12), { authTagLength: 16 }).setAAD(Buffer.from(name));
    decipher.setAuthTag(bytes.subarray(12, 28));
    return Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]).toString('utf8');
  } catch {
    return undefined;
  }
}

/** The key that belongs to a text of 32 random bytes, which nobody can guess: unlike scrypt it costs no time. */
export function keyFromRandom(text: string, salt: string): Buffer {
  return Buffer.from(hkdfSync('sha256', text, Buffer.from(salt, 'base64'), 'ringneck accounts', 32));
}

/** The key that belongs to a text that a person chose (or 32 random bytes in hex or base64: the characters count). */
export function keyFrom(text: string, salt: string): Buffer {
  return scryptSync(text, Buffer.from(salt, 'base64'), 32, { N: 2 ** 15, r: 8, p: 1, maxmem: 64 * 1024 * 1024 });
}
