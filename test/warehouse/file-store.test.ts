import { readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { expect, test } from 'vitest';
import { resources } from '../../schema/index.ts';
import { mapResource } from '../../src/warehouse/mapping.ts';
import { FileStore } from '../../src/warehouse/store/file/file-store.ts';
import { Warehouse } from '../../src/warehouse/warehouse.ts';
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

test('a file whose process was killed in the middle of writing a block opens with all that was committed', async () => {
  const path = newPath(folder);
  const warehouse = await openWarehouse(path);
  await store(warehouse, 'daily_stress', [STRESS]);
  await warehouse.close();
  const again = await openWarehouse(path);
  await store(again, 'daily_stress', [{ ...STRESS, id: 't-2', day: '2025-01-16' }]);
  // As it lies on the disk before a checkpoint, and after it.
  const [before, log] = [readFileSync(path), readFileSync(`${path}.wal`)];
  await again.close();
  const after = readFileSync(path);
  let torn = 0;
  for (let at = 12_288; at + 262_144 <= Math.min(before.length, after.length); at += 262_144) {
    const [old, next] = [before.subarray(at, at + 262_144), after.subarray(at, at + 262_144)];
    if (old.equals(next)) continue;
    const half = join(folder, `torn-${at}.duckdb`);
    writeFileSync(half, Buffer.concat([before.subarray(0, at), next.subarray(0, 131_072), before.subarray(at + 131_072)]));
    writeFileSync(`${half}.wal`, log);
    const refused = await DuckDBInstance.create(half, { access_mode: 'READ_ONLY' }).then(
      instance => instance.closeSync(),
      error => String(error),
    );
    if (refused === undefined) continue;
    torn++;
    expect(refused).toContain('Corrupt database file');
    const told: string[] = [];
    const mended = await Warehouse.open({ path: half, resources, onMended: message => told.push(message) });
    expect(told).toEqual([expect.stringContaining(`${half}: a process was killed while it wrote a block`)]);
    expect(await mended.read('SELECT id, day::VARCHAR FROM daily_stress ORDER BY id')).toEqual([
      [STRESS.id, STRESS.day],
      ['t-2', '2025-01-16'],
    ]);
    await mended.close();
    const block = (at - 12_288) / 262_144;
    expect(readFileSync(`${half}.torn-block-${block}`)).toEqual(Buffer.concat([next.subarray(0, 131_072), old.subarray(131_072)]));
  }
  expect(torn).toBeGreaterThan(0);
});

test('a file that is damaged otherwise is refused as before', async () => {
  const path = newPath(folder);
  const warehouse = await openWarehouse(path);
  await store(warehouse, 'daily_stress', [STRESS]);
  await warehouse.close();
  truncateSync(path, 200_000);
  await expect(openWarehouse(path)).rejects.toThrow('cannot open');
});
