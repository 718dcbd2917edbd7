import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect, test } from 'vitest';
import { resources } from '../../schema/index.ts';
import { exportLine } from '../../src/cli/export/progress.ts';
import type { ExportRequest } from '../../src/cli/export/request.ts';
import { type ExportReport, runExport } from '../../src/cli/export/run.ts';
import { openDoor } from '../../src/control/open-door.ts';
import { silentLog } from '../../src/log.ts';
import { lockFile } from '../../src/warehouse/export/lock.ts';
import type { Warehouse } from '../../src/warehouse/warehouse.ts';
import { openHouse } from '../support/house.ts';
import { below, pick, randomDocument, randomFrom } from '../support/random-documents.ts';
import { hashTables } from '../support/table-hash.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { openWarehouse, store, withDuckDB } from '../support/warehouse.ts';
import { STRESS } from '../support/wire.ts';
import { type Ended, ringneck, startRingneck } from './ringneck.ts';

const folder = tempFolder();
const data = join(folder, 'data');
const file = join(data, 'warehouse.duckdb');
const T = Date.UTC(2025, 2, 31, 23, 59) / 1000;

/** Measurements one minute apart, around the turn of a month. */
const heartRateRows = Array.from({ length: 5 }, (_, i) => ({
  timestamp: new Date((T + 60 * i) * 1000).toISOString(),
  timestamp_unix: (T + 60 * i) * 1000,
  bpm: 60 + i,
  source: 'rest',
}));

const ODD_TEXTS = [
  '=1+1',
  '+49',
  '-5',
  '@SUM(A1)',
  "'quoted",
  'a,b',
  'he said "no"',
  'two\r\nlines',
  'naïve 眠り 😀',
  '',
  ' spaced ',
  '\ttab',
  '4443332221111222',
  '012345',
  '123456789012345',
  '0',
  '12e34',
  '2.10',
  ' 1234567890123456 ',
];

async function fill(warehouse: Warehouse): Promise<void> {
  const random = randomFrom(11);
  for (const userId of ['ann', '-zoë'])
    for (const resource of resources) {
      const documents = Array.from({ length: 25 }, (_, i) => ({
        ...randomDocument(resource, random, `${resource.name}-${i}`),
        ...(resource.dated ? { day: pick(random, ['2024-12-31', '2025-03-30', '2025-03-31', '2025-04-01']) } : {}),
      }));
      await warehouse.storeDocuments({ userId, resource, requestedAt: warehouse.moments.begin(), documents });
      await warehouse.storeHeartRate({
        userId,
        from: T * 1_000_000,
        to: (T + 600) * 1_000_000,
        requestedAt: warehouse.moments.begin(),
        rows: heartRateRows,
      });
    }
  await store(
    warehouse,
    'daily_stress',
    ODD_TEXTS.map((text, i) => ({ ...STRESS, id: `odd-${i}`, day: `2031-01-${10 + i}`, note: text, day_summary: text })),
  );
}

const env = { RINGNECK_DATA: data };
const exported = (...args: string[]): Promise<Ended> => ringneck(['export', ...args], { env });

/** An export in this process. */
function runHere(out: string, request: Partial<ExportRequest> = {}, remarks: string[] = []): Promise<ExportReport> {
  return runExport({
    request: { out, format: 'parquet', tables: null, users: null, from: null, to: null, ...request },
    from: { path: file, kind: 'warehouse', at: '2025-06-01T00:00:00Z' },
    onProgress: () => {},
    onRemark: text => remarks.push(text),
    signal: new AbortController().signal,
  });
}

const read = (path: string, sql: string) =>
  withDuckDB(path, async connection => (await connection.runAndReadAll(sql)).getRows() as unknown[][]);

/** Every file below a folder but the manifest, with its hash. */
function filesIn(out: string): Record<string, string> {
  const paths = readdirSync(out, { recursive: true, encoding: 'utf8' }).filter(path => statSync(join(out, path)).isFile());
  const hash = (path: string) =>
    createHash('sha256')
      .update(readFileSync(join(out, path)))
      .digest('hex');
  return Object.fromEntries(
    paths
      .filter(path => path !== 'export.json')
      .sort()
      .map(path => [path, hash(path)]),
  );
}

/** While an export runs: nothing is read. */
const countFinished = (out: string) =>
  readdirSync(out, { recursive: true, encoding: 'utf8' }).filter(path => path.endsWith('.parquet')).length;

const manifestOf = (out: string) => JSON.parse(readFileSync(join(out, 'export.json'), 'utf8'));

let tables: [name: string, rows: number][];
beforeAll(async () => {
  const warehouse = await openWarehouse(file);
  await fill(warehouse);
  await warehouse.close();
  const names = (await read(
    file,
    `SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main' AND NOT internal ORDER BY table_name`,
  )) as [string][];
  tables = [];
  for (const [name] of names) tables.push([name, Number((await read(file, `SELECT count(*) FROM "${name}"`))[0]![0])]);
});

/** What a folder of Parquet files holds, read with DuckDB alone, as hashes of its tables. */
function hashParquet(out: string): Promise<Record<string, string>> {
  return withDuckDB(':memory:', async connection => {
    for (const name of readdirSync(out)) {
      if (statSync(join(out, name)).isDirectory()) {
        await connection.run(`CREATE TABLE "${name}" AS SELECT * FROM read_parquet('${join(out, name)}/*.parquet')`);
      }
    }
    return hashTables(async sql => (await connection.runAndReadAll(sql)).getRows());
  });
}

/** The tables alone: views over odd values may fail. */
const hashWarehouse = () =>
  withDuckDB(':memory:', async connection => {
    await connection.run(`ATTACH '${file}' AS w (READ_ONLY)`);
    for (const [name] of tables) await connection.run(`CREATE TABLE "${name}" AS FROM w.main."${name}"`);
    return hashTables(async sql => (await connection.runAndReadAll(sql)).getRows());
  });

const parquet = join(folder, 'parquet');

test('what the Parquet files hold is what the warehouse holds, table by table', async () => {
  const { code, stdout, stderr } = await exported('--out', parquet, '--json');
  expect(code, stderr).toBe(0);
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
  const hashes = await hashWarehouse();
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
  await runHere(out, { format: 'csv', tables: ['daily_stress', 'heart_rate'] });
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
  await runHere(out, { format: 'csv', tables: ['stages'] });
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
  const remarks: string[] = [];
  await runHere(join(folder, 'large'), { format: 'csv', tables: ['fits', 'larger'] }, remarks);
  await runHere(join(folder, 'large-parquet'), { tables: ['larger'] }, remarks);
  await withDuckDB(file, connection => connection.run('DROP TABLE fits; DROP TABLE larger'));
  expect(remarks).toEqual(['larger/larger.csv has 1048577 lines: a spreadsheet shows only the first 1048576']);
});

test('the NDJSON is that of `ringneck sql`', async () => {
  const out = join(folder, 'ndjson');
  await runHere(out, { format: 'ndjson', tables: ['sleep_time'] });
  const { stdout } = await ringneck(['sql', 'FROM sleep_time ORDER BY user_id, day, id', '--format', 'ndjson'], { env });
  const lines = (text: string) =>
    text
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line));
  const written = lines(readFileSync(join(out, 'sleep_time/sleep_time.ndjson'), 'utf8'));
  expect(written).toHaveLength(50);
  expect(written).toEqual(lines(stdout));
});

test('only some people and days', async () => {
  const out = join(folder, 'some');
  await runHere(out, { tables: ['daily_stress', 'heart_rate'], users: ['ann'], from: '2031-01-12', to: '2031-01-14' });
  expect(
    await read(
      ':memory:',
      `SELECT DISTINCT user_id, min(day)::VARCHAR, max(day)::VARCHAR FROM read_parquet('${out}/daily_stress/*') GROUP BY ALL`,
    ),
  ).toEqual([['ann', '2031-01-12', '2031-01-14']]);
  // Nothing in the range: the columns all the same.
  expect(await read(':memory:', `SELECT count(*)::INTEGER FROM '${out}/heart_rate/heart_rate.parquet'`)).toEqual([[0]]);
  const last = join(folder, 'last-minute');
  await runHere(last, { format: 'ndjson', tables: ['heart_rate'], from: '2025-03-31', to: '2025-03-31' });
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
  const remarks: string[] = [];
  const three = join(folder, 'three-weeks');
  await runHere(three, { tables, from: '2025-03-09', to: '2025-03-17' }, remarks);
  expect(await weeksIn(three)).toEqual(['2025-03-03', '2025-03-10', '2025-03-17']);
  await runHere(join(folder, 'all-weeks'), { tables }, remarks);
  expect(remarks).toEqual([WHOLE]);
  await withDuckDB(file, connection => connection.run('DROP VIEW weeks'));
});

test('a table is found however its name is written, and it is the same export', async () => {
  const out = join(folder, 'spelled');
  expect(await runHere(out, { tables: ['META', 'SLEEP', 'main.sleep'] })).toMatchObject({ skipped: 0 });
  expect(readdirSync(out).sort()).toEqual(['export.json', 'sleep', 'sync.meta']);
  const { files } = manifestOf(out);
  expect(await runHere(out, { tables: ['sleep', 'sync.meta'] })).toMatchObject({ files: files.length, skipped: files.length });
});

test.runIf(process.platform === 'linux')('a place that takes no folders is refused', async () => {
  expect(await exported('--out', '/proc/ringneck/out')).toEqual({
    code: 1,
    stdout: '',
    stderr: 'ringneck: cannot make the folder /proc/ringneck/out: /proc takes no folders: name another place\n',
  });
});

test('a second run leaves what is right, mends what is not, and follows what changed', async () => {
  const before = filesIn(parquet);
  const again = await runHere(parquet);
  expect(again).toMatchObject({ files: Object.keys(before).length, skipped: Object.keys(before).length, removed: 0 });

  // Somebody damaged one, of the same length, removed one, and cut one.
  const [damaged, removed, cut] = Object.keys(before).filter(path => path.startsWith('sleep/')) as [string, string, string];
  const bytes = readFileSync(join(parquet, damaged));
  bytes[100] = bytes[100]! ^ 1;
  writeFileSync(join(parquet, damaged), bytes);
  rmSync(join(parquet, removed));
  truncateSync(join(parquet, cut), 10);
  writeFileSync(join(parquet, 'notes.txt'), 'mine');
  const mended = await runHere(parquet);
  expect(mended).toMatchObject({ files: Object.keys(before).length, skipped: Object.keys(before).length - 3 });
  const { 'notes.txt': notes, ...files } = filesIn(parquet);
  expect(notes).toBeDefined();
  expect(files).toEqual(before);

  const warehouse = await openWarehouse(file);
  await store(warehouse, 'daily_stress', [{ ...STRESS, id: 'new', day: '2032-02-02' }]);
  await warehouse.close();
  const grown = await runHere(parquet);
  expect(grown).toMatchObject({
    files: Object.keys(before).length + 1,
    skipped: Object.keys(before).length,
    removed: 0,
  });
  expect(Object.keys(filesIn(parquet))).toContain('daily_stress/daily_stress-2032-02.parquet');
  const back = await openWarehouse(file);
  await store(back, 'daily_stress', [], ['new']);
  await back.close();
  const shrunk = await runHere(parquet);
  expect(shrunk).toMatchObject({ files: Object.keys(before).length, skipped: Object.keys(before).length, removed: 1 });
  expect(await hashParquet(parquet)).toEqual(await hashWarehouse());
});

test('an export that was killed, at any moment, is continued to what an undisturbed one gives', async () => {
  const undisturbed = filesIn(parquet);
  delete undisturbed['notes.txt'];
  const total = Object.keys(undisturbed).length;
  const random = randomFrom(5);
  let counted = 0;
  for (let round = 0; counted < 3; round++) {
    expect(round).toBeLessThan(12);
    const out = join(folder, `killed-${round}`);
    const running = await startRingneck(['export', '--out', out], { env });
    while (!existsSync(join(out, 'export.json')) && running.process.exitCode === null) await sleep(5);
    const at = below(random, total);
    while (countFinished(out) < at && running.process.exitCode === null) await sleep(1);
    running.kill('SIGKILL');
    if ((await running.end()).code === 'SIGKILL') counted++;
    // What bears its own name is whole.
    for (const [path, hash] of Object.entries(filesIn(out))) if (path.endsWith('.parquet')) expect(hash).toBe(undisturbed[path]);
    await runHere(out);
    expect(filesIn(out)).toEqual(undisturbed);
    expect(readdirSync(out).filter(name => name.startsWith('.'))).toEqual([]);
    expect(manifestOf(out).finished_at).not.toBeNull();
  }
});

test('Ctrl-C ends with 130 and keeps what is finished', async () => {
  const out = join(folder, 'interrupted');
  const running = await startRingneck(['export', '--out', out], { env });
  while (!existsSync(join(out, 'export.json')) || countFinished(out) < 5) await sleep(1);
  running.kill('SIGINT');
  expect(await running.end()).toMatchObject({ code: 130, stdout: '', stderr: 'ringneck: interrupted\n' });
  expect(Object.keys(filesIn(out)).filter(path => !path.endsWith('.parquet'))).toEqual([]);
  const kept = manifestOf(out).files.filter(({ sha256 }: { sha256: string | null }) => sha256 !== null).length;
  expect(kept).toBeGreaterThanOrEqual(4);
  expect(await runHere(out)).toMatchObject({ skipped: kept });
});

test('a folder that holds anything else, or another export, is refused and left as it is', async () => {
  const strange = join(folder, 'strange');
  mkdirSync(strange);
  writeFileSync(join(strange, 'thesis.txt'), 'mine');
  expect(await exported('--out', strange)).toEqual({
    code: 2,
    stdout: '',
    stderr: `ringneck: --out ${strange} holds thesis.txt and is no export of ours: name a folder that is empty, or not there yet\n`,
  });
  expect(readdirSync(strange)).toEqual(['thesis.txt']);
  writeFileSync(join(strange, 'export.json'), '{"ringneck_export": 2}');
  await expect(runHere(strange)).rejects.toThrow(`${join(strange, 'export.json')} cannot be read`);

  const before = filesIn(parquet);
  expect(await exported('--out', parquet, '--format', 'csv', '--user', 'ann')).toEqual({
    code: 2,
    stdout: '',
    stderr: `ringneck: --out ${parquet} holds another export (format: parquet, not csv; users: all, not ann): name another folder, or remove that one if it has served\n`,
  });
  expect(filesIn(parquet)).toEqual(before);
});

test.each<[string, Partial<ExportRequest>, RegExp]>([
  ['an unknown table', { tables: ['slep'] }, /^there is no table or view slep \(did you mean sleep\?\): there are .*sleep_hrv/],
  ['an unknown table in capitals', { tables: ['SLEEEP'] }, /^there is no table or view SLEEEP \(did you mean sleep\?\)/],
  ['an unknown person', { users: ['bob'] }, /^there is no account bob: there are -zoë, ann$/],
  ['one person’s part of what knows nobody', { users: ['ann'], tables: ['sync.routes'] }, /^sync\.routes has no user_id/],
])('%s is refused, and no folder is made', async (_, request, message) => {
  const out = join(folder, 'refused');
  await expect(runHere(out, request)).rejects.toMatchObject({ name: 'UsageError', message: expect.stringMatching(message) });
  expect(existsSync(out)).toBe(false);
});

test('days that end before they begin are refused', async () => {
  const ended = await exported('--out', join(folder, 'refused'), '--from', '2025-02-01', '--to', '2025-01-01');
  expect(ended).toEqual({ code: 2, stdout: '', stderr: 'ringneck: --from 2025-02-01 is after --to 2025-01-01\n' });
});

test('two exports into one folder: the second is refused and names the first', async () => {
  const unlock = await lockFile(join(parquet, '.export.lock'));
  const { code, stdout, stderr } = await exported('--out', parquet);
  unlock();
  expect([code, stdout]).toEqual([75, '']);
  expect(stderr).toContain(`(PID ${process.pid})`);
  // A lock that a killed export left half made.
  writeFileSync(join(parquet, '.export.lock'), 'half');
  expect(await runHere(parquet)).toMatchObject({ removed: 0 });
});

test('views, a ledger table and a table of one’s own are exported by name, each as one file', async () => {
  await withDuckDB(file, async connection => {
    await connection.run(`CREATE VIEW stressed AS SELECT user_id, day, id FROM daily_stress WHERE user_id = 'ann'`);
    await connection.run(`CREATE TABLE "mine/own" AS SELECT 1 AS one`);
  });
  const out = join(folder, 'views');
  await runHere(out, { tables: ['stressed', 'sync.meta'] });
  expect(Object.keys(filesIn(out))).toEqual(['stressed/stressed.parquet', 'sync.meta/sync.meta.parquet']);
  await expect(runHere(join(folder, 'own'), { tables: ['mine/own'] })).rejects.toThrow('the name "mine/own" cannot be that of a file');
  await withDuckDB(file, connection => connection.run('DROP VIEW stressed; DROP TABLE "mine/own"'));
});

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

test('the line of progress fits the terminal', () => {
  const progress = { files: { done: 3, total: 12 }, rows: { done: 250_000, total: 1_000_000 }, now: 'sleep-2025-03.parquet' };
  expect(exportLine(progress, 100)).toBe('█████░░░░░░░░░░░░░░░ 25%  3/12 files  250,000 rows  sleep-2025-03.parquet');
  expect(exportLine(progress, 40)).toBe('█████░░░░░░░░░░░░░░░ 25%  3/12 files  2');
  expect(exportLine({ files: { done: 0, total: 0 }, rows: { done: 0, total: 0 }, now: 'done' }, 80)).toBe(
    '████████████████████ 100%  done',
  );
});
