import { quoteText } from '../warehouse/tables.ts';
import type { Warehouse } from '../warehouse/warehouse.ts';

/** Whether an account of this name was ever added and not erased since; also one that is removed, whose rows stay. */
export async function accountExists(warehouse: Warehouse, name: string): Promise<boolean> {
  const rows = await warehouse.read(`SELECT 1 FROM sync.accounts WHERE user_id = ${quoteText(name)}`);
  return rows.length > 0;
}

/** The other accounts of the same person, those removed too: what they hold stays. */
export async function findSamePerson(warehouse: Warehouse, name: string): Promise<string[]> {
  const rows = await warehouse.read(
    `SELECT user_id FROM sync.accounts WHERE user_id <> ${quoteText(name)} AND service_user_id IN
       (SELECT service_user_id FROM sync.accounts WHERE user_id = ${quoteText(name)}) ORDER BY user_id`,
  );
  return rows.map(([userId]) => userId as string);
}

/** By which ids the service's events name a person, now and before; not those by which they name another account too. */
export async function findServiceUserIds(warehouse: Warehouse, name: string): Promise<string[]> {
  const ids = (where: string) =>
    `SELECT service_user_id FROM sync.accounts WHERE ${where} UNION SELECT service_user_id FROM sync.events WHERE ${where}`;
  const rows = await warehouse.read(
    `SELECT service_user_id FROM (${ids(`user_id = ${quoteText(name)}`)}) WHERE service_user_id IS NOT NULL
     EXCEPT SELECT service_user_id FROM (${ids(`user_id <> ${quoteText(name)}`)}) ORDER BY ALL`,
  );
  return rows.map(([id]) => id as string);
}
