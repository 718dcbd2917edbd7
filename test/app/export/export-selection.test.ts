import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { ExportRequest } from '../../../src/app/export/request.ts';
import { withDuckDB } from '../../support/warehouse.ts';
import { filesIn, manifestOf, openExporting, read } from './exporting.ts';

const { folder, file, exported, exportHere } = await openExporting();

test('only some people and days', async () => {
  const out = join(folder, 'some');
  await exportHere(out, { tables: ['daily_stress', 'heart_rate'], users: ['ann'], from: '2031-01-12', to: '2031-01-14' });
  expect(
    await read(
      ':memory:',
      `SELECT DISTINCT user_id, min(day)::VARCHAR, max(day)::VARCHAR FROM read_parquet('${out}/daily_stress/*') GROUP BY ALL`,
    ),
  ).toEqual([['ann', '2031-01-12', '2031-01-14']]);
  // Nothing in the range: the columns all the same.
  expect(await read(':memory:', `SELECT count(*)::INTEGER FROM '${out}/heart_rate/heart_rate.parquet'`)).toEqual([[0]]);
  const last = join(folder, 'last-minute');
  await exportHere(last, { format: 'ndjson', tables: ['heart_rate'], from: '2025-03-31', to: '2025-03-31' });
  expect(readFileSync(join(last, 'heart_rate/heart_rate-2025-03.ndjson'), 'utf8').trimEnd().split('\n')).toHaveLength(2);
});

test('of weeks those that have a day in the range are exported, and what has no days is named as whole', async () => {
  await withDuckDB(file, connection =>
    connection.run(
      `CREATE VIEW weeks AS SELECT 'ann' AS user_id, unnest([DATE '2025-03-03', DATE '2025-03-10', DATE '2025-03-17']) AS week`,
    ),
  );
  const WHOLE = 'exported whole, whatever the days, because they have none: ring_configuration';
  const weeksIn = async (out: string) => (await read(':memory:', `SELECT week::VARCHAR FROM '${out}/weeks/weeks.parquet'`)).flat();
  const one = join(folder, 'one-week');
  const days = ['--from', '2025-03-10', '--to', '2025-03-16'];
  const { code, stderr } = await exported('--out', one, '--table', 'weeks', '--table', 'ring_configuration', ...days);
  expect([code, stderr]).toEqual([0, `${WHOLE}\n`]);
  expect(await weeksIn(one)).toEqual(['2025-03-10']);
  expect(await read(':memory:', `SELECT count(*)::INTEGER FROM '${one}/ring_configuration/*.parquet'`)).toEqual([[50]]);

  const tables = ['ring_configuration', 'weeks'];
  const notes: string[] = [];
  const three = join(folder, 'three-weeks');
  await exportHere(three, { tables, from: '2025-03-09', to: '2025-03-17' }, notes);
  expect(await weeksIn(three)).toEqual(['2025-03-03', '2025-03-10', '2025-03-17']);
  await exportHere(join(folder, 'all-weeks'), { tables }, notes);
  expect(notes).toEqual([WHOLE]);
  await withDuckDB(file, connection => connection.run('DROP VIEW weeks'));
});

test('a table is found however its name is written, and it is the same export', async () => {
  const out = join(folder, 'spelled');
  expect(await exportHere(out, { tables: ['META', 'SLEEP', 'main.sleep'] })).toMatchObject({ skipped: 0 });
  expect(readdirSync(out).sort()).toEqual(['export.json', 'sleep', 'sync.meta']);
  const { files } = manifestOf(out);
  expect(await exportHere(out, { tables: ['sleep', 'sync.meta'] })).toMatchObject({ files: files.length, skipped: files.length });
});

test('views, a ledger table and a table of one’s own are exported by name, each as one file', async () => {
  await withDuckDB(file, async connection => {
    await connection.run(`CREATE VIEW stressed AS SELECT user_id, day, id FROM daily_stress WHERE user_id = 'ann'`);
    await connection.run(`CREATE TABLE "mine/own" AS SELECT 1 AS one`);
  });
  const out = join(folder, 'views');
  await exportHere(out, { tables: ['stressed', 'sync.meta'] });
  expect(Object.keys(filesIn(out))).toEqual(['stressed/stressed.parquet', 'sync.meta/sync.meta.parquet']);
  await expect(exportHere(join(folder, 'own'), { tables: ['mine/own'] })).rejects.toThrow('the name "mine/own" cannot be that of a file');
  await withDuckDB(file, connection => connection.run('DROP VIEW stressed; DROP TABLE "mine/own"'));
});

test.each<[string, Partial<ExportRequest>, RegExp]>([
  ['an unknown table', { tables: ['slep'] }, /^there is no table or view slep \(did you mean sleep\?\): there are .*sleep_hrv/],
  ['an unknown table in capitals', { tables: ['SLEEEP'] }, /^there is no table or view SLEEEP \(did you mean sleep\?\)/],
  ['an unknown person', { users: ['bob'] }, /^there is no account bob: there are -zoë, ann$/],
  ['one person’s part of what knows nobody', { users: ['ann'], tables: ['sync.routes'] }, /^sync\.routes has no user_id/],
])('%s is refused, and no folder is made', async (_, request, message) => {
  const out = join(folder, 'refused');
  await expect(exportHere(out, request)).rejects.toMatchObject({ name: 'UsageError', message: expect.stringMatching(message) });
  expect(existsSync(out)).toBe(false);
});

test('days that end before they begin are refused', async () => {
  const ended = await exported('--out', join(folder, 'refused'), '--from', '2025-02-01', '--to', '2025-01-01');
  expect(ended).toEqual({ code: 2, stdout: '', stderr: 'ringneck: --from 2025-02-01 is after --to 2025-01-01\n' });
});
