import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { checkService } from '../../src/app/doctor/service.ts';
import { HeartRateSweeps } from '../../src/sync/sweeps/heart-rate.ts';
import { startSweep } from '../../src/sync/sweeps/sweep.ts';
import { startCallback } from '../service/webhooks/callback.ts';
import { type Harness, openHarness } from '../support/harness.ts';
import { ringneck } from '../support/ringneck.ts';
import { runHere } from '../support/run-here.ts';
import { openSandboxHere } from '../support/sandbox-here.ts';
import type { OpenSandbox } from '../support/sandbox-process.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';
import { COLLECTIONS, readCollection } from '../support/wire-reader.ts';

const folder = tempFolder();

async function open(name: string, ...options: [Parameters<typeof openSandboxHere>[1], Parameters<typeof openSandboxHere>[2]?]) {
  const sandbox = await openSandboxHere(join(folder, name), ...options);
  onTestFinished(() => sandbox.close());
  return sandbox;
}

async function control({ control: { url, secret } }: OpenSandbox, path: string, body: object): Promise<void> {
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' };
  const answer = await fetch(`${url}/${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  expect(answer.status, path).toBe(200);
}

const sweep = async (harness: Harness) => (await startSweep(await harness.app.pipeline(), { kind: 'sweep', days: 3 })).run.done;

/** How many documents and on which days, by collection. */
const daysOf = async (harness: Harness, table: string) =>
  (await harness.read(`SELECT DISTINCT day::VARCHAR FROM "${table}" WHERE day >= '2025-01-30' ORDER BY 1`)).flat() as string[];

const february = (from: number) => Array.from({ length: 29 - from }, (_, i) => `2025-02-${String(from + i).padStart(2, '0')}`);

test('a sandbox that stands in 2025: the last days, nights and sweeps are its own, its signatures, limits and subscriptions are real', async () => {
  const sandbox = await open('stands', { to: '2025-02-28', rateLimit: { requests: 300, seconds: 300 }, deliveryDelay: 0 });
  const ada = sandbox.people[0]!;
  const authorization = `Bearer ${ada.token}`;
  const data = join(folder, 'standing');
  const harness = await openHarness(data, sandbox.url);
  await harness.add([ada]);

  const answer = await fetch(`${sandbox.url}${COLLECTIONS.daily_activity}`, { headers: { authorization } });
  // The last day of February is over when it is 4 a.m. there.
  expect(answer.headers.get('date')).toMatch(/^Sat, 01 Mar 2025 0\d:00:00 GMT$/);
  const unasked = ((await answer.json()) as { data: { day: string }[] }).data.map(({ day }) => day);
  expect(unasked.at(-1)).toBe('2025-02-28');

  const ben = { headers: { authorization: `Bearer ${sandbox.people[1]!.token}` } };
  let limited = answer;
  for (let i = 0; i <= 300; i++) {
    limited = await fetch(`${sandbox.url}/v2/usercollection/personal_info`, ben);
    await limited.arrayBuffer();
  }
  expect(limited.status).toBe(429);
  const left = Number(limited.headers.get('x-ratelimit-reset')) - Date.now() / 1000;
  expect(left > 200 && left < 302, String(left)).toBe(true);

  const { commands } = harness;
  const context = { emit: () => {}, signal: new AbortController().signal };
  const report = await commands.backfill({ last: 30, refresh: false, plan: false }, context);
  expect(report).toMatchObject({ state: 'complete', from: '2025-02-01', to: '2025-03-02', failures: [] });
  expect((await daysOf(harness, 'daily_activity')).filter(day => day.startsWith('2025-02'))).toEqual(february(1));
  expect((await daysOf(harness, 'sleep')).length).toBeGreaterThan(24);
  expect(await harness.read(`SELECT max(ts) >= '2025-02-28 20:00:00', count(DISTINCT ts::DATE) > 24 FROM heart_rate`)).toEqual([
    [true, true],
  ]);
  expect(await commands.backfill({ last: 30, refresh: false, plan: true }, context)).toMatchObject({
    from: '2025-02-01',
    to: '2025-03-02',
  });

  const before = await harness.hash();
  expect(await harness.nightly(3)).toMatchObject({ state: 'complete', from: '2025-02-28', to: '2025-03-02', failures: [] });
  expect(await sweep(harness)).toMatchObject({ state: 'complete', from: '2025-02-28', to: '2025-03-02', failures: [] });
  expect(await harness.hash()).toEqual(before);

  const status = await commands.status({});
  expect(status.service_clock!.at).toMatch(/^2025-03-01T0\d:00:0/);
  expect(Math.abs(status.service_clock!.ahead + (Date.now() - Date.parse(status.service_clock!.at)) / 1000)).toBeLessThan(60);
  expect(status.accounts[0]!.collections.filter(({ state }) => state !== 'up_to_date')).toEqual([]);
  const said = await checkService({ serviceUrl: sandbox.url, webhooks: null, signatureWindow: 300 });
  expect(said.find(({ check }) => check === 'clock')).toMatchObject({ state: 'warn', message: expect.stringContaining('2025-03-01T') });

  const callback = await startCallback();
  const subscribed = await fetch(`${sandbox.url}/v2/webhook/subscription`, {
    method: 'POST',
    headers: { 'x-client-id': sandbox.client.id, 'x-client-secret': sandbox.client.secret, 'content-type': 'application/json' },
    body: JSON.stringify({ callback_url: callback.url, verification_token: 'v', event_type: 'create', data_type: 'daily_activity' }),
  });
  expect(subscribed.status).toBeLessThan(300);
  const { expiration_time: expires } = (await subscribed.json()) as { expiration_time: string };
  expect(Date.parse(/[Z+]/.test(expires.slice(10)) ? expires : `${expires}Z`)).toBeGreaterThan(Date.now() + 86_400_000);
  await control(sandbox, 'clock', { advance: 86_400 });
  await control(sandbox, 'sync', { person: ada.name });
  await until('the event is here', () => callback.events().length > 0);
  const { headers, body } = callback.received.find(({ method }) => method === 'POST')!;
  expect(Math.abs(Number(headers['x-service-timestamp']) - Date.now() / 1000)).toBeLessThan(60);
  expect(JSON.parse(body).event_time).toMatch(/^2025-03-0[12]T/);

  // The day that was lived since is read by a sweep.
  await until('what its clock last showed is too old', () => harness.app.serviceClock.isStale());
  expect(await sweep(harness)).toMatchObject({ state: 'complete', to: '2025-03-03' });
  expect(await daysOf(harness, 'daily_activity')).toContain('2025-03-01');
  await harness.close();

  const shown = await runHere(['status'], { env: { RINGNECK_DATA: data, RINGNECK_SERVICE_URL: sandbox.url, RINGNECK_LOG_LEVEL: 'warn' } });
  expect(shown.stdout).toMatch(/service: its clock \(2025-03-02T.*Z\) is \d+ days behind ours; its days are read by its own clock/);
});

test('a sandbox that runs at 600 times: the heart rate of lived days arrives, and what no event told is repaired by a sweep', async () => {
  const sandbox = await open('fast', { people: 1, from: '2025-01-20', to: '2025-01-31', clockSpeed: 600 }, { lose: '1' });
  const ada = sandbox.people[0]!;
  const harness = await openHarness(join(folder, 'following'), sandbox.url);
  await harness.add([ada]);
  const context = { emit: () => {}, signal: new AbortController().signal };
  expect(await harness.commands.backfill({ last: 10, refresh: false, plan: false }, context)).toMatchObject({ state: 'complete' });
  const [[first]] = (await harness.read('SELECT max(ts)::VARCHAR FROM heart_rate')) as [[string]];
  expect(first >= '2025-01-31').toBe(true);

  // Four days at once, more than a sweep of three has, then as it runs.
  for (let day = 0; day < 4; day++) {
    await control(sandbox, 'clock', { advance: 86_400 });
    await control(sandbox, 'sync', { person: ada.name });
  }
  await until('what its clock last showed is too old', () => harness.app.serviceClock.isStale());
  const rates = new HeartRateSweeps(await harness.app.pipeline());
  await rates.sweepAll();
  rates.close();
  const lived = await harness.read(`SELECT DISTINCT ts::DATE::VARCHAR FROM heart_rate WHERE ts >= '2025-02-01' ORDER BY 1`);
  expect(lived.flat()).toEqual(expect.arrayContaining(['2025-02-01', '2025-02-02', '2025-02-03', '2025-02-04']));

  expect(await sweep(harness)).toMatchObject({ state: 'complete', failures: [] });
  for (const table of ['sleep', 'daily_activity', 'daily_readiness']) {
    const asked = { start_date: '2025-01-30', end_date: '2025-02-05' };
    const documents = await readCollection(sandbox.url, COLLECTIONS[table]!, ada.token, asked);
    const theirs = documents!.filter(({ day }) => String(day) <= '2025-02-03').map(({ id }) => id);
    const ours = await harness.read(`SELECT id FROM "${table}" WHERE day BETWEEN '2025-01-30' AND '2025-02-03' ORDER BY id`);
    expect(ours.flat(), table).toEqual(theirs.sort());
    expect(theirs.length, table).toBeGreaterThan(3);
  }
});

test('a sandbox that was set on by 45 days: the next command, which is a process of its own, reads its last days', async () => {
  const sandbox = await open('set-on', { people: 1, from: '2025-01-20', to: '2025-01-31' });
  const data = join(folder, 'following-it');
  const harness = await openHarness(data, sandbox.url);
  await harness.add([sandbox.people[0]!]);
  await harness.close();
  const env = { RINGNECK_DATA: data, RINGNECK_SERVICE_URL: sandbox.url, RINGNECK_LOG_LEVEL: 'warn' };
  const nightly = async () => {
    const { code, stdout, stderr } = await ringneck(['nightly', '--days', '3', '--json'], { env });
    expect(code, stderr).toBe(0);
    return JSON.parse(stdout) as object;
  };
  expect(await nightly()).toMatchObject({ state: 'complete', from: '2025-01-31', to: '2025-02-02' });
  await control(sandbox, 'clock', { advance: 45 * 86_400 });
  await control(sandbox, 'sync', { person: sandbox.people[0]!.name });
  expect(await nightly()).toMatchObject({ state: 'complete', to: '2025-03-19' });
  expect(await nightly()).toMatchObject({ state: 'complete', from: '2025-03-17', to: '2025-03-19' });
});
