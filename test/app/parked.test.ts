import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { checkAccounts } from '../../src/app/doctor/accounts.ts';
import { withFix } from '../../src/app/fixes.ts';
import { signInAgain } from '../../src/base/sign-in-again.ts';
import { ANOTHER_PERSON, twinOf, UNCHECKED } from '../../src/ledger/unproven.ts';
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
  await harness.add(names.map(user => ({ name: user, token: `dead-${user}` })));
  return { sandbox, harness, env };
}

test('accounts that are refused for one reason are told together, with what to do, by nightly and doctor', async () => {
  const { harness, env } = await refusedHarness('together');
  const results = await checkAccounts(harness.app, env.RINGNECK_SERVICE_URL);
  const fix =
    'ringneck account resume --parked, if it was fixed there; or ringneck account add NAME, for a new token, or ringneck account login NAME';
  expect(results).toEqual([{ check: 'accounts', state: 'warn', message: `30 accounts are parked (${REFUSED})`, fix }]);

  await harness.commands.resumeAccounts({ parked: true });
  const refused = await checkAccounts(harness.app, env.RINGNECK_SERVICE_URL);
  expect(refused).toMatchObject([{ state: 'fail', message: expect.stringMatching(/^the service refuses 30 accounts \(GET .*401/) }]);

  await harness.add(names.slice(1).map(user => ({ name: user, token: `dead-${user}` })));
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
  const cure =
    'give it a new token: ringneck account add p10, or ringneck account login p10; or, if it was fixed there: ringneck account resume p10';
  const added = await runHere(['account', 'add', 'p10'], { env, input: 'dead' });
  expect(added).toMatchObject({ code: 1, stdout: `p10 parked: ${REFUSED}: ${cure}\n` });
  for (const args of [
    ['account', 'list'],
    ['account', 'list', '--json'],
    ['status', '--json'],
  ])
    expect((await runHere(args, { env })).stdout).toContain(`${REFUSED}: ${cure}`);
  expect((await runHere(['status'], { env })).stdout).toContain(`p10: parked (${REFUSED}: ${cure})\n`);
  expect((await runHere(['status', '--problems'], { env })).stdout).toMatch(/^p10: parked \(.*\)\n\nqueue: /);
  await runHere(['account', 'resume', 'p10'], { env });
  const night = await runHere(['nightly'], { env });
  expect([night.code, night.stderr.match(/p10.*/g)]).toEqual([1, [`p10 is parked (${REFUSED}): ${cure}`]]);
});

test('what was never asked for is shown with what has it read', async () => {
  const { sandbox, harness, env } = await refusedHarness('never-asked');
  await harness.add([{ name: 'ada', token: sandbox.people[0]!.token }]);
  await harness.close();
  expect((await runHere(['status', '--problems', '--user', 'ada'], { env })).stdout).toContain(
    'What was never asked for is read so: ringneck up reads the last days, ringneck backfill --user ada --from DAY those before\n',
  );
});

test('a token that cannot be tried is kept, with why nobody could be reached and what may fix it', async () => {
  const env = { RINGNECK_DATA: join(folder, 'nobody'), RINGNECK_SERVICE_URL: `http://127.0.0.1:${await freePort()}` };
  expect(await runHere(['account', 'add', 'ada'], { env, input: 'token-of-ada' })).toEqual({
    code: 1,
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
  const another =
    'give it one of the same: ringneck account add ada, or ringneck account login ada; or, if the person is the same: ringneck account resume ada';
  const rest = await resume('--parked');
  expect(rest).toMatchObject({ code: 1, stderr: '' });
  expect(rest.stdout.split('\n')).toEqual([
    `ada parked: ${ANOTHER_PERSON}: ${another}`,
    ...names.slice(4, -1).map(name => `${name} active`),
    '',
  ]);
  expect(await states()).toEqual(['ada parked', 'p39 paused']);

  expect(await resume()).toMatchObject({ code: 2, stderr: 'ringneck: which accounts? give names, or --parked\n' });
  expect(await resume('ada', '--parked')).toMatchObject({ code: 2, stderr: 'ringneck: which accounts? give names, or --parked\n' });
  expect(await resume('ada')).toEqual({ code: 0, stdout: 'ada active\n', stderr: '' });
  expect(await resume('--parked')).toEqual({ code: 0, stdout: '', stderr: 'no account is parked\n' });
});

test('out of each reason for being parked lead the commands that docs/troubleshooting.md names', async () => {
  const sandbox = await startSandbox({ count: 1, from: '2025-01-01', to: '2025-01-03' });
  onTestFinished(() => sandbox.close());
  const harness = await openHarness(join(folder, 'ways-out'), sandbox.url);
  const { warehouse, secrets } = harness.app;
  const { token, userId } = sandbox.people[0]!;
  const reasons: [begins: string, reason: string][] = [
    ['sign in again', signInAgain('ada')],
    ['unauthorized', REFUSED],
    ['forbidden', 'forbidden: GET /v2/usercollection/session: answered 403'],
    ['unchecked', UNCHECKED],
    [ANOTHER_PERSON, ANOTHER_PERSON],
    ['the token is of the same person as the account', twinOf('dev')],
  ];
  const page = readFileSync(new URL('../../docs/troubleshooting.md', import.meta.url), 'utf8');
  const rows = [...page.matchAll(/^\| `([^`]+)` \|.*\| (.*) \|$/gm)].map(([, begins = '', ways = '']) => ({ begins, ways }));
  expect(rows.map(({ begins }) => begins)).toEqual(reasons.map(([begins]) => begins));
  const does: Record<string, () => Promise<{ state: string }>> = {
    add: () => harness.commands.addAccount({ name: 'ada', token }),
    resume: async () => (await harness.commands.resumeAccounts({ names: ['ada'] }))[0]!,
    remove: () => harness.commands.removeAccount({ name: 'ada' }),
  };
  for (const [begins, reason] of reasons) {
    const { ways } = rows.find(row => row.begins === begins)!;
    const cure = withFix({ user_id: 'ada', state: 'parked', reason }).reason ?? '';
    for (const [, way = ''] of [...cure.matchAll(/ringneck account (\w+) ada/g)]) expect(ways).toContain(`ringneck account ${way} ada`);
    for (const [, way = ''] of ways.matchAll(/`ringneck account (\w+) ada`/g)) {
      // A sign-in needs an authorization server: account-login.test.ts has that way out.
      if (way === 'login') continue;
      secrets.put('ada', begins === 'unchecked' ? token : 'dead');
      const row = { service_user_id: userId, state: 'parked', reason, since: warehouse.clock.next() };
      await warehouse.record([{ table: 'sync.accounts', key: { user_id: 'ada' }, row }]);
      expect([begins, way, (await does[way]!()).state]).toEqual([begins, way, way === 'remove' ? 'removed' : 'active']);
    }
  }
});
