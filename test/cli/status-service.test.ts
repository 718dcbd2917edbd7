import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { serveControl } from '../../src/app/control/serve-control.ts';
import { silentLog } from '../../src/base/log.ts';
import { freePort } from '../queue/redis-server.ts';
import { startFaultService } from '../support/fault-service.ts';
import { openHarness } from '../support/harness.ts';
import { runHere } from '../support/run-here.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();

test('status says since when the service cannot be reached and why, until somebody answers', async () => {
  const port = await freePort();
  const data = join(folder, 'data');
  const harness = await openHarness(data, `http://127.0.0.1:${port}`, { now: () => Date.parse('2025-06-01T12:00:30Z') });
  const control = await serveControl({ folder: data, commands: harness.commands, log: silentLog });
  onTestFinished(() => control.close());
  const status = (...args: string[]) => runHere(['status', ...args], { env: { RINGNECK_DATA: data } });
  expect(JSON.parse((await status('--json')).stdout)).toMatchObject({ service_unreachable: null });
  await harness.add([{ name: 'ada', token: 'token-of-ada' }]);
  const reason = `nobody listens at http://127.0.0.1:${port} (ECONNREFUSED): is it running, and is the port of RINGNECK_SERVICE_URL right?`;
  const since = expect.stringMatching(/^2025-06-01T12:00:[0-3]\d/);
  expect(JSON.parse((await status('--json')).stdout)).toMatchObject({ service_unreachable: { since, reason } });
  const line = (await status()).stdout.split('\n').find(said => said.startsWith('service: '));
  expect(line?.replace(/2025-06-01T12:00:\S+/, 'NOON')).toBe(`service: cannot be reached since NOON (${reason})`);

  const service = await startFaultService({}, { port });
  onTestFinished(() => service.close());
  await harness.add([{ name: 'ada', token: 'token-of-ada' }]);
  expect(JSON.parse((await status('--json')).stdout)).toMatchObject({ service_unreachable: null });
});

test('what a command of before could not reach stands in status, since the first one, until a command is answered', async () => {
  const port = await freePort();
  const env = { RINGNECK_DATA: join(folder, 'cron'), RINGNECK_SERVICE_URL: `http://127.0.0.1:${port}` };
  const status = async (changes = {}) =>
    JSON.parse((await runHere(['status', '--json'], { env: { ...env, ...changes } })).stdout).service_unreachable;
  const reason = `nobody listens at http://127.0.0.1:${port} (ECONNREFUSED): is it running, and is the port of RINGNECK_SERVICE_URL right?`;
  const moment = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
  // As a command does it, but that it waits for nobody.
  const add = async (name: string) => {
    const harness = await openHarness(env.RINGNECK_DATA, env.RINGNECK_SERVICE_URL);
    await harness.add([{ name, token: `token-of-${name}` }]);
    await harness.close();
  };
  await add('ada');
  const first = await status();
  expect(first).toEqual({ since: expect.stringMatching(moment), reason });
  await add('ben');
  expect(await status()).toEqual(first);
  expect((await runHere(['status'], { env })).stdout).toContain(`\nservice: cannot be reached since ${first.since} (${reason})\n`);
  expect(await status({ RINGNECK_SERVICE_URL: 'http://127.0.0.1:1' })).toBeNull();

  const service = await startFaultService({}, { port });
  onTestFinished(() => service.close());
  await add('ada');
  expect(await status()).toBeNull();
});

test('status says of the queue how many events wait that were accepted, whether the queue holds them yet or not', async () => {
  const data = join(folder, 'waiting');
  const harness = await openHarness(data, 'http://127.0.0.1:1');
  const control = await serveControl({ folder: data, commands: harness.commands, log: silentLog });
  onTestFinished(() => control.close());
  const inbox = await harness.app.inbox();
  for (let i = 0; i < 3; i++) await inbox.append(String(1_748_736_000_000_000 + i), '{}');
  const status = (...args: string[]) => runHere(['status', ...args], { env: { RINGNECK_DATA: data } });
  expect(JSON.parse((await status('--json')).stdout)).toMatchObject({ queue: { waiting: 0, events: 3 } });
  expect((await status()).stdout).toContain('queue: 3 events waiting; windows: 0 waiting, 0 active, 0 delayed, 0 failed');
});
