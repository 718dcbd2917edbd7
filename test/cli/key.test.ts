import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { serveControl } from '../../src/app/control/serve-control.ts';
import { silentLog } from '../../src/base/log.ts';
import { Secrets } from '../../src/base/secrets/secrets.ts';
import { openHarness } from '../support/harness.ts';
import { runHere } from '../support/run-here.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
const URL = 'http://127.0.0.1:9';
const [FIRST, SECOND] = ['the first of two keys', 'the second of two keys'];

test('while ringneck up runs the key in the folder is changed by it, and one of the environment is not', async () => {
  const data = join(folder, 'running');
  const env = { RINGNECK_DATA: data, RINGNECK_SERVICE_URL: URL };
  const { app, commands } = await openHarness(data, URL);
  app.secrets.put('ada', 'token-of-ada');
  const former = readFileSync(join(data, 'secret.key'), 'utf8');
  const control = await serveControl({ folder: data, commands, log: silentLog });
  onTestFinished(() => control.close());
  expect(await runHere(['key', 'rotate'], { env })).toEqual({ code: 0, stdout: 'sealed with the key in secret.key\n', stderr: '' });
  expect(readFileSync(join(data, 'secret.key'), 'utf8')).not.toBe(former);
  expect(app.secrets.find('ada')).toBe('token-of-ada');
  expect(await runHere(['key', 'rotate', '--former'], { env: { ...env, RINGNECK_SECRET_KEY: FIRST }, input: former })).toEqual({
    code: 75,
    stdout: '',
    stderr: `ringneck: ${data} is owned by a running ringneck (PID ${process.pid}), which has the RINGNECK_SECRET_KEY that it was started with: end it, then try again\n`,
  });
});

test('a key of the environment is changed by giving the former one, and what was damaged is told', async () => {
  const data = join(folder, 'given');
  const envOf = (key: string) => ({ RINGNECK_DATA: data, RINGNECK_SERVICE_URL: URL, RINGNECK_SECRET_KEY: key });
  await (await openHarness(data, URL)).close();
  const open = (key: string) => new Secrets({ folder: data, key, address: URL });
  open(FIRST).put('ada', 'token-of-ada');
  open(FIRST).put('ben', 'token-of-ben');
  expect(await runHere(['key', 'rotate'], { env: envOf(FIRST) })).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^ringneck: RINGNECK_SECRET_KEY is the key that all is sealed with. To change it end ringneck up/),
  });
  expect(await runHere(['key', 'rotate', '--former'], { env: envOf(SECOND), input: '\n' })).toMatchObject({
    code: 2,
    stderr: 'ringneck: no former key: standard input is empty\n',
  });
  const path = join(data, 'accounts.secret');
  const stored = JSON.parse(readFileSync(path, 'utf8'));
  stored.accounts[0][1] = stored.accounts[1][1];
  writeFileSync(path, JSON.stringify(stored));
  expect(await runHere(['key', 'rotate', '--former', '--json'], { env: envOf(SECOND), input: `${FIRST}\n` })).toEqual({
    code: 1,
    stdout: '{"key":"RINGNECK_SECRET_KEY","unreadable":["ada"],"finished":false}\n',
    stderr: 'warning: what ada gave was damaged before: ringneck account login ada, or add\n',
  });
  expect([open(SECOND).find('ben'), open(SECOND).find('ada')]).toEqual(['token-of-ben', undefined]);
});
