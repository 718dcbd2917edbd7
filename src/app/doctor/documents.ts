import { listSharedDocuments } from '../../ledger/accounts.ts';
import { countRejectedByCollection } from '../../ledger/status.ts';
import type { Warehouse } from '../../warehouse/warehouse.ts';
import { type CheckResult, warn } from './check-result.ts';

const SHOWN = 5;

/** Whether documents came that could not be stored, and whether one and the same document belongs to two persons. */
export async function checkDocuments({ warehouse }: { warehouse: Pick<Warehouse, 'read' | 'mappings'> }): Promise<CheckResult[]> {
  return [...(await checkRejected(warehouse)), ...(await checkShared(warehouse))];
}

async function checkRejected(warehouse: Pick<Warehouse, 'read'>): Promise<CheckResult[]> {
  const rows = await countRejectedByCollection(warehouse);
  if (!rows.length) return [];
  const shown = rows
    .slice(0, SHOWN)
    .map(({ collection, documents, accounts }) => `${documents} of ${collection}${accounts === 1 ? '' : ` (${accounts} accounts)`}`);
  if (rows.length > SHOWN) shown.push(`those of ${rows.length - SHOWN} other collections`);
  return [
    warn(
      'documents',
      `what came could not be stored: ${shown.join(', ')}`,
      'ringneck sql "SELECT collection, reason, count(*) FROM sync.rejected GROUP BY ALL" says why; what is kept there is read again when the service or Ringneck has changed',
    ),
  ];
}

/** An identifier is one document's everywhere: between two accounts that are not one person something on the way has mixed answers up. */
async function checkShared(warehouse: Pick<Warehouse, 'read' | 'mappings'>): Promise<CheckResult[]> {
  // A ring may be handed on, and two people are at one moment.
  const ofOne = warehouse.mappings.filter(({ resource: { dated, identifiedBy } }) => dated && identifiedBy === undefined);
  const shared = await listSharedDocuments(
    warehouse,
    ofOne.map(({ table }) => table),
  );
  return shared.map(({ one, other, documents, collections }) =>
    warn(
      'documents',
      `${one} and ${other} have ${documents} documents in common (${collections})`,
      `where they are one person, remove one of them; where they are two, something on the way answers one with what is the other’s: end that, then ringneck account remove NAME --erase for the one it is not of, and add them again`,
    ),
  );
}
