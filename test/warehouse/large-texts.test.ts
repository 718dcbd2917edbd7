import { existsSync, statSync } from 'node:fs';
import { expect, test } from 'vitest';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse, rowsOf, store, withDuckDB } from '../support/warehouse.ts';
import { STRESS } from '../support/wire.ts';

const folder = tempFolder();

const MB = 1_000_000;

test('a table whose texts together are larger than the memory of storing is stored, and closed, and stored to again', async () => {
  const path = newPath(folder);
  const noted = 'x'.repeat(4 * MB);
  const storeNoted = async (from: number, to: number) => {
    const warehouse = await openWarehouse(path);
    for (let i = from; i < to; i++) await store(warehouse, 'daily_stress', [{ ...STRESS, id: `document-${i}`, noted }]);
    // As {"noted":"…"}.
    expect(await warehouse.read('SELECT count(*), sum(length(extra)) FROM daily_stress')).toEqual([[to, to * (4 * MB + 12)]]);
    await warehouse.close();
  };
  await storeNoted(0, 24);
  await storeNoted(24, 26);
}, 30_000);

test('a log of long texts that a killed process has left, beside a table that is missing, ends neither the next start nor its first commit', async () => {
  const path = newPath(folder);
  await (await openWarehouse(path)).close();
  await withDuckDB(
    path,
    async connection => {
      await connection.run('PRAGMA disable_checkpoint_on_shutdown');
      await connection.run('DROP TABLE ring_configuration');
      for (let i = 0; i < 24; i++) {
        await connection.run(
          `INSERT INTO daily_stress (user_id, id, sk, extra) VALUES ('ann', 'left-${i}', ${i}, '"' || repeat('x', ${4 * MB}) || '"')`,
        );
      }
    },
    { wal_autocheckpoint: '1TB' },
  );
  expect(statSync(`${path}.wal`).size).toBeGreaterThan(24 * 4 * MB);
  const warehouse = await openWarehouse(path);
  expect(await store(warehouse, 'daily_stress', [STRESS])).toMatchObject({ stored: 1 });
  await warehouse.close();
  expect(existsSync(`${path}.wal`)).toBe(false);
  expect(await withDuckDB(path, connection => rowsOf(connection, 'SELECT count(*) AS rows FROM daily_stress'))).toEqual([{ rows: 25 }]);
}, 30_000);
