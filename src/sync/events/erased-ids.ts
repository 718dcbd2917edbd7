import type { Tokens } from '../../base/secrets/secrets.ts';
import { createAccountFinder } from '../../ledger/accounts.ts';
import { factEntry, readFact } from '../../ledger/meta.ts';
import type { Pipeline } from '../pipeline.ts';

/** What stands for the service's id of somebody who was erased: only who has the secret key can tell whether an id is meant. */
const digestOf = (tokens: Pick<Tokens, 'digest'>, serviceUserId: string) => tokens.digest(`erased ${serviceUserId}`);

/**
 * Remembers that the person of these ids was erased, without the ids: the service goes on sending events. They count again for an
 * account that has such an id.
 */
export async function rememberErased(
  warehouse: Pipeline['warehouse'],
  tokens: Pick<Tokens, 'digest'>,
  serviceUserIds: readonly string[],
): Promise<void> {
  if (!serviceUserIds.length) return;
  const known = await readErased(warehouse);
  const all = [...new Set([...known, ...serviceUserIds.map(id => digestOf(tokens, id))])];
  if (all.length > known.length) await warehouse.record([factEntry('erased', JSON.stringify(all))]);
}

/** Whether an id is one of somebody who was erased. */
export async function wasErased({ warehouse, tokens }: Pick<Pipeline, 'warehouse' | 'tokens'>, serviceUserId: string): Promise<boolean> {
  const known = await readErased(warehouse);
  return known.length > 0 && known.includes(digestOf(tokens, serviceUserId));
}

/**
 * Tells of whom nothing is to be kept, not even until it is worked off: who was erased, and is nobody's account again. Nobody is erased
 * while this is in use. Where it cannot be told the answer is no.
 */
export function createForgotten({
  warehouse,
  tokens,
}: {
  warehouse: Pipeline['warehouse'];
  tokens: Pick<Tokens, 'digest'>;
}): (serviceUserId: string) => Promise<boolean> {
  const find = createAccountFinder(warehouse);
  let erased: Promise<ReadonlySet<string>> | undefined;
  return async serviceUserId => {
    try {
      erased ??= readErased(warehouse).then(digests => new Set(digests));
      const digests = await erased;
      return digests.size > 0 && digests.has(digestOf(tokens, serviceUserId)) && !(await find(serviceUserId));
    } catch {
      erased = undefined;
      return false;
    }
  };
}

async function readErased(warehouse: Pipeline['warehouse']): Promise<string[]> {
  return JSON.parse((await readFact(warehouse, 'erased')) ?? '[]');
}
