import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { ensureUnwritable } from '../../src/base/access.ts';
import { readSettings } from '../../src/base/config.ts';
import { ringneck } from '../support/ringneck.ts';
import { runHere } from '../support/run-here.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { placeWarehouse } from '../support/warehouse.ts';

const folder = tempFolder();
let folders = 0;
function dataFolder(mode = 0o700): string {
  const path = join(folder, `d${++folders}`);
  mkdirSync(path);
  chmodSync(path, mode);
  return path;
}

/** The same with a warehouse in which there is nothing yet. */
function begun(mode?: number): string {
  const path = dataFolder(mode);
  placeWarehouse(join(path, 'warehouse.duckdb'));
  return path;
}

test.each([0o720, 0o702, 0o777, 0o1777])(
  'a data folder that others can write (%o) is refused with the command that fixes it',
  async mode => {
    const data = dataFolder(mode);
    const { code, stderr } = await runHere(['account', 'list'], { env: { RINGNECK_DATA: data } });
    const octal = (mode & 0o777).toString(8).padStart(4, '0');
    expect({ code, stderr }).toEqual({ code: 2, stderr: `ringneck: ${data} is writable by others (${octal}): chmod 700 ${data}\n` });
    const link = join(folder, `link${folders}`);
    symlinkSync(data, link);
    expect(() => ensureUnwritable(link)).toThrow(`${link} is writable by others`);
  },
);

test.each(['secret.key', 'accounts.secret', 'warehouse.duckdb'])('%s that others can write is refused', name => {
  const data = dataFolder();
  const path = join(data, name);
  writeFileSync(path, '');
  chmodSync(path, 0o620);
  expect(() => ensureUnwritable(data)).toThrow(`${name} is writable by others (0620): chmod go= ${path}`);
});

const OF_OUR_OWN = 'move it into a folder that only you can write to';
/** A sticky folder is everybody’s. */
const cure = (folder: string, mode: number) => (mode & 0o1000 ? OF_OUR_OWN : `${OF_OUR_OWN}, or chmod go-w ${folder}`);

test.each([0o777, 0o1777, 0o770])(
  'a folder that others can write (%o) is refused where a link leads there: they would make its log',
  async mode => {
    const data = dataFolder();
    const shared = dataFolder(mode);
    const octal = (mode & 0o777).toString(8).padStart(4, '0');
    for (const name of ['warehouse.duckdb', 'secret.key']) {
      // It leads to no file yet.
      const link = join(dataFolder(), name);
      symlinkSync(join(shared, 'w'), link);
      expect(() => ensureUnwritable(dirname(link))).toThrow(`${name} leads into ${shared}, which is writable by others (${octal})`);
    }
    symlinkSync(join(shared, 'w.duckdb'), join(data, 'warehouse.duckdb'));
    const stderr = `ringneck: warehouse.duckdb leads into ${shared}, which is writable by others (${octal}): ${cure(shared, mode)}\n`;
    expect(await runHere(['account', 'list'], { env: { RINGNECK_DATA: data } })).toEqual({ code: 2, stdout: '', stderr });
    expect(existsSync(join(shared, 'w.duckdb'))).toBe(false);
    const doctor = await runHere(['doctor'], { env: { RINGNECK_DATA: data, RINGNECK_SERVICE_URL: 'http://127.0.0.1:9' } });
    expect(doctor.stdout).toMatch(/fail +folder +warehouse\.duckdb leads into/);
  },
);

test.each(['console-sessions', 'person-files'])('%s that others can write, behind a link too, is refused', name => {
  const data = dataFolder();
  const shared = dataFolder(0o1777);
  symlinkSync(shared, join(data, name));
  expect(() => ensureUnwritable(data)).toThrow(`${name} is writable by others (0777): chmod 700 ${join(data, name)}`);
  chmodSync(shared, 0o700);
  expect(ensureUnwritable(data)).toEqual([]);
});

test('a folder that others can only read takes the warehouse; its log there is looked at too', () => {
  const data = dataFolder();
  const readable = dataFolder(0o755);
  symlinkSync(join(readable, 'w.duckdb'), join(data, 'warehouse.duckdb'));
  expect(ensureUnwritable(data)).toEqual([]);
  const log = join(readable, 'w.duckdb.wal');
  writeFileSync(log, '');
  chmodSync(log, 0o666);
  expect(() => ensureUnwritable(data)).toThrow(`${log} is writable by others (0666): chmod go= ${log}`);
  chmodSync(log, 0o644);
  expect(ensureUnwritable(data)).toEqual([{ can: 'read', message: `${log} is open to others (0644)`, fix: `chmod go= ${log}` }]);
  // Where a link leads nowhere, whoever opens it tells.
  symlinkSync(join(folder, 'nowhere/at-all'), join(data, 'inbox'));
  expect(ensureUnwritable(data)).toHaveLength(1);
});

test.each([
  ['in it', (shared: string) => join(shared, 'snap.duckdb')],
  [
    'behind a link',
    (shared: string) => {
      const link = join(dataFolder(), 'snap.duckdb');
      symlinkSync(join(shared, 'snap.duckdb'), link);
      return link;
    },
  ],
])('a folder that others can write is refused for the snapshot (%s), and doctor says so', async (_, place) => {
  const shared = dataFolder(0o1777);
  const env = { RINGNECK_DATA: begun(), RINGNECK_SNAPSHOT: place(shared), RINGNECK_SERVICE_URL: 'http://127.0.0.1:9' };
  const said = `RINGNECK_SNAPSHOT leads into ${shared}, which is writable by others (0777)`;
  for (const args of [['snapshot'], ['account', 'list']]) {
    expect(await runHere(args, { env })).toEqual({ code: 2, stdout: '', stderr: `ringneck: ${said}: ${OF_OUR_OWN}\n` });
  }
  expect(existsSync(join(shared, 'snap.duckdb'))).toBe(false);
  const { code, stdout } = await runHere(['doctor'], { env });
  expect(code).toBe(1);
  expect(stdout).toMatch(/fail +snapshot +RINGNECK_SNAPSHOT leads into/);
  chmodSync(shared, 0o755);
  expect(await runHere(['snapshot'], { env })).toMatchObject({ code: 0 });
});

test('a link of the control socket into a folder of others keeps nobody out: the control socket looks for itself', () => {
  const data = dataFolder();
  const place = dataFolder(0o777);
  if (process.getuid?.() === 0) chownSync(place, 12345, 12345);
  symlinkSync(join(place, 's'), join(data, 'control.sock'));
  expect(ensureUnwritable(data)).toEqual([]);
});

test('what others can only read is a warning, in the log once', async () => {
  const data = begun(0o755);
  const { code, stderr } = await ringneck(['account', 'list'], { env: { RINGNECK_DATA: data } });
  expect(code).toBe(0);
  const warnings = stderr.split('\n').filter(line => line.includes('open to others'));
  expect(warnings.map(line => JSON.parse(line))).toMatchObject([
    { level: 40, msg: `${data} is open to others (0755)`, fix: `chmod 700 ${data}` },
  ]);
});

test.runIf(process.getuid?.() === 0)('a folder of another user is refused', () => {
  const data = dataFolder();
  chownSync(data, 12345, 12345);
  expect(() => ensureUnwritable(data)).toThrow(`${data} is another user’s (uid 12345): chown 0 ${data}`);
});

test('a file with a secret that others can write is refused; one that they can read is a warning', () => {
  const file = join(folder, 'secret');
  writeFileSync(file, 'a key of more than sixteen letters');
  chmodSync(file, 0o444);
  expect(readSettings({ RINGNECK_SECRET_KEY_FILE: file }).secretKey).toBe('a key of more than sixteen letters');
  expect(readSettings({ RINGNECK_SECRET_KEY_FILE: file }).readable).toEqual([
    { can: 'read', message: `RINGNECK_SECRET_KEY_FILE: ${file} is open to others (0444)`, fix: `chmod go= ${file}` },
  ]);
  const link = join(folder, 'secret-link');
  symlinkSync(file, link);
  chmodSync(file, 0o400);
  expect(readSettings({ RINGNECK_SECRET_KEY_FILE: link })).toMatchObject({ secretKey: 'a key of more than sixteen letters', readable: [] });
  chmodSync(file, 0o646);
  expect(() => readSettings({ RINGNECK_SECRET_KEY_FILE: file })).toThrow(
    `RINGNECK_SECRET_KEY_FILE: others can write ${file}: chmod go-w ${file}`,
  );
});

test('a file with a secret that others can read is told once in the log, and by doctor', async () => {
  const file = join(folder, 'readable');
  writeFileSync(file, 'a key of more than sixteen letters');
  chmodSync(file, 0o644);
  const env = { RINGNECK_DATA: begun(), RINGNECK_SECRET_KEY_FILE: file };
  const { code, stderr } = await ringneck(['account', 'list'], { env });
  expect(code).toBe(0);
  const msg = `RINGNECK_SECRET_KEY_FILE: ${file} is open to others (0644)`;
  const warnings = stderr.split('\n').filter(line => line.includes('open to others'));
  expect(warnings.map(line => JSON.parse(line))).toMatchObject([{ level: 40, msg, fix: `chmod go= ${file}` }]);
  expect((await runHere(['doctor'], { env })).stdout).toContain(msg);
});

test('a secret is read from a regular file alone: nothing hangs', () => {
  const fifo = join(folder, 'fifo');
  execFileSync('mkfifo', [fifo]);
  for (const file of [fifo, folder, '/dev/null']) {
    expect(() => readSettings({ RINGNECK_CLIENT_SECRET_FILE: file })).toThrow(
      `RINGNECK_CLIENT_SECRET_FILE: ${file} is no regular file; a folder, a pipe, /dev/stdin and <(…) are not read`,
    );
  }
});

test('doctor says what others can do', async () => {
  const data = dataFolder();
  writeFileSync(join(data, 'secret.key'), 'x'.repeat(32));
  chmodSync(join(data, 'secret.key'), 0o666);
  const { code, stdout } = await runHere(['doctor'], { env: { RINGNECK_DATA: data, RINGNECK_SERVICE_URL: 'http://127.0.0.1:9' } });
  expect(code).toBe(1);
  expect(stdout).toMatch(/fail +folder +secret\.key is writable by others \(0666\)/);
  expect(stdout).toContain(`chmod go= ${join(data, 'secret.key')}`);
});
