import { createHmac, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import { RingneckError, UsageError } from '../errors.ts';
import { ensureFolder, realPath, writeFileAtomically } from '../files.ts';
import { openJsonFile } from '../json-file.ts';
import { keyFrom, keyFromRandom, seal, unseal } from './sealed.ts';
import { ensureSecretKey, findSecretKey, isRandom, secretKeyPath } from './secret-key.ts';

/**
 * The accounts' tokens, each for the address of the service that it was given for: no other gets it. Whoever writes them owns the data
 * folder; anybody may read, and sees what was written since.
 */
export interface Secrets {
  /** The token for our address. One that was sealed before tokens had addresses becomes ours. */
  find(name: string): string | undefined;
  /** The token, whatever address it was given for: not to be sent anywhere. */
  findOfAny(name: string): string | undefined;
  /** Why `find` finds none, in a sentence that names the command; undefined when it finds one. */
  whyMissing(name: string): string | undefined;
  /** Keeps a token for our address; without one, for the first at which it is used. */
  put(name: string, token: string): void;
  remove(name: string): void;
  names(): string[];
  /** HMAC-SHA256 of a text under the same key. */
  digest(text: string): string;
}

/** Where what asks the service finds its tokens. */
export type Tokens = Pick<Secrets, 'find' | 'whyMissing' | 'digest'>;

// `check` is a known text under the same key: it tells a wrong key from a damaged value.
// Format 3 is sealed with a key that we made, without scrypt. Format 1 knew no addresses. An address stands in clear, so that it can be named without the key; it is authenticated with the token.
const sealedFile = z.strictObject({
  format: z.literal([1, 2, 3]),
  salt: z.base64(),
  check: z.base64(),
  accounts: z.array(z.tuple([z.string(), z.base64()]).or(z.tuple([z.string(), z.base64(), z.string()]))),
});
type SealedFile = z.infer<typeof sealedFile>;

/** What a token is bound to: neither a name nor an address holds a line break. */
const boundTo = (name: string, address: string | undefined) => (address === undefined ? name : `${name}\n${address}`);

const CHECK = 'ringneck';

/**
 * Opens `<data>/accounts.secret`. The key comes from `key` (RINGNECK_SECRET_KEY) by scrypt, or from `<data>/secret.key`, which the first `put`
 * makes, by HKDF: it is random.
 * Nothing is read or made before it is needed.
 * @param address the service's, normalised: the one that gets tokens
 * @param onBound a token without an address was bound to ours
 */
export function openSecrets({
  folder,
  key: given,
  address: ours,
  onBound = () => undefined,
}: {
  folder: string;
  key?: string | undefined;
  address?: string | undefined;
  onBound?: (name: string) => void;
}): Secrets {
  const path = join(folder, 'accounts.secret');
  const file = openJsonFile(path, sealedFile);
  let derived: { format: number; salt: string; text: string; key: Buffer } | undefined;

  // scrypt is slow on purpose: once for each salt and text.
  function derive({ format, salt }: Pick<SealedFile, 'format' | 'salt'>, text: string): Buffer {
    if (derived?.format !== format || derived.salt !== salt || derived.text !== text) {
      derived = { format, salt, text, key: format === 3 ? keyFromRandom(text, salt) : keyFrom(text, salt) };
    }
    return derived.key;
  }

  function keyOf(content: SealedFile): Buffer {
    const text = findSecretKey(folder, given);
    if (text === undefined) {
      throw new UsageError(
        `${path} was sealed with a key that is missing: set RINGNECK_SECRET_KEY to it, or put ${secretKeyPath(folder)} back from a copy.`,
      );
    }
    const key = derive(content, text);
    if (unseal(content.check, CHECK, key) === CHECK) return key;
    const source = given === undefined ? secretKeyPath(folder) : 'RINGNECK_SECRET_KEY';
    throw new UsageError(
      `${source} is not the key that ${path} was sealed with: set RINGNECK_SECRET_KEY to the former one` +
        `${given === undefined ? ', or put the former secret.key back' : ', or unset it to use secret.key'}.`,
    );
  }

  function begin(): SealedFile {
    const salt = randomBytes(16).toString('base64');
    const text = ensureSecretKey(folder, given);
    const format = given === undefined && isRandom(text) ? 3 : 2;
    return { format, salt, check: seal(CHECK, CHECK, derive({ format, salt }, text)), accounts: [] };
  }

  function write(content: SealedFile): void {
    ensureFolder(folder);
    writeFileAtomically(realPath(path), `${JSON.stringify(content, undefined, 2)}\n`);
  }

  const findEntry = (name: string) => file.read()?.accounts.find(([account]) => account === name);

  function findOfAny(name: string): string | undefined {
    const [, sealed, address] = findEntry(name) ?? [];
    if (sealed === undefined) return undefined;
    const token = unseal(sealed, boundTo(name, address), keyOf(file.read()!));
    if (token === undefined) {
      throw new RingneckError(`${path} is damaged: the token of ${name} cannot be read. Give it again: ringneck account add ${name}`);
    }
    return token;
  }

  function put(name: string, token: string): void {
    const content = file.read() ?? begin();
    const others = content.accounts.filter(([account]) => account !== name);
    const sealed = seal(token, boundTo(name, ours), keyOf(content));
    write({
      ...content,
      format: content.format === 3 ? 3 : 2,
      accounts: [...others, ours === undefined ? [name, sealed] : [name, sealed, ours]],
    });
  }

  function whyMissing(name: string): string | undefined {
    const entry = findEntry(name);
    if (entry === undefined) return `no token: ringneck account add ${name}`;
    const [, , address] = entry;
    if (address === undefined || address === ours || ours === undefined) return undefined;
    return (
      `the token was given for ${address}, and this service is ${ours}: ringneck account add ${name} ` +
      '(with --keep-token: the same token for this address)'
    );
  }

  return {
    find(name) {
      const entry = findEntry(name);
      if (entry === undefined || whyMissing(name) !== undefined) return undefined;
      const token = findOfAny(name);
      if (token !== undefined && entry[2] === undefined && ours !== undefined) {
        put(name, token);
        onBound(name);
      }
      return token;
    },
    findOfAny,
    whyMissing,
    put,
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
