import { createHmac, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import { RingneckError, UsageError } from './errors.ts';
import { ensureFolder, writeFileAtomically } from './files.ts';
import { openJsonFile } from './json-file.ts';
import { keyFrom, seal, unseal } from './sealed.ts';
import { ensureSecretKey, findSecretKey, secretKeyPath } from './secret-key.ts';

/** The accounts' tokens. Whoever writes them owns the data folder; anybody may read, and sees what was written since. */
export interface Secrets {
  find(name: string): string | undefined;
  put(name: string, token: string): void;
  remove(name: string): void;
  names(): string[];
  /** HMAC-SHA256 of a text under the same key. */
  digest(text: string): string;
}

// `check` is a known text under the same key: it tells a wrong key from a damaged value.
const sealedFile = z.strictObject({
  format: z.literal(1),
  salt: z.base64(),
  check: z.base64(),
  accounts: z.array(z.tuple([z.string(), z.base64()])),
});
type SealedFile = z.infer<typeof sealedFile>;

const CHECK = 'ringneck';

/**
 * Opens `<data>/accounts.secret`. The key comes from `key` (RINGNECK_SECRET_KEY) by scrypt, or from `<data>/secret.key`, which the first `put` makes.
 * Nothing is read or made before it is needed.
 */
export function openSecrets({ folder, key: given }: { folder: string; key?: string | undefined }): Secrets {
  const path = join(folder, 'accounts.secret');
  const file = openJsonFile(path, sealedFile);
  let derived: { salt: string; text: string; key: Buffer } | undefined;

  // scrypt is slow on purpose: once for each salt and text.
  function derive(salt: string, text: string): Buffer {
    if (derived?.salt !== salt || derived.text !== text) derived = { salt, text, key: keyFrom(text, salt) };
    return derived.key;
  }

  function keyOf(content: SealedFile): Buffer {
    const text = findSecretKey(folder, given);
    if (text === undefined) {
      throw new UsageError(
        `${path} was sealed with a key that is missing: set RINGNECK_SECRET_KEY to it, or put ${secretKeyPath(folder)} back from a copy.`,
      );
    }
    const key = derive(content.salt, text);
    if (unseal(content.check, CHECK, key) === CHECK) return key;
    const source = given === undefined ? secretKeyPath(folder) : 'RINGNECK_SECRET_KEY';
    throw new UsageError(
      `${source} is not the key that ${path} was sealed with: set RINGNECK_SECRET_KEY to the former one` +
        `${given === undefined ? ', or put the former secret.key back' : ', or unset it to use secret.key'}.`,
    );
  }

  function begin(): SealedFile {
    const salt = randomBytes(16).toString('base64');
    const key = derive(salt, ensureSecretKey(folder, given));
    return { format: 1, salt, check: seal(CHECK, CHECK, key), accounts: [] };
  }

  function write(content: SealedFile): void {
    ensureFolder(folder);
    writeFileAtomically(path, `${JSON.stringify(content, undefined, 2)}\n`);
  }

  return {
    find(name) {
      const content = file.read();
      const sealed = content?.accounts.find(([account]) => account === name)?.[1];
      if (content === undefined || sealed === undefined) return undefined;
      const token = unseal(sealed, name, keyOf(content));
      if (token === undefined) {
        throw new RingneckError(`${path} is damaged: the token of ${name} cannot be read. Give it again: ringneck account add ${name}`);
      }
      return token;
    },
    put(name, token) {
      const content = file.read() ?? begin();
      const others = content.accounts.filter(([account]) => account !== name);
      write({ ...content, accounts: [...others, [name, seal(token, name, keyOf(content))]] });
    },
    remove(name) {
      const content = file.read();
      if (!content?.accounts.some(([account]) => account === name)) return;
      write({ ...content, accounts: content.accounts.filter(([account]) => account !== name) });
    },
    names() {
      return (file.read()?.accounts ?? []).map(([account]) => account).sort();
    },
    digest(text) {
      // Its salt is kept: the same text shall have the same digest in another process.
      if (file.read() === undefined) write(begin());
      return createHmac('sha256', keyOf(file.read()!)).update(text).digest('base64url');
    },
  };
}
