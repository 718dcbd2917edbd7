import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { keyFrom, keyFromRandom, seal, unseal } from './seal.ts';
import { isRandom } from './secret-key.ts';

/** A text, and what it is bound to beside its account: an address, and that it is a sign-in. */
export type Entry = [name: string, sealed: string, address?: string, kind?: 'sign-in'];

/** What an entry says beside its text. */
export type Place = [address?: string, kind?: 'sign-in'];

// `check` is a known text under the same key: it tells a wrong key from a damaged value.
// Format 3 is sealed with a key that we made, without scrypt. Format 1 knew no addresses. An address stands in clear, so that it can be named without the key; it is authenticated with the token.
const signInEntry = z.tuple([z.string(), z.base64(), z.string(), z.literal('sign-in')]);
const group = {
  format: z.literal([1, 2, 3]),
  salt: z.base64(),
  check: z.base64(),
  /** What digests are made with, where that is not the key: the one before was. */
  digest: z.base64().optional(),
  accounts: z.array(z.union([z.tuple([z.string(), z.base64()]), z.tuple([z.string(), z.base64(), z.string()]), signInEntry])),
  /**
   * Sign-ins that nobody is read with any more, and since when, in milliseconds: they are to be taken back. Empty where that is given up.
   * `isOfFormer`: of who had the name before. `tries`: how often that has failed.
   */
  ended: z
    .array(z.strictObject({ at: z.number(), entry: signInEntry, isOfFormer: z.literal(true).optional(), tries: z.int().optional() }))
    .optional(),
};
const sealedGroup = z.strictObject(group);

export type EndedEntry = NonNullable<z.infer<typeof sealedGroup>['ended']>[number];

/** What is sealed with one key. */
export type Group = z.infer<typeof sealedGroup>;

/** One group, and `others` where a key was lost, or is being changed. */
export const sealedFile = z.strictObject({ ...group, others: z.array(sealedGroup).optional() });
export type SealedFile = z.infer<typeof sealedFile>;

/** A group with the key that opens it. */
export interface Opened {
  group: Group;
  key: Buffer;
}

const CHECK = 'ringneck';
const DIGEST = 'ringneck digest';

export function groupsOf({ others = [], ...first }: SealedFile): Group[] {
  return [first, ...others];
}

export const fileOf = (first: Group, others: readonly Group[]): SealedFile => (others.length ? { ...first, others: [...others] } : first);

export const entryOf = ({ accounts }: Group, name: string): Entry | undefined => accounts.find(([account]) => account === name);

export const without = (group: Group, isGone: (name: string) => boolean): Group => ({
  ...group,
  accounts: group.accounts.filter(([name]) => !isGone(name)),
});

/** What an entry is bound to: neither a name nor an address holds a line break. */
const boundTo = ([name, , ...rest]: Entry) => [name, ...rest].join('\n');

/** The same group with a text for an account, in place of what it had. */
export function withEntry({ group, key }: Opened, name: string, text: string, [address, kind]: Place): Group {
  const sealed = seal(text, boundTo(kind ? [name, '', address, kind] : address === undefined ? [name, ''] : [name, '', address]), key);
  const entry: Group['accounts'][number] =
    address === undefined ? [name, sealed] : kind === undefined ? [name, sealed, address] : [name, sealed, address, kind];
  return { ...group, format: group.format === 3 ? 3 : 2, accounts: [...without(group, account => account === name).accounts, entry] };
}

/** A sign-in as an entry. */
export const sealSignIn = (key: Buffer, name: string, text: string, address: string): EndedEntry['entry'] => [
  name,
  seal(text, boundTo([name, '', address, 'sign-in']), key),
  address,
  'sign-in',
];

/** The text of an entry; undefined where it was altered. */
export const openEntry = (entry: Entry, key: Buffer): string | undefined => unseal(entry[1], boundTo(entry), key);

/** An empty group for a key. @param isOurs the key is the one of `secret.key`, which may be random */
export function beginGroup(text: string, isOurs: boolean, derive: Derive): Opened {
  const salt = randomBytes(16).toString('base64');
  const format = isOurs && isRandom(text) ? 3 : 2;
  const key = derive({ format, salt }, text);
  return { group: { format, salt, check: seal(CHECK, CHECK, key), accounts: [] }, key };
}

/** The group that a key opens. */
export function findOpened(groups: readonly Group[], text: string, derive: Derive): Opened | undefined {
  for (const group of groups) {
    const key = derive(group, text);
    if (unseal(group.check, CHECK, key) === CHECK) return { group, key };
  }
  return undefined;
}

/** Whether a key opens anything of what a file holds; undefined where the file is of another version. */
export function isOpenedBy(content: string, key: string): boolean | undefined {
  const file = sealedFile.safeParse(JSON.parse(content));
  return file.success ? findOpened(groupsOf(file.data), key, createDerive()) !== undefined : undefined;
}

/** What a group's digests are made with; undefined where it was altered. */
export function digestKeyOf({ group, key }: Opened): Buffer | undefined {
  if (group.digest === undefined) return key;
  const kept = unseal(group.digest, DIGEST, key);
  return kept === undefined ? undefined : Buffer.from(kept, 'base64');
}

/** The same group, which makes digests as another one did. */
export const withDigestKey = ({ group, key }: Opened, digestKey: Buffer): Group => ({
  ...group,
  digest: seal(digestKey.toString('base64'), DIGEST, key),
});

export type Derive = (group: Pick<Group, 'format' | 'salt'>, text: string) => Buffer;

/** scrypt is slow on purpose: once for each salt and text. */
export function createDerive(): Derive {
  const known = new Map<string, Buffer>();
  return ({ format, salt }, text) => {
    const id = JSON.stringify([format === 3, salt, text]);
    const key = known.get(id) ?? (format === 3 ? keyFromRandom(text, salt) : keyFrom(text, salt));
    known.set(id, key);
    return key;
  };
}
