import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { serveControl } from '../../src/app/control/serve-control.ts';
import { silentLog } from '../../src/base/log.ts';
import { openHarness } from '../support/harness.ts';
import { runHere } from '../support/run-here.ts';
import { startSandbox } from '../support/sandbox.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { rows, rowsOf, withDuckDB } from '../support/warehouse.ts';

const folder = tempFolder();
let folders = 0;

function write(...lines: string[]): string {
  const path = join(folder, `people-${++folders}.csv`);
  writeFileSync(path, `${lines.join('\n')}\n`, { mode: 0o600 });
  return path;
}

test('everybody of a file is added once; who fails is named, tried again, and ends the command with 1', async () => {
  const sandbox = await startSandbox({ count: 3, from: '2025-01-01', to: '2025-01-03' });
  onTestFinished(() => sandbox.close());
  const env = { RINGNECK_DATA: join(folder, 'data'), RINGNECK_SERVICE_URL: sandbox.url };
  const [ada, ben, cleo] = sandbox.people;
  const secret = sandbox.renew(ben!.userId);
  const file = write(
    'name,token,group_name,site',
    `ada,${ada!.token},training,Graz`,
    `ben,${ben!.token},control,`,
    'cleo,not-a-token-of-hers,control,Linz',
    `again,${secret},control,Linz`,
  );
  const add = (...options: string[]) => runHere(['account', 'add', '--file', file, ...options], { env });
  const first = await add();
  expect(first).toMatchObject({ code: 1, stderr: `in extra of participants: site\n4 in ${file}: 2 added, 0 unchanged, 2 failed\n` });
  const [adaLine, benLine, cleoLine, againLine] = first.stdout.split('\n');
  expect([adaLine, benLine]).toEqual(['ada added', 'ben added']);
  expect(cleoLine).toMatch(/^cleo failed: unauthorized.*: ringneck account add cleo/);
  expect(againLine).toMatch(/^again failed: the token is of the same person as the account ben, and nothing was stored: /);
  for (const token of [ada!.token, ben!.token, secret, 'not-a-token-of-hers'])
    expect(`${first.stdout}${first.stderr}`).not.toContain(token);

  writeFileSync(file, ['token;name', `${ada!.token};ada`, `${ben!.token};ben`, `${cleo!.token};cleo`].join('\r\n'));
  const second = await add('--json');
  expect([second.code, JSON.parse(second.stdout)]).toEqual([
    0,
    [
      { line: 2, user_id: 'ada', result: 'unchanged', state: 'active', service_user_id: ada!.userId, reason: null },
      { line: 3, user_id: 'ben', result: 'unchanged', state: 'active', service_user_id: ben!.userId, reason: null },
      { line: 4, user_id: 'cleo', result: 'added', state: 'active', service_user_id: cleo!.userId, reason: null },
    ],
  ]);
  const stored = await withDuckDB(join(folder, 'data', 'warehouse.duckdb'), connection =>
    rowsOf(connection, 'SELECT user_id, group_name, extra FROM participants ORDER BY user_id'),
  );
  expect(stored).toEqual([
    { user_id: 'ada', group_name: 'training', extra: { site: 'Graz' } },
    { user_id: 'again', group_name: 'control', extra: { site: 'Linz' } },
    { user_id: 'ben', group_name: 'control', extra: null },
    { user_id: 'cleo', group_name: 'control', extra: { site: 'Linz' } },
  ]);
});

test('a file with a wrong line, or that others can read, adds nobody, and no token of it is shown', async () => {
  const env = { RINGNECK_DATA: join(folder, 'nobody') };
  const file = write('name,token,birth_year', 'ada,secret-1,1984', 'ben,secret-1,84', 'c d,two words,1984', 'dora,,1984');
  const add = () => runHere(['account', 'add', '--file', file], { env });
  const token = 'wanted a token: one word of printable ASCII, at most 8192 characters';
  expect(await add()).toEqual({
    code: 1,
    stdout: '',
    stderr: [
      `${file}, line 3, birth_year "84": wanted a whole number from 1900 to ${new Date().getUTCFullYear()}`,
      `${file}, line 3, token (not shown): wanted another one than that of line 2`,
      `${file}, line 4, name "c d": wanted the name of an account: 1 to 64 letters, digits, ".", "_" or "-"`,
      `${file}, line 4, token (not shown): ${token}`,
      `${file}, line 5, token (not shown): ${token}`,
      `ringneck: ${file}: nothing was done: put right what is named above, and try again\n`,
    ].join('\n'),
  });
  chmodSync(file, 0o640);
  expect(await add()).toEqual({
    ...{ code: 2, stdout: '', stderr: `ringneck: ${file} is to hold tokens, and is open to others (0640): chmod go= ${file}\n` },
  });
  // Columns that were exchanged.
  const swapped = write('name,token,birth_year', 'eyJhbGciOi.J9+secret/in=the.column,ada,rn_CSpG3Rh5g7secret');
  chmodSync(swapped, 0o600);
  expect((await runHere(['account', 'add', '--file', swapped], { env })).stderr).toBe(
    [
      `${swapped}, line 2, name (not shown): wanted the name of an account: 1 to 64 letters, digits, ".", "_" or "-"`,
      `${swapped}, line 2, birth_year (not shown): wanted a whole number from 1900 to ${new Date().getUTCFullYear()}`,
      `ringneck: ${swapped}: nothing was done: put right what is named above, and try again\n`,
    ].join('\n'),
  );
  // Without its first line a file has a token there.
  const headless = write('ada,rn_CSpG3Rh5g7secret');
  chmodSync(headless, 0o600);
  expect((await runHere(['account', 'add', '--file', headless], { env })).stderr).toBe(
    `ringneck: ${headless}, line 1: there is no column "name": this line names the columns, as name,token\n`,
  );
  const twice = write('name,rn_CSpG3,rn_CSpG3');
  expect((await runHere(['account', 'add', '--file', twice], { env })).stderr).toBe(
    `ringneck: ${twice}, line 1: the column number 2 is there twice\n`,
  );
  const plain = write('name,group_name', 'ada,a');
  expect((await runHere(['account', 'add', '--file', plain], { env })).stderr).toBe(
    `ringneck: ${plain}, line 1: there is no column "token"\n`,
  );
  expect(existsSync(env.RINGNECK_DATA)).toBe(false);
});

test.each(['refresh_token', 'password', 'Access Token 2', 'client-secret', 'Passwort', 'API key'])(
  'a file with the column %s beside the tokens adds nobody',
  async column => {
    const env = { RINGNECK_DATA: join(folder, 'beside') };
    const file = write(`name,token,site,${column}`, 'ada,secret-1,Graz,secret-2');
    expect(await runHere(['account', 'add', '--file', file], { env })).toEqual({
      code: 2,
      stdout: '',
      stderr: `ringneck: ${file}, line 1: tokens and passwords are no facts of participants: take the column "${column}" out; the column "token" alone is kept sealed\n`,
    });
    expect(existsSync(env.RINGNECK_DATA)).toBe(false);
  },
);

test('while up runs it adds them and their facts, line by line', async () => {
  const sandbox = await startSandbox({ count: 1, from: '2025-01-01', to: '2025-01-03' });
  onTestFinished(() => sandbox.close());
  const data = join(folder, 'owned');
  const { app, commands } = await openHarness(data, sandbox.url);
  const control = await serveControl({ folder: data, commands, log: silentLog });
  onTestFinished(() => control.close());
  const env = { RINGNECK_DATA: data, RINGNECK_SERVICE_URL: sandbox.url };
  const file = write('name,token,birth_year', `ada,${sandbox.people[0]!.token},1984`);
  expect(await runHere(['account', 'add', '--file', file], { env })).toEqual({
    ...{ code: 0, stdout: 'ada added\n', stderr: `1 in ${file}: 1 added, 0 unchanged, 0 failed\n` },
  });
  const facts = write('name,max_heart_rate', 'ada,182');
  expect((await runHere(['participants', 'import', facts], { env })).stdout).toBe('1 participant: 0 added, 1 changed, 0 unchanged\n');
  expect((await runHere(['participants', 'export'], { env })).stdout).toContain('\nada,,,,1984,182\n');
  expect(await rows(app.warehouse, 'SELECT user_id, state FROM sync.accounts')).toEqual([{ user_id: 'ada', state: 'active' }]);
});
