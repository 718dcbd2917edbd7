import { mkdirSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { expect, test } from 'vitest';
import { resources } from '../../schema/index.ts';
import { mapResource } from '../../src/warehouse/mapping.ts';
import { openReader } from '../../src/warehouse/readers/open-reader.ts';
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

/** Copies of a file whose process was killed in the middle of a checkpoint, each with another block half written that DuckDB refuses. */
async function makeTorn(): Promise<{ path: string; block: Buffer; name: string }[]> {
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
  const torn: { path: string; block: Buffer; name: string }[] = [];
  for (let at = 12_288; at + 262_144 <= Math.min(before.length, after.length); at += 262_144) {
    const block = Buffer.concat([after.subarray(at, at + 131_072), before.subarray(at + 131_072, at + 262_144)]);
    if (before.subarray(at, at + 262_144).equals(after.subarray(at, at + 262_144))) continue;
    const half = newPath(folder);
    mkdirSync(dirname(half));
    writeFileSync(half, Buffer.concat([before.subarray(0, at), block, before.subarray(at + 262_144)]));
    writeFileSync(`${half}.wal`, log);
    const refused = await DuckDBInstance.create(half, { access_mode: 'READ_ONLY' }).then(
      instance => instance.closeSync(),
      error => String(error),
    );
    if (refused === undefined) continue;
    expect(refused).toContain('Corrupt database file');
    torn.push({ path: half, block, name: `warehouse.duckdb.torn-block-${(at - 12_288) / 262_144}-` });
  }
  expect(torn.length).toBeGreaterThan(0);
  return torn;
}

const namesBeside = (path: string) => readdirSync(dirname(path)).sort();

test('a file whose process was killed in the middle of writing a block opens with all that was committed', async () => {
  for (const { path, block, name } of await makeTorn()) {
    await expect(openReader({ path, memoryLimit: '100MB' })).rejects.toThrow(
      'where a killed process has left it so, ringneck status mends it',
    );
    const told: string[] = [];
    const mended = await Warehouse.open({ path, resources, onMended: message => told.push(message) });
    expect(told).toEqual([expect.stringContaining(`${path}: a process was killed while it wrote a block`)]);
    expect(await mended.read('SELECT id, day::VARCHAR FROM daily_stress ORDER BY id')).toEqual([
      [STRESS.id, STRESS.day],
      ['t-2', '2025-01-16'],
    ]);
    await mended.close();
    const kept = namesBeside(path).filter(beside => beside.startsWith(name));
    expect(kept).toHaveLength(1);
    expect(readFileSync(join(dirname(path), kept.join()))).toEqual(block);
  }
});

test('a block that is wrong where no checkpoint was under way is the disk’s fault: the file is refused, and left as it is', async () => {
  for (const { path } of await makeTorn()) {
    rmSync(`${path}.wal`);
    const before = readFileSync(path);
    await expect(Warehouse.open({ path, resources })).rejects.toThrow('Corrupt database file: computed checksum');
    expect(readFileSync(path).equals(before)).toBe(true);
    expect(namesBeside(path)).toEqual([basename(path)]);
  }
});

test('a file that opens with no mended block either is refused for its first fault, and the block as it was lies beside it', async () => {
  const [torn] = await makeTorn();
  if (!torn) throw new Error('nothing was torn');
  const bytes = readFileSync(torn.path);
  // A block that is torn and full of what means nothing: with its checksum mended it cannot be read.
  const at = bytes.indexOf(torn.block.subarray(8, 4096)) - 8;
  bytes.fill(0xa5, at + 8, at + 262_144);
  writeFileSync(torn.path, bytes);
  await expect(Warehouse.open({ path: torn.path, resources })).rejects.toThrow('Corrupt database file: computed checksum');
  const [kept = ''] = namesBeside(torn.path).filter(name => name.startsWith(torn.name));
  expect(readFileSync(join(dirname(torn.path), kept)).equals(bytes.subarray(at, at + 262_144))).toBe(true);
});

test('a file that is damaged otherwise is refused as before', async () => {
  const path = newPath(folder);
  const warehouse = await openWarehouse(path);
  await store(warehouse, 'daily_stress', [STRESS]);
  await warehouse.close();
  truncateSync(path, 200_000);
  await expect(openWarehouse(path)).rejects.toThrow('cannot open');
});
