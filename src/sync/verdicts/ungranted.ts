import { RingneckError } from '../../base/errors.ts';
import type { Tokens } from '../../base/secrets/secrets.ts';
import { listAccounts, listParkedCollections } from '../../ledger/accounts.ts';
import { windowEntry } from '../../ledger/windows.ts';
import type { LedgerEntry } from '../../warehouse/sql.ts';
import type { Collection, Pipeline } from '../pipeline.ts';

/** Why a collection of an account is not asked for: its person has not allowed it. Undefined where nothing is known against it. */
export const findUngranted = (tokens: SignIns, userId: string, collection: Pick<Collection, 'scope'>): string | undefined =>
  tellUngranted(tokens.findSignIn(userId), collection);

type SignIns = Pick<Tokens, 'findSignIn'>;

const tellUngranted = (signIn: ReturnType<SignIns['findSignIn']>, { scope }: Pick<Collection, 'scope'>): string | undefined =>
  signIn && !signIn.scopes.includes(scope) ? `scope ${scope}${NOT_GRANTED}` : undefined;

const NOT_GRANTED = ' was not granted';

/** Whether a collection is not asked for because its person has not allowed it. */
export const isUngranted = (reason: string | null): boolean => /^scope \w+$/.test(reason?.replace(NOT_GRANTED, '') ?? '');

/** Notes of the active accounts what their persons have not allowed: nothing of it is planned, and status and coverage say why. */
export async function noteUngranted({
  warehouse,
  collections,
  tokens,
}: Pick<Pipeline, 'warehouse' | 'collections'> & { tokens: SignIns }): Promise<void> {
  const parked = await listParkedCollections(warehouse);
  const isNoted = (userId: string, collection: string, reason: string) =>
    parked.some(known => known.userId === userId && known.collection === collection && known.reason === reason);
  const entries: LedgerEntry[] = [];
  for (const { userId, state } of await listAccounts(warehouse)) {
    const signIn = state === 'active' ? findReadable(tokens, userId) : undefined;
    for (const collection of signIn ? collections : []) {
      const reason = tellUngranted(signIn, collection);
      if (reason === undefined || isNoted(userId, collection.name, reason)) continue;
      // Of no day and of no run: nothing was asked for.
      const place = { userId, collection: collection.name, runId: 'not-granted', startAt: null, endAt: null };
      entries.push(windowEntry(place, { outcome: 'not_authorised', reason, committedAt: warehouse.clock.next() }));
    }
  }
  if (entries.length) await warehouse.record(entries);
}

/** One that cannot be read concerns its own account alone, whose windows fail for it. */
function findReadable(tokens: SignIns, userId: string): ReturnType<SignIns['findSignIn']> {
  try {
    return tokens.findSignIn(userId);
  } catch (error) {
    if (error instanceof RingneckError) return undefined;
    throw error;
  }
}
