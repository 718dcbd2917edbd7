import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { DataFolder } from '../../src/app/data-folder.ts';
import { runUp } from '../../src/app/up.ts';
import { readSettings } from '../../src/base/config.ts';
import { createLog } from '../../src/base/log.ts';
import { Secrets } from '../../src/base/secrets/secrets.ts';
import { OAuthClient } from '../../src/sign-in/oauth.ts';
import { openSignedInHarness } from '../sign-in/signed-in-harness.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';

const folder = tempFolder();

test('up that cannot end in its time is cut off, and says so', async () => {
  const data = join(folder, 'data');
  mkdirSync(data, { mode: 0o700 });
  const stop = new AbortController();
  let last = '';
  const write = (line: string) => {
    last = line;
    if (line.includes('"msg":"up"')) stop.abort();
  };
  let close: () => void = () => undefined;
  const closed = new Promise<void>(resolve => {
    close = resolve;
  });
  const settings = { ...readSettings({ RINGNECK_DATA: data, RINGNECK_SERVICE_URL: 'http://127.0.0.1:9' }), port: 0, consolePort: 0 };
  const openConsole = async () => ({ url: 'http://127.0.0.1:0', createLink: () => '', close: () => closed });
  await runUp({ settings, log: createLog({ level: 'info', pretty: false, stream: { write } }), openConsole, endMs: 10 }, stop.signal);
  expect(JSON.parse(last)).toMatchObject({ level: 50, seconds: 0.01, msg: expect.stringContaining('up is cut off') });
  expect(existsSync(join(data, 'control.sock'))).toBe(true);
  close();
  await until('it has ended', () => !existsSync(join(data, 'control.sock')));
});

test('up is not cut off while the service is renewing a sign-in, which would be lost', async () => {
  const { harness, login } = await openSignedInHarness(folder, 'renewing');
  await login('ada');
  const { data, serviceUrl: address } = harness.app.settings;
  const { refreshToken } = harness.app.secrets.findSignIn('ada') ?? {};
  await harness.close();
  const stop = new AbortController();
  let answer: () => void = () => undefined;
  const answered = new Promise<void>(resolve => {
    answer = resolve;
  });
  const { refresh } = OAuthClient.prototype;
  const asked = vi.spyOn(OAuthClient.prototype, 'refresh').mockImplementation(async function (this: OAuthClient, token) {
    stop.abort();
    await answered;
    return refresh.call(this, token);
  });
  onTestFinished(() => asked.mockRestore());
  const lines: string[] = [];
  const write = (line: string) => {
    lines.push(line);
    if (/up is cut off|which is waited for/.test(line)) setTimeout(answer, 20);
  };
  const settings = { ...harness.app.settings, port: 0, consolePort: null };
  const log = createLog({ level: 'warn', pretty: false, stream: { write } });
  await runUp({ settings, log, now: () => Date.now() + 80_000, endMs: 10 }, stop.signal);
  expect(lines.filter(line => line.includes('up is cut off'))).toEqual([]);
  const kept = new Secrets({ folder: data, address }).findSignIn('ada');
  expect(kept?.previous).toBe(refreshToken);
});

test('up that cannot end in its time begins no renewal while it waits for those that it has begun', async () => {
  const { harness, login, server } = await openSignedInHarness(folder, 'renewing-many');
  const names = ['ada', 'ben', 'cleo', 'dora', 'eve'];
  for (const name of names) {
    server.person = { id: `${name}-1` };
    await login(name);
  }
  const { data, serviceUrl: address } = harness.app.settings;
  const renewedAt = (secrets: Secrets) => names.map(name => secrets.findSignIn(name)?.refreshedAt);
  const before = renewedAt(harness.app.secrets);
  await harness.close();
  const stop = new AbortController();
  const gates = { answer: () => {}, close: () => {} };
  const answered = new Promise<void>(resolve => {
    gates.answer = resolve;
  });
  const closed = new Promise<void>(resolve => {
    gates.close = resolve;
  });
  const { refresh } = OAuthClient.prototype;
  let written = 0;
  const asked = vi.spyOn(OAuthClient.prototype, 'refresh').mockImplementation(async function (this: OAuthClient, token) {
    stop.abort();
    await answered;
    return refresh.call(this, token);
  });
  const { findSignInsInHand } = DataFolder.prototype;
  const waits = vi.spyOn(DataFolder.prototype, 'findSignInsInHand').mockImplementation(function (this: DataFolder) {
    gates.answer();
    return findSignInsInHand.call(this);
  });
  onTestFinished(() => void [asked, waits].map(spy => spy.mockRestore()));
  const write = (line: string) => {
    if (line.includes('the sign-in is renewed') && ++written === 4) setTimeout(gates.close, 50);
  };
  const settings = { ...harness.app.settings, port: 0, consolePort: 0 };
  const openConsole = async () => ({ url: 'http://127.0.0.1:0', createLink: () => '', close: () => closed });
  const log = createLog({ level: 'info', pretty: false, stream: { write } });
  await runUp({ settings, log, openConsole, now: () => Date.now() + 80_000, endMs: 10 }, stop.signal);
  const after = renewedAt(new Secrets({ folder: data, address }));
  expect([written, asked.mock.calls.length, after.filter(at => before.includes(at)).length]).toEqual([4, 4, 1]);
});
