import { existsSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { DuckDBConnection } from '@duckdb/node-api';
import { afterEach, expect, test, vi } from 'vitest';
import { resources } from '../../schema/index.ts';
import { planParts } from '../../src/warehouse/readers/export/parts.ts';
import { openExportSource } from '../../src/warehouse/readers/export/source.ts';
import { writePart } from '../../src/warehouse/readers/export/write.ts';
import { searchDatabase } from '../../src/warehouse/readers/search.ts';
import { rewriteWithout } from '../../src/warehouse/store/file/erase.ts';
import { LacksMemory } from '../../src/warehouse/store/memory.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse, placeWarehouse, rowsOf, store, withDuckDB } from '../support/warehouse.ts';
import { someOf } from '../support/whole.ts';
import { ACTIVITY, STRESS } from '../support/wire.ts';

const folder = tempFolder();

const MB = 1_000_000;

afterEach(() => {
  vi.restoreAllMocks();
});

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
});

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
});

test('a commit has more memory as soon as texts may need it, and no more than that', async () => {
  const path = newPath(folder);
  let warehouse = await openWarehouse(path);
  const items = Array.from({ length: 60_000 }, () => 1);
  const storeMany = () =>
    store(
      warehouse,
      'daily_activity',
      Array.from({ length: 5 }, (_, i) => ({ ...ACTIVITY, id: `a-${warehouse.clock.next()}-${i}`, met: { ...ACTIVITY.met, items } })),
    );
  const more: number[] = [];
  const run = DuckDBConnection.prototype.run;
  vi.spyOn(DuckDBConnection.prototype, 'run').mockImplementation(async function (this: DuckDBConnection, ...parameters) {
    const limit = /^SET memory_limit = '(\d+)B'/.exec(String(parameters[0]))?.[1];
    if (Number(limit) > 80_000_000) more.push(Number(limit));
    return run.apply(this, parameters);
  });
  await storeMany();
  more.length = 0;
  await store(warehouse, 'daily_stress', [STRESS]);
  expect(more).toEqual([]);
  await store(warehouse, 'daily_stress', [{ ...STRESS, id: 'long', noted: 'x'.repeat(100_000) }]);
  // 80 MB, and 100 kB of each of 2,048 rows four times: 819.2 MB; the other texts of the row have less than 1 kB.
  expect(more).toEqual([expect.closeTo(900_000_000, -7)]);
  await warehouse.close();
  warehouse = await openWarehouse(path);
  await storeMany();
  more.length = 0;
  await storeMany();
  expect(more).toEqual([expect.closeTo(900_000_000, -7)]);
  const noted = 'x'.repeat(4 * MB);
  for (let i = 0; i < 24; i++) await store(warehouse, 'daily_stress', [{ ...STRESS, id: `document-${i}`, noted }]);
  await warehouse.close();
});

test('what was stored can be published, kept up to date, dated, compacted, exported, searched and erased', async () => {
  const doing = new Set(someOf(['kept up to date', 'dated', 'compacted', 'exported', 'searched'], { more: 2 }));
  const path = await filled();
  const warehouse = await openWarehouse(path);
  const published = join(dirname(path), 'snapshot.duckdb');
  await warehouse.snapshot(published, 0o600);
  await store(warehouse, 'daily_stress', [{ ...STRESS, id: 'document-1', noted: 'y'.repeat(4 * MB) }]);
  if (doing.has('kept up to date')) await warehouse.refreshSnapshot(published, 0o600);
  if (doing.has('dated')) await warehouse.copy(`${path}.dated`, 0o600);
  if (doing.has('compacted')) await warehouse.compact();
  // Giving back what one of them needed is never left out.
  expect(await warehouse.read(`SELECT current_setting('memory_limit'), current_setting('threads')`)).toEqual([['76.2 MiB', 1]]);
  await warehouse.close();
  if (doing.has('exported')) await exportStress(path);
  const words = [{ what: 'token', text: 'y'.repeat(100) }] as const;
  if (doing.has('searched')) expect(await searchDatabase(path, words)).toEqual([{ what: 'token', where: 'daily_stress.extra' }]);
  expect(await rewriteWithout(path, { userId: 'bob', serviceUserIds: [] }, () => {})).toEqual({ daily_stress: 1 });
  const sizes = (file: string) =>
    withDuckDB(file, connection =>
      rowsOf(connection, 'SELECT user_id, count(*) AS n, sum(length(extra)) AS length FROM daily_stress GROUP BY 1'),
    );
  const ann = { user_id: 'ann', n: 24, length: 24 * (4 * MB + 12) };
  expect(await sizes(path)).toEqual([ann]);
  for (const copy of doing.has('dated') ? [published, `${path}.dated`] : [published]) expect(await sizes(copy)).toContainEqual(ann);
});

test('where all of the memory is not enough each says so in one sentence, and nothing has changed', async () => {
  const path = newPath(folder);
  const warehouse = await openWarehouse(path);
  await store(warehouse, 'daily_stress', [STRESS]);
  vi.spyOn(process, 'constrainedMemory').mockReturnValue(10_000_000_000);
  const tried: unknown[] = [];
  const run = DuckDBConnection.prototype.run;
  vi.spyOn(DuckDBConnection.prototype, 'run').mockImplementation(async function (this: DuckDBConnection, ...parameters) {
    const statement = String(parameters[0]);
    if (!/^INSERT INTO \S*daily_stress"? /.test(statement)) return run.apply(this, parameters);
    const limits = await run.call(this, `SELECT current_setting('memory_limit'), current_setting('threads')`);
    tried.push(...(await limits.getRows()));
    throw new Error('Out of Memory Error: could not allocate block of size 3.8 MiB (7.4 GiB/7.4 GiB used)\n\nPossible solutions:\n* …');
  });
  const tooLarge = 'needs more memory than the 8.0 GB it may take here: this machine, or its container, has 10.0 GB; give it more';
  const snapshot = join(dirname(path), 'snapshot.duckdb');
  await expect(warehouse.snapshot(snapshot, 0o600)).rejects.toThrow(new LacksMemory(`the snapshot ${tooLarge}`));
  // 256 MB, 1.024 GB, 4.096 GB and 8 GB.
  expect(tried).toEqual([
    ['244.1 MiB', 2n],
    ['976.5 MiB', 1n],
    ['3.8 GiB', 1n],
    ['7.4 GiB', 1n],
  ]);
  await expect(warehouse.copy(`${path}.dated`, 0o600)).rejects.toThrow(new LacksMemory(`the dated snapshot ${tooLarge}`));
  await expect(warehouse.compact()).rejects.toThrow(new LacksMemory(`compacting the warehouse ${tooLarge}`));
  expect(await warehouse.read(`SELECT current_setting('memory_limit'), current_setting('threads')`)).toEqual([['76.2 MiB', 1]]);
  await warehouse.close();
  await expect(rewriteWithout(path, { userId: 'bob', serviceUserIds: [] }, () => {})).rejects.toThrow(
    new LacksMemory(`nothing was erased: erasing ${tooLarge}`),
  );
  expect(readdirSync(dirname(path)).sort()).toEqual([basename(path), `${basename(path)}.handover`]);
  vi.restoreAllMocks();
  expect(await withDuckDB(path, connection => rowsOf(connection, 'SELECT count(*) AS rows FROM daily_stress'))).toEqual([{ rows: 1 }]);
});

/** 24 documents of ann and one of bob, each of 4 MB. */
async function filled(): Promise<string> {
  const path = newPath(folder);
  placeWarehouse(path);
  await withDuckDB(path, async connection => {
    await connection.run(
      `INSERT INTO daily_stress (user_id, id, sk, day, fetched_at, content_hash, extra)
       SELECT CASE WHEN i < 24 THEN 'ann' ELSE 'bob' END, 'document-' || i, i + 1, '2025-01-15', '2025-01-16', i,
              '{"noted":"' || repeat('x', ${4 * MB}) || '"}' FROM range(25) t(i)`,
    );
  });
  return path;
}

async function exportStress(path: string): Promise<void> {
  const out = `${path}.out`;
  mkdirSync(out);
  const source = await openExportSource(path, resources, { out, spill: `${path}.spill` });
  const everything = { users: null, from: null, to: null };
  for (const format of ['parquet', 'csv'] as const) {
    const [part] = await planParts(source, source.tables.get('daily_stress')!, format, everything);
    await writePart(source, part!, format, everything, join(out, `stress.${format}`));
    expect(part!.rows).toBe(25);
  }
  source.close();
}
