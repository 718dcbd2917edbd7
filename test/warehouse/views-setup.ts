import { afterAll, beforeEach } from 'vitest';
import type { Warehouse } from '../../src/warehouse/warehouse.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse, store } from '../support/warehouse.ts';

/** One warehouse for all tests of a file, without documents before each of them. */
export async function emptiedWarehouse(): Promise<Warehouse> {
  const warehouse = await openWarehouse(newPath(tempFolder()));
  afterAll(() => warehouse.close());
  beforeEach(async () => {
    for (const { table } of warehouse.mappings) {
      const ids = (await warehouse.read(`SELECT id FROM ${table}`)).map(([id]) => id as string);
      if (ids.length) await store(warehouse, table, [], ids);
    }
  });
  return warehouse;
}

/** The ends of a sleep, to the minute. */
export const utc = (from: string, to: string) => ({ bedtime_start: `${from}:00+00:00`, bedtime_end: `${to}:00+00:00` });
