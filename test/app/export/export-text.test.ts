import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runHere } from '../../support/run-here.ts';
import { withDuckDB } from '../../support/warehouse.ts';
import { filesIn, ODD_TEXTS, openExporting, read } from './exporting.ts';

const { folder, file, env, exportHere } = await openExporting();

/** RFC 4180 to the letter: CRLF after each record, quotes doubled, and nothing but a separator after a closing one. */
function readStrictCsv(text: string): string[][] {
  const records: string[][] = [];
  let record: string[] = [];
  const field = /"((?:[^"]|"")*)"(,|\r\n)|([^",\r\n]*)(,|\r\n)/y;
  while (field.lastIndex < text.length) {
    const at = field.lastIndex;
    const found = field.exec(text);
    if (!found) throw new Error(`no field of RFC 4180 at ${at}: ${JSON.stringify(text.slice(at, at + 40))}`);
    record.push(found[1] === undefined ? found[3]! : found[1].replaceAll('""', '"'));
    if ((found[2] ?? found[4]) === ',') continue;
    records.push(record);
    record = [];
  }
  expect(record).toEqual([]);
  return records;
}

test('the CSV is UTF-8 with its mark, strict, and holds no formula; what was put before one can be taken away', async () => {
  const out = join(folder, 'csv');
  await exportHere(out, { format: 'csv', tables: ['daily_stress', 'heart_rate'] });
  // Documents are one file; samples are cut, for a spreadsheet takes a million rows.
  expect(Object.keys(filesIn(out))).toEqual([
    'daily_stress/daily_stress.csv',
    'heart_rate/heart_rate-2025-03.csv',
    'heart_rate/heart_rate-2025-04.csv',
  ]);
  expect(readFileSync(join(out, 'heart_rate/heart_rate-2025-03.csv'), 'utf8').replace(/[\d:.-]+ [\d:.]+(?=\r)/g, '…')).toBe(
    "\ufeffuser_id,ts,utc_offset,bpm,source,fetched_at\r\n'-zoë,2025-03-31 23:59:00,0,60,rest,…\r\nann,2025-03-31 23:59:00,0,60,rest,…\r\n",
  );
  const text = readFileSync(join(out, 'daily_stress/daily_stress.csv'), 'utf8');
  expect(text.startsWith('\ufeff')).toBe(true);
  const [header, ...records] = readStrictCsv(text.slice(1)) as [string[], ...string[][]];
  expect(records).toHaveLength(25 + 25 + ODD_TEXTS.length);
  const column = (name: string) => records.map(record => record[header.indexOf(name)]!);
  for (const name of ['user_id', 'id', 'day_summary', 'extra'])
    expect(column(name).filter(cell => /^[=+\-@\t\r\n]/.test(cell))).toEqual([]);
  const odd = records.filter(record => record[header.indexOf('id')]!.startsWith('odd-'));
  const summaries = Object.fromEntries(
    odd.map(record => [record[header.indexOf('id')], record[header.indexOf('day_summary')]!.replace(/^'/, '')]),
  );
  expect(summaries).toEqual(Object.fromEntries(ODD_TEXTS.map((summary, i) => [`odd-${i}`, summary])));
  expect(odd.map(record => record[header.indexOf('day_summary')]).filter(cell => cell!.startsWith("'"))).toEqual([
    "'=1+1",
    "'+49",
    "'-5",
    "'@SUM(A1)",
    "''quoted",
    "'\ttab",
    "'4443332221111222",
    "'012345",
    "'12e34",
    "'2.10",
    "' 1234567890123456 ",
  ]);
  // Numbers are plain, an absent one is nothing.
  for (const name of ['stress_high', 'recovery_high']) for (const cell of column(name)) expect(cell).toMatch(/^(-?\d+)?$/);
});

test('of a text of digits no reader of the CSV makes a number', async () => {
  await withDuckDB(file, connection =>
    connection.run(`CREATE TABLE stages AS SELECT repeat('4', 16) AS sleep_phase_5_min, '0112345' AS class_5_min FROM range(100)`),
  );
  const out = join(folder, 'digits');
  await exportHere(out, { format: 'csv', tables: ['stages'] });
  await withDuckDB(file, connection => connection.run('DROP TABLE stages'));
  expect(await read(':memory:', `SELECT DISTINCT ltrim(COLUMNS(*), '''') FROM read_csv('${out}/stages/stages.csv')`)).toEqual([
    ['4444444444444444', '0112345'],
  ]);
});

test('of a CSV file with more lines than a spreadsheet shows there is a remark, of one with just as many none', async () => {
  await withDuckDB(file, connection =>
    connection.run(
      `CREATE TABLE fits AS SELECT true AS a FROM range(1048575); CREATE TABLE larger AS SELECT true AS a FROM range(1048576)`,
    ),
  );
  const notes: string[] = [];
  await exportHere(join(folder, 'large'), { format: 'csv', tables: ['fits', 'larger'] }, notes);
  await exportHere(join(folder, 'large-parquet'), { tables: ['larger'] }, notes);
  await withDuckDB(file, connection => connection.run('DROP TABLE fits; DROP TABLE larger'));
  expect(notes).toEqual(['larger/larger.csv has 1048577 lines: a spreadsheet shows only the first 1048576']);
});

test('the NDJSON is that of `ringneck sql`', async () => {
  const out = join(folder, 'ndjson');
  await exportHere(out, { format: 'ndjson', tables: ['sleep_time'] });
  const { stdout } = await runHere(['sql', 'FROM sleep_time ORDER BY user_id, day, id', '--format', 'ndjson'], { env });
  const lines = (text: string) =>
    text
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line));
  const written = lines(readFileSync(join(out, 'sleep_time/sleep_time.ndjson'), 'utf8'));
  expect(written).toHaveLength(50);
  expect(written).toEqual(lines(stdout));
});
