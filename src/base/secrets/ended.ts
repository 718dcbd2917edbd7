import { UsageError } from '../errors.ts';
import { type EndedEntry, entryOf, type Group, type Opened, openEntry, sealSignIn, without } from './sealed-file.ts';

/** The same group with these sign-ins that have ended, in place of those that it had. */
export function withEnded({ ended: _, ...group }: Group, ended: readonly EndedEntry[]): Group {
  return ended.length ? { ...group, ended: [...ended] } : group;
}

export const hasEnded = ({ ended = [] }: Group, { at, entry }: EndedEntry): boolean =>
  ended.some(other => other.at === at && other.entry[0] === entry[0]);

/**
 * The same group in which a sign-in has ended; a token is gone. Needs no key: what ends stays as it was sealed.
 * @param isKept whether its tokens are, until it is taken back
 */
export function endEntry(group: Group, name: string, at: number, isKept = true): Group {
  const entry = entryOf(group, name);
  const rest = without(group, account => account === name);
  if (entry?.[2] === undefined || entry[3] === undefined) return rest;
  const ended: EndedEntry = { at, entry: [name, entry[1], entry[2], entry[3]] };
  return withEnded(rest, [...(rest.ended ?? []), isKept ? ended : emptied(ended)]);
}

/** The first moment from this one on at which no sign-in of the account has ended: two of one moment would be taken for one. */
export function freeAt(groups: readonly Group[], name: string, at: number): number {
  const taken = new Set(groups.flatMap(({ ended = [] }) => ended.flatMap(({ at, entry }) => (entry[0] === name ? [at] : []))));
  let free = at;
  while (taken.has(free)) free++;
  return free;
}

export const isEmpty = ({ entry: [, sealed] }: EndedEntry): boolean => sealed === '';

/** That it has ended stays known, and nothing of its tokens. */
export function emptied(ended: EndedEntry): EndedEntry {
  const [name, , address, kind] = ended.entry;
  return { ...ended, entry: [name, '', address, kind] };
}

/**
 * The same group in which what has ended by one name has ended by another one too.
 * @param opened the group that our key opens, if there is one
 * @throws UsageError where another key has sealed it: its name cannot be changed without that
 */
export function renameEnded(group: Group, from: string, to: string, opened: Opened | undefined): Group {
  const ended = group.ended ?? [];
  const copies = ended
    .filter(({ entry: [name] }) => name === from)
    .flatMap((one): EndedEntry[] => {
      const { entry } = one;
      const empty: EndedEntry = { ...one, entry: [to, '', entry[2], entry[3]] };
      if (isEmpty(one)) return [empty];
      if (group.salt !== opened?.group.salt) {
        if (opened && hasEnded(opened.group, one)) return [];
        throw new UsageError(tellElsewhere(from));
      }
      const text = openEntry(entry, opened.key);
      return [text === undefined ? empty : { ...one, entry: sealSignIn(opened.key, to, text, entry[2]) }];
    });
  return withEnded(group, [...ended, ...copies.filter(copy => !hasEnded(group, copy))]);
}

const tellElsewhere = (name: string) =>
  `a sign-in of ${name} that has ended and is to be taken back was sealed with another key than there is now: put that one back; after 30 days its tokens are forgotten, and ${name} can be moved without it`;

/** What one key has sealed, sealed with another one too; what cannot be read is empty there. */
export function resealEnded(group: Group, key: Buffer, from: Opened): Group {
  const added = (from.group.ended ?? []).filter(ended => !hasEnded(group, ended));
  const sealed = added.map(ended => {
    const text = openEntry(ended.entry, from.key);
    const [name, , address] = ended.entry;
    return text === undefined ? emptied(ended) : { ...ended, entry: sealSignIn(key, name, text, address) };
  });
  return withEnded(group, [...(group.ended ?? []), ...sealed]);
}
