import { afterAll, expect, test } from 'vitest';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse } from '../support/warehouse.ts';

const folder = tempFolder();

/** Takes a second of one core, and little memory. */
const LONG = 'SELECT count(*) FROM range(20000) a, range(10000) b WHERE (a.range * b.range) % 7 = 3';

test('a quick read does not wait for long ones of our own', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  afterAll(() => warehouse.close());
  const ended: string[] = [];
  const long = [1, 2].map(number => warehouse.read(LONG).then(() => ended.push(`long ${number}`)));
  await Promise.all([1, 2, 3].map(() => warehouse.read('SELECT count(*) FROM sync.accounts').then(() => ended.push('quick'))));
  expect(ended).toEqual(['quick', 'quick', 'quick']);
  await Promise.all(long);
  expect(ended).toHaveLength(5);
});

test('a warehouse is closed once all of its reads have ended', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  const reads = Array.from({ length: 12 }, (_, i) => warehouse.read(`SELECT ${i} + count(*) FROM sync.accounts`));
  const closed = warehouse.close();
  expect((await Promise.all(reads)).flat(2)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
  await closed;
  await expect(warehouse.read('SELECT 1')).rejects.toMatchObject({ message: 'the warehouse is closed', exitCode: 75 });
});
