import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, inject, onTestFinished, test } from 'vitest';
import { Secrets } from '../../src/base/secrets/secrets.ts';
import { clearFolder } from '../../src/cli/demo/folder.ts';
import { type Ended, ringneck, startRingneck } from '../support/ringneck.ts';
import { runHere } from '../support/run-here.ts';
import { startSandbox } from '../support/sandbox.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { withDuckDB } from '../support/warehouse.ts';

/** Processes whose command line or environment names this, on Linux. */
function processesOf(mark: string): string[] {
  if (!existsSync('/proc/self/environ')) return [];
  return readdirSync('/proc').filter(pid => {
    try {
      if (!/^\d+$/.test(pid) || Number(pid) === process.pid) return false;
      if (/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))) return false;
      return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(mark);
    } catch {
      return false;
    }
  });
}

/** The program as `npm install` lays it, with the packages that it needs beside it. */
function install(): string {
  const modules = join(tempFolder(), 'node_modules');
  cpSync(inject('compiled'), join(modules, 'ringneck'), { recursive: true });
  const ours = fileURLToPath(new URL('../../node_modules', import.meta.url));
  for (const name of readdirSync(ours)) if (!name.startsWith('.')) symlinkSync(join(ours, name), join(modules, name));
  return join(modules, 'ringneck/src/cli/main.js');
}

const SECTIONS =
  /^1\. The service, .*\n {3}http:\/\/127\.0\.0\.1:\d+ {2}ada, ben, .*\n\n2\. Backfill .*\n {3}each has signed in, .*\n {3}[\d,]+ documents and [\d,]+ samples in [\d.]+ s, [\d,]+ requests\n\n3\. Questions\n/;

const demoFolder = tempFolder();
const madeFolder = tempFolder();
let making: Promise<Ended> | undefined;

/** A demo in a folder that was empty, of which each test that needs what it has made gets a copy. */
function makeDemo(): Promise<Ended> {
  making ??= (async () => {
    const env = {
      RINGNECK_SERVICE_URL: 'http://127.0.0.1:9',
      RINGNECK_DATA: '/nowhere',
      RINGNECK_PORT: 'x',
      RINGNECK_QUEUE_URL: 'redis://127.0.0.1:9',
    };
    const ended = await ringneck(['demo', '--no-wait', '--days', '5'], { cwd: demoFolder, env, main: install() });
    cpSync(join(demoFolder, 'data-demo'), madeFolder, { recursive: true });
    return ended;
  })();
  return making;
}

async function placeDemo(folder: string): Promise<void> {
  expect((await makeDemo()).code).toBe(0);
  cpSync(madeFolder, folder, { recursive: true });
}

test('it runs in an empty folder whatever the settings, answers its questions, and leaves a warehouse and no process', async () => {
  const { code, stdout, stderr } = await makeDemo();
  const cwd = demoFolder;
  expect([code, stderr.match(/rror/), stderr.match(/^\{.*/m)]).toEqual([0, null, null]);
  expect(stdout).toMatch(SECTIONS);
  expect(stdout).toContain('The warehouse is data-demo/warehouse.duckdb, a plain DuckDB file.');
  // Installed it has a name of its own, which npx would look for in the registry.
  expect(stdout).toContain('\n   RINGNECK_DATA=data-demo ringneck sql "SELECT');
  expect(stdout).toContain('\n   RINGNECK_DATA=data-demo ringneck console\n');
  expect(stdout.match(/^-- /gm)!.length).toBeGreaterThanOrEqual(3);
  expect(processesOf(cwd)).toEqual([]);

  // As it says at its end.
  const asked = await ringneck(['sql', 'SELECT count(DISTINCT user_id) AS people FROM daily_activity', '--format', 'csv'], {
    cwd,
    env: { RINGNECK_DATA: 'data-demo' },
  });
  expect(asked.stdout).toBe('people\n3\n');

  // A second one starts afresh, and stays when told to.
  const former = readFileSync(join(cwd, 'data-demo', 'secret.key'), 'utf8');
  const second = startRingneck(['demo', '--no-wait', '--days', '2', '--keep'], { cwd });
  let line = '';
  while (!line.includes('Ctrl-C ends them')) line = await second.line();
  expect(second.stdout).toContain('\n   RINGNECK_DATA=data-demo npx ringneck sql "SELECT');
  expect(readFileSync(join(cwd, 'data-demo', 'secret.key'), 'utf8')).not.toBe(former);
  const url = /\((http:\S+)\)/.exec(line)![1]!;
  expect((await fetch(`${url}/openapi.json`)).status).toBe(200);
  const [, page = ''] = /^ {3}(http:\S+)\/enter#[\w-]{43}$/m.exec(second.stdout) ?? [];
  expect(await (await fetch(page)).text()).toContain('<title>Ringneck</title>');
  const status = await ringneck(['status', '--json'], { cwd, env: { RINGNECK_DATA: 'data-demo' } });
  expect(JSON.parse(status.stdout).accounts).toHaveLength(3);
  const third = await ringneck(['demo', '--no-wait'], { cwd });
  expect([third.code, third.stderr]).toEqual([75, expect.stringContaining(`a demo is running (PID ${second.process.pid})`)]);
  second.kill('SIGINT');
  expect((await second.end()).code).toBe(0);
  expect(processesOf(cwd)).toEqual([]);
  await expect(fetch(`${url}/openapi.json`)).rejects.toThrow();
}, 240_000);

test('a folder of that name which no demo made is left alone', async () => {
  const cwd = tempFolder();
  mkdirSync(join(cwd, 'data-demo'));
  writeFileSync(join(cwd, 'data-demo', 'precious'), '');
  expect(await ringneck(['demo'], { cwd })).toEqual({
    code: 2,
    stdout: '',
    stderr: `ringneck: ${join(cwd, 'data-demo')} was not made by a demo: move it away first\n`,
  });
  expect(readdirSync(join(cwd, 'data-demo'))).toEqual(['precious']);
});

test('an account of one’s own in the demo’s folder is left alone, also when only its rows are left', async () => {
  const cwd = tempFolder();
  const sandbox = await startSandbox({ seed: 11, count: 1, from: '2025-01-01', to: '2025-01-02' });
  const env = { RINGNECK_DATA: join(cwd, 'data-demo'), RINGNECK_SERVICE_URL: sandbox.url };
  const refused = {
    code: 2,
    stdout: '',
    stderr: `ringneck: ${join(cwd, 'data-demo')} holds the account myself, which no demo made: move it away first\n`,
  };
  try {
    await placeDemo(join(cwd, 'data-demo'));
    const add = await runHere(['account', 'add', 'myself', '--from', '2025-01-01'], { env, input: sandbox.people[0]!.token });
    expect(add.code, add.stderr).toBe(0);
  } finally {
    await sandbox.close();
  }
  expect(await ringneck(['demo', '--no-wait', '--days', '1'], { cwd })).toEqual(refused);
  expect((await runHere(['account', 'remove', 'myself'], { env })).code).toBe(0);
  expect(await ringneck(['demo', '--no-wait', '--days', '1'], { cwd })).toEqual(refused);
  const { stdout } = await runHere(['sql', `SELECT count(*) AS nights FROM sleep WHERE user_id = 'myself'`, '--format', 'csv'], {
    env,
  });
  expect(Number(stdout.split('\n')[1])).toBeGreaterThan(0);
});

test('whatever else a demo did not make is left alone too, and named', async () => {
  const cwd = tempFolder();
  const folder = join(cwd, 'data-demo');
  const sandbox = await startSandbox({ seed: 11, count: 1, from: '2025-01-01', to: '2025-01-02' });
  onTestFinished(() => sandbox.close());
  const env = { RINGNECK_DATA: folder, RINGNECK_SERVICE_URL: sandbox.url };
  const run = (args: string[], input = '') => runHere(args, { env, input });
  const inWarehouse = (sql: string) => withDuckDB(join(folder, 'warehouse.duckdb'), connection => connection.run(sql));
  const own: [what: string, make: () => unknown][] = [
    // A name that the demo has too.
    ['a token of ada for another service', () => new Secrets({ folder, address: sandbox.url }).put('ada', sandbox.people[0]!.token)],
    ['the removal of ada', () => run(['account', 'remove', 'ada'])],
    ['snapshots', () => run(['snapshot', '--dated'])],
    ['mine', () => run(['export', '--out', join(folder, 'mine'), '--table', 'sleep'])],
    ['my-analysis.sql', () => writeFileSync(join(folder, 'my-analysis.sql'), 'SELECT 1')],
    ['warehouse.duckdb.bak', () => writeFileSync(join(folder, 'warehouse.duckdb.bak'), '')],
    ['the participant zoe', () => inWarehouse(`INSERT INTO participants (user_id) VALUES ('ada'), ('zoe')`)],
    ['the table notes', () => inWarehouse('CREATE TABLE notes (text VARCHAR)')],
    ['the view tired', () => inWarehouse('CREATE VIEW tired AS SELECT 1 AS one')],
  ];
  for (const [what, make] of own) {
    rmSync(folder, { recursive: true, force: true });
    await placeDemo(folder);
    await make();
    const before = readdirSync(folder);
    await expect(clearFolder(folder), what).rejects.toMatchObject({
      exitCode: 2,
      message: `${folder} holds ${what}, which no demo made: move it away first`,
    });
    expect(readdirSync(folder)).toEqual(before);
  }
}, 240_000);

test('what a demo that was killed has left, and the history of the prompt, is in the way of no other', async () => {
  const folder = join(tempFolder(), 'data-demo');
  await clearFolder(folder);
  const left = [
    'accounts.secret.17.0123456789abcdef.new',
    'secret.key.17.01234567.new',
    'sql_history',
    'sql_history.17.0123456789abcdef.new',
    'warehouse.duckdb',
    'warehouse.duckdb.wal',
    'warehouse.duckdb.handover.17.0123456789abcdef.new',
    'snapshot.duckdb.new',
    'snapshot.duckdb.new.wal',
    '.control-aB3xYz',
  ];
  for (const name of left) writeFileSync(join(folder, name), '');
  await clearFolder(folder);
  expect(readdirSync(folder)).toEqual(['.ringneck-demo']);
});

test('Ctrl-C in the middle ends it with 130, and its service too', async () => {
  const cwd = tempFolder();
  const demo = startRingneck(['demo', '--no-wait', '--days', '30'], { cwd });
  await demo.said('windows');
  demo.kill('SIGINT');
  const { code, stderr } = await demo.end();
  expect(code, stderr).toBe(130);
  expect(processesOf(cwd)).toEqual([]);
});

// The registry (or npm's cache) is asked, and it takes minutes: only where told to.
test.runIf(process.env.DEMAND_TOOLS === '1')(
  'the packed package, installed elsewhere, runs it',
  () => {
    const root = fileURLToPath(new URL('../..', import.meta.url));
    const cwd = tempFolder();
    // As `npm ci` has built it.
    const packed = execFileSync('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', cwd], {
      cwd: root,
      encoding: 'utf8',
    }).trim();
    writeFileSync(join(cwd, 'package.json'), '{"private":true}');
    execFileSync('npm', ['install', '--no-audit', '--no-fund', `./${packed}`], { cwd, stdio: 'ignore' });
    const demo = spawnSync('npx', ['ringneck', 'demo', '--no-wait', '--days', '3'], { cwd, encoding: 'utf8' });
    expect(demo.status).toBe(0);
    expect(demo.stdout).toMatch(SECTIONS);
    rmSync(join(cwd, 'node_modules'), { recursive: true });
  },
  600_000,
);
