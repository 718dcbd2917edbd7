import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { checkAccounts } from '../../src/app/doctor/accounts.ts';
import { ANOTHER_PERSON } from '../../src/ledger/unproven.ts';
import { freePort } from '../queue/redis-server.ts';
import { openHarness } from '../support/harness.ts';
import { runHere } from '../support/run-here.ts';
import { startSandbox } from '../support/sandbox.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();

const REFUSED = 'unauthorized: GET /v2/usercollection/session: answered 401';
const names = Array.from({ length: 30 }, (_, i) => `p${i + 10}`);

/** A real service, and thirty people whose tokens it refuses. */
async function refusedHarness(name: string) {
  const sandbox = await startSandbox({ count: 2, from: '2025-01-01', to: '2025-01-03' });
  onTestFinished(() => sandbox.close());
  const env = { RINGNECK_DATA: join(folder, name), RINGNECK_SERVICE_URL: sandbox.url };
  const harness = await openHarness(env.RINGNECK_DATA, sandbox.url);
  await harness.add(names.map(user => ({ name: user, token: 'dead' })));
  return { sandbox, harness, env };
}

test('accounts that are refused for one reason are told together, with what to do, by nightly and doctor', async () => {
  const { harness, env } = await refusedHarness('together');
  const results = await checkAccounts(harness.app, env.RINGNECK_SERVICE_URL);
  const fix = 'ringneck account resume --parked, if it was fixed there; or ringneck account add NAME, for a new token';
  expect(results).toEqual([{ check: 'accounts', state: 'warn', message: `30 accounts are parked (${REFUSED})`, fix }]);

  await harness.commands.resumeAccounts({ parked: true });
  const refused = await checkAccounts(harness.app, env.RINGNECK_SERVICE_URL);
  expect(refused).toMatchObject([{ state: 'fail', message: expect.stringMatching(/^the service refuses 30 accounts \(GET .*401/) }]);

  await harness.add([...names.slice(1).map(user => ({ name: user, token: 'dead' }))]);
  await harness.commands.pauseAccount({ name: names[0]! });
  await harness.close();
  const night = await runHere(['nightly'], { env });
  expect(night).toEqual({
    code: 1,
    stdout: '',
    stderr: `ringneck: nobody can be asked: p10 is paused (paused by command); 29 accounts are parked (${REFUSED}): ${fix}\n`,
  });
});

test('wherever a refused account is shown stands what to do about it', async () => {
  const { harness, env } = await refusedHarness('shown');
  for (const name of names.slice(1)) await harness.commands.removeAccount({ name });
  await harness.close();
  const cure = 'give it a new token: ringneck account add p10; or, if it was fixed there: ringneck account resume p10';
  const added = await runHere(['account', 'add', 'p10'], { env, input: 'dead' });
  expect(added).toMatchObject({ code: 1, stdout: `p10 parked: ${REFUSED}\n` });
  expect(added.stderr).toContain(`\np10: ${cure}\n`);
  expect(await runHere(['account', 'list'], { env })).toMatchObject({ stderr: `p10 is parked (${REFUSED}): ${cure}\n` });
  expect((await runHere(['status'], { env })).stdout).toContain(`p10: parked (${REFUSED})\n  → ${cure}\n`);
});

test('a token that cannot be tried is kept, with why nobody could be reached and what may fix it', async () => {
  const env = { RINGNECK_DATA: join(folder, 'nobody'), RINGNECK_SERVICE_URL: `http://127.0.0.1:${await freePort()}` };
  expect(await runHere(['account', 'add', 'ada'], { env, input: 'token-of-ada' })).toEqual({
    code: 0,
    stdout: 'ada active\n',
    stderr: `warning: the token could not be tried: nobody listens at ${env.RINGNECK_SERVICE_URL} (ECONNREFUSED): is it running, and is the port of RINGNECK_SERVICE_URL right?\n`,
  });
});

test('a service that takes the connection and does not answer is waited for 15 seconds when an account is added', async () => {
  const sockets: Socket[] = [];
  const silent = createServer(socket => sockets.push(socket)).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    silent.close();
  });
  const harness = await openHarness(join(folder, 'silent'), `http://127.0.0.1:${(silent.address() as AddressInfo).port}`);
  await harness.app.client();
  onTestFinished(() => void vi.useRealTimers());
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const added = harness.commands.addAccount({ name: 'ada', token: 'token-of-ada' });
  await once(silent, 'connection');
  await vi.advanceTimersByTimeAsync(15_000);
  expect(await added).toMatchObject({
    user_id: 'ada',
    state: 'active',
    warning: 'the token could not be tried: the service has not answered yet (no answer in 15 s)',
  });
  expect(harness.app.secrets.find('ada')).toBe('token-of-ada');
});

test('account resume takes several names, or with --parked all that the service refused', async () => {
  const { sandbox, harness, env } = await refusedHarness('resumed');
  const [ada, ben] = sandbox.people;
  await harness.add([{ name: 'ada', token: ada!.token }]);
  await harness.add([{ name: 'ada', token: ben!.token }]);
  await harness.commands.pauseAccount({ name: 'p39' });
  await harness.close();
  const resume = (...args: string[]) => runHere(['account', 'resume', ...args], { env });
  const states = async () =>
    (JSON.parse((await runHere(['account', 'list', '--json'], { env })).stdout) as { user_id: string; state: string }[])
      .filter(({ state }) => state !== 'active')
      .map(({ user_id, state }) => `${user_id} ${state}`);

  expect(await resume('p10', 'zoe')).toMatchObject({ code: 2, stdout: '' });
  expect(await states()).toHaveLength(31);
  expect(await resume('p10', 'p11', 'p10')).toEqual({ code: 0, stdout: 'p10 active\np11 active\n', stderr: '' });
  expect(JSON.parse((await resume('p12', 'p13', '--json')).stdout)).toMatchObject([
    { user_id: 'p12', state: 'active', reason: null },
    { user_id: 'p13', state: 'active', reason: null },
  ]);
  // Whose token that is nobody knows for all of them at once, and who was paused by command stays so.
  const rest = await resume('--parked');
  expect(rest).toMatchObject({ code: 1, stderr: '' });
  expect(rest.stdout.split('\n')).toEqual([`ada parked: ${ANOTHER_PERSON}`, ...names.slice(4, -1).map(name => `${name} active`), '']);
  expect(await states()).toEqual(['ada parked', 'p39 paused']);

  expect(await resume()).toMatchObject({ code: 2, stderr: 'ringneck: which accounts? give names, or --parked\n' });
  expect(await resume('ada', '--parked')).toMatchObject({ code: 2, stderr: 'ringneck: which accounts? give names, or --parked\n' });
  expect(await resume('ada')).toEqual({ code: 0, stdout: 'ada active\n', stderr: '' });
  expect(await resume('--parked')).toEqual({ code: 0, stdout: '', stderr: 'no account is parked\n' });
});
