import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findFreePort } from '../../src/app/free-port.ts';
import { MAIN } from '../support/ringneck.ts';
import { runHere } from '../support/run-here.ts';
import { type Sandbox, startSandbox } from '../support/sandbox.ts';
import { tempFolder } from '../support/temp-folder.ts';

// `script` of util-linux gives a command a terminal; other systems have another one, or none.
const able = process.platform === 'linux' && spawnSync('script', ['--version']).status === 0;

const folder = tempFolder();
const started: ChildProcess[] = [];
afterAll(() => {
  for (const child of started) child.kill('SIGKILL');
});
const ESCAPE = String.fromCharCode(27);
const MOVEMENTS = new RegExp(`${ESCAPE}(\\[[0-9;?]*[A-Za-z]|[78])`, 'g');

let sandbox: Sandbox;
beforeAll(async () => {
  // So that the bar has to wait.
  sandbox = await startSandbox({ count: 1, from: '2025-01-01', to: '2025-01-10', settings: { rateLimit: { requests: 8, seconds: 1 } } });
});
afterAll(() => sandbox.close());

/** Runs a command at a terminal of this width; `typed` is what its user answers to what the terminal shows. */
async function atTerminal(columns: number, args: string[], env: Record<string, string>, typed: [shown: string, keys: string][] = []) {
  const command = `stty cols ${columns}; exec ${[process.execPath, '--', MAIN, ...args].map(word => `'${word}'`).join(' ')}`;
  const child = spawn('script', ['-qefc', command, '/dev/null'], { env: { ...process.env, SHELL: '/bin/bash', ...env } });
  started.push(child);
  let shown = '';
  let left = typed;
  child.stdout.setEncoding('utf8').on('data', text => {
    shown += text;
    const [next, ...rest] = left;
    if (next && shown.includes(next[0])) {
      left = rest;
      child.stdin.write(next[1]);
    }
  });
  const code = await new Promise(resolve => child.once('close', resolve));
  // Without the movements of the cursor and colours.
  const plain = shown.replace(MOVEMENTS, '\n').replaceAll('\r', '');
  return {
    code,
    shown: shown.replaceAll('\r\n', '\n'),
    plain,
  };
}

test.runIf(able)('the bar shows how it goes, fits the line and ends full', async () => {
  const env = { RINGNECK_DATA: join(folder, 'bar'), RINGNECK_SERVICE_URL: sandbox.url };
  await runHere(['account', 'add', 'ada'], { env, input: sandbox.people[0]!.token });
  const { code, plain } = await atTerminal(90, ['backfill', '--from', '2025-01-01', '--to', '2025-01-10'], env);
  expect(code).toBe(0);
  const frames = plain.split('\n').filter(line => /[█░]/.test(line));
  expect(frames.length).toBeGreaterThan(3);
  for (const frame of frames) expect(frame).toMatch(/^█*░* \d+% {2}(.* left, )?[\d.,KM]+ documents, [\d.,KM]+ samples, [\d.,KM]+ requests/);
  expect(Math.max(...frames.map(frame => frame.length))).toBeLessThanOrEqual(90);
  expect(plain).toMatch(/\d+ s left, /);
  expect(plain).toMatch(/, \d+ waits, /);
  expect(plain).toMatch(/, [\d,.KM]+\/s/);
  expect(frames.at(-1)).toMatch(/^█+ 100% {2}\d/);
  expect(plain).toContain('\n2025-01-01 to 2025-01-10: complete\n');
});

test.runIf(able)('a token that is typed is not shown, and Enter ends it', async () => {
  const env = { RINGNECK_DATA: join(folder, 'typed'), RINGNECK_SERVICE_URL: sandbox.url };
  const { token } = sandbox.people[0]!;
  const { code, shown } = await atTerminal(80, ['account', 'add', 'ada'], env, [['Token (not shown): ', `${token}\r`]]);
  expect([code, shown]).toEqual([0, 'Token (not shown): \nada active\n']);
});

test.runIf(able)('Ctrl-C at the prompt ends with 130, Ctrl-D says that there was no token; neither adds an account', async () => {
  const env = { RINGNECK_DATA: join(folder, 'interrupted') };
  const add = (keys: string) => atTerminal(80, ['account', 'add', 'ada'], env, [['Token (not shown): ', keys]]);
  expect(await add('rn_half\u0003')).toMatchObject({ code: 130, shown: 'Token (not shown): \nringneck: interrupted\n' });
  expect(await add('\u0004')).toMatchObject({
    code: 2,
    shown:
      'Token (not shown): \nringneck: no token: standard input is empty: give one by printf %s "$TOKEN" | ringneck account add ada, or sign in: ringneck account login ada\n',
  });
  expect(existsSync(env.RINGNECK_DATA)).toBe(false);
});

test.runIf(able)('init asks for each setting, again for what is wrong, and shows no secret; Ctrl-C writes nothing', async () => {
  const file = join(folder, 'asked.env');
  const args = ['init', '--env-file', file];
  const typed: [string, string][] = [
    ['Base address of the service: ', '\r'],
    ['the address that `ringneck service` prints.', 'ring\r'],
    ['expected an http', `${sandbox.url}\r`],
    ['(Enter: none): ', 'client\r'],
    ['Its secret (not shown): ', 'very-secret\r'],
    ['Folder for the data', `${join(folder, 'asked')}\r`],
  ];
  const zone: [string, string] = ['Time zone of the night', '\r'];
  const login: [string, string] = ['signs in now (Enter: later): ', '\r'];
  expect(await atTerminal(200, args, {}, [...typed, [zone[0], '\u0003']])).toMatchObject({ code: 130 });
  expect(existsSync(file)).toBe(false);
  const { code, shown } = await atTerminal(200, args, {}, [...typed, zone, login]);
  expect(code).toBe(0);
  expect(shown).not.toContain('very-secret');
  expect(readFileSync(file, 'utf8')).toMatch(
    `RINGNECK_SERVICE_URL=${sandbox.url}\nRINGNECK_CLIENT_ID=client\nRINGNECK_CLIENT_SECRET=very-secret\nRINGNECK_DATA=${join(folder, 'asked')}\nRINGNECK_TIME_ZONE=`,
  );
  // What comes of the sign-in is one thing, how to go on another.
  const failing: [string, string][] = [
    [login[0], 'ada\r'],
    ['Read the last 30 days at once? [Y/n] ', '\r'],
    ['or the code in it:', '\r'],
    ['or the code in it:', 'ringneck up\r'],
  ];
  // Others may listen at the usual port.
  const env = { RINGNECK_REDIRECT_URL: `http://127.0.0.1:${await findFreePort()}/callback` };
  const again = await atTerminal(200, ['init', '--env-file', join(folder, 'again.env')], env, [...typed, zone, ...failing]);
  expect(again.code).toBe(1);
  expect(again.plain).toMatch(
    /With systemd, .*With cron, .*ringneck: what was typed is neither .*, and nothing was stored: ringneck account login ada/s,
  );
});

test.runIf(able)('the log of a person is no JSON', async () => {
  const env = { RINGNECK_DATA: join(folder, 'log'), RINGNECK_SERVCE_URL: 'x' };
  const { plain } = await atTerminal(100, ['account', 'list'], env);
  expect(plain).toMatch(/WARN/);
  expect(plain).not.toContain('{"level"');
});
