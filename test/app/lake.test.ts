import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { findSource } from '../../src/app/find-source.ts';
import { importIntoLake } from '../../src/app/lake/import.ts';
import { placeOf } from '../../src/app/lake/place.ts';
import { readSettings } from '../../src/base/config.ts';
import { silentLog } from '../../src/base/log.ts';
import { Secrets } from '../../src/base/secrets/secrets.ts';
import { initLake } from '../../src/warehouse/lake.ts';
import { LakeStore } from '../../src/warehouse/store/lake/lake-store.ts';
import { openHarness } from '../support/harness.ts';
import { hasBucket, hasLake, lakeSettings, startBucket, testPostgres } from '../support/lake.ts';
import { startSandbox } from '../support/sandbox.ts';
import { findBroken, hashTables } from '../support/table-hash.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { rowsOf, withDuckDB } from '../support/warehouse.ts';

const folder = tempFolder();

const hashOf = (path: string) =>
  withDuckDB(path, connection => hashTables(async sql => (await connection.runAndReadAll(sql)).getRows() as unknown[][]));

test.skipIf(!hasLake)('a folder moves into a lake, reads on, is asked, erased from and moved out, and is whole each time', async () => {
  const sandbox = await startSandbox({ count: 2, from: '2025-03-04', to: '2025-03-06' });
  const s3 = hasBucket ? await startBucket(folder) : undefined;
  const files = s3 ? 's3://ring/lake' : join(folder, 'files');
  const data = join(folder, 'data');
  const read = { from: '2025-03-04', to: '2025-03-05' };
  const asFile = await openHarness(data, sandbox.url);
  await asFile.add(sandbox.people.map(({ token }, i) => ({ name: i ? 'ben' : 'ada', token })));
  expect(await asFile.backfill(read)).toMatchObject({ state: 'complete' });
  const before = await asFile.hash();
  await asFile.close();

  const environment = {
    RINGNECK_DATA: data,
    RINGNECK_SERVICE_URL: sandbox.url,
    ...(s3 ? { RINGNECK_LAKE_KEY: s3.key, RINGNECK_LAKE_SECRET: s3.secret, RINGNECK_LAKE_ENDPOINT: s3.endpoint } : {}),
  };
  const settings = readSettings({ ...environment, ...lakeSettings('study', files) });
  const place = placeOf(settings)!;
  const reader = { isOld: false, reader: 'ring_reader', readerPassword: expect.toSatisfy(text => text === null || text.length === 24) };
  expect(await initLake(place, 'postgres')).toEqual(reader);
  expect(await initLake(place, 'postgres')).toEqual({ isOld: true, reader: 'ring_reader', readerPassword: null });
  for (const [taken, refusal] of [
    [files, 'holds files already'],
    [`${files}/inside`, 'lies in the place of another lake'],
  ] as const) {
    const other = readSettings({ ...environment, ...lakeSettings('other', taken) });
    await expect(initLake(placeOf(other)!, 'postgres')).rejects.toThrow(refusal);
  }
  await expect(openHarness(data, sandbox.url, { settings })).rejects.toThrow('is a file: ringneck lake import moves it into the lake');
  // As a process that was killed leaves it: what it has committed last is in its log alone.
  const warehouse = join(data, 'warehouse.duckdb');
  await withDuckDB(warehouse, async connection => {
    await connection.run('PRAGMA disable_checkpoint_on_shutdown');
    await connection.run(`INSERT INTO sync.drift (path) VALUES ('in the log')`);
  });
  expect(existsSync(`${warehouse}.wal`)).toBe(true);
  const { file, rows } = await importIntoLake({ settings, log: silentLog });
  expect([existsSync(file), rows['sync.accounts'], rows['sync.drift']]).toEqual([true, 2, 1]);
  expect(existsSync(`${warehouse}.wal`)).toBe(false);
  expect(await withDuckDB(file, connection => rowsOf(connection, 'SELECT path FROM sync.drift'))).toEqual([{ path: 'in the log' }]);
  // As an import that was killed before its last step leaves it.
  const note = readFileSync(join(data, 'lake.json'), 'utf8');
  writeFileSync(join(data, 'lake.json'), JSON.stringify({ ...JSON.parse(note), importing: true }));
  await expect(openHarness(data, sandbox.url)).rejects.toThrow('ringneck lake import finishes what was interrupted');
  expect(await importIntoLake({ settings, log: silentLog })).toEqual({ file, rows });
  expect(readFileSync(join(data, 'lake.json'), 'utf8')).toBe(note);
  await expect(openHarness(data, sandbox.url)).rejects.toThrow('lies in a lake, study with');

  const harness = await openHarness(data, sandbox.url, { settings });
  expect(await harness.hash()).toEqual(before);
  expect(await harness.backfill({ ...read, refresh: true })).toMatchObject({ state: 'complete' });
  expect(await harness.hash()).toEqual(before);
  expect(await harness.backfill({ from: '2025-03-06', to: '2025-03-06' })).toMatchObject({ state: 'complete' });
  expect(await findBroken(harness.read)).toEqual([]);
  expect(
    await harness.read(`SELECT DISTINCT state FROM sync.coverage_between('2025-03-06', '2025-03-06') WHERE collection = 'sleep'`),
  ).toEqual([['stored']]);
  const out = join(folder, 'out', 'warehouse.duckdb');
  mkdirSync(join(folder, 'out'));
  await harness.commands.lakeExport({ file: out });
  expect(await hashOf(out)).toEqual(await harness.hash());
  const report = await harness.commands.eraseAccount({ name: 'ada' });
  expect(report).toMatchObject({ removed: { 'sync.accounts': 1 }, found: [], unsearched: [] });
  await harness.close();
  const source = await findSource(settings);
  expect(source).toMatchObject({ kind: 'snapshot', path: settings.snapshot, stale: false });
  expect(await withDuckDB(source!.path, connection => rowsOf(connection, 'SELECT DISTINCT user_id FROM nights'))).toEqual([
    { user_id: 'ben' },
  ]);
  expect(readdirSync(data).filter(name => name.startsWith('lake-import'))).toEqual([]);
  await sandbox.close();
});

test.skipIf(!hasLake)('a move that ended after its commit is finished: nothing of the lake has the former name', async () => {
  const sandbox = await startSandbox({ count: 1, from: '2025-03-04', to: '2025-03-05' });
  const data = join(folder, 'moved');
  const settings = readSettings({
    ...{ RINGNECK_DATA: data, RINGNECK_SERVICE_URL: sandbox.url },
    ...lakeSettings('moved', join(folder, 'files of the moved')),
  });
  await initLake(placeOf(settings)!, 'postgres');
  const harness = await openHarness(data, sandbox.url, { settings });
  await harness.add([{ name: 'ada', token: sandbox.people[0]!.token }]);
  await harness.backfill({ from: '2025-03-04', to: '2025-03-05' });
  const noted = () =>
    ['ducklake_file_column_stats', 'ducklake_table_column_stats'].map(table =>
      Number(testPostgres().psql('moved', `SELECT count(*) FROM ${table} WHERE 'ada' IN (min_value, max_value)`)),
    );
  expect(Math.min(...noted())).toBeGreaterThan(0);
  const purging = vi.spyOn(LakeStore.prototype, 'runAsOwner').mockRejectedValue(new Error('killed'));
  await expect(harness.commands.moveAccount({ from: 'ada', to: 'p-017' })).rejects.toThrow(
    'the next command that opens the folder finishes it',
  );
  purging.mockRestore();
  await harness.close();

  const again = await openHarness(data, sandbox.url, { settings });
  expect(await again.read('SELECT user_id FROM sync.accounts')).toEqual([['p-017']]);
  await again.close();
  expect(noted()).toEqual([0, 0]);
  await sandbox.close();
});

test.skipIf(!hasLake)('a key in secret.key is not changed while another machine waits, which has it from its settings', async () => {
  const data = join(folder, 'rotated');
  const settings = readSettings({
    ...{ RINGNECK_DATA: data, RINGNECK_SERVICE_URL: 'http://127.0.0.1:9' },
    ...lakeSettings('rotated', join(folder, 'files of the rotated')),
  });
  await initLake(placeOf(settings)!, 'postgres');
  const harness = await openHarness(data, 'http://127.0.0.1:9', { settings });
  new Secrets({ folder: data, address: 'http://127.0.0.1:9' }).put('ada', 'a-token');
  const note = (host: string, of: string) =>
    testPostgres().psql(
      'rotated',
      `INSERT INTO ringneck.machines (place, host, folder, pid, version, since, seen) VALUES ('${of}', '${host}', '${of}', 1, '0', now(), now())`,
    );
  note(hostname(), data);
  expect(await harness.commands.rotateKey({})).toEqual({ key: 'secret.key', unreadable: [], finished: false });
  const key = readFileSync(join(data, 'secret.key'), 'utf8');
  note('the-other', '/srv/ring');
  await expect(harness.commands.rotateKey({})).rejects.toThrow('end ringneck up on the-other, half a minute later run this again');
  expect(readFileSync(join(data, 'secret.key'), 'utf8')).toBe(key);
  await harness.close();
});
