import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes, scryptSync } from 'node:crypto';
import { closeSync, existsSync, fsyncSync, linkSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { NO_SERVICE } from '../config.ts';
import { RingneckError, UsageError } from '../errors.ts';
import { ensureFolder, realPath, writeFileAtomically } from '../files.ts';
import { openJsonFile } from '../json-file.ts';
import { readSignIn, type SignIn } from './sign-in.ts';

/** Where what asks the service finds its tokens. */
export type Tokens = Pick<Secrets, 'find' | 'isSame' | 'whyMissing' | 'digest' | 'findSignIn'>;

/** A text, and what it is bound to beside its account: an address, and that it is a sign-in. */
type Entry = [name: string, sealed: string, address?: string, kind?: 'sign-in'];

// `check` is a known text under the same key: it tells a wrong key from a damaged value.
// Format 3 is sealed with a key that we made, without scrypt. Format 1 knew no addresses. An address stands in clear, so that it can be named without the key; it is authenticated with the token.
const sealedFile = z.strictObject({
  format: z.literal([1, 2, 3]),
  salt: z.base64(),
  check: z.base64(),
  accounts: z.array(
    z.union([
      z.tuple([z.string(), z.base64()]),
      z.tuple([z.string(), z.base64(), z.string()]),
      z.tuple([z.string(), z.base64(), z.string(), z.literal('sign-in')]),
    ]),
  ),
});
type SealedFile = z.infer<typeof sealedFile>;

/** What an entry is bound to: neither a name nor an address holds a line break. */
const boundTo = ([name, , ...rest]: Entry) => [name, ...rest].join('\n');

const CHECK = 'ringneck';

/** As many access tokens of a sign-in are known to have been of it beside the last one: who works with one works for minutes. */
const MOST_EARLIER = 16;

/**
 * The accounts' tokens and sign-ins in `<data>/accounts.secret`, each for the address of the service that it was given for: no other gets it. Whoever
 * writes them owns the data folder; anybody may read, and sees what was written since. The key comes from RINGNECK_SECRET_KEY by scrypt, or
 * from `<data>/secret.key`, which the first `put` makes, by HKDF: it is random. Nothing is read or made before it is needed.
 */
export class Secrets {
  readonly #folder: string;
  readonly #path: string;
  readonly #given: string | undefined;
  readonly #ours: string | undefined;
  readonly #onBound: (name: string) => void;
  readonly #file: { read(): SealedFile | undefined };
  #derived: { format: number; salt: string; text: string; key: Buffer } | undefined;
  /** By access token, which sign-in this process has found it in. */
  readonly #found = new Map<string, { name: string; id: string }>();

  /**
   * @param options.key RINGNECK_SECRET_KEY
   * @param options.address the service's, normalised: the one that gets tokens
   * @param options.onBound a token without an address was bound to ours
   */
  constructor(options: { folder: string; key?: string | undefined; address?: string | undefined; onBound?: (name: string) => void }) {
    this.#folder = options.folder;
    this.#path = join(options.folder, 'accounts.secret');
    this.#given = options.key;
    this.#ours = options.address;
    this.#onBound = options.onBound ?? (() => undefined);
    this.#file = openJsonFile(this.#path, sealedFile);
  }

  /** The token for our address, of a sign-in its access token. One that was sealed before tokens had addresses becomes ours. */
  find(name: string): string | undefined {
    const entry = this.#findEntry(name);
    if (entry === undefined || this.whyMissing(name) !== undefined) return undefined;
    const signIn = this.findSignIn(name);
    if (signIn) return this.#remember(name, signIn);
    const token = this.findOfAny(name);
    if (token !== undefined && entry[2] === undefined && this.#ours !== undefined) {
      this.put(name, token);
      this.#onBound(name);
    }
    return token;
  }

  /** The sign-in for our address; undefined where the account has none, or a token alone. */
  findSignIn(name: string): SignIn | undefined {
    const entry = this.#findEntry(name);
    if (entry?.[3] === undefined || this.whyMissing(name) !== undefined) return undefined;
    return readSignIn(this.#open(entry));
  }

  /** Whether a token that `find` gave is still good for what it was given for: it is the account's, or was of the sign-in that it has. */
  isSame(name: string, token: string): boolean {
    if (this.find(name) === token) return true;
    const found = this.#found.get(token);
    return found?.name === name && this.findSignIn(name)?.id === found.id;
  }

  /** Whose sign-in a token that `find` gave is of, as long as the account has that sign-in. */
  findHolder(token: string): { name: string; signIn: SignIn } | undefined {
    const found = this.#found.get(token);
    const signIn = found && this.findSignIn(found.name);
    return found && signIn?.id === found.id ? { name: found.name, signIn } : undefined;
  }

  /** The token, whatever address it was given for: not to be sent anywhere. */
  findOfAny(name: string): string | undefined {
    return this.listOfAny(name)[0];
  }

  /** The token, or of a sign-in all that it holds, the access token first; whatever address they were given for. */
  listOfAny(name: string): string[] {
    const entry = this.#findEntry(name);
    if (entry === undefined) return [];
    const text = this.#open(entry);
    if (entry[3] === undefined) return [text];
    const { accessToken, refreshToken, previous } = readSignIn(text);
    return [accessToken, refreshToken, previous].filter(token => token !== null);
  }

  /** Whether the account has signed in, at whatever address. */
  hasSignIn(name: string): boolean {
    return this.#findEntry(name)?.[3] !== undefined;
  }

  /** Why `find` finds none, in a sentence that names the command; undefined when it finds one. */
  whyMissing(name: string): string | undefined {
    const entry = this.#findEntry(name);
    if (entry === undefined) return `no token: ringneck account add ${name}`;
    const [, , address, kind] = entry;
    if (address === undefined || address === this.#ours || this.#ours === undefined) return undefined;
    if (kind) return `the sign-in was made at ${address}, and this service is ${this.#ours}: ringneck account login ${name}`;
    return (
      `the token was given for ${address}, and this service is ${this.#ours}: ringneck account add ${name} ` +
      '(with --keep-token: the same token for this address)'
    );
  }

  /** Keeps a token for our address; without one, for the first at which it is used. */
  put(name: string, token: string): void {
    this.#put(token, this.#ours === undefined ? [name] : [name, this.#ours]);
  }

  /** Keeps a sign-in for our address, which there must be. When this returns it is on the disk, and the one before is not. */
  putSignIn(name: string, signIn: SignIn): void {
    if (this.#ours === undefined) throw new UsageError(NO_SERVICE);
    this.#put(JSON.stringify(signIn satisfies SignIn), [name, this.#ours, 'sign-in']);
    this.#remember(name, signIn);
  }

  #put(text: string, [name, ...rest]: [name: string, address?: string, kind?: 'sign-in']): void {
    const content = this.#file.read() ?? this.#begin();
    const others = content.accounts.filter(([account]) => account !== name);
    const sealed = seal(text, boundTo([name, '', ...rest]), this.#keyOf(content));
    this.#write({ ...content, format: content.format === 3 ? 3 : 2, accounts: [...others, entryWith(name, sealed, rest)] });
  }

  /** The access token. What was given out of a sign-in before is known for as long as somebody may work with it. */
  #remember(name: string, { id, accessToken }: SignIn): string {
    if (this.#found.has(accessToken)) return accessToken;
    const earlier = [...this.#found].filter(([, found]) => found.name === name);
    for (const [token] of earlier.slice(0, Math.max(0, earlier.length - MOST_EARLIER))) this.#found.delete(token);
    this.#found.set(accessToken, { name, id });
    return accessToken;
  }

  #open(entry: Entry): string {
    const [name, sealed] = entry;
    const content = this.#file.read();
    const text = content && unseal(sealed, boundTo(entry), this.#keyOf(content));
    if (text !== undefined) return text;
    const [what, command] = entry[3] ? ['sign-in', 'login'] : ['token', 'add'];
    throw new RingneckError(
      `${this.#path} is damaged: the ${what} of ${name} cannot be read. Give it again: ringneck account ${command} ${name}`,
    );
  }

  /**
   * Forgets what sign-ins are renewed with, and gives whose they are: another folder has the same, which works once. Access tokens stay, for
   * as long as they live.
   */
  forgetRenewals(): string[] {
    const content = this.#file.read();
    const entries = content?.accounts ?? [];
    const names = entries.flatMap(([name, , , kind]) => (kind === undefined ? [] : [name]));
    if (!content || !names.length) return [];
    const forget = (entry: SealedFile['accounts'][number]): SealedFile['accounts'][number] => {
      const [name, , address, kind] = entry;
      if (address === undefined || kind === undefined) return entry;
      const text = JSON.stringify({ ...readSignIn(this.#open(entry)), refreshToken: null, previous: null } satisfies SignIn);
      return [name, seal(text, boundTo(entry), this.#keyOf(content)), address, kind];
    };
    this.#write({ ...content, accounts: entries.map(forget) });
    return names.sort();
  }

  remove(name: string): void {
    const content = this.#file.read();
    if (!content || !entryOf(content, name)) return;
    this.#write({ ...content, accounts: content.accounts.filter(([account]) => account !== name) });
  }

  names(): string[] {
    return (this.#file.read()?.accounts ?? []).map(([account]) => account).sort();
  }

  /** HMAC-SHA256 of a text under the same key. */
  digest(text: string): string {
    // Its salt is kept: the same text shall have the same digest in another process.
    const content = this.#file.read() ?? this.#write(this.#begin());
    return createHmac('sha256', this.#keyOf(content)).update(text).digest('base64url');
  }

  #findEntry(name: string): Entry | undefined {
    return entryOf(this.#file.read(), name);
  }

  // scrypt is slow on purpose: once for each salt and text.
  #derive({ format, salt }: Pick<SealedFile, 'format' | 'salt'>, text: string): Buffer {
    const known = this.#derived;
    if (known?.format === format && known.salt === salt && known.text === text) return known.key;
    const key = format === 3 ? keyFromRandom(text, salt) : keyFrom(text, salt);
    this.#derived = { format, salt, text, key };
    return key;
  }

  #keyOf(content: SealedFile): Buffer {
    const keyPath = secretKeyPath(this.#folder);
    const text = findSecretKey(this.#folder, this.#given);
    if (text === undefined) {
      throw new UsageError(
        `${this.#path} was sealed with a key that is missing: set RINGNECK_SECRET_KEY to it, or put ${keyPath} back from a copy.`,
      );
    }
    const key = this.#derive(content, text);
    if (unseal(content.check, CHECK, key) === CHECK) return key;
    const source = this.#given === undefined ? keyPath : 'RINGNECK_SECRET_KEY';
    throw new UsageError(
      `${source} is not the key that ${this.#path} was sealed with: set RINGNECK_SECRET_KEY to the former one` +
        `${this.#given === undefined ? ', or put the former secret.key back' : ', or unset it to use secret.key'}.`,
    );
  }

  #begin(): SealedFile {
    const salt = randomBytes(16).toString('base64');
    const text = ensureSecretKey(this.#folder, this.#given);
    const format = this.#given === undefined && isRandom(text) ? 3 : 2;
    return { format, salt, check: seal(CHECK, CHECK, this.#derive({ format, salt }, text)), accounts: [] };
  }

  #write(content: SealedFile): SealedFile {
    ensureFolder(this.#folder);
    writeFileAtomically(realPath(this.#path), `${JSON.stringify(content, undefined, 2)}\n`);
    return content;
  }
}

const entryOf = (content: SealedFile | undefined, name: string): Entry | undefined =>
  content?.accounts.find(([account]) => account === name);

function entryWith(name: string, sealed: string, [address, kind]: [address?: string, kind?: 'sign-in']): SealedFile['accounts'][number] {
  if (address === undefined) return [name, sealed];
  return kind === undefined ? [name, sealed, address] : [name, sealed, address, kind];
}

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

/** The key text: the given one (RINGNECK_SECRET_KEY), or that of `<data>/secret.key`; undefined when there is neither. */
export function findSecretKey(folder: string, given: string | undefined): string | undefined {
  if (given !== undefined) return given;
  const path = secretKeyPath(folder);
  if (!existsSync(path)) return undefined;
  const text = readFileSync(path, 'utf8').trim();
  if (text.length < 16)
    throw new UsageError(`${path} is damaged (fewer than 16 characters): restore it from a copy, or set RINGNECK_SECRET_KEY.`);
  return text;
}

/** Whether a text has the form of those that we make: 32 random bytes. */
export const isRandom = (text: string): boolean => /^[\w-]{43}$/.test(text);

/** Like `findSecretKey`, but makes the file when there is no key. Two processes that start together get the same one. */
export function ensureSecretKey(folder: string, given: string | undefined): string {
  const found = findSecretKey(folder, given);
  if (found !== undefined) return found;
  ensureFolder(folder);
  const path = secretKeyPath(folder);
  const temporary = `${path}.${process.pid}.${randomBytes(4).toString('hex')}.new`;
  try {
    writeDurably(temporary, `${randomBytes(32).toString('base64url')}\n`);
    // A link appears whole or not at all, and unlike a rename never replaces the key that another process has just put there.
    linkSync(temporary, path);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : undefined;
    // exFAT and some network file systems have no links.
    if (code !== undefined && noLinks.includes(code)) writeDurably(path, readFileSync(temporary, 'utf8'));
    else if (code !== 'EEXIST') throw error;
  } finally {
    rmSync(temporary, { force: true });
  }
  return ensureSecretKey(folder, given);
}

const noLinks = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'];

export const secretKeyPath = (folder: string) => join(folder, 'secret.key');

function writeDurably(path: string, content: string): void {
  const file = openSync(path, 'wx', 0o600);
  try {
    writeSync(file, content);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
