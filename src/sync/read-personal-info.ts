import { personalInfo } from '../../schema/resources/personal-info.ts';
import { findServiceUserId } from '../ledger/accounts.ts';
import { ANOTHER_PERSON } from '../ledger/unproven.ts';
import type { Rejects, Window } from '../ledger/windows.ts';
import { readNames } from '../warehouse/stored-documents.ts';
import { type CollectContext, tokenGuard, type WindowResult } from './pipeline.ts';
import { momentsOfRequest } from './read-collection.ts';
import { parkAnother } from './verdicts/same-person.ts';

/**
 * Reads who the person of an account is. A row of another identifier leaves: an account is of one person. The row of somebody whom the
 * account is known not to be is not stored, and one that cannot be stored leaves the row before.
 */
export async function readPersonalInfo({ userId }: Window, context: CollectContext): Promise<WindowResult> {
  const { pipeline, token, signal, releaseWhile, onAnswer, onStored, ledger } = context;
  const { client, warehouse, tokens } = pipeline;
  return client.person({ token, signal, releaseWhile }, async answer => {
    onAnswer();
    const { requestedAt, document } = answer;
    const result: WindowResult = { outcome: 'complete', ...momentsOfRequest(answer), requests: 1, documents: 1, removed: 0 };
    const known = await findServiceUserId(warehouse, userId);
    if (known !== null && known !== document.id) {
      await parkAnother(pipeline, userId, { token, person: document.id });
      return { ...result, outcome: 'failed', reason: ANOTHER_PERSON };
    }
    const guard = tokenGuard(tokens, userId, token);
    const others = (await readNames(warehouse, personalInfo.name, 'id', userId)).filter(id => id !== document.id);
    const completes = { since: requestedAt, days: undefined };
    const page = { userId, resource: personalInfo, requestedAt, documents: [document], ...(others.length ? {} : { completes }) };
    const ledgerOf = ({ rejected, undated }: Rejects) =>
      rejected ? [] : ledger({ ...result, removed: others.length, rejects: { rejected, undated } });
    const counts = await warehouse.storeDocuments(page, others.length ? { guard } : { guard, ledger: ledgerOf });
    if (counts.rejected) return { ...result, outcome: 'failed', reason: REJECTED };
    onStored(counts, 1);
    // Only once there is another row.
    if (others.length) await warehouse.storeDocuments({ ...page, documents: [], removed: others, completes }, { guard, ledger: ledgerOf });
    return { ...result, removed: others.length };
  });
}

const REJECTED = 'what the service says of the person cannot be stored (sync.rejected has it): what was stored before stays';
