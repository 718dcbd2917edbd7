import { chmodSync, existsSync, mkdirSync, readdirSync, statSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, inject, test } from 'vitest';
import { TryLaterError } from '../../src/base/errors.ts';
import { openQueries } from '../../src/warehouse/readers/query.ts';
import { childScript, startChild } from '../support/child.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse, store } from '../support/warehouse.ts';
import { isWhole } from '../support/whole.ts';
import { STRESS } from '../support/wire.ts';

const folder = tempFolder();

async function newFile(): Promise<string> {
  const path = newPath(folder);
  const warehouse = await openWarehouse(path);
  await store(warehouse, 'daily_stress', [STRESS]);
  await warehouse.close();
  return path;
}

test('a file that another process holds is refused with its PID, to be tried later', async () => {
  const path = await newFile();
  const child = startChild(childScript, 'own', path);
  expect(await child.line()).toBe('ready');
  const refused = openWarehouse(path, { patienceMs: 0 });
  await expect(refused).rejects.toBeInstanceOf(TryLaterError);
  await expect(refused).rejects.toMatchObject({
    message: `${path} is held by another process (PID ${child.pid}); stop it, or try again later`,
    exitCode: 75,
  });
  await expect(openQueries(path, { patienceMs: 0 })).rejects.toMatchObject({ exitCode: 75 });
  child.process.stdin!.end();
  await child.ended;
  await (await openWarehouse(path, { patienceMs: 0 })).close();
});

test('a file that is open in this process is refused, also by another name', async () => {
  const path = await newFile();
  const warehouse = await openWarehouse(path);
  await expect(openWarehouse(path)).rejects.toThrow(`${path} is already open in this process`);
  const link = join(folder, 'link');
  symlinkSync(dirname(path), link);
  const other = join(link, 'warehouse.duckdb');
  await expect(openWarehouse(other)).rejects.toThrow(`${other} is already open in this process`);
  await expect(openQueries(path)).rejects.toThrow(`${path} is already open in this process`);
  await warehouse.close();
  await (await openWarehouse(other)).close();
});

test('after an open that failed the file is free again', async () => {
  const path = newPath(folder);
  const { resources } = await import('../../schema/index.ts');
  await expect(openWarehouse(path, { resources: [...resources, { ...resources[0]!, name: 'sync.meta' }] })).rejects.toThrow();
  await (await openWarehouse(path)).close();
});

test('a reader’s short hold is waited out', async () => {
  const path = await newFile();
  const child = startChild(childScript, 'hold', path, '700');
  expect(await child.line()).toBe('ready');
  const warehouse = await openWarehouse(path);
  expect(await warehouse.read('SELECT id FROM daily_stress')).toEqual([['t-1']]);
  await warehouse.close();
  expect(await child.ended).toBe(0);
});

test('the file and its log can be read by their owner only, and so can the folder that was made for them', async () => {
  const before = process.umask(0o022);
  const path = newPath(folder);
  const warehouse = await openWarehouse(path);
  await store(warehouse, 'daily_stress', [STRESS]);
  expect(readdirSync(dirname(path)).sort()).toEqual(['warehouse.duckdb', 'warehouse.duckdb.wal']);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(statSync(`${path}.wal`).mode & 0o777).toBe(0o600);
  expect(statSync(dirname(path)).mode & 0o777).toBe(0o700);
  await warehouse.close();
  process.umask(before);
});

test('a folder that was there keeps its mode', async () => {
  const path = newPath(folder);
  mkdirSync(dirname(path));
  chmodSync(dirname(path), 0o755);
  await (await openWarehouse(path)).close();
  expect(statSync(dirname(path)).mode & 0o777).toBe(0o755);
});

test('a process that is killed while it writes leaves whole documents, and all that it said was committed', async () => {
  const path = newPath(folder);
  let next = 1;
  for (const commits of isWhole ? [1, 3, 7, 2, 12, 5] : [1, 7, 2]) {
    const child = startChild(
      fileURLToPath(new URL('../support/child-writer.mjs', import.meta.url)),
      inject('compiled'),
      path,
      String(next),
    );
    let said = 0;
    for (let i = 0; i < commits; i++) said = Number(await child.line());
    child.process.kill('SIGKILL');
    expect(await child.ended).toBe('SIGKILL');
    expect(existsSync(`${path}.wal`)).toBe(true);

    const warehouse = await openWarehouse(path);
    const [[written]] = (await warehouse.read(`SELECT value FROM sync.meta WHERE key = 'n'`)) as [[string]];
    expect(Number(written)).toBeGreaterThanOrEqual(said);
    expect(await warehouse.read(`SELECT DISTINCT period FROM sleep`)).toEqual([[Number(written)]]);
    expect(await warehouse.read('SELECT count(*), count(DISTINCT id) FROM sleep')).toEqual([[12, 12]]);
    for (const field of ['heart_rate', 'hrv']) {
      expect(
        await warehouse.read(
          `SELECT coalesce(d.sk, s.sk), ${field}_count, n FROM sleep d
           FULL JOIN (SELECT sk, count(*) AS n FROM sleep_${field} GROUP BY sk) s ON s.sk = d.sk
           WHERE coalesce(${field}_count, 0) IS DISTINCT FROM coalesce(n, 0)`,
        ),
      ).toEqual([]);
    }
    expect(await warehouse.read(`SELECT count(*) FROM sleep_heart_rate WHERE value <> ${written}`)).toEqual([[0]]);
    await warehouse.close();
    next = Number(written) + 1;
  }
});

test('where the path is a link to a file that is yet to be made, a process that is killed leaves all that it said was committed', async () => {
  const path = newPath(folder);
  mkdirSync(dirname(path));
  symlinkSync(join(folder, 'another-disk.duckdb'), path);
  const child = startChild(fileURLToPath(new URL('../support/child-writer.mjs', import.meta.url)), inject('compiled'), path, '1');
  const said = [await child.line(), await child.line(), await child.line()];
  child.process.kill('SIGKILL');
  await child.ended;
  expect(readdirSync(dirname(path))).toEqual(['warehouse.duckdb']);
  const warehouse = await openWarehouse(path);
  const [[written]] = (await warehouse.read(`SELECT value FROM sync.meta WHERE key = 'n'`)) as [[string]];
  expect(Number(written)).toBeGreaterThanOrEqual(Number(said[2]));
  expect(await warehouse.read('SELECT count(*), count(DISTINCT id) FROM sleep')).toEqual([[12, 12]]);
  await warehouse.close();
});

test('closing waits for what is being read, and what comes after is refused', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  const reading = Array.from({ length: 4 }, () => warehouse.read('SELECT count(*) FROM range(20_000_000)'));
  await warehouse.close();
  expect(await Promise.all(reading)).toEqual(Array(4).fill([[20_000_000]]));
  await expect(warehouse.read('SELECT 1')).rejects.toThrow('the warehouse is closed');
});
