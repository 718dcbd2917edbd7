import { quoteName } from '../../warehouse/tables.ts';
import type { Warehouse } from '../../warehouse/warehouse.ts';
import { type CheckResult, warn } from './check-result.ts';

const SHOWN = 5;

/** Whether documents came that could not be stored, and whether one and the same document belongs to two persons. */
export async function checkDocuments({ warehouse }: { warehouse: Pick<Warehouse, 'read' | 'mappings'> }): Promise<CheckResult[]> {
  return [...(await checkRejected(warehouse)), ...(await checkShared(warehouse))];
}

async function checkRejected(warehouse: Pick<Warehouse, 'read'>): Promise<CheckResult[]> {
  const rows = await warehouse.read(
    `SELECT collection, count(*), count(DISTINCT user_id) FROM sync.rejected GROUP BY collection ORDER BY 2 DESC, 1`,
  );
  if (!rows.length) return [];
  const shown = rows.slice(0, SHOWN).map(([name, count, users]) => `${count} of ${name}${users === 1 ? '' : ` (${users} accounts)`}`);
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
  // A ring may be handed on.
  const dated = warehouse.mappings.filter(({ resource }) => resource.dated);
  const counted = dated.map(
    ({ table }) =>
      `SELECT a.user_id AS one, b.user_id AS other, '${table}' AS collection, count(*) AS documents
       FROM ${quoteName(table)} a JOIN ${quoteName(table)} b ON a.id = b.id AND a.user_id < b.user_id GROUP BY ALL`,
  );
  const rows = await warehouse.read(
    `SELECT one, other, sum(documents)::BIGINT, string_agg(collection, ', ' ORDER BY collection) FROM (${counted.join(' UNION ALL ')}) s
     JOIN sync.accounts x ON x.user_id = one AND x.state <> 'removed' JOIN sync.accounts y ON y.user_id = other AND y.state <> 'removed'
     WHERE x.service_user_id IS DISTINCT FROM y.service_user_id OR x.service_user_id IS NULL
     GROUP BY ALL ORDER BY ALL`,
  );
  return rows.map(([one, other, documents, names]) =>
    warn(
      'documents',
      `${one} and ${other} have ${documents} documents in common (${names})`,
      `where they are one person, remove one of them; where they are two, something on the way answers one with what is the other’s: end that, then ringneck account remove NAME --erase for the one it is not of, and add them again`,
    ),
  );
}
