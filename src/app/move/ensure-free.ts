import { UsageError } from '../../base/errors.ts';
import { accountExists } from '../../ledger/accounts.ts';
import { listTablesOf } from '../../warehouse/tables-of.ts';
import type { Warehouse } from '../../warehouse/warehouse.ts';
import { holdsTokens, type KeptTokens } from '../kept-tokens.ts';

/** @throws UsageError where nobody of this name was ever added, or is any more */
export async function ensureNamed(warehouse: Warehouse, name: string): Promise<void> {
  if (await accountExists(warehouse, name)) return;
  throw new UsageError(`no account ${JSON.stringify(name)} was ever added here: ringneck account list shows those there are`);
}

/** @throws UsageError where a name has an account, rows or tokens: one that gets it would be mixed up with somebody else */
export async function ensureFree({ warehouse, ...kept }: KeptTokens & { warehouse: Warehouse }, name: string): Promise<void> {
  if (await accountExists(warehouse, name)) {
    throw new UsageError(
      `${name} is an account already, or was one whose rows are still there: choose another name, or first ringneck account remove ${name} --erase`,
    );
  }
  const used = await listTablesOf(warehouse, name);
  if (used.length) throw new UsageError(`${name} is in use already, in ${used.join(', ')}: choose another name, or remove it there first`);
  if (holdsTokens(kept, name)) {
    throw new UsageError(
      `${name} is in use already: it is no account, and has a token, a sign-in or a token for the mirror, perhaps of somebody else. ` +
        `Choose another name, or first ringneck account remove ${name}, which forgets what is kept`,
    );
  }
}
