import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { MAIN, type Running, ringneck, startRingneck } from '../support/ringneck.ts';
import { runHere } from '../support/run-here.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';
import { openWarehouse, store } from '../support/warehouse.ts';
import { isWhole } from '../support/whole.ts';
import { STRESS } from '../support/wire.ts';

const folder = tempFolder();
const data = join(folder, 'data');
const env = { RINGNECK_DATA: data };
const tmp = join(folder, 'tmp');
/** Where processes of queries have their folders to themselves. */
const private_ = { ...env, TMPDIR: tmp };
mkdirSync(tmp);
beforeAll(async () => {
  const warehouse = await openWarehouse(join(data, 'warehouse.duckdb'));
  await store(warehouse, 'daily_stress', [STRESS]);
  await warehouse.close();
});

const sql = (query: string, ...options: string[]) => runHere(['sql', query, ...options], { env });

/** The process of a query, once it has the warehouse open. */
async function processOf({ process: { pid } }: Running): Promise<number> {
  let query = 0;
  await until('the query has the warehouse open', () => {
    query = Number(spawnSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' }).stdout);
    return query > 0 && spawnSync('bash', ['-c', `ls -l /proc/${query}/fd | grep -q warehouse.duckdb`]).status === 0;
  });
  return query;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

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

test('a plan is written in its lines as a table, and as one value to programs', async () => {
  expect((await sql('EXPLAIN SELECT 1')).stdout).toMatch(/^┌─+┐\n│ +PROJECTION +│\n[^\\]*│\n└─+┘\n$/);
  const [row] = JSON.parse((await sql('EXPLAIN SELECT 1', '--format', 'json')).stdout);
  expect(row).toEqual({ explain_key: 'physical_plan', explain_value: expect.stringMatching(/^┌─+┐\n│ +PROJECTION +│\n/) });
  // Somebody's own text under these names does nothing to a terminal either.
  const faked = await sql(`SELECT 1 AS explain_key, 'a' || chr(27) || '[2J' || chr(10) || 'b' AS explain_value`);
  expect(faked.stdout).toBe('a\\u001b[2J\nb\n');
});

test('CSV has the values as they are, formulas too, and --help says so', async () => {
  expect((await sql(`SELECT '=1+1' AS a, '-2' AS b`, '--format', 'csv')).stdout).toBe('a,b\n=1+1,-2\n');
  const { stdout } = await ringneck(['sql', '--help']);
  expect(stdout.replace(/\s+/g, ' ')).toContain(
    'csv: texts as they are, also those that a spreadsheet takes for a formula; `ringneck export` marks them',
  );
});

test.each(['-- One?\nSELECT 1 AS one', '--one=two?\nSELECT 1 AS one'])('a query may begin with a remark: %j', async query => {
  expect(await sql(query, '--format', 'csv')).toMatchObject({ code: 0, stdout: 'one\n1\n' });
});

test.each([
  [['SELECT 1', '--fromat', 'csv'], "ringneck: unknown option '--fromat': ringneck sql --help shows those there are\n"],
  [['--fromat=csv', 'SELECT 1'], "ringneck: unknown option '--fromat=csv': ringneck sql --help shows those there are\n"],
  [['-j'], "ringneck: unknown option '-j': ringneck sql --help shows those there are\n"],
  [['SELECT', '1'], 'ringneck: a query is one argument: put it in quotes\n'],
])('%j is wrong usage', async (args, stderr) => {
  expect(await runHere(['sql', ...args], { env })).toMatchObject({ code: 2, stderr });
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
  // 190 MB of text, or 75.
  const [rows, least, mostKb] = isWhole ? [3_000_000, 150_000_000, 400_000] : [1_200_000, 70_000_000, 220_000];
  const query = `SELECT i, 'some text that makes a row long ' || i AS text FROM range(${rows}) t(i)`;
  const script = `"$0" "$1" sql "$2" --format csv | head -1; echo "\${PIPESTATUS[0]}"`;
  const left = spawnSync('bash', ['-c', script, process.execPath, MAIN, query], { env: { ...process.env, ...env }, encoding: 'utf8' });
  expect([left.stdout, left.stderr]).toEqual(['i,text\n0\n', '']);

  if (!existsSync('/usr/bin/time')) return;
  const timed = spawnSync('/usr/bin/time', ['-f', '%M', process.execPath, MAIN, 'sql', query, '--format', 'json'], {
    env: { ...process.env, ...env },
    encoding: 'utf8',
    maxBuffer: 1024 * 1024 * 1024,
  });
  expect(timed.stdout.length).toBeGreaterThan(least);
  expect(Number(timed.stderr.trim())).toBeLessThan(mostKb);
});

test('an output that cannot take the result is one line and exit code 1', () => {
  if (!existsSync('/dev/full')) return;
  const full = spawnSync('bash', ['-c', '"$0" "$1" sql "SELECT 1" > /dev/full', process.execPath, MAIN], {
    env: { ...process.env, ...env },
    encoding: 'utf8',
  });
  expect([full.status, full.stderr]).toEqual([1, 'ringneck: the result cannot be written: ENOSPC: no space left on device, write\n']);
});

const ENDLESS = 'SELECT count(*) FROM range(100000000) a, range(100000000) b WHERE a.range * b.range % 7 = 3';

test('Ctrl-C ends a long query with 130, and one that writes at the end of a line', async () => {
  const running = startRingneck(['sql', ENDLESS], { env: private_ });
  await processOf(running);
  running.kill('SIGINT');
  expect(await running.end()).toEqual({ code: 130, stdout: '', stderr: 'ringneck: interrupted\n' });

  const writing = startRingneck(['sql', 'SELECT i, repeat(i::VARCHAR, 9) AS t FROM range(3000000000) t(i)', '--format', 'json'], {
    env: private_,
  });
  await writing.line();
  writing.kill('SIGINT');
  const { code, stdout, stderr } = await writing.end();
  expect([code, stderr]).toEqual([130, 'ringneck: interrupted\n']);
  expect(stdout.slice(-3)).toBe('},\n');
  expect(readdirSync(tmp)).toEqual([]);
});

test('a query whose process is killed is told in one line', async () => {
  const running = startRingneck(['sql', ENDLESS], { env: private_ });
  process.kill(await processOf(running), 'SIGKILL');
  expect(await running.end()).toEqual({
    code: 1,
    stdout: '',
    stderr: 'ringneck: the query ended its own process (SIGKILL); warehouse and pipeline are not concerned\n',
  });
  expect(readdirSync(tmp)).toEqual([]);
});

test('when the command is killed its query ends too, and leaves nothing behind', async () => {
  const running = startRingneck(['sql', ENDLESS], { env: private_ });
  const query = await processOf(running);
  running.kill('SIGKILL');
  await running.end();
  await until('its process and folder are gone', () => !isAlive(query) && readdirSync(tmp).length === 0);
});

test('the process of a query has none of our settings, another home and an empty folder', async () => {
  if (!existsSync('/proc/self/environ')) return;
  const running = startRingneck(['sql', ENDLESS], {
    env: { ...private_, RINGNECK_SECRET_KEY: 'a key that is secret', TZ: 'Asia/Tokyo' },
  });
  const query = await processOf(running);
  const names = readFileSync(`/proc/${query}/environ`, 'utf8')
    .split('\0')
    .map(entry => entry.split('=')[0]!);
  expect(names.filter(name => !/^(TZ|LANG|LC_ALL|LD_LIBRARY_PATH|HOME|TMPDIR|NODE_CHANNEL_.*)?$/.test(name))).toEqual([]);
  const cwd = readlinkSync(`/proc/${query}/cwd`);
  expect(cwd.startsWith(tmp)).toBe(true);
  expect(readdirSync(cwd)).toEqual([]);
  running.kill('SIGINT');
  await running.end();
});

test('a query is bounded in memory and time', async () => {
  const time = await sql(ENDLESS, '--timeout', '1');
  expect(time).toEqual({ code: 1, stdout: '', stderr: 'ringneck: the query was stopped after 1 s: --timeout allows more\n' });
  const memory = await sql('SELECT max(x) FROM (SELECT DISTINCT hash(i)::VARCHAR AS x FROM range(3000000) t(i))', '--memory', '64MB');
  expect([memory.code, memory.stdout]).toEqual([1, '']);
  expect(memory.stderr).toMatch(/^ringneck: Out of Memory Error: .* \(--memory allows more than 64MB\)\n$/);
  expect(await sql('SELECT 1', '--memory', 'lots')).toMatchObject({
    code: 2,
    stderr: `ringneck: option '--memory <size>' argument 'lots' is invalid. expected a size of at least 32MiB, as 500MB or 4GB\n`,
  });
  expect(await sql('SELECT 1', '--timeout', '0')).toMatchObject({ code: 2 });
});

test('nothing is left in the folder', () => {
  expect(readdirSync(data).sort()).toEqual(['warehouse.duckdb', 'warehouse.duckdb.handover']);
});

test('a file that is no warehouse is refused in one line', async () => {
  const broken = join(folder, 'broken');
  mkdirSync(broken);
  writeFileSync(join(broken, 'warehouse.duckdb'), 'this is no database');
  const { code, stdout, stderr } = await runHere(['sql', 'SELECT 1'], { env: { RINGNECK_DATA: broken } });
  expect([code, stdout, stderr.split('\n').length]).toEqual([1, '', 2]);
  expect(stderr).toContain(`cannot open ${join(broken, 'warehouse.duckdb')}`);
});

test('a data folder that cannot be made or written is one line', async () => {
  const file = join(folder, 'file');
  writeFileSync(file, '');
  expect(await runHere(['account', 'add', 'ada'], { env: { RINGNECK_DATA: file }, input: 'token' })).toEqual({
    code: 1,
    stdout: '',
    stderr: `ringneck: cannot make the folder ${file}: EEXIST: file already exists, mkdir '${file}'\n`,
  });
  // To others than root a folder without the right to write says the same.
  if (process.getuid?.() !== 0) return;
  const mounted = join(folder, 'read-only');
  mkdirSync(mounted);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'ro,size=1m,mode=700', 'tmpfs', mounted], { stdio: 'ignore' });
  } catch {
    // A container without the right to mount.
    return;
  }
  try {
    const { code, stdout, stderr } = await ringneck(['account', 'add', 'ada'], { env: { RINGNECK_DATA: mounted }, input: 'token' });
    expect([code, stdout, stderr.split('\n').length]).toEqual([1, '', 2]);
    expect(stderr).toContain('Read-only file system');
  } finally {
    execFileSync('umount', [mounted]);
  }
});
