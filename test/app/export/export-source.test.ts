import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { serveControl } from '../../../src/app/control/serve-control.ts';
import { silentLog } from '../../../src/base/log.ts';
import { openHarness } from '../../support/harness.ts';
import { runHere } from '../../support/run-here.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { openWarehouse, store, withDuckDB } from '../../support/warehouse.ts';
import { STRESS } from '../../support/wire.ts';
import { filesIn, manifestOf, read } from './exporting.ts';

const folder = tempFolder();

test('an empty warehouse gives the columns, says so, and is no failure', async () => {
  const empty = join(folder, 'empty');
  await (await openWarehouse(join(empty, 'warehouse.duckdb'))).close();
  const out = join(folder, 'of-empty');
  const { code, stdout, stderr } = await runHere(['export', '--format', 'csv', '--out', out, '--table', 'heart_rate'], {
    env: { RINGNECK_DATA: empty },
  });
  expect([code, stderr]).toEqual([0, 'no rows: the files hold only the names of the columns\n']);
  expect(stdout).toBe(`${out}: 0 rows in 1 file, 1 kB\n`);
  expect(readFileSync(join(out, 'heart_rate/heart_rate.csv'), 'utf8')).toBe('\ufeffuser_id,ts,utc_offset,bpm,source,fetched_at\r\n');
  const none = await runHere(['export', '--out', join(folder, 'none')], { env: { RINGNECK_DATA: join(folder, 'nowhere') } });
  expect([none.code, none.stdout]).toEqual([2, '']);
  expect(none.stderr).toContain(`there is no warehouse in ${join(folder, 'nowhere')}: to begin here, `);
});

test('while somebody owns the folder the export is of a fresh snapshot', async () => {
  const owned = join(folder, 'owned');
  const harness = await openHarness(owned, 'http://127.0.0.1:9');
  await store(harness.app.warehouse, 'daily_stress', [STRESS]);
  const control = await serveControl({ folder: owned, commands: harness.commands, log: silentLog });
  const out = join(folder, 'of-owned');
  const { code, stderr } = await runHere(['export', '--out', out], { env: { RINGNECK_DATA: owned } });
  // How far it is, is told after five seconds, which a busy machine may take.
  expect([code, stderr.replaceAll(/^\d+\/\d+ files, .*\n/gm, '')]).toEqual([0, '']);
  expect(await read(':memory:', `SELECT user_id, id FROM '${out}/daily_stress/*.parquet'`)).toEqual([['ann', STRESS.id]]);
  expect(manifestOf(out).source.kind).toBe('snapshot');
  await control.close();
});

test('a view of a received file reads no file outside the export', async () => {
  const received = join(folder, 'received');
  const key = join(folder, 'id_rsa');
  writeFileSync(key, 'the private key');
  mkdirSync(received, { mode: 0o700 });
  await withDuckDB(join(received, 'snapshot.duckdb'), connection =>
    connection.run(`CREATE TABLE daily_stress AS SELECT 'ann' AS user_id, DATE '2025-03-01' AS day;
      CREATE VIEW vo2_max AS SELECT 'ann' AS user_id, DATE '2025-03-01' AS day, (SELECT content FROM read_text('${key}')) AS k`),
  );
  const out = join(folder, 'of-received');
  for (const format of ['csv', 'parquet', 'ndjson']) {
    const { code, stdout, stderr } = await runHere(['export', '--format', format, '--out', join(out, format)], {
      env: { RINGNECK_DATA: received },
    });
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toBe(
      `ringneck: vo2_max cannot be read: Permission Error: Cannot access file "${key}" - file system operations are disabled by configuration\n`,
    );
    expect(filesIn(join(out, format))).not.toHaveProperty(`vo2_max/vo2_max.${format}`);
  }
  const { code, stderr } = await runHere(['export', '--out', join(out, 'rest'), '--table', 'daily_stress'], {
    env: { RINGNECK_DATA: received },
  });
  expect([code, stderr]).toEqual([0, '']);
  expect(Object.keys(filesIn(join(out, 'rest')))).toEqual(['daily_stress/daily_stress-2025-03.parquet']);
});

const MANIFEST_OF_NAMES = {
  ringneck_export: 1,
  format: 'ndjson',
  tables: ['names'],
  users: null,
  from: null,
  to: null,
  written_by: { ringneck: '0.1.0', duckdb: 'v1.5.5' },
  source: { kind: 'snapshot', at: '2025-06-01T00:00:00Z' },
  finished_at: null,
  described: {},
  files: [],
};

test('a view of a received file lists no names behind a link in the export’s folder', async () => {
  const received = join(folder, 'with-link');
  const home = join(folder, 'home');
  for (const path of [received, home]) mkdirSync(path, { mode: 0o700 });
  writeFileSync(join(home, 'id_rsa'), 'the private key');
  const out = join(received, 'export');
  await withDuckDB(join(received, 'snapshot.duckdb'), connection =>
    connection.run(`CREATE VIEW names AS SELECT filename FROM read_text(['${out}/*/id*', '${out}/*/*/id*'])`),
  );
  for (const link of [join(out, 'link'), join(out, 'names', 'link')]) {
    mkdirSync(dirname(link), { recursive: true, mode: 0o700 });
    // As an export of it would have left the folder.
    writeFileSync(join(out, 'export.json'), JSON.stringify(MANIFEST_OF_NAMES));
    symlinkSync(home, link);
    expect(await runHere(['export', '--format', 'ndjson', '--out', out, '--table', 'names'], { env: { RINGNECK_DATA: received } })).toEqual(
      {
        code: 2,
        stdout: '',
        stderr: `ringneck: ${link} is a link, and what it points to may not be an export: remove the link, or export into another folder\n`,
      },
    );
    rmSync(link);
  }
});
