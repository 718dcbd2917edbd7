import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { serveControl } from '../../src/app/control/serve-control.ts';
import { silentLog } from '../../src/base/log.ts';
import { COLLECTIONS, DATED_COLLECTIONS } from '../support/declared.ts';
import { startFaultService } from '../support/fault-service.ts';
import { openHarness } from '../support/harness.ts';
import { startRingneck } from '../support/ringneck.ts';
import { runHere } from '../support/run-here.ts';
import { type Sandbox, startSandbox } from '../support/sandbox.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startSandbox({ count: 2, from: '2025-01-01', to: '2025-01-31' });
});
afterAll(() => sandbox.close());

let folders = 0;
/** A new data folder; its name has a blank. */
function surroundings(env: Record<string, string> = {}) {
  const data = join(folder, `data ${++folders}`);
  return { data, env: { RINGNECK_DATA: data, RINGNECK_SERVICE_URL: sandbox.url, ...env } };
}
const tokenOf = (name: string) => sandbox.people.find(person => person.name === name)!.token;
const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,6}Z$/;

test('from a token to SQL: the shapes of every report', async () => {
  const { data, env } = surroundings();
  const [ada, ben] = sandbox.people;

  // A file of Windows ends its line otherwise; standard input is read too.
  writeFileSync(join(folder, 'ada.token'), `${ada!.token}\r\n`);
  const added = await runHere(['account', 'add', 'ada', '--token-file', join(folder, 'ada.token'), '--json'], { env });
  expect([added.code, added.stderr]).toEqual([0, '']);
  expect(JSON.parse(added.stdout)).toEqual({
    user_id: 'ada',
    service_user_id: ada!.userId,
    state: 'active',
    reason: null,
    since: expect.stringMatching(MOMENT),
    tried: true,
    same_person: null,
  });
  expect(readFileSync(join(data, 'accounts.secret'), 'utf8')).not.toContain(ada!.token);

  const refused = await runHere(['account', 'add', 'ben'], { env, input: 'no-such-token\n' });
  expect(refused.code).toBe(1);
  expect(refused.stdout).toMatch(
    /^ben parked: unauthorized: .*401.*: give it a new token: ringneck account add ben, or ringneck account login ben; .*\n$/,
  );
  expect(refused.stderr).toMatch(/^warning: the service refuses the token: .*401.*\n$/);

  const plan = await runHere(['backfill', '--from', '2025-01-01', '--to', '2025-01-10', '--plan'], { env });
  expect([plan.code, plan.stdout]).toEqual([0, `2025-01-01 to 2025-01-10: ${COLLECTIONS.length} windows to read\n`]);
  expect(plan.stderr).toMatch(
    /^not asked: ben is parked \(unauthorized: .*\): give it a new token: ringneck account add ben, or ringneck account login ben; or, if it was fixed there: ringneck account resume ben\n$/,
  );
  expect(existsSync(join(data, 'queue'))).toBe(false);

  const filled = await runHere(['backfill', '--from', '2025-01-01', '--to', '2025-01-10', '--json'], { env });
  expect(filled.code).toBe(0);
  expect(filled.stdout.split('\n')).toHaveLength(2);
  expect(filled.stderr).toMatch(/^\d+\/\d+ windows, .* documents, .* samples, \d+ requests/);
  const report = JSON.parse(filled.stdout);
  expect(report).toEqual({
    run: expect.stringMatching(/^[0-9a-f-]{36}$/),
    from: '2025-01-01',
    to: '2025-01-10',
    windows: { planned: COLLECTIONS.length, done: COLLECTIONS.length, skipped: 0, failed: 0 },
    documents: expect.any(Number),
    samples: expect.any(Number),
    unchanged: 0,
    rejected: 0,
    requests: expect.any(Number),
    failures: [],
    state: 'complete',
    removed: 0,
    waits: 0,
    not_asked: [{ user_id: 'ben', collection: null, state: 'parked', reason: expect.stringContaining('unauthorized') }],
    heart_rate_path: '/v2/usercollection/heartrate',
  });
  expect(report.documents).toBeGreaterThan(80);
  expect(report.samples).toBeGreaterThan(10_000);
  expect(report.requests).toBeGreaterThanOrEqual(COLLECTIONS.length);

  // Nothing of it is read again but what has no days.
  const again = await runHere(['backfill', '--from', '2025-01-01', '--to', '2025-01-10'], { env });
  expect(again.code).toBe(0);
  expect(again.stdout).toBe(
    `2025-01-01 to 2025-01-10: complete\n1 of 1 windows, ${DATED_COLLECTIONS} skipped as settled, 1 requests\n1 documents, 0 samples, 1 unchanged\n`,
  );

  // A known name gets the new token and is asked again.
  expect(await runHere(['account', 'add', 'ben'], { env, input: ` ${ben!.token} ` })).toEqual({
    code: 0,
    stdout: 'ben active\n',
    stderr: '',
  });
  const one = await runHere(
    [
      'backfill',
      '--from',
      '2025-01-05',
      '--to',
      '2025-01-05',
      '--user',
      'ben',
      '--resource',
      'sleep',
      '--resource',
      'heart_rate',
      '--json',
    ],
    { env },
  );
  expect(JSON.parse(one.stdout)).toMatchObject({ windows: { planned: 2, done: 2 }, not_asked: [] });

  const listed = await runHere(['account', 'list', '--json'], { env });
  expect(JSON.parse(listed.stdout)).toEqual([
    { user_id: 'ada', service_user_id: ada!.userId, state: 'active', reason: null, since: expect.stringMatching(MOMENT) },
    { user_id: 'ben', service_user_id: ben!.userId, state: 'active', reason: null, since: expect.stringMatching(MOMENT) },
  ]);

  const status = JSON.parse((await runHere(['status', '--json'], { env })).stdout);
  expect(Object.keys(status)).toEqual([
    'accounts',
    'queue',
    'invitations',
    'webhooks',
    'snapshot',
    'warehouse',
    'heart_rate_path',
    'drift',
    'service_clock',
    'service_unreachable',
  ]);
  expect(status).toMatchObject({
    queue: { waiting: 0, active: 0, delayed: 0, failed: 0, events: 0, problem: null },
    webhooks: null,
    snapshot: { at: null, failure: null },
    warehouse: { bytes: expect.any(Number), compacted_at: null },
    heart_rate_path: '/v2/usercollection/heartrate',
  });
  expect(status.accounts[1].collections).toHaveLength(COLLECTIONS.length);
  const some = ['sleep', 'session', 'heart_rate'];
  expect(status.accounts[1].collections.filter(({ name }: { name: string }) => some.includes(name))).toEqual([
    {
      name: 'sleep',
      state: 'not_asked',
      reason: 'nothing after 2025-01-05 was asked for',
      newest_day: expect.stringMatching(/^2025-01-0\d$/),
      last_success: expect.stringMatching(MOMENT),
      lag: expect.any(Number),
      failures: 0,
      unread_days: expect.any(Number),
    },
    { name: 'session', state: 'never_asked', reason: null, newest_day: null, last_success: null, lag: null, failures: 0, unread_days: 0 },
    {
      name: 'heart_rate',
      state: 'not_asked',
      reason: 'nothing after 2025-01-05 was asked for',
      newest_day: '2025-01-05',
      last_success: expect.stringMatching(MOMENT),
      lag: expect.any(Number),
      failures: 0,
      unread_days: expect.any(Number),
    },
  ]);
  const shown = await runHere(['status'], { env });
  expect([shown.code, shown.stderr]).toEqual([0, '']);
  expect(shown.stdout).toMatch(
    /^ada: active\n {2}collection +state +newest day +read +failures +reason\n {2}daily_readiness +not_asked +2025-01-1\d +\d+ s ago +nothing after 2025-01-10 was asked for\n/,
  );

  const snapshot = await runHere(['snapshot', '--json'], { env });
  expect(JSON.parse(snapshot.stdout)).toEqual({ path: join(data, 'snapshot.duckdb'), at: expect.stringMatching(MOMENT) });
  expect((await runHere(['snapshot'], { env })).stdout).toBe(`${join(data, 'snapshot.duckdb')}\n`);

  const nights = 'SELECT user_id, count(*) > 0 AS any FROM sleep GROUP BY ALL ORDER BY ALL';
  expect(await runHere(['sql', nights, '--format', 'csv'], { env })).toEqual({
    code: 0,
    stdout: 'user_id,any\nada,true\nben,true\n',
    stderr: '',
  });
  expect(await runHere(['sql', '--format', 'json'], { env, input: 'SELECT 42 AS answer;\n' })).toEqual({
    code: 0,
    stdout: '[{"answer":42}]\n',
    stderr: '',
  });
});

test('accounts are paused, resumed, mapped, given mirror tokens, removed', async () => {
  const { data, env } = surroundings();
  const account = (...args: string[]) => runHere(['account', ...args], { env });
  await runHere(['account', 'add', 'ada', '--service-user', 'told'], { env, input: tokenOf('ada') });
  // The service calls her otherwise.
  await account('resume', 'ada');
  expect(await account('pause', 'ada')).toEqual({ code: 0, stdout: 'ada paused: paused by command\n', stderr: '' });
  expect(await runHere(['backfill', '--last', '2'], { env })).toEqual({
    code: 1,
    stdout: '',
    stderr: 'ringneck: nobody can be asked: ada is paused (paused by command)\n',
  });
  expect(await runHere(['nightly'], { env })).toMatchObject({ code: 1, stdout: '' });
  expect(JSON.parse((await account('resume', 'ada', '--json')).stdout)).toEqual({
    user_id: 'ada',
    service_user_id: 'told',
    state: 'active',
    reason: null,
    since: expect.stringMatching(MOMENT),
  });
  expect(JSON.parse((await account('map', 'ada', 's-1', '--json')).stdout)).toMatchObject({ user_id: 'ada', service_user_id: 's-1' });
  const token = (await account('mirror-token', 'ada')).stdout.trim();
  expect(token).toMatch(/^rnm_[\w-]{43}$/);
  expect(readFileSync(join(data, 'mirror-tokens.json'), 'utf8')).not.toContain(token);
  expect(JSON.parse((await account('mirror-token', 'ada', '--json')).stdout)).toEqual({
    user_id: 'ada',
    token: expect.stringMatching(/^rnm_[\w-]{43}$/),
  });
  expect(await account('map', 'zoe', 's-2')).toEqual({ code: 2, stdout: '', stderr: 'ringneck: no account "zoe": there is ada\n' });
  expect(await account('remove', 'ada')).toEqual({ code: 0, stdout: 'ada removed\n', stderr: '' });
  expect(readFileSync(join(data, 'accounts.secret'), 'utf8')).not.toContain('"ada"');
  expect((await account('list', '--json')).stdout).toBe('[]\n');
  expect((await account('remove', 'ada')).code).toBe(2);
});

test('an id that another account has is not given to a second one, and one that takes the place of another is told', async () => {
  const { env } = surroundings();
  const account = (args: string[], input = '') => runHere(['account', ...args], { env, input });
  await account(['add', 'ada', '--service-user', 's-ada'], tokenOf('ada'));
  // The service calls her otherwise.
  await account(['resume', 'ada']);
  const list = async () =>
    (JSON.parse((await account(['list', '--json'])).stdout) as { user_id: string; service_user_id: string }[]).map(
      ({ user_id, service_user_id }) => `${user_id} ${service_user_id}`,
    );
  const taken = {
    code: 2,
    stdout: '',
    stderr: 'ringneck: s-ada is already the service’s id of ada: ringneck account remove ada frees it\n',
  };
  expect(await account(['add', 'ben', '--service-user', 's-ada'], tokenOf('ben'))).toEqual(taken);
  expect(await list()).toEqual(['ada s-ada']);
  await account(['add', 'ben', '--service-user', 's-ben'], tokenOf('ben'));
  expect(await account(['map', 'ben', 's-ada'])).toEqual(taken);
  expect(await list()).toEqual(['ada s-ada', 'ben s-ben']);

  expect(await account(['map', 'ada', 's-ada'])).toEqual({ code: 0, stdout: 'ada active\n', stderr: '' });
  expect(await account(['map', 'ada', 's-new'])).toEqual({
    code: 0,
    stdout: 'ada active\n',
    stderr: 'warning: ada was s-ada at the service until now: events of that id find no account any more\n',
  });
  expect(JSON.parse((await account(['map', 'ada', 's-newer', '--json'])).stdout)).toEqual({
    user_id: 'ada',
    service_user_id: 's-newer',
    state: 'active',
    reason: null,
    since: expect.stringMatching(MOMENT),
  });
});

test('a token that cannot be read or is none', async () => {
  const { env } = surroundings();
  const add = (input: string, ...more: string[]) => runHere(['account', 'add', 'ada', ...more], { env, input });
  expect(await add('two words')).toEqual({
    code: 2,
    stdout: '',
    stderr: 'ringneck: standard input holds no token: one word of printable ASCII, at most 8192 characters\n',
  });
  expect((await add('\n\r\n ')).stderr).toMatch(
    /^ringneck: no token: standard input is empty: give one by printf %s "\$TOKEN" \| ringneck account add \S+, or sign in: ringneck account login \S+\n$/,
  );
  const missing = join(folder, 'missing.token');
  expect(await add('', '--token-file', missing)).toMatchObject({ code: 2, stderr: expect.stringContaining(`open '${missing}'`) });
});

test('a route that is not there is no failure: the collection is not offered', async () => {
  const { data, env } = surroundings();
  // Whose second look comes sooner than that of a command by itself.
  const harness = await openHarness(data, sandbox.url, { settings: { heartRatePath: '/v2/nowhere' } });
  await harness.add([{ name: 'ada', token: tokenOf('ada') }]);
  const control = await serveControl({ folder: data, commands: harness.commands, log: silentLog });
  onTestFinished(() => control.close());
  const args = ['backfill', '--from', '2025-01-01', '--to', '2025-01-02', '--resource', 'heart_rate', '--json'];
  const ended = await runHere(args, { env });
  const report = JSON.parse(ended.stdout);
  expect([ended.code, report.windows, report.failures]).toEqual([0, { planned: 1, done: 1, skipped: 0, failed: 0 }, []]);
  const status = JSON.parse((await runHere(['status', '--json'], { env })).stdout);
  expect(status.accounts[0].collections.at(-1)).toMatchObject({ name: 'heart_rate', state: 'not_offered' });
});

test('Ctrl-C stops with 130, and the same command goes on with the run', async () => {
  const service = await startFaultService({ '/v2/usercollection/sleep': { fault: 'hang' } }, { upstream: sandbox.url });
  onTestFinished(() => service.close());
  const { env } = surroundings({ RINGNECK_SERVICE_URL: service.url });
  await runHere(['account', 'add', 'ada'], { env, input: tokenOf('ada') });
  const args = ['backfill', '--from', '2025-01-01', '--to', '2025-01-10', '--json'];
  const first = startRingneck(args, { env });
  await first.said('windows');
  first.kill('SIGINT');
  const stopped = await first.end();
  expect(stopped.code).toBe(130);
  const report = JSON.parse(stopped.stdout);
  expect(report).toMatchObject({ state: 'stopped', failures: [] });
  expect(report.windows.done).toBeLessThan(report.windows.planned);
  const status = JSON.parse((await runHere(['status', '--json'], { env })).stdout);
  expect(status.queue.waiting).toBe(0);

  service.on('/v2/usercollection/sleep', () => undefined);
  const second = await runHere(args, { env });
  expect(second.code).toBe(0);
  expect(JSON.parse(second.stdout)).toMatchObject({
    run: report.run,
    state: 'complete',
    windows: { planned: report.windows.planned, done: report.windows.planned },
  });
  // What was under way when it was stopped may have come to its end.
  expect(JSON.parse(second.stdout).read_before?.windows ?? 0).toBeGreaterThanOrEqual(report.windows.done);
});

test('a key that is missing is said at once, in one line', async () => {
  const { data, env } = surroundings();
  await runHere(['account', 'add', 'ada'], { env, input: tokenOf('ada') });
  rmSync(join(data, 'secret.key'));
  for (const args of [['backfill', '--last', '1'], ['nightly']]) {
    const { code, stdout, stderr } = await runHere(args, { env });
    expect([code, stdout, stderr.split('\n').length]).toEqual([2, '', 2]);
    expect(stderr).toMatch(
      /^ringneck: .*accounts\.secret was sealed with a key that is missing: set RINGNECK_SECRET_KEY to it, or put .*secret\.key back/,
    );
  }
});
