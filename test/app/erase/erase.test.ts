import { execFile, spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Searched } from '../../../src/app/erase/report.ts';
import type { SearchOrder } from '../../../src/app/erase/search.ts';
import { hashAccount, isEmpty } from '../../support/account-rows.ts';
import { COLLECTIONS } from '../../support/declared.ts';
import { openHarness } from '../../support/harness.ts';
import { MAIN, ringneck, startRingneck } from '../../support/ringneck.ts';
import { runHere } from '../../support/run-here.ts';
import { type Sandbox, startSandbox } from '../../support/sandbox.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { withDuckDB } from '../../support/warehouse.ts';

const folder = tempFolder();
let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startSandbox({ count: 2, from: '2025-01-01', to: '2025-01-31' });
});
afterAll(() => sandbox.close());

let folders = 0;
function surroundings(env: Record<string, string> = {}) {
  const data = join(folder, `d${++folders}`);
  const all = { RINGNECK_DATA: data, RINGNECK_SERVICE_URL: sandbox.url, RINGNECK_PORT: '0', RINGNECK_LOG_LEVEL: 'warn', ...env };
  const cli = (args: string[], input = '') => runHere(args, { env: all, input });
  return { data, env: all, cli };
}

let filling: Promise<string> | undefined;

/** A folder with two people whose names begin alike, and some days of each. Made once: each test has a copy. */
async function fill(data: string): Promise<void> {
  filling ??= (async () => {
    const filled = join(folder, 'filled');
    const harness = await openHarness(filled, sandbox.url, { queue: 'embedded' });
    await harness.add(sandbox.people.map(({ token }, i) => ({ name: i ? 'adam' : 'ada', token })));
    await harness.backfill({ from: '2025-01-01', to: '2025-01-03' });
    await harness.close();
    return filled;
  })();
  cpSync(await filling, data, { recursive: true });
}

/** What the search's own process finds in a folder that nobody has open. */
function search(data: string, words: SearchOrder['words']): Promise<Searched> {
  const order: SearchOrder = { data, snapshot: join(data, 'snapshot.duckdb'), dated: join(data, 'snapshots'), words, redis: null };
  return new Promise((resolve, reject) => {
    const child = execFile(process.execPath, [join(dirname(MAIN), '../app/erase/search-child.js')], (error, stdout) =>
      error ? reject(error) : resolve(JSON.parse(stdout) as Searched),
    );
    child.stdin!.end(JSON.stringify(order));
  });
}

const wordsOf = ({ userId, token }: Sandbox['people'][number]): SearchOrder['words'] => [
  { what: 'name', text: 'ada' },
  { what: 'service id', text: userId },
  { what: 'token', text: token },
];

/** What an account has in a file that nobody has open. */
const rowsOfAccount = (path: string, name: string) =>
  withDuckDB(path, connection => hashAccount(async sql => (await connection.runAndReadAll(sql)).getRows(), name));

test('in a copied folder with a long path an account is erased from the copy, while the original’s owner runs', async () => {
  const original = join(folder, 'o'.repeat(100));
  await fill(original);
  const env = (data: string) => ({
    RINGNECK_DATA: data,
    RINGNECK_SERVICE_URL: sandbox.url,
    RINGNECK_PORT: '0',
    RINGNECK_LOG_LEVEL: 'info',
  });
  const up = startRingneck(['up'], { env: env(original) });
  await up.said('"msg":"up"');
  const copy = join(folder, 'c'.repeat(100));
  cpSync(original, copy, { recursive: true, verbatimSymlinks: true });
  const erased = await runHere(['account', 'remove', 'ada', '--erase', '--yes', '--json'], { env: env(copy) });
  expect(JSON.parse(erased.stdout || '{}')).toMatchObject({ user_id: 'ada' });
  const names = async (data: string) =>
    JSON.parse((await runHere(['account', 'list', '--json'], { env: env(data) })).stdout).map(
      ({ user_id }: { user_id: string }) => user_id,
    );
  expect([await names(original), await names(copy)]).toEqual([['ada', 'adam'], ['adam']]);
  up.kill('SIGTERM');
  await up.end();
});

test('an account is erased, and the search that finds it in the old folder finds it nowhere in the new one', async () => {
  const { data, env } = surroundings();
  const [person] = sandbox.people;
  await fill(data);
  const harness = await openHarness(data, sandbox.url);
  await harness.commands.mirrorToken({ name: 'ada' });
  await harness.commands.snapshot({});
  await harness.close();
  mkdirSync(join(data, 'snapshots'));
  cpSync(join(data, 'snapshot.duckdb'), join(data, 'snapshots/ringneck-2025-01-04T0000Z.duckdb'));
  mkdirSync(join(data, 'taken-away'));
  writeFileSync(join(data, 'taken-away/export.json'), '{}');
  writeFileSync(join(data, 'sql_history'), `FROM sleep;\nFROM sleep WHERE user_id = 'ada';\nFROM nights WHERE user_id = 'adam';\n`);
  const before = join(folder, 'before');
  cpSync(data, before, { recursive: true, filter: path => !path.endsWith('.sock') });
  // The folder has the token encrypted only: somebody's copy of it shows that the search would find it.
  writeFileSync(join(before, 'request.txt'), `authorization: ${Buffer.from(`Bearer ${person!.token}`).toString('base64')}`);
  const dated = statSync(join(data, 'snapshots/ringneck-2025-01-04T0000Z.duckdb'));

  const { code, stdout, stderr } = await runHere(['account', 'remove', 'ada', '--erase', '--yes', '--json'], { env });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const report = JSON.parse(stdout);
  expect(report).toMatchObject({
    user_id: 'ada',
    removed: { daily_activity: 4, daily_activity_met: 5760, 'sync.accounts': 1, 'sync.windows': COLLECTIONS.length },
    events: 0,
    snapshot: join(data, 'snapshot.duckdb'),
    searched_for: ['name', 'service id', 'token'],
    found: [],
    unsearched: [],
    dated_snapshots: [join(data, 'snapshots/ringneck-2025-01-04T0000Z.duckdb')],
    exports: [join(data, 'taken-away')],
  });
  expect(report.files).toBeGreaterThan(3);
  for (const name of ['erasing.json', 'erasing-events.json', 'queue', 'queue.erased', 'warehouse.duckdb.new']) {
    expect(existsSync(join(data, name))).toBe(false);
  }
  expect(statSync(join(data, 'snapshots/ringneck-2025-01-04T0000Z.duckdb'))).toEqual(dated);
  expect(readFileSync(join(data, 'sql_history'), 'utf8')).toBe(`FROM sleep;\nFROM nights WHERE user_id = 'adam';\n`);

  const old = await search(before, wordsOf(person!));
  const shown = old.found.map(({ file, where, what }) => `${what} in ${file.slice(before.length + 1)} ${where}`);
  expect(shown).toEqual(
    expect.arrayContaining([
      'name in warehouse.duckdb sleep.user_id',
      'name in warehouse.duckdb sync.runs.request',
      'service id in warehouse.duckdb sync.accounts.service_user_id',
      'name in snapshot.duckdb sleep.user_id',
      'name in accounts.secret null',
      'name in mirror-tokens.json null',
      'name in sql_history null',
      'token in request.txt null',
    ]),
  );
  expect((await search(data, wordsOf(person!))).found).toEqual([]);

  const file = 'warehouse.duckdb';
  expect(await rowsOfAccount(join(data, file), 'adam')).toEqual(await rowsOfAccount(join(before, file), 'adam'));
  expect(isEmpty(await rowsOfAccount(join(data, file), 'ada'))).toBe(true);

  // Whoever comes again begins afresh: nothing counts as read.
  const later = await openHarness(data, sandbox.url);
  await later.add([{ name: 'ada', token: person!.token }]);
  const again = await later.backfill({ users: ['ada'], from: '2025-01-01', to: '2025-01-03' });
  expect(again).toMatchObject({ state: 'complete', windows: { planned: COLLECTIONS.length, done: COLLECTIONS.length, skipped: 0 } });
  expect(again.documents).toBeGreaterThan(10);
});

test('what was removed before can be erased later; a name is typed again, and one that nobody has is wrong usage', async () => {
  const { data, cli } = surroundings();
  await cli(['account', 'add', 'ada'], sandbox.people[0]!.token);
  await cli(['account', 'remove', 'ada']);
  expect(await cli(['account', 'remove', 'ada', '--erase'])).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringContaining('--yes'),
  });
  expect(await cli(['account', 'remove', 'ad', '--erase', '--yes'])).toMatchObject({
    code: 2,
    stderr: 'ringneck: no account "ad" was ever added here: ringneck account list shows those there are\n',
  });
  expect(await cli(['account', 'remove', 'ada', '--yes'])).toMatchObject({ code: 2, stderr: 'ringneck: --yes belongs to --erase\n' });
  const erased = await cli(['account', 'remove', 'ada', '--erase', '--yes']);
  expect(erased).toMatchObject({ code: 0, stderr: '' });
  expect(erased.stdout).toContain('files searched for name, service id: nothing found\nada is erased\n');
  expect((await cli(['account', 'remove', 'ada', '--erase', '--yes'])).code).toBe(2);
  expect(existsSync(join(data, 'erasing.json'))).toBe(false);
});

test('what the search still finds is said, by file and not by value, and the exit code is 1', async () => {
  const { data, env, cli } = surroundings();
  const { token } = sandbox.people[0]!;
  await cli(['account', 'add', 'ada'], token);
  writeFileSync(join(data, 'ada.token'), token);
  const erased = await runHere(['account', 'remove', 'ada', '--erase', '--yes'], { env });
  expect(erased.code).toBe(1);
  expect(erased.stdout).toContain(`: found\nstill found of ada:\n  the token in ${join(data, 'ada.token')}\n`);
  expect(erased.stdout + erased.stderr).not.toContain(token);
  expect(JSON.parse((await cli(['account', 'list', '--json'])).stdout)).toEqual([]);
});

test('a running up pauses for it and goes on where it listened, without the account', async () => {
  const { data, env, cli } = surroundings({ RINGNECK_LOG_LEVEL: 'info' });
  await fill(data);
  const up = startRingneck(['up', '--mirror', '0'], { env });
  await up.said('"msg":"up"');
  const logged = (text: string) => JSON.parse(up.stderr.split('\n').findLast(line => line.includes(`"msg":"${text}"`))!) as { url: string };
  const { url } = logged('up');
  const mirror = logged('the mirror is served').url;
  const token = JSON.parse((await cli(['account', 'mirror-token', 'adam', '--json'])).stdout).token as string;
  expect(await (await fetch(`${url}/ready`)).json()).toEqual({ status: 'ready' });

  const erasing = ringneck(['account', 'remove', 'ada', '--erase', '--yes', '--json'], { env });
  let refused = 0;
  for (let done = false; !done; ) {
    done = await Promise.race([erasing.then(() => true), fetch(`${url}/health`).then(() => sleep(50, false))]);
    // Nobody is kept waiting meanwhile, and nothing is taken for done.
    const asked = done ? undefined : await cli(['account', 'list', '--json']);
    if (asked?.code === 75) {
      expect(asked.stderr).toContain('an account is being erased from');
      refused++;
    } else if (asked) expect(asked.code).toBe(0);
  }
  expect(refused).toBeGreaterThan(0);
  const { code, stdout } = await erasing;
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ user_id: 'ada', found: [], unsearched: [], removed: { daily_activity: 4 } });

  expect(await (await fetch(`${url}/health`)).json()).toEqual({ status: 'ok' });
  expect(logged('the mirror is served').url).toBe(mirror);
  const headers = { authorization: `Bearer ${token}` };
  const range = 'start_date=2025-01-01&end_date=2025-01-04';
  const served = await fetch(`${mirror}/v2/usercollection/daily_activity?${range}`, { headers });
  expect(((await served.json()) as { data: unknown[] }).data).toHaveLength(3);
  expect(JSON.parse((await cli(['nightly', '--days', '1', '--json'])).stdout)).toMatchObject({ state: 'complete', failures: [] });
  expect(JSON.parse((await cli(['account', 'list', '--json'])).stdout)).toMatchObject([{ user_id: 'adam' }]);
  up.kill('SIGTERM');
  expect((await up.end()).code).toBe(0);
});

test('where it cannot be done all is as before', async () => {
  const { data, cli } = surroundings();
  await fill(data);
  const path = join(data, 'warehouse.duckdb');
  // Somebody's own table whose rows need those of the person.
  await withDuckDB(path, async connection => {
    await connection.run('CREATE TABLE own (user_id VARCHAR PRIMARY KEY); CREATE TABLE beside (owner VARCHAR REFERENCES own (user_id))');
    await connection.run(`INSERT INTO own VALUES ('ada'); INSERT INTO beside VALUES ('ada')`);
  });
  const before = await rowsOfAccount(path, 'ada');
  const failed = await cli(['account', 'remove', 'ada', '--erase', '--yes']);
  expect(failed).toMatchObject({ code: 1, stdout: '' });
  expect(failed.stderr).toBe(
    'ringneck: the table beside cannot be copied (Constraint Error): nothing was erased; drop that table, or what it refers to, and try again\n',
  );
  expect(readdirSync(data).filter(name => /eras|\.new|\.tmp$/.test(name))).toEqual([]);
  expect(JSON.parse((await cli(['account', 'list', '--json'])).stdout)).toHaveLength(2);
  expect(await rowsOfAccount(path, 'ada')).toEqual(before);
});

// `script` of util-linux gives a command a terminal; other systems have another one, or none.
const able = process.platform === 'linux' && spawnSync('script', ['--version']).status === 0;

test.runIf(able)('at a terminal the name is asked for again, and another one erases nothing', async () => {
  const { env, cli } = surroundings();
  await cli(['account', 'add', 'ada'], sandbox.people[0]!.token);
  const command = [process.execPath, MAIN, 'account', 'remove', 'ada', '--erase'].map(word => `'${word}'`).join(' ');
  const typing = (keys: string) =>
    new Promise<{ code: number | null; shown: string }>(resolve => {
      const child = spawn('script', ['-qefc', command, '/dev/null'], { env: { ...process.env, SHELL: '/bin/bash', ...env } });
      let shown = '';
      child.stdout.setEncoding('utf8').on('data', text => {
        if (!shown.includes('go on: ') && `${shown}${text}`.includes('go on: ')) child.stdin.write(keys);
        shown += text;
      });
      child.once('close', code => resolve({ code, shown }));
    });
  const other = await typing('adam\r');
  expect(other).toMatchObject({ code: 1, shown: expect.stringContaining('that is not the name: nothing was erased') });
  expect(await typing('\u0004')).toMatchObject({ code: 1 });
  expect(await typing('\u0003')).toMatchObject({ code: 130 });
  expect(JSON.parse((await cli(['account', 'list', '--json'])).stdout)).toHaveLength(1);
  expect(await typing('ada\r')).toMatchObject({ code: 0, shown: expect.stringContaining('ada is erased') });
  expect(JSON.parse((await cli(['account', 'list', '--json'])).stdout)).toEqual([]);
});
