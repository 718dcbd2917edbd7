import { hasRows, type Readable, readValues, text } from '../warehouse/rows.ts';
import { quoteText } from '../warehouse/tables.ts';

/** Whether an account of this name was ever added and not erased since; also one that is removed, whose rows stay. */
export const accountExists = (warehouse: Readable, name: string): Promise<boolean> =>
  hasRows(warehouse, `SELECT 1 FROM sync.accounts WHERE user_id = ${quoteText(name)}`);

/** The other accounts of the same person, those removed too: what they hold stays. */
export const findSamePerson = (warehouse: Readable, name: string): Promise<string[]> =>
  readValues(
    warehouse,
    text,
    `SELECT user_id FROM sync.accounts WHERE user_id <> ${quoteText(name)} AND service_user_id IN
       (SELECT service_user_id FROM sync.accounts WHERE user_id = ${quoteText(name)}) ORDER BY user_id`,
  );

/** By which ids the service's events name a person, now and before; not those by which they name another account too. */
export function findServiceUserIds(warehouse: Readable, name: string): Promise<string[]> {
  const ids = (where: string) =>
    `SELECT service_user_id FROM sync.accounts WHERE ${where} UNION SELECT service_user_id FROM sync.events WHERE ${where}`;
  return readValues(
    warehouse,
    text,
    `SELECT service_user_id FROM (${ids(`user_id = ${quoteText(name)}`)}) WHERE service_user_id IS NOT NULL
     EXCEPT SELECT service_user_id FROM (${ids(`user_id <> ${quoteText(name)}`)}) ORDER BY ALL`,
  );
}
