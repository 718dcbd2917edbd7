import { expect, test } from 'vitest';
import { resources } from '../../schema/index.ts';
import { mapResource } from '../../src/warehouse/mapping.ts';
import { FileStore } from '../../src/warehouse/store/file/file-store.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse, store } from '../support/warehouse.ts';
import { STRESS } from '../support/wire.ts';

const folder = tempFolder();
const mappings = resources.map(mapResource);

test('numbers of versions go on from the newest that is stored, and none is given twice', async () => {
  const path = newPath(folder);
  const warehouse = await openWarehouse(path);
  await store(warehouse, 'daily_stress', [STRESS, { ...STRESS, id: 't-2', day: '2025-01-16' }]);
  expect(await warehouse.read('SELECT sk FROM daily_stress ORDER BY sk')).toEqual([[1], [2]]);
  await warehouse.close();
  const file = await FileStore.open({ path }, mappings);
  expect(await file.takeSks(3)).toBe(3);
  expect(await file.takeSks(1)).toBe(6);
  await file.close();
});

test('a transaction whose work fails stores nothing, and the next one begins', async () => {
  const path = newPath(folder);
  await (await openWarehouse(path)).close();
  const file = await FileStore.open({ path }, mappings);
  const connection = await file.connect();
  const note = (key: string) => connection.run(`INSERT INTO sync.meta (key, value) VALUES ('${key}', '')`);
  const failing = file.transaction(connection, async () => {
    await note('first');
    throw new Error('on purpose');
  });
  await expect(failing).rejects.toThrow('on purpose');
  expect(await file.transaction(connection, () => note('second').then(() => 'done'))).toBe('done');
  const reader = await connection.runAndReadAll(`SELECT key FROM sync.meta WHERE key IN ('first', 'second')`);
  expect(reader.getRows()).toEqual([['second']]);
  await file.close();
});
