import { copyFileSync, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { serveControl } from '../../src/app/control/serve-control.ts';
import { silentLog } from '../../src/base/log.ts';
import { Secrets } from '../../src/base/secrets/secrets.ts';
import { openWebhookClient } from '../../src/service/webhooks/client.ts';
import { openHarness } from '../support/harness.ts';
import { deriveKeysQuickly } from '../support/quick-keys.ts';
import { runHere } from '../support/run-here.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
deriveKeysQuickly();
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
    stderr: 'ringneck: no former key: standard input is empty: give it by printf %s "$FORMER_KEY" | ringneck key rotate --former\n',
  });
  const path = join(data, 'accounts.secret');
  const stored = JSON.parse(readFileSync(path, 'utf8'));
  stored.accounts[0][1] = stored.accounts[1][1];
  writeFileSync(path, JSON.stringify(stored));
  expect(await runHere(['key', 'rotate', '--former', '--json'], { env: envOf(SECOND), input: `${FIRST}\n` })).toEqual({
    code: 1,
    stdout: '{"key":"RINGNECK_SECRET_KEY","unreadable":["ada"],"finished":false}\n',
    stderr:
      'warning: the key in RINGNECK_SECRET_KEY does not open what ada gave: give the key of before by ringneck key rotate --former; where that is lost, or this is damaged: ringneck account login ada, or add\n',
  });
  expect([open(SECOND).find('ben'), open(SECOND).find('ada')]).toEqual(['token-of-ben', undefined]);
});

test('what killed processes left of sealed files, which the former key opens, goes with that key; what one still writes stays', async () => {
  const data = join(folder, 'halves');
  const disk = join(folder, 'disk');
  const { app, close } = await openHarness(data, URL);
  app.secrets.put('ada', 'token-of-ada');
  await close();
  for (const path of [disk, join(data, 'service')]) mkdirSync(path);
  renameSync(join(data, 'accounts.secret'), join(disk, 'sealed'));
  symlinkSync(join(disk, 'sealed'), join(data, 'accounts.secret'));
  openWebhookClient(join(data, 'service'), FIRST, false);
  const left = [join(disk, 'sealed'), join(data, 'secret.key'), join(data, 'service/client.json')];
  for (const path of left) copyFileSync(path, `${path}.999999999.0123456789abcdef.new`);
  const written = `sealed.${process.ppid}.0123456789abcdef.new`;
  copyFileSync(join(disk, 'sealed'), join(disk, written));
  const path = join(data, 'service/client.json');
  expect(await runHere(['key', 'rotate'], { env: { RINGNECK_DATA: data, RINGNECK_SERVICE_URL: URL } })).toEqual({
    code: 1,
    stdout: 'sealed with the key in secret.key, but for 1 that it does not open\n',
    stderr: `warning: the key in secret.key does not open the client secret in ${path}: give the key of before by ringneck key rotate --former; where that is lost, or this is damaged: ringneck service --new-tokens makes a new one\n`,
  });
  expect([disk, data, join(data, 'service')].flatMap(at => readdirSync(at).filter(name => name.endsWith('.new')))).toEqual([written]);
});
