import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startFaultService } from '../support/fault-service.ts';
import { openHarness } from '../support/harness.ts';
import { ringneck } from '../support/ringneck.ts';
import { runHere } from '../support/run-here.ts';
import { startSandbox } from '../support/sandbox.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
const NOON = Date.parse('2025-03-08T12:00:00Z');

test('why says what keeps an account behind, and status can show it alone', async () => {
  const sandbox = await startSandbox({ count: 2, from: '2025-03-01', to: '2025-03-08', now: () => NOON });
  onTestFinished(() => sandbox.close());
  const service = await startFaultService({}, { upstream: sandbox.url });
  onTestFinished(() => service.close());
  const harness = await openHarness(join(folder, 'data'), service.url, { now: () => NOON });
  const [ada, ben] = sandbox.people;
  const why = async (name: string) => (await harness.commands.why({ name })).sentences;
  await harness.add([
    { name: 'ada', token: ada!.token },
    { name: 'ben', token: ben!.token },
  ]);
  expect(await why('ada')).toEqual([
    'Nothing of ada was ever read: ringneck up reads the last days, ringneck backfill --user ada --from DAY those before.',
  ]);

  await harness.backfill({ last: 4 });
  expect(await why('ada')).toEqual([
    'All that was asked for was read, up to yesterday, and the newest day that the service had is 2025-03-08: if that is old, was the ring worn, and did its phone sync?',
  ]);

  service.on('/v2/usercollection/daily_stress', { status: 400, json: { detail: 'No.' } });
  await harness.backfill({ last: 4, refresh: true, users: ['ada'], collections: ['daily_stress'] });
  expect(await why('ada')).toEqual([
    expect.stringMatching(/^daily_stress: the last reading failed \(.*400.*\)\.$/),
    'What is missing is read by: ringneck coverage --repair.',
    'The newest day that is stored is 2025-03-08.',
  ]);

  await harness.commands.pauseAccount({ name: 'ben' });
  expect(await why('ben')).toEqual([
    expect.stringMatching(/^ben is paused since 2025-03-08T12:00Z, and not read \(paused by command\): ringneck account resume ben\.$/),
    'The newest day that is stored is 2025-03-08.',
  ]);
  await expect(why('cleo')).rejects.toThrow('no account "cleo": there are ada, ben');
  await harness.close();

  const env = { RINGNECK_DATA: join(folder, 'data') };
  const status = async (...args: string[]) => {
    const { accounts } = JSON.parse((await runHere(['status', '--json', ...args], { env })).stdout);
    return (accounts as { user_id: string; collections: { name: string }[] }[]).map(({ user_id, collections }) => [
      user_id,
      collections.length,
    ]);
  };
  expect((await status('--user', 'ben')).map(([name]) => name)).toEqual(['ben']);
  expect(await runHere(['status', '--user', 'cleo'], { env })).toMatchObject({
    code: 2,
    stderr: 'ringneck: no account "cleo": there are ada, ben\n',
  });
});

test('status --problems shows the collections that failed, and says so where nothing is wrong', async () => {
  const sandbox = await startSandbox({ count: 1, from: '2025-03-01', to: '2025-03-08', now: () => NOON });
  onTestFinished(() => sandbox.close());
  const service = await startFaultService({}, { upstream: sandbox.url });
  onTestFinished(() => service.close());
  const env = { RINGNECK_DATA: join(folder, 'problems'), RINGNECK_SERVICE_URL: service.url };
  await runHere(['account', 'add', 'ada'], { env, input: sandbox.people[0]!.token });
  await runHere(['backfill', '--from', '2025-03-01'], { env });
  expect((await runHere(['status', '--problems'], { env })).stdout).toBe('nothing is wrong with any account\n');
  await runHere(['account', 'pause', 'ada'], { env });
  expect((await runHere(['status', '--problems'], { env })).stdout).toMatch(/^ada: paused \(paused by command\)\n\nqueue: /);
  await runHere(['account', 'resume', 'ada'], { env });
  service.on('/v2/usercollection/daily_stress', { status: 400, json: { detail: 'No.' } });
  await runHere(['backfill', '--from', '2025-03-05', '--refresh', '--resource', 'daily_stress'], { env });
  const { stdout } = await runHere(['status', '--problems'], { env });
  expect(stdout).toMatch(/^ada: active\n.*\n {2}daily_stress +failed/);
  expect(stdout).not.toMatch(/daily_readiness/);
  await runHere(['account', 'pause', 'ada'], { env });
  expect((await runHere(['status', '--problems'], { env })).stdout).toMatch(/^ada: paused \(paused by command\)\n\nqueue: /);
});

test('status --problems says what is wrong with the service where nothing is with any account', async () => {
  const sandbox = await startSandbox({ count: 1, from: '2025-03-01', to: '2025-03-08', now: () => NOON });
  onTestFinished(() => sandbox.close());
  const service = await startFaultService({}, { upstream: sandbox.url });
  const env = { RINGNECK_DATA: join(folder, 'away'), RINGNECK_SERVICE_URL: service.url };
  const add = () => runHere(['account', 'add', 'ada'], { env, input: sandbox.people[0]!.token });
  await add();
  await runHere(['backfill', '--from', '2025-03-01'], { env });
  await service.close();
  await add();
  expect((await runHere(['status', '--problems'], { env })).stdout).toMatch(
    /^nothing is wrong with any account\nqueue: .*\nservice: cannot be reached since /s,
  );
});

test('in a folder where nothing was begun a command that looks makes none, and says where to begin', async () => {
  const place = join(folder, 'elsewhere');
  mkdirSync(place, { mode: 0o700 });
  for (const args of [['status'], ['account', 'list'], ['coverage'], ['backfill', '--last', '3']]) {
    expect(await ringneck(args, { cwd: place }), args.join(' ')).toEqual({
      code: 2,
      stdout: '',
      stderr: `ringneck: there is no data folder here: ${place}/data does not exist, and RINGNECK_DATA names none. Go to the folder in which you began, or begin here: ringneck init\n`,
    });
  }
  expect(existsSync(join(place, 'data'))).toBe(false);
});

test('where RINGNECK_DATA names a folder without a warehouse a command that looks makes none, and says what to type', async () => {
  const here = join(folder, 'without-warehouse');
  const client = { RINGNECK_CLIENT_ID: 'ringneck', RINGNECK_CLIENT_SECRET: 'the-secret' };
  const looks = [
    ['status'],
    ['why', 'ada'],
    ['coverage'],
    ['sql', 'SELECT 1'],
    ['export', '--out', join(folder, 'nothing')],
    ['snapshot'],
    ['account', 'list'],
    ['account', 'invitations'],
    ['account', 'remove', 'ada', '--erase', '--yes'],
    ['account', 'move', 'ada', 'ben'],
    ['participants', 'export', join(folder, 'people.csv')],
    ['backfill', '--last', '3'],
    ['nightly'],
    ['backup', join(folder, 'backup')],
    ['adopt'],
  ];
  const told = (data: string, command: string) =>
    `ringneck: there is no warehouse in ${data}: to begin here, ringneck account ${command} NAME; where yours is elsewhere, go to that folder, or set RINGNECK_DATA to it\n`;
  const env = { RINGNECK_SERVICE_URL: 'http://127.0.0.1:9' };
  for (const args of looks) {
    const missing = join(folder, 'mistyped');
    expect(await runHere(args, { env: { ...env, RINGNECK_DATA: missing } }), args.join(' ')).toEqual({
      code: 2,
      stdout: '',
      stderr: told(missing, 'add'),
    });
    expect(existsSync(missing), args.join(' ')).toBe(false);
  }
  mkdirSync(here, { mode: 0o700 });
  expect((await runHere(['status'], { env: { ...env, ...client, RINGNECK_DATA: here } })).stderr).toBe(told(here, 'login'));
  expect(readdirSync(here)).toEqual([]);
  const doctor = await runHere(['doctor'], { env: { ...env, RINGNECK_DATA: here } });
  expect(doctor.stdout).toContain('there is none yet');
  expect(readdirSync(here)).toEqual([]);
});
