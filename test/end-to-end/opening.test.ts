import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DuckDBInstance } from '@duckdb/node-api';
import { beforeAll, expect, test } from 'vitest';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse, store } from '../support/warehouse.ts';
import { SLEEP } from '../support/wire.ts';

// Whoever has the tool runs the block that the page shows for it, as it stands.
const answers = (tool: string, ...args: string[]) => spawnSync(tool, args).status === 0;
const jar = process.env.DUCKDB_JDBC ?? findJar(join(homedir(), '.m2/repository/org/duckdb/duckdb_jdbc'));
const has = {
  python: answers('python3', '-c', 'import duckdb'),
  duckdb: answers('duckdb', '-version'),
  java: jar !== undefined && answers('javac', '-version'),
  R: answers('Rscript', '-e', 'library(duckdb)'),
};
// There is no package of R's duckdb for Debian.
const demanded = ['python', 'duckdb', 'java'] as const;
const absent = demanded.filter(tool => !has[tool]);
if (absent.length && process.env.DEMAND_TOOLS === '1') throw new Error(`DEMAND_TOOLS=1 demands DuckDB for ${absent.join(', ')}`);

const root = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(join(root, 'docs/opening.md'), 'utf8');
const folder = tempFolder();

beforeAll(async () => {
  const warehouse = await openWarehouse(newPath(folder));
  await store(warehouse, 'sleep', [
    { ...SLEEP, id: 's-1', day: '2025-01-15', average_hrv: 61, type: 'long_sleep' },
    { ...SLEEP, id: 's-2', day: '2025-01-16', average_hrv: 48, type: 'long_sleep' },
    { ...SLEEP, id: 's-3', day: '2025-01-16', average_hrv: 99, type: 'late_nap' },
  ]);
  mkdirSync(join(folder, 'data'));
  await warehouse.snapshot(join(folder, 'data/snapshot.duckdb'), 0o600);
  await warehouse.close();
});

function block(language: string): string {
  const found = [...page.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms'))].map(([, code]) => code!);
  expect(found).toHaveLength(1);
  return found[0]!;
}

const run = (tool: string, ...args: string[]) => execFileSync(tool, args, { cwd: folder, encoding: 'utf8', timeout: 60_000 });

/** What it printed, without the lines of a table. */
const wordsOf = (output: string) =>
  output
    .split('\n')
    .map(line => (line.match(/[\w-]+/g) ?? []).filter(word => /\w/.test(word)))
    .filter(words => words.includes('ann'))
    .map(words => words.slice(words.indexOf('ann')).join(' '));

const NIGHTS = ['ann 2025-01-15 61', 'ann 2025-01-16 48'];

test.skipIf(!has.duckdb)('the line for the DuckDB command line gives the nights', () => {
  expect(wordsOf(run('bash', '-ec', block('sh')))).toEqual(NIGHTS);
});

test.skipIf(!has.python)('the lines for Python give the nights', () => {
  expect(wordsOf(run('python3', '-c', block('python')))).toEqual(NIGHTS);
});

test.skipIf(!has.R)('the lines for R give the nights', () => {
  expect(wordsOf(run('Rscript', '-e', block('r')))).toEqual(NIGHTS);
});

test.skipIf(!has.java)('the lines for Java give the nights', () => {
  writeFileSync(join(folder, 'Nights.java'), block('java'));
  symlinkSync(jar!, join(folder, 'duckdb_jdbc.jar'));
  const [, command] = /`java ([^`]+)`/.exec(page)!;
  expect(wordsOf(run('java', ...command!.split(' ')))).toEqual(NIGHTS);
});

test('the lines for Node give the nights', () => {
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, 'nights.mjs'), block('js'));
  expect(wordsOf(run(process.execPath, 'nights.mjs'))).toEqual(NIGHTS);
});

test('the statements that attach the snapshot to a database give the nights', async () => {
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  const statements = block('sql').replace('data/snapshot.duckdb', join(folder, 'data/snapshot.duckdb'));
  const rows = (await connection.runAndReadAll(statements)).getRowsJson();
  expect(rows.map(row => row.join(' '))).toEqual(NIGHTS);
  connection.closeSync();
  instance.closeSync();
});

test('no block opens the file for writing', () => {
  const blocks = [...page.matchAll(/^```\w+\n(.*?)^```/gms)].map(([, code]) => code!);
  expect(blocks.length).toBe(6);
  expect(blocks.filter(code => !/read[_-]?only/i.test(code))).toEqual([]);
});

const EVERY_VIEW = `
import duckdb
con = duckdb.connect("data/snapshot.duckdb", read_only=True)
views = con.sql("SELECT schema_name, view_name FROM duckdb_views() WHERE NOT internal").fetchall()
for schema, view in views:
    con.sql(f'SELECT * FROM "{schema}"."{view}" LIMIT 1').fetchall()
print(duckdb.__version__, len(views), con.sql("SELECT count(*) FROM duckdb_functions() WHERE NOT internal").fetchall()[0][0])
`;

test.skipIf(!has.python)('the DuckDB of Python here reads every view, and the page says so', () => {
  const [version, views, macros] = run('python3', '-c', EVERY_VIEW).trim().split(' ');
  expect(Number(views)).toBeGreaterThan(0);
  expect(Number(macros)).toBeGreaterThan(0);
  const rows = page.split('\n').filter(line => line.endsWith(' | yes | yes |'));
  const [major, minor] = version!.split('.');
  expect(
    rows.some(row => row.startsWith(`| ${major}.${minor}.`)),
    `docs/opening.md lists DuckDB ${major}.${minor}`,
  ).toBe(true);
});

function findJar(folder: string): string | undefined {
  if (!existsSync(folder)) return undefined;
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(name => /duckdb_jdbc-[\d.]+\.jar$/.test(name));
  const newest = names.sort((a, b) => a.localeCompare(b, 'en', { numeric: true })).at(-1);
  return newest === undefined ? undefined : join(folder, newest);
}
