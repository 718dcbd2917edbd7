import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { serveControl } from '../../src/app/control/serve-control.ts';
import { Sandbox, type SandboxAccess } from '../../src/app/sandbox.ts';
import { readSettings } from '../../src/base/config.ts';
import { silentLog } from '../../src/base/log.ts';
import { openHarness } from '../support/harness.ts';
import { runHere } from '../support/run-here.ts';
import { personAt } from '../support/sandbox-page.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
const RANGE = { people: 2, seed: 7, from: '2025-01-01', to: '2025-01-03' };
const REDIRECT_URL = 'http://127.0.0.1:8976/callback';
let sandbox: SandboxAccess;

let opened: Sandbox;

beforeAll(async () => {
  const settings = readSettings({ RINGNECK_DATA: join(folder, 'sandbox') }, { follows: false });
  const where = { port: 0, host: '127.0.0.1', controlPort: 0, redirectUrl: [REDIRECT_URL], allowCallback: [] };
  const limits = { rateLimit: 'off', appRateLimit: 'off', tokenLife: 86_400, deliveryDelay: 30, timeScale: 1 } as const;
  opened = await Sandbox.prepare({ settings, log: silentLog, options: { ...RANGE, ...where, ...limits }, first: RANGE });
  sandbox = await opened.open();
});
afterAll(() => opened.close());

async function setTokens(person: string, state: string) {
  const headers = { authorization: `Bearer ${sandbox.control.secret}`, 'content-type': 'application/json' };
  const answer = await fetch(`${sandbox.control.url}/token`, { method: 'POST', headers, body: JSON.stringify({ person, state }) });
  expect(answer.status).toBe(200);
}

/** A data folder that a process has open, as `up` has. */
async function openOwner(name: string) {
  const env = {
    RINGNECK_DATA: join(folder, name),
    RINGNECK_SERVICE_URL: sandbox.url,
    RINGNECK_CLIENT_ID: sandbox.client.id,
    RINGNECK_CLIENT_SECRET: sandbox.client.secret ?? '',
  };
  const { signIn } = readSettings(env);
  const harness = await openHarness(env.RINGNECK_DATA, sandbox.url, { settings: { signIn } });
  const control = await serveControl({ folder: env.RINGNECK_DATA, commands: harness.commands, log: silentLog });
  onTestFinished(() => control.close());
  return { harness, env };
}

test('a person of the sandbox signs in while another process has the folder, and is read at once', async () => {
  const { harness, env } = await openOwner('at-once');
  const login = ['account', 'login', 'ada', '--no-browser', '--from', '2025-01-01'];
  const done = await runHere(login, { env, input: personAt('ada', ['spo2Daily']) });
  expect(done).toMatchObject({ code: 0, stdout: expect.stringContaining('ada active\n') });
  expect(done.stderr).toContain('not asked: ada daily_spo2 is not_authorised (scope spo2Daily was not granted)\n');
  const days = (table: string) => harness.read(`SELECT count(*) > 0 FROM ${table} WHERE user_id = 'ada'`);
  expect([await days('daily_sleep'), await days('daily_spo2')]).toEqual([[[true]], [[false]]]);
  expect((await runHere(['status'], { env })).stdout).toMatch(/^ada: active\n {2}signed in: token until \S+Z, renewed \S+Z\n/);
  // Another person at the same page, and the same one who allows more.
  const other = await runHere(['account', 'login', 'ada', '--no-browser'], { env, input: personAt('ben') });
  expect(other).toMatchObject({ code: 1, stderr: expect.stringContaining('not ada, and nothing was stored') });
  expect((await runHere(login, { env, input: personAt('ada') })).code).toBe(0);
  expect(await days('daily_spo2')).toEqual([[true]]);
});

test('tokens of the sandbox that have expired are renewed, and revoked ones ask for a new sign-in', async () => {
  const { harness, env } = await openOwner('expired');
  const login = ['account', 'login', 'ben', '--no-browser'];
  expect((await runHere(login, { env, input: personAt('ben') })).stdout).toBe('ben active\n');
  const backfill = () => harness.backfill({ from: '2025-01-01', to: '2025-01-02', refresh: true });
  const first = harness.app.secrets.find('ben');
  await setTokens('ben', 'expired');
  expect(await backfill()).toMatchObject({ state: 'complete', failures: [] });
  expect(harness.app.secrets.find('ben')).not.toBe(first);
  await setTokens('ben', 'revoked');
  await backfill();
  expect((await runHere(['account', 'list'], { env })).stderr).toBe('');
  expect(await harness.read('SELECT state, reason FROM sync.accounts')).toEqual([['parked', 'sign in again: ringneck account login ben']]);
  expect((await runHere(login, { env, input: personAt('ben') })).stdout).toBe('ben active\n');
  expect(await backfill()).toMatchObject({ state: 'complete', failures: [] });
});
