import { type EndedEntry, entryOf, type Group, type Opened, openEntry, sealSignIn, without } from './sealed-file.ts';

/** The same group with these sign-ins that have ended, in place of those that it had. */
export function withEnded({ ended: _, ...group }: Group, ended: readonly EndedEntry[]): Group {
  return ended.length ? { ...group, ended: [...ended] } : group;
}

export const hasEnded = ({ ended = [] }: Group, { at, entry }: EndedEntry): boolean =>
  ended.some(other => other.at === at && other.entry[0] === entry[0]);

/** The same group in which a sign-in has ended; a token is gone. Needs no key: what ends stays as it was sealed. */
export function endEntry(group: Group, name: string, at: number): Group {
  const entry = entryOf(group, name);
  const rest = without(group, account => account === name);
  if (entry?.[2] === undefined || entry[3] === undefined) return rest;
  return withEnded(rest, [...(rest.ended ?? []), { at, entry: [name, entry[1], entry[2], entry[3]] }]);
}

/** That it has ended stays known, and nothing of its tokens. */
export const emptied = ({ at, entry: [name, , address, kind] }: EndedEntry): EndedEntry => ({ at, entry: [name, '', address, kind] });

/** What one key has sealed, sealed with another one too; what cannot be read is empty there. */
export function resealEnded(group: Group, key: Buffer, from: Opened): Group {
  const added = (from.group.ended ?? []).filter(ended => !hasEnded(group, ended));
  const sealed = added.map(ended => {
    const text = openEntry(ended.entry, from.key);
    const [name, , address] = ended.entry;
    return text === undefined ? emptied(ended) : { at: ended.at, entry: sealSignIn(key, name, text, address) };
  });
  return withEnded(group, [...(group.ended ?? []), ...sealed]);
}
