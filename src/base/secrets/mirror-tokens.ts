import { createHash, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import { writeCommonFile } from '../common-files.ts';
import { openJsonFile } from '../json-file.ts';

/** Tokens for the mirror, one for each account; only their hashes are kept. */
export interface MirrorTokens {
  /** Makes a new token, which replaces the account's former one. It is given here once and never again. */
  create(name: string): string;
  findAccount(token: string): string | undefined;
  /** Whose there are. */
  names(): string[];
  remove(name: string): void;
  /** Has a token find the account by its new name. */
  rename(from: string, to: string): void;
}

const hashes = z.strictObject({ format: z.literal(1), tokens: z.array(z.strictObject({ name: z.string(), sha256: z.hex().length(64) })) });

/** Opens `<data>/mirror-tokens.json`; a change by another process counts at once. */
export function openMirrorTokens(folder: string): MirrorTokens {
  const path = join(folder, 'mirror-tokens.json');
  const file = openJsonFile(path, hashes);
  const tokens = () => file.read()?.tokens ?? [];

  function write(content: z.infer<typeof hashes>['tokens']): void {
    writeCommonFile(folder, 'mirror-tokens.json', `${JSON.stringify({ format: 1, tokens: content }, undefined, 2)}\n`);
  }

  return {
    create(name) {
      const token = `rnm_${randomBytes(32).toString('base64url')}`;
      write([...tokens().filter(entry => entry.name !== name), { name, sha256: hashOf(token) }]);
      return token;
    },
    findAccount(token) {
      const sha256 = hashOf(token);
      return tokens().find(entry => entry.sha256 === sha256)?.name;
    },
    names: () => tokens().map(({ name }) => name),
    rename(from, to) {
      if (tokens().some(({ name }) => name === from)) write(tokens().map(entry => (entry.name === from ? { ...entry, name: to } : entry)));
    },
    remove(name) {
      if (tokens().some(entry => entry.name === name)) write(tokens().filter(entry => entry.name !== name));
    },
  };
}

const hashOf = (token: string) => createHash('sha256').update(token).digest('hex');
