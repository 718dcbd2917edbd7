import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { filesIn, hashParquet, hashWarehouse, listTables, manifestOf, openExporting, read } from './exporting.ts';

const { folder, file, exported } = await openExporting();
const parquet = join(folder, 'parquet');

test('what the Parquet files hold is what the warehouse holds, table by table', async () => {
  const { code, stdout, stderr } = await exported('--out', parquet, '--json');
  expect(code, stderr).toBe(0);
  const tables = await listTables(file);
  const rows = tables.reduce((sum, [, count]) => sum + count, 0);
  const files = filesIn(parquet);
  expect(JSON.parse(stdout)).toEqual({
    out: parquet,
    format: 'parquet',
    files: Object.keys(files).length,
    rows,
    bytes: Object.keys(files).reduce((sum, path) => sum + statSync(join(parquet, path)).size, 0),
    skipped: 0,
    removed: 0,
  });
  const hashes = await hashWarehouse(file);
  expect(Object.keys(hashes)).toEqual(tables.map(([name]) => name));
  expect(await hashParquet(parquet)).toEqual(hashes);
});

test('a file is a month of a table, sorted, readable by its owner only', async () => {
  expect(readdirSync(join(parquet, 'heart_rate'))).toEqual(['heart_rate-2025-03.parquet', 'heart_rate-2025-04.parquet']);
  expect(readdirSync(join(parquet, 'ring_configuration'))).toEqual(['ring_configuration.parquet']);
  const stress = join(parquet, 'daily_stress/daily_stress-2031-01.parquet');
  expect(await read(':memory:', `SELECT DISTINCT strftime(day, '%Y-%m') FROM '${stress}' WHERE id LIKE 'odd-%'`)).toEqual([['2031-01']]);
  const heart = `SELECT user_id, bpm::INTEGER FROM read_parquet('${parquet}/heart_rate/*-04.parquet')`;
  expect(await read(':memory:', heart)).toEqual(
    [61, 62, 63, 64].flatMap(bpm => [['-zoë', bpm]]).concat([61, 62, 63, 64].map(bpm => ['ann', bpm])),
  );
  expect(statSync(stress).mode & 0o777).toBe(0o600);
  expect(statSync(join(parquet, 'daily_stress')).mode & 0o777).toBe(0o700);
});

test('the types, units and comments are in the file', async () => {
  const path = join(parquet, 'daily_activity_met', readdirSync(join(parquet, 'daily_activity_met'))[0]!);
  const types = await read(':memory:', `SELECT column_name, column_type FROM (DESCRIBE FROM '${path}')`);
  expect(types).toEqual([
    ['sk', 'BIGINT'],
    ['user_id', 'VARCHAR'],
    ['day', 'DATE'],
    ['ts', 'TIMESTAMP'],
    ['utc_offset', 'INTEGER'],
    ['value', 'DOUBLE'],
  ]);
  const month = /\d{4}-\d\d/.exec(path.split('/').at(-1)!)![0];
  const metadata = Object.fromEntries(
    await read(':memory:', `SELECT decode(key), decode(value) FROM parquet_kv_metadata('${path}') WHERE decode(key) NOT LIKE 'comment.%'`),
  );
  expect(metadata).toEqual({
    table: 'daily_activity_met',
    comment: 'met of daily_activity, one row for each sample (2.1)',
    month,
    users: 'all',
    written_by: 'ringneck 0.1.0',
    'unit.utc_offset': 's',
    'unit.value': 'MET',
  });
  expect(manifestOf(parquet).described.heart_rate.columns[3]).toEqual({ name: 'bpm', type: 'BIGINT', comment: 'Heart rate [beats/min]' });
});
