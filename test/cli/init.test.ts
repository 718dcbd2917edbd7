import { readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { readEnvText, writeEnvFile } from '../../src/base/write-env-file.ts';
import { freePort } from '../queue/redis-server.ts';
import { startAuthorizationServer } from '../sign-in/authorization-server.ts';
import { runHere } from '../support/run-here.ts';
import { type Sandbox, startSandbox } from '../support/sandbox.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
let sandbox: Sandbox;
let files = 0;
beforeAll(async () => {
  sandbox = await startSandbox({ count: 1, from: '2025-01-01', to: '2025-01-03' });
  return () => sandbox.close();
});

const newFile = () => join(folder, `${++files}.env`);
const init = (file: string, ...args: string[]) => runHere(['init', '--env-file', file, ...args], {});

test('what init writes is enough for the next command, and only its owner can read it', async () => {
  const file = newFile();
  const secret = join(folder, 'secret.txt');
  writeFileSync(secret, 'client-secret\n', { mode: 0o600 });
  const data = join(folder, 'the data');
  const client = ['--client-id', 'client', '--client-secret-file', secret];
  const { code, stdout, stderr } = await init(
    file,
    '--service-url',
    `${sandbox.url}/`,
    '--data',
    data,
    '--time-zone',
    'Europe/Zurich',
    ...client,
  );
  expect([code, stderr]).toEqual([0, expect.stringContaining(`ok: service: ${sandbox.url} answers`)]);
  expect(stdout).toContain(`${file} is written`);
  expect(stdout).toMatch(/\n {2}ExecStart=\S+ -- \S+ --env-file \S+ up\n/);
  expect(stdout).toMatch(/\n {2}30 3 \* \* \* cd \S+ && \S+ -- \S+ --env-file \S+ nightly\n/);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readFileSync(file, 'utf8')).toBe(`RINGNECK_SERVICE_URL=${sandbox.url}/
RINGNECK_CLIENT_ID=client
RINGNECK_CLIENT_SECRET=client-secret
RINGNECK_DATA='${data}'
RINGNECK_TIME_ZONE=Europe/Zurich
`);
  const added = await runHere(['account', 'add', 'ada', '--env-file', file], { input: sandbox.people[0]!.token });
  expect(added).toEqual({ code: 0, stdout: 'ada active\n', stderr: '' });
  expect(statSync(join(data, 'warehouse.duckdb')).isFile()).toBe(true);
});

test('it keeps what it does not know, and replaces a setting only when it is told to', async () => {
  const file = newFile();
  const before = `# by hand\nOTHER="of another program"\nRINGNECK_PORT=9001 # ours\n  export RINGNECK_SERVICE_URL=http://127.0.0.1:1`;
  writeFileSync(file, before, { mode: 0o600 });
  const args = ['--service-url', sandbox.url, '--data', join(folder, 'd'), '--time-zone', 'UTC'];
  expect(await init(file, ...args)).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringContaining(`ringneck: ${file} has another RINGNECK_SERVICE_URL: add --yes to replace it; nothing was written\n`),
  });
  expect(readFileSync(file, 'utf8')).toBe(before);
  expect((await init(file, ...args, '--yes')).code).toBe(0);
  const after = `# by hand\nOTHER="of another program"\nRINGNECK_PORT=9001 # ours\nRINGNECK_SERVICE_URL=${sandbox.url}\nRINGNECK_DATA=${folder}/d\nRINGNECK_TIME_ZONE=UTC\n`;
  expect(readFileSync(file, 'utf8')).toBe(after);
  // The same again changes nothing, and what the file has needs no option.
  expect((await init(file)).code).toBe(0);
  expect(readFileSync(file, 'utf8')).toBe(after);
});

test('what does not pass the check of doctor is not written', async () => {
  const file = newFile();
  const nobody = `http://127.0.0.1:${await freePort()}`;
  const data = ['--data', join(folder, 'e')];
  for (const [args, code, said] of [
    [[], 2, 'ringneck: nobody is there to ask: give --service-url\n'],
    [
      ['--service-url', nobody],
      1,
      `ringneck: RINGNECK_SERVICE_URL: ${nobody} gives no answer (ECONNREFUSED): is it running, is RINGNECK_SERVICE_URL right`,
    ],
    [['--service-url', 'ring'], 2, 'RINGNECK_SERVICE_URL is "ring": expected an http:// or https:// address'],
    [['--service-url', sandbox.url, '--client-id', 'client'], 2, 'RINGNECK_CLIENT_SECRET'],
    [['--service-url', sandbox.url, '--data', join(folder, 'file')], 1, `RINGNECK_DATA: ${folder}/file is not a folder`],
    [['--service-url', sandbox.url, ...data, '--time-zone', 'Zurich'], 2, 'RINGNECK_TIME_ZONE is "Zurich": expected an IANA time zone'],
  ] as const) {
    writeFileSync(join(folder, 'file'), '');
    const ended = await init(file, ...args);
    expect([ended.code, ended.stdout]).toEqual([code, '']);
    expect(ended.stderr).toContain(said);
    expect(() => statSync(file)).toThrow('ENOENT');
  }
});

test('a client that the service refuses is not written, and one that cannot be tried is, with a warning', async () => {
  const { settings } = await startAuthorizationServer();
  const file = newFile();
  const secret = join(folder, 'wrong.txt');
  writeFileSync(secret, 'another-secret\n', { mode: 0o600 });
  const args = [
    '--service-url',
    sandbox.url,
    '--client-id',
    settings.clientId,
    '--client-secret-file',
    secret,
    '--data',
    join(folder, 'f'),
  ];
  const command = ['init', '--env-file', file, ...args];
  const refused = await runHere(command, { env: { RINGNECK_AUTHORIZE_URL: settings.authorizeUrl, RINGNECK_TOKEN_URL: settings.tokenUrl } });
  expect(refused).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringContaining(
      `ringneck: RINGNECK_CLIENT_ID: ${settings.tokenUrl} refuses the client: ringneck is known there, and the secret is wrong (it says: client authentication failed): copy the secret again, or have another one made there; nothing was written\n`,
    ),
  });
  expect(() => statSync(file)).toThrow('ENOENT');
  const untried = await runHere(command, {});
  expect(untried).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('warning: it is not known whether the service takes the client: '),
  });
});

test('a value is written so that it is read as it was meant, through a link too, or not at all', () => {
  const path = newFile();
  writeFileSync(path, "RINGNECK_DATA='two\nlines'\n");
  const link = newFile();
  symlinkSync(path, link);
  for (const value of ['a b', '#c', 'd"e', "f'g", '$h', '\\i', ' ', 'j=k']) {
    writeEnvFile(readEnvText(link), { RINGNECK_ON_FAILURE: value });
    expect(parseEnv(readFileSync(path, 'utf8'))).toEqual({ RINGNECK_DATA: 'two\nlines', RINGNECK_ON_FAILURE: value });
  }
  const before = readFileSync(path, 'utf8');
  expect(() => writeEnvFile(readEnvText(link), { RINGNECK_ON_FAILURE: `both ' and "` })).toThrow('set RINGNECK_ON_FAILURE in it by hand');
  expect(() => writeEnvFile(readEnvText(link), { RINGNECK_DATA: 'one' })).toThrow(/would not be read as it is meant/);
  expect(readFileSync(path, 'utf8')).toBe(before);
});
