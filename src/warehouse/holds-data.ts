import { heartRate } from '../../schema/resources/heart-rate.ts';
import { qualified, quoteText } from './tables.ts';
import type { Warehouse } from './warehouse.ts';

/** Whether any document or heart rate of an account is stored. */
export async function holdsDataOf(warehouse: Pick<Warehouse, 'mappings' | 'read'>, userId: string): Promise<boolean> {
  const tables = [heartRate.name, ...warehouse.mappings.map(({ table }) => table)];
  const found = tables.map(table => `EXISTS (FROM ${qualified(table)} WHERE user_id = ${quoteText(userId)})`);
  const [row] = await warehouse.read(`SELECT ${found.join(' OR ')}`);
  return row?.[0] === true;
}
