import type { MirrorTokens } from '../base/secrets/mirror-tokens.ts';
import type { Secrets } from '../base/secrets/secrets.ts';
import { listAccounts } from '../ledger/accounts.ts';
import type { Warehouse } from '../warehouse/warehouse.ts';

/** What is kept by the names of accounts: by what they are read, and what reads them. */
export interface KeptTokens {
  secrets: Pick<Secrets, 'names'>;
  mirrorTokens: Pick<MirrorTokens, 'names'>;
}

/** Whether anything is kept for a name by which it is read, or reads. */
export const holdsTokens = (kept: KeptTokens, name: string): boolean => namesOf(kept).includes(name);

/** Whose tokens are kept though there is no account of theirs, as after the restore of a backup into which an account came or went. */
export async function listWithoutAccount({ warehouse, ...kept }: KeptTokens & { warehouse: Warehouse }): Promise<string[]> {
  const accounts = new Set((await listAccounts(warehouse)).map(({ userId }) => userId));
  return [...new Set(namesOf(kept))].filter(name => !accounts.has(name)).sort();
}

const namesOf = ({ secrets, mirrorTokens }: KeptTokens) => [...secrets.names(), ...mirrorTokens.names()];
