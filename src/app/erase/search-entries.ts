import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { z } from 'zod';
import type { Needle } from '../../warehouse/readers/search.ts';
import { searchFile } from './search-bytes.ts';

const named = { accounts: z.array(z.tuple([z.string()], z.string())) };

/** Our own files that name accounts, and where: `accounts` is a word of theirs and may be an account too. */
const NAMING: Readonly<Record<string, z.ZodType<string[]>>> = {
  'accounts.secret': z
    .object({ ...named, others: z.array(z.object(named)).default([]) })
    .transform(({ accounts, others }) => [accounts, ...others.map(other => other.accounts)].flatMap(all => all.map(([name]) => name))),
  'mirror-tokens.json': z
    .object({ tokens: z.array(z.object({ name: z.string() })) })
    .transform(({ tokens }) => tokens.map(({ name }) => name)),
};

/** What is found in a file of ours that names accounts; undefined where it is none, or not as we write it. */
export function searchEntries(data: string, file: string, words: readonly Needle[]): { what: Needle['what']; where: null }[] | undefined {
  const naming = NAMING[relative(data, file)];
  if (!naming) return undefined;
  const names = naming.safeParse(parse(readFileSync(file, 'utf8'))).data;
  if (!names) return undefined;
  const { found } = searchFile(
    file,
    words.filter(({ what }) => what !== 'name'),
  );
  const named = words.some(({ what, text }) => what === 'name' && names.includes(text));
  return [...(named ? ['name' as const] : []), ...found].map(what => ({ what, where: null }));
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
