import { collectionsOf } from '../../../jobs/collections.ts';
import { reportAccounts } from '../../../jobs/status.ts';
import type { Owner } from '../owner.ts';
import { type Finding, warn } from './finding.ts';

const SHOWN = 5;

/** Whether days between the first that was planned and yesterday were never read, of accounts that are asked: those of each collection count. */
export async function examineDays({ warehouse, now, serviceClock }: Owner): Promise<Finding[]> {
  const accounts = await reportAccounts(
    { warehouse, now, serviceClock },
    collectionsOf(warehouse.mappings.map(({ resource }) => resource)),
  );
  const unread = accounts
    .map(({ user_id, collections }) => ({ user_id, days: collections.reduce((sum, { unread_days: days }) => sum + days, 0) }))
    .filter(({ days }) => days > 0);
  if (!unread.length) return [];
  const shown = unread.slice(0, SHOWN).map(({ user_id, days }) => `${days} of ${user_id}`);
  if (unread.length > SHOWN) shown.push(`those of ${unread.length - SHOWN} others`);
  const said = `days of collections lie before today that were never read to their end, or failed when last read: ${shown.join(', ')}`;
  return [warn('days', said, 'ringneck coverage shows them, ringneck coverage --repair reads them')];
}
