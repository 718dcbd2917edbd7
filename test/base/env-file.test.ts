import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadEnvFile } from '../../src/base/env-file.ts';
import { UsageError } from '../../src/base/errors.ts';
import { ringneck } from '../support/ringneck.ts';
import { runHere } from '../support/run-here.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { placeWarehouse } from '../support/warehouse.ts';

const folder = tempFolder();
let files = 0;

function write(text: string | Uint8Array, mode = 0o600): string {
  const path = join(folder, `${++files}.env`);
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}

test('settings of a file count where the environment has none; names of other programs are left alone', () => {
  const env: NodeJS.ProcessEnv = { RINGNECK_PORT: '9000', RINGNECK_DATA: '' };
  const path = write(`# of ours
RINGNECK_PORT=1
export RINGNECK_DATA="./other place"
RINGNECK_NIGHTLY='30 4 * * *' # at half past four
PATH=/nowhere
NODE_OPTIONS=--inspect
`);
  expect(loadEnvFile(env, path)).toBeUndefined();
  expect(env).toEqual({ RINGNECK_PORT: '9000', RINGNECK_DATA: './other place', RINGNECK_NIGHTLY: '30 4 * * *' });
});

test.each([
  ['has no “=”', 'RINGNECK_DATA=here\nRINGNECK_STUDY_NAME: Night\n', ', line 2: RINGNECK_STUDY_NAME has no “=” behind it'],
  ['is a name alone', '\nexport RINGNECK_PORT\n', ', line 2: RINGNECK_PORT has no “=” behind it'],
  ['is set already', 'RINGNECK_PORT=1\n\nexport RINGNECK_PORT=2\n', ' sets RINGNECK_PORT twice, in the lines 1 and 3: remove one of them'],
  [
    'has a # in its value',
    'RINGNECK_CLIENT_SECRET=abc#def\n',
    ', line 1: RINGNECK_CLIENT_SECRET ends before its #, which begins a comment: put the value in quotes',
  ],
  [
    'has a # alone',
    'RINGNECK_STUDY_NAME=#7\n',
    ', line 1: RINGNECK_STUDY_NAME ends before its #, which begins a comment: put the value in quotes',
  ],
  [
    'has its quotes within',
    'RINGNECK_STUDY_NAME="the \\"night\\" study"\n',
    `, line 1: RINGNECK_STUDY_NAME ends with its second ", and more stands behind: put the value in quotes that it does not hold, ' or " or \``,
  ],
  [
    'goes on behind its quotes',
    "RINGNECK_PORT=1\nRINGNECK_SECRET_KEY='a'bc\n",
    `, line 2: RINGNECK_SECRET_KEY ends with its second ', and more stands behind: put the value in quotes that it does not hold, ' or " or \``,
  ],
  [
    'lacks a quote',
    "RINGNECK_STUDY_NAME='Night\nRINGNECK_PORT=1\n",
    ", line 1: RINGNECK_STUDY_NAME begins with ', and there is no other to end it: add that",
  ],
  ['is not UTF-8', Buffer.from('RINGNECK_STUDY_NAME=Z\xfcrich\n', 'latin1'), ' is not UTF-8: save it as UTF-8'],
])('a file with a line that %s is refused, for it was meant otherwise', (_, text, message) => {
  const path = write(text);
  expect(() => loadEnvFile({}, path)).toThrow(new UsageError(`${path}${message}`));
});

test('a comment behind a value, and the other quotes in it, are as they were meant', () => {
  const env: NodeJS.ProcessEnv = {};
  loadEnvFile(
    env,
    write(
      'RINGNECK_PORT=1 # as issue#5\nRINGNECK_STUDY_NAME=`a "b" \'c\' #d` # e "f"\nRINGNECK_DATA= # none\nRINGNECK_NIGHTLY="30\n4 #"\nRINGNECK_HOST=a"b"c\n',
    ),
  );
  const expected = { RINGNECK_PORT: '1', RINGNECK_STUDY_NAME: `a "b" 'c' #d`, RINGNECK_DATA: '', RINGNECK_NIGHTLY: '30\n4 #' };
  expect(env).toEqual({ ...expected, RINGNECK_HOST: 'a"b"c' });
});

test('lines of a value are no settings, nor are remarks and the names of other programs', () => {
  const env: NodeJS.ProcessEnv = {};
  loadEnvFile(
    env,
    write('#RINGNECK_PORT\nOTHER: 1\nOTHER=2\nOTHER=3\nRINGNECK_STUDY_NAME="Night\nRINGNECK_PORT\nRINGNECK_STUDY_NAME=x"\n'),
  );
  expect(env).toEqual({ RINGNECK_STUDY_NAME: 'Night\nRINGNECK_PORT\nRINGNECK_STUDY_NAME=x' });
});

test('a secret that the environment has wins over a file that holds it, in either form', () => {
  const env: NodeJS.ProcessEnv = { RINGNECK_SECRET_KEY: 'of the environment', RINGNECK_CLIENT_SECRET_FILE: 'here' };
  loadEnvFile(env, write('RINGNECK_SECRET_KEY_FILE=there\nRINGNECK_CLIENT_SECRET=of-the-file\n'));
  expect(env).toEqual({ RINGNECK_SECRET_KEY: 'of the environment', RINGNECK_CLIENT_SECRET_FILE: 'here' });
});

test.each([0o620, 0o602, 0o666])('a file that others can write (%o) is refused with the command that fixes it', async mode => {
  const path = write('RINGNECK_PORT=1\n', mode);
  expect(await runHere(['--env-file', path, 'account', 'list'], { env: { RINGNECK_DATA: join(folder, 'none') } })).toEqual({
    code: 2,
    stdout: '',
    stderr: `ringneck: ${path} is writable by others (0${mode.toString(8)}): chmod go= ${path}\n`,
  });
});

test('of a file that others can read a secret is told, and nothing else', () => {
  expect(loadEnvFile({}, write('RINGNECK_PORT=1\n', 0o644))).toBeUndefined();
  for (const name of ['RINGNECK_CLIENT_SECRET', 'RINGNECK_LAKE_PASSWORD']) {
    const path = write(`${name}=very-secret\n`, 0o644);
    expect(loadEnvFile({}, path)).toEqual({ can: 'read', message: `${path} is open to others (0644)`, fix: `chmod go= ${path}` });
  }
  expect(loadEnvFile({}, write('RINGNECK_CLIENT_SECRET_FILE=secret.txt\n', 0o644))).toBeUndefined();
});

test('a named file that is none is refused; a wrong setting in one is wrong usage, and an unknown one is told with what was meant', async () => {
  const env = { RINGNECK_DATA: join(folder, 'data') };
  const list = (file: string) => runHere(['account', 'list', '--env-file', file], { env });
  expect(await list(join(folder, 'missing'))).toMatchObject({
    code: 2,
    stderr: `ringneck: --env-file ${folder}/missing: there is no such file\n`,
  });
  expect(await list(folder)).toMatchObject({ code: 2, stderr: `ringneck: --env-file ${folder} is no regular file\n` });
  expect(await list(write('RINGNECK_PORT=many\n'))).toMatchObject({
    code: 2,
    stderr: 'ringneck: Wrong setting. RINGNECK_PORT is "many": expected a whole number from 0 to 65535.\n',
  });
});

test('.env of the working directory is read by every command but demo, --env-file in its place, and a folder of that name by none', async () => {
  const place = join(folder, 'place');
  mkdirSync(place, { mode: 0o700 });
  writeFileSync(join(place, '.env'), 'RINGNECK_DATA=of-dot-env\nRINGNECK_SWEEPHOURS=1\n', { mode: 0o600 });
  const other = write('RINGNECK_DATA=of-other\n');
  const told = async (...args: string[]) => (await ringneck(['backfill', '--last', '1', ...args], { cwd: place, env: {} })).stderr;
  const first = await told();
  expect(first).toMatch(/there is no warehouse in .*\/of-dot-env: /);
  expect(first).toContain('RINGNECK_SWEEPHOURS is not a setting: did you mean RINGNECK_SWEEP_HOURS?');
  expect(await told('--env-file', other)).toContain('/of-other: ');

  const beside = join(folder, 'beside');
  mkdirSync(join(beside, '.env'), { recursive: true, mode: 0o700 });
  const data = join(folder, 'data');
  placeWarehouse(join(data, 'warehouse.duckdb'));
  expect((await ringneck(['account', 'list'], { cwd: beside, env: { RINGNECK_DATA: data } })).code).toBe(0);
});
