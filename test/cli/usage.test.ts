import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { NO_CLIENT, NO_ENROLMENT, NO_SERVICE } from '../../src/base/config.ts';
import { type Ended, ringneck } from '../support/ringneck.ts';
import { runHere } from '../support/run-here.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { placeWarehouse } from '../support/warehouse.ts';

const folder = tempFolder();
let folders = 0;
const env = (changes: Record<string, string> = {}) => ({ RINGNECK_DATA: join(folder, `d${++folders}`), ...changes });

/** The same with a warehouse in which there is nothing yet. */
function begun(changes: Record<string, string> = {}) {
  const given = env(changes);
  placeWarehouse(join(given.RINGNECK_DATA, 'warehouse.duckdb'));
  return given;
}

/** Wrong usage: exit 2, one line on stderr, nothing on stdout. */
function refused(ended: Ended, line: string) {
  expect(ended).toEqual({ code: 2, stdout: '', stderr: `ringneck: ${line}\n` });
}

test('a comment that the shell hands on, as that of zsh does, is no part of a command', async () => {
  const given = { env: begun() };
  const ended = await ringneck(['account', 'list', '#', 'who', 'is', '--there;', 'ends here'], given);
  expect(ended).toEqual(await ringneck(['account', 'list'], given));
  expect(ended.code).toBe(0);
});

test.each([
  [],
  ['demo'],
  ['init'],
  ['service'],
  ['account'],
  ['account', 'add'],
  ['account', 'list'],
  ['account', 'remove'],
  ['account', 'pause'],
  ['account', 'resume'],
  ['account', 'map'],
  ['account', 'mirror-token'],
  ['participants'],
  ['participants', 'import'],
  ['participants', 'export'],
  ['participants', 'remove'],
  ['backfill'],
  ['nightly'],
  ['up'],
  ['status'],
  ['why'],
  ['sql'],
  ['snapshot'],
  ['export'],
  ['coverage'],
  ['tables'],
  ['describe'],
])('the help of %s %s has an example and the exit codes', async (...command) => {
  const { code, stdout, stderr } = await runHere([...command, '--help']);
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toMatch(/^Usage: ringneck /);
  expect(stdout).toMatch(/\nExample:\n {2}(printf .* \| )?ringneck /);
  expect(stdout).toContain('\nExit codes: 0 all well, 1 something failed, 2 wrong usage or settings, 75 try later, 130 interrupted.\n');
});

test('the version is that of the package', async () => {
  expect(await ringneck(['--version'])).toEqual({ code: 0, stdout: '0.1.0\n', stderr: '' });
});

// As `npm ci` or `npm run build` left it.
const built = fileURLToPath(new URL('../../dist/src/cli/main.js', import.meta.url));
test.runIf(existsSync(built) && process.platform !== 'win32')('what was built runs by its name, as `npx ringneck` starts it', () => {
  expect(execFileSync(built, ['--version'], { encoding: 'utf8' })).toMatch(/^\d+\.\d+\.\d+\n$/);
});

test('without a command the help goes to stderr, with exit code 2', async () => {
  const { code, stdout, stderr } = await ringneck([]);
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toMatch(/^Usage: ringneck /);
});

test.each<[string[], string]>([
  [['bakfill'], "unknown command 'bakfill' (Did you mean backfill?)"],
  [['account', 'ad'], "unknown command 'ad' (Did you mean add?)"],
  [['backfill', '--lats', '3'], "unknown option '--lats' (Did you mean --last?)"],
  [['nosuch'], "unknown command 'nosuch': --help shows those there are"],
  [['status', '--xyzzy'], "unknown option '--xyzzy': --help shows those there are"],
  [
    ['backfill', '--from', '2025-02-30', '--to', '2025-03-01'],
    "option '--from <day>' argument '2025-02-30' is invalid. expected a day, YYYY-MM-DD",
  ],
  [
    ['backfill', '--from', '2025-3-1', '--to', '2025-03-01'],
    "option '--from <day>' argument '2025-3-1' is invalid. expected a day, YYYY-MM-DD",
  ],
  [['backfill', '--last', '0'], "option '--last <n>' argument '0' is invalid. expected a whole number from 1 to 36500"],
  [['backfill', '--last', '1.5'], "option '--last <n>' argument '1.5' is invalid. expected a whole number from 1 to 36500"],
  [['backfill', '--last', '-3'], "option '--last <n>' argument '-3' is invalid. expected a whole number from 1 to 36500"],
  [['backfill'], 'which days? give --from DAY, with --to DAY or up to today, or --last N'],
  [['backfill', '--to', '2025-01-01'], 'which days? give --from DAY, with --to DAY or up to today, or --last N'],
  [['backfill', '--last', '3', '--from', '2025-01-01'], 'give --last N, or --from and --to, not both'],
  [['backfill', '--last', '3', '--to', '2025-01-01'], 'give --last N, or --from and --to, not both'],
  [['backfill', '--from', '2025-02-01', '--to', '2025-01-01'], '--from 2025-02-01 is after --to 2025-01-01'],
  [['account', 'add'], 'whose account? give a name, or --file with many'],
  [['account', 'add', 'ada', '--file', 'people.csv'], '--file names everybody: give no name with it, nor another option but --json'],
  [
    ['account', 'add', '--file', 'people.csv', '--keep-token'],
    '--file names everybody: give no name with it, nor another option but --json',
  ],
  [['account', 'add', 'a b'], '"a b" cannot name an account: 1 to 64 letters, digits, ".", "_" or "-"'],
  [['account', 'add', 'ada', 'my-token'], 'a token is never an argument, where others can see it: pipe it in, or use --token-file'],
  [['account', 'add', 'ada', '--from', '2999-01-01'], '--from 2999-01-01 is in the future'],
  [
    ['sql', '--format', 'xml', 'SELECT 1'],
    "option '--format <format>' argument 'xml' is invalid. Allowed choices are table, json, csv, ndjson.",
  ],
  [['sql', ' '], 'no query: give one as an argument or on standard input'],
  [
    ['service', '--rate-limit', '5'],
    "option '--rate-limit <n/seconds|off>' argument '5' is invalid. expected requests/seconds, like 300/60, or off",
  ],
  [['service', '--port', '70000'], "option '--port <port>' argument '70000' is invalid. expected a whole number from 0 to 65535"],
  [['service', '--from', '2025-02-01', '--to', '2025-01-01'], '--from 2025-02-01 is after --to 2025-01-01'],
])('%j is wrong usage', async (args, line) => {
  refused(await runHere(args), line);
});

test.each<[string[], string]>([
  [['bakfill'], "unknown command 'bakfill' (Did you mean backfill?)"],
  [['backfill'], 'which days? give --from DAY, with --to DAY or up to today, or --last N'],
  [
    ['account', 'add', 'ada'],
    'no token: standard input is empty: give one by printf %s "$TOKEN" | ringneck account add ada, or sign in: ringneck account login ada',
  ],
  [
    ['account', 'pause', 'zoe'],
    'no account "zoe": there is none yet: ringneck account login NAME, or with a token ringneck account add NAME',
  ],
  [['sql'], 'no query: give one as an argument or on standard input'],
])('%j is wrong usage, as a script meets it', async (args, line) => {
  refused(await ringneck(args, { env: begun() }), line);
});

test('help is a result', async () => {
  const { code, stdout, stderr } = await runHere(['backfill', '--help']);
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toContain('\nExample:\n  ringneck backfill --from 2025-01-01 --to 2025-12-31\n');
});

test('wrong usage makes no data folder', async () => {
  const cwd = tempFolder();
  await ringneck(['backfill'], { cwd });
  await ringneck(['account', 'add', 'a b'], { cwd });
  await ringneck(['sql', 'SELECT 1'], { cwd });
  expect(existsSync(join(cwd, 'data'))).toBe(false);
});

test('all wrong settings are named at once', async () => {
  const wrong = { RINGNECK_PORT: 'x', RINGNECK_NIGHTLY: 'foo', RINGNECK_SERVICE_URL: 'ftp://x', RINGNECK_SNAPSHOT_MODE: '0900' };
  const { code, stdout, stderr } = await ringneck(['account', 'list'], { env: env(wrong) });
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr.split('\n')).toHaveLength(2);
  for (const [name, value] of Object.entries(wrong)) expect(stderr).toContain(`${name} is "${value}": expected `);
});

test('a variable that is no setting is remarked on, not refused', async () => {
  const { code, stderr } = await ringneck(['account', 'list'], { env: begun({ RINGNECK_SERVCE_URL: 'http://x' }) });
  expect(code).toBe(0);
  expect(stderr).toContain('RINGNECK_SERVCE_URL is not a setting: did you mean RINGNECK_SERVICE_URL?');
});

test('where there is no account, nobody can be asked', async () => {
  const service = { RINGNECK_SERVICE_URL: 'http://127.0.0.1:9' };
  const nobody = (folder: string) => ({
    code: 1,
    stdout: '',
    stderr: `ringneck: there is no account yet in ${folder} (RINGNECK_DATA): ringneck account add NAME\n`,
  });
  for (const args of [['backfill', '--last', '3'], ['backfill', '--last', '3', '--json'], ['nightly']]) {
    const given = begun(service);
    expect(await runHere(args, { env: given })).toEqual(nobody(given.RINGNECK_DATA!));
  }
  expect(await runHere(['account', 'list'], { env: begun() })).toEqual({
    code: 0,
    stdout: '',
    stderr: 'no account yet: ringneck account add NAME\n',
  });
  expect(await runHere(['account', 'list', '--json'], { env: begun() })).toEqual({ code: 0, stdout: '[]\n', stderr: '' });
});

test('where the client is set, a person signs in: no command asks for a token', async () => {
  const given = begun({ RINGNECK_SERVICE_URL: 'http://127.0.0.1:9', RINGNECK_CLIENT_ID: 'id', RINGNECK_CLIENT_SECRET: 'secret' });
  for (const args of [['account', 'list'], ['status'], ['coverage'], ['backfill', '--last', '3']]) {
    const { stderr } = await runHere(args, { env: given });
    expect(stderr, args.join(' ')).toMatch(/no account yet.*: ringneck account login NAME\n$/);
  }
});

test('a sandbox of days that no date of the interface can be is refused', async () => {
  const days = ['--from', '9999-12-20', '--to', '9999-12-31'];
  refused(
    await runHere(['service', '--people', '1', ...days], { env: env() }),
    '--from 9999-12-20: give a day from 1900-01-01 to 2199-12-31',
  );
});

test('without an address of the service there is nothing to ask', async () => {
  const data = env();
  const line = NO_SERVICE;
  refused(await runHere(['up'], { env: { ...data, RINGNECK_PORT: '0' } }), line);
  expect(await runHere(['account', 'add', 'ada'], { env: data, input: 'token' })).toEqual({
    code: 1,
    stdout: 'ada active\n',
    stderr: 'warning: RINGNECK_SERVICE_URL is not set: the token was not tried\n',
  });
  refused(await runHere(['backfill', '--last', '3'], { env: data }), line);
  refused(await runHere(['nightly'], { env: data }), line);
});

test.each([
  ['login', 'ada'],
  ['invite', 'ada'],
])('account %s without what it needs says what to set, and makes no folder', async (...command) => {
  const given = env();
  const service = { RINGNECK_SERVICE_URL: 'http://127.0.0.1:9' };
  refused(await runHere(['account', ...command], { env: given }), NO_SERVICE);
  refused(await runHere(['account', ...command], { env: { ...given, ...service } }), NO_CLIENT);
  if (command[0] === 'invite') {
    const client = { RINGNECK_CLIENT_ID: 'c', RINGNECK_CLIENT_SECRET: 's' };
    refused(await runHere(['account', ...command], { env: { ...given, ...service, ...client } }), NO_ENROLMENT);
  }
  expect(NO_SERVICE).toContain('ringneck init');
  expect(existsSync(given.RINGNECK_DATA)).toBe(false);
});

test('status of an empty warehouse', async () => {
  const { code, stdout, stderr } = await runHere(['status', '--json'], { env: begun() });
  expect([code, stderr]).toEqual([0, '']);
  expect(JSON.parse(stdout)).toEqual({
    accounts: [],
    queue: { waiting: 0, active: 0, delayed: 0, failed: 0, problem: null, events: 0, unreadable_events: 0 },
    invitations: [],
    webhooks: null,
    snapshot: { at: null, failure: null },
    warehouse: { bytes: expect.any(Number), compacted_at: null },
    heart_rate_path: null,
    drift: [],
    service_clock: null,
    service_unreachable: null,
  });
});

test('sql before there is a warehouse', async () => {
  const data = env();
  expect(await runHere(['sql', 'SELECT 1'], { env: data })).toEqual({
    code: 2,
    stdout: '',
    stderr: `ringneck: there is no warehouse in ${data.RINGNECK_DATA}: to begin here, ringneck account add NAME; where yours is elsewhere, go to that folder, or set RINGNECK_DATA to it\n`,
  });
});
