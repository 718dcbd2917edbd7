import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, test } from 'vitest';
import { leaveHandover, takeHandover } from '../../src/warehouse/handover.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse, rows, store, withDuckDB } from '../support/warehouse.ts';

const folder = tempFolder();

const STRESS = { id: 's-1', day: '2025-02-03', stress_high: 5400, recovery_high: 3600, day_summary: 'stressful' };
const SELECT = `SELECT user_id, id, day, stress_high, recovery_high, day_summary FROM daily_stress`;

const kept = (path: string) => JSON.parse(readFileSync(`${path}.handover`, 'utf8'));
const closed = async (path: string) => (await openWarehouse(path)).close();
const hasNights = (path: string) =>
  withDuckDB(
    path,
    async connection => (await connection.runAndReadAll(`SELECT 1 FROM duckdb_views() WHERE view_name = 'nights'`)).getRows().length === 1,
  );

test('what the last process found in a file that nobody has changed since is not looked for again', async () => {
  const path = newPath(folder);
  await closed(path);
  const left = kept(path);
  await withDuckDB(path, connection => connection.run('DROP VIEW nights'));
  // As if nobody had.
  leaveHandover(path, left);
  await closed(path);
  expect(await hasNights(path)).toBe(false);
});

test('a file that somebody has changed is looked at, and what is missing is made', async () => {
  const path = newPath(folder);
  await closed(path);
  await withDuckDB(path, connection => connection.run('DROP VIEW nights'));
  await closed(path);
  expect(await hasNights(path)).toBe(true);
});

test('a handover that cannot be removed is told with what to do', async () => {
  const path = newPath(folder);
  await closed(path);
  rmSync(`${path}.handover`);
  mkdirSync(`${path}.handover`);
  await expect(openWarehouse(path)).rejects.toThrow(
    new RegExp(`handover cannot be removed \\(.+\\): make ${dirname(path)} writable for the user who runs ringneck$`),
  );
});

test.each([
  ['made by other declarations', (text: string) => text.replace(/"hash":"[^"]+"/, '"hash":"of others"')],
  ['that is cut off', (text: string) => text.slice(0, 100)],
  ['of an earlier version', (text: string) => text.replace(/"schema":/, '"was":')],
])('a handover %s is not believed', async (_, change) => {
  const path = newPath(folder);
  await closed(path);
  const left = kept(path);
  await withDuckDB(path, connection => connection.run('DROP VIEW nights'));
  leaveHandover(path, left);
  writeFileSync(`${path}.handover`, change(readFileSync(`${path}.handover`, 'utf8')));
  await closed(path);
  expect(await hasNights(path)).toBe(true);
});

test('what somebody changes while the file is waited for makes a handover void', async () => {
  const path = newPath(folder);
  await closed(path);
  const tell = takeHandover(path);
  expect(tell()).toMatchObject({ schema: { columns: { 'sync.meta': ['key', 'value'] } } });
  await withDuckDB(path, connection => connection.run('CREATE TABLE theirs (i INTEGER)'));
  expect(tell()).toBeUndefined();
});

test('where columns lie in another order than declared, values reach their own after each opening', async () => {
  const path = newPath(folder);
  await closed(path);
  await withDuckDB(path, connection => connection.run('ALTER TABLE daily_stress DROP COLUMN stress_high'));
  await closed(path);
  const warehouse = await openWarehouse(path);
  await store(warehouse, 'daily_stress', [STRESS]);
  expect(await rows(warehouse, SELECT)).toEqual([
    { user_id: 'ann', id: 's-1', day: '2025-02-03', stress_high: 5400, recovery_high: 3600, day_summary: 'stressful' },
  ]);
  await warehouse.close();
  expect(kept(path).schema.columns.daily_stress.at(-1)).toBe('stress_high');
});
