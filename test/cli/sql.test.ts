import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { tempFolder } from '../support/temp-folder.ts';
import { openWarehouse, store } from '../support/warehouse.ts';
import { STRESS } from '../support/wire.ts';
import { MAIN, ringneck, startRingneck } from './ringneck.ts';

const folder = tempFolder();
const data = join(folder, 'data');
const env = { RINGNECK_DATA: data };
beforeAll(async () => {
  const warehouse = await openWarehouse(join(data, 'warehouse.duckdb'));
  await store(warehouse, 'daily_stress', [STRESS]);
  await warehouse.close();
});

const sql = (query: string, ...options: string[]) => ringneck(['sql', query, ...options], { env });

test('the four formats, byte for byte', async () => {
  const query = "SELECT user_id, day, day_summary, day_summary = 'x' AS odd FROM daily_stress";
  const written = async (format: string) => (await sql(query, '--format', format)).stdout;
  expect(await written('csv')).toBe('user_id,day,day_summary,odd\nann,2025-01-15,normal,false\n');
  expect(await written('json')).toBe('[{"user_id":"ann","day":"2025-01-15","day_summary":"normal","odd":false}]\n');
  expect(await written('ndjson')).toBe('{"user_id":"ann","day":"2025-01-15","day_summary":"normal","odd":false}\n');
  expect((await sql(query)).stdout).toBe(
    'user_id  day         day_summary  odd\n───────  ──────────  ───────────  ─────\nann      2025-01-15  normal       false\n',
  );
});

test.each([
  ['SELEC 1', 'Parser Error: syntax error at or near "SELEC" (line 1, at "SELEC 1")'],
  ['SELECT *\nFROM slep', 'Catalog Error: Table with name slep does not exist! Did you mean "sleep"? (line 2, at "slep")'],
  [';', 'there is no SQL statement to run'],
])('%j is refused in one line', async (query, line) => {
  expect(await sql(query)).toEqual({ code: 1, stdout: '', stderr: `ringneck: ${line}\n` });
});

test.each(['DELETE FROM daily_stress', `SELECT * FROM read_csv('/etc/passwd')`])('%s is refused', async query => {
  const { code, stdout, stderr } = await sql(query);
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toMatch(/^ringneck: \w+( \w+)* Error: .*\n$/);
});

test('an error in the middle of a result ends with 1', async () => {
  const { code, stderr } = await sql(
    `SELECT CASE WHEN i < 100000 THEN '1' ELSE 'x' END::INTEGER AS n FROM range(200000) t(i)`,
    '--format',
    'csv',
  );
  expect(code).toBe(1);
  expect(stderr).toMatch(/^ringneck: Conversion Error: .*\n$/);
});

test('a large result is written as it comes: the process stays small, and a reader may leave', async () => {
  const query = `SELECT i, 'some text that makes a row long ' || i AS text FROM range(3000000) t(i)`;
  const script = `"$0" "$1" sql "$2" --format csv | head -1; echo "\${PIPESTATUS[0]}"`;
  const left = spawnSync('bash', ['-c', script, process.execPath, MAIN, query], { env: { ...process.env, ...env }, encoding: 'utf8' });
  expect([left.stdout, left.stderr]).toEqual(['i,text\n0\n', '']);

  if (!existsSync('/usr/bin/time')) return;
  const timed = spawnSync('/usr/bin/time', ['-f', '%M', process.execPath, MAIN, 'sql', query, '--format', 'json'], {
    env: { ...process.env, ...env },
    encoding: 'utf8',
    maxBuffer: 1024 * 1024 * 1024,
  });
  // 200 MB of text.
  expect(timed.stdout.length).toBeGreaterThan(150_000_000);
  expect(Number(timed.stderr.trim())).toBeLessThan(400_000);
});

test('an output that cannot take the result is one line and exit code 1', () => {
  if (!existsSync('/dev/full')) return;
  const full = spawnSync('bash', ['-c', '"$0" "$1" sql "SELECT 1" > /dev/full', process.execPath, MAIN], {
    env: { ...process.env, ...env },
    encoding: 'utf8',
  });
  expect([full.status, full.stderr]).toEqual([1, 'ringneck: the result cannot be written: ENOSPC: no space left on device, write\n']);
});

test('Ctrl-C ends a long query with 130', async () => {
  const running = await startRingneck(['sql', 'SELECT count(*) FROM range(100000000) a, range(100000) b WHERE a.range + b.range = -1'], {
    env,
  });
  await new Promise(resolve => setTimeout(resolve, 2_000));
  running.kill('SIGINT');
  expect(await running.end()).toEqual({ code: 130, stdout: '', stderr: 'ringneck: interrupted\n' });
});

test('nothing is left in the folder', () => {
  expect(readdirSync(data)).toEqual(['warehouse.duckdb']);
});

test('a file that is no warehouse is refused in one line', async () => {
  const broken = join(folder, 'broken');
  mkdirSync(broken);
  writeFileSync(join(broken, 'warehouse.duckdb'), 'this is no database');
  const { code, stdout, stderr } = await ringneck(['sql', 'SELECT 1'], { env: { RINGNECK_DATA: broken } });
  expect([code, stdout, stderr.split('\n').length]).toEqual([1, '', 2]);
  expect(stderr).toContain(`cannot open ${join(broken, 'warehouse.duckdb')}`);
});

test('a data folder that cannot be made or written is one line', async () => {
  const file = join(folder, 'file');
  writeFileSync(file, '');
  expect(await ringneck(['status'], { env: { RINGNECK_DATA: file } })).toEqual({
    code: 1,
    stdout: '',
    stderr: `ringneck: cannot make the folder ${file}: EEXIST: file already exists, mkdir '${file}'\n`,
  });
  // To others than root a folder without the right to write says the same.
  if (process.getuid?.() !== 0) return;
  const mounted = join(folder, 'read-only');
  mkdirSync(mounted);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'ro,size=1m', 'tmpfs', mounted], { stdio: 'ignore' });
  } catch {
    // A container without the right to mount.
    return;
  }
  try {
    const { code, stdout, stderr } = await ringneck(['status'], { env: { RINGNECK_DATA: mounted } });
    expect([code, stdout, stderr.split('\n').length]).toEqual([1, '', 2]);
    expect(stderr).toContain('Read-only file system');
  } finally {
    execFileSync('umount', [mounted]);
  }
});
