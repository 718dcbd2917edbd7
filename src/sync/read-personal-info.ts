import { personalInfo } from '../../schema/resources/personal-info.ts';
import type { Window } from '../ledger/windows.ts';
import { readNames } from '../warehouse/stored-documents.ts';
import { type CollectContext, tokenGuard, type WindowResult } from './pipeline.ts';
import { momentsOfRequest } from './read-collection.ts';

/** Reads who the person of an account is. A row of another identifier leaves: an account is of one person. */
export async function readPersonalInfo({ userId }: Window, context: CollectContext): Promise<WindowResult> {
  const { pipeline, token, signal, releaseWhile, onAnswer, onStored, ledger } = context;
  const { client, warehouse, tokens } = pipeline;
  return client.person({ token, signal, releaseWhile }, async answer => {
    onAnswer();
    const { requestedAt, document } = answer;
    const removed = (await readNames(warehouse, personalInfo.name, 'id', userId)).filter(id => id !== document.id);
    const result: WindowResult = { outcome: 'complete', ...momentsOfRequest(answer), requests: 1, documents: 1, removed: removed.length };
    const page = {
      userId,
      resource: personalInfo,
      requestedAt,
      documents: [document],
      removed,
      completes: { since: requestedAt, days: undefined },
    };
    const counts = await warehouse.storeDocuments(page, {
      guard: tokenGuard(tokens, userId, token),
      ledger: ({ rejected, undated }) => ledger({ ...result, rejects: { rejected, undated } }),
    });
    onStored(counts, 1);
    return result;
  });
}
