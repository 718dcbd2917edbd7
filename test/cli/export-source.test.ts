import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openDoor } from '../../src/control/open-door.ts';
import { silentLog } from '../../src/log.ts';
import { openHouse } from '../support/house.ts';
import { ringneck } from '../support/ringneck.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { openWarehouse, store } from '../support/warehouse.ts';
import { STRESS } from '../support/wire.ts';
import { manifestOf, read } from './exporting.ts';

const folder = tempFolder();

test('an empty warehouse gives the columns, says so, and is no failure', async () => {
  const empty = join(folder, 'empty');
  await (await openWarehouse(join(empty, 'warehouse.duckdb'))).close();
  const out = join(folder, 'of-empty');
  const { code, stdout, stderr } = await ringneck(['export', '--format', 'csv', '--out', out, '--table', 'heart_rate'], {
    env: { RINGNECK_DATA: empty },
  });
  expect([code, stderr]).toEqual([0, 'no rows: the files hold only the names of the columns\n']);
  expect(stdout).toBe(`${out}: 0 rows in 1 file, 1 kB\n`);
  expect(readFileSync(join(out, 'heart_rate/heart_rate.csv'), 'utf8')).toBe('\ufeffuser_id,ts,utc_offset,bpm,source,fetched_at\r\n');
  const none = await ringneck(['export', '--out', join(folder, 'none')], { env: { RINGNECK_DATA: join(folder, 'nowhere') } });
  expect([none.code, none.stdout]).toEqual([1, '']);
  expect(none.stderr).toContain('run a backfill first');
});

test('while somebody owns the folder the export is of a fresh snapshot', async () => {
  const owned = join(folder, 'owned');
  const house = await openHouse(owned, 'http://127.0.0.1:9');
  await store(house.owner.warehouse, 'daily_stress', [STRESS]);
  const door = await openDoor({ folder: owned, operations: house.operations, log: silentLog });
  const out = join(folder, 'of-owned');
  const { code, stderr } = await ringneck(['export', '--out', out], { env: { RINGNECK_DATA: owned } });
  expect([code, stderr]).toEqual([0, '']);
  expect(await read(':memory:', `SELECT user_id, id FROM '${out}/daily_stress/*.parquet'`)).toEqual([['ann', STRESS.id]]);
  expect(manifestOf(out).source.kind).toBe('snapshot');
  await door.close();
});
