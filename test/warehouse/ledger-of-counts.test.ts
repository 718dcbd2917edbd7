import { expect, test } from 'vitest';
import { spo2 } from '../service/documents.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse, resourceNamed, rows } from '../support/warehouse.ts';

const folder = tempFolder();

test('an entry of the ledger may tell what storing did, and is committed with it or not at all', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  const store = async (value: string, note: (stored: number) => string) => {
    const requestedAt = warehouse.moments.next();
    const page = { userId: 'ann', resource: resourceNamed('daily_spo2'), requestedAt, documents: [spo2('2025-03-09', 'x')] };
    await warehouse.storeDocuments(page, {
      ledger: ({ stored }) => [{ table: 'sync.meta', key: { key: value }, row: { value: note(stored) } }],
    });
  };
  const failing = store('first', () => {
    throw new Error('no note');
  });
  await expect(failing).rejects.toThrow('not stored: no note');
  expect(await rows(warehouse, 'SELECT id FROM daily_spo2')).toEqual([]);
  await store('second', stored => `${stored} stored`);
  await store('third', stored => `${stored} stored`);
  expect(await rows(warehouse, `SELECT key, value FROM sync.meta WHERE value LIKE '%stored' ORDER BY key`)).toEqual([
    { key: 'second', value: '1 stored' },
    { key: 'third', value: '0 stored' },
  ]);
  await warehouse.close();
});
