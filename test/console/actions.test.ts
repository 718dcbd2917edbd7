import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openConsoleHere } from '../support/console-harness.ts';
import { openHarness } from '../support/harness.ts';
import { startLiteralService } from '../support/literal-service.ts';
import { night } from '../support/nights.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
const sleep = { users: ['ada'], collections: ['sleep'] };
const march = { ...sleep, from: '2025-03-08', to: '2025-03-09' };

async function openHere(name: string, now?: () => number) {
  const service = await startLiteralService('sleep');
  onTestFinished(() => service.close());
  service.documents.set('sleep', [night('s-1', '2025-03-08'), night('s-2', '2025-03-09')]);
  const data = join(folder, name);
  const harness = await openHarness(data, service.url);
  await harness.keep([
    { name: 'ada', token: 'a' },
    { name: 'ben', token: 'b' },
  ]);
  const served = await openConsoleHere(data, { commands: harness.commands, ...(now ? { now } : {}) });
  return { service, harness, served };
}

test('days are read again after their plan was shown, once', async () => {
  const { harness, served } = await openHere('again');
  const operator = await served.enter();
  const planned = await operator.ask('POST actions/backfill/plan', '', march);
  expect(planned.body).toMatchObject({
    plan: expect.stringMatching(/^[\w-]{43}$/),
    says: ['1 window from 2025-03-08 to 2025-03-09 is read: at least as many requests.'],
    windows: 1,
    requests: 1,
  });
  expect(await harness.read('SELECT count(*) FROM sleep')).toEqual([[0]]);
  const done = await operator.ask('POST actions/backfill', '', { plan: planned.body.plan });
  expect(done.status).toBe(200);
  await expect.poll(() => harness.read("SELECT string_agg(id, ' ' ORDER BY id) FROM sleep")).toEqual([['s-1 s-2']]);
  const again = await operator.ask('POST actions/backfill', '', { plan: planned.body.plan });
  expect([again.status, again.body.error]).toEqual([
    410,
    {
      kind: 'cancelled',
      message: 'This plan was used already, or is older than two minutes.',
      help: 'Look at what would be done again.',
    },
  ]);
});

test('a run that no snapshot has yet began when the ledger says', async () => {
  const { service, harness, served } = await openHere('under-way');
  let release: () => void = () => {};
  const released = new Promise<void>(resolve => {
    release = resolve;
  });
  onTestFinished(() => release());
  service.on('/v2/usercollection/sleep', async () => {
    await released;
    return { json: { data: [], next_token: null } };
  });
  const operator = await served.enter();
  const { plan } = (await operator.ask('POST actions/backfill/plan', '', march)).body;
  const doing = operator.ask('POST actions/backfill', '', { plan });
  await expect.poll(async () => (await operator.ask('GET runs')).body.runs.length).toBe(1);
  const [[started] = []] = await harness.read('SELECT epoch(started_at) FROM sync.runs');
  expect((await operator.ask('GET runs')).body.runs).toMatchObject([{ started, is_active: true }]);
  release();
  await doing;
});

test('a repair reads what is missing, and says so where nothing is', async () => {
  const { harness, served } = await openHere('repair');
  const operator = await served.enter();
  const first = await operator.ask('POST actions/repair/plan', '', march);
  expect(first.body).toMatchObject({ windows: 1, plan: expect.any(String) });
  await operator.ask('POST actions/repair', '', { plan: first.body.plan });
  await expect.poll(() => harness.read('SELECT count(*) FROM sleep')).toEqual([[2]]);
  await expect.poll(() => harness.commands.activeRuns()).toEqual([]);
  const second = await operator.ask('POST actions/repair/plan', '', march);
  expect(second.body).toMatchObject({ plan: null, says: ['Nothing is missing that may be asked for.'], windows: null });
});

test('a plan is good for its session and its action alone, and for two minutes', async () => {
  let now = 1_748_736_000_000;
  const { harness, served } = await openHere('plans', () => now);
  const [operator, other] = [await served.enter(), await served.enter()];
  const { plan } = (await operator.ask('POST actions/pause/plan', '', { users: ['ada'] })).body;
  expect((await other.ask('POST actions/pause', '', { plan })).status).toBe(410);
  expect((await operator.ask('POST actions/resume', '', { plan })).status).toBe(410);
  now += 120_000;
  expect((await operator.ask('POST actions/pause', '', { plan })).status).toBe(410);
  expect(await harness.read("SELECT state FROM sync.accounts WHERE user_id = 'ada'")).toEqual([['active']]);
});

test('what is planned is what the address says, whatever else is sent', async () => {
  const { harness, served } = await openHere('named');
  const operator = await served.enter();
  const { plan } = (await operator.ask('POST actions/pause/plan', '', { name: 'resume', users: ['ada'] })).body;
  expect((await operator.ask('POST actions/pause', '', { name: 'resume', plan })).status).toBe(200);
  expect(await harness.read("SELECT state FROM sync.accounts WHERE user_id = 'ada'")).toEqual([['paused']]);
});

test('an account is paused and resumed, one at a time', async () => {
  const { harness, served } = await openHere('pause');
  const operator = await served.enter();
  const act = async (name: string) => {
    const { plan } = (await operator.ask(`POST actions/${name}/plan`, '', { users: ['ada'] })).body;
    return (await operator.ask(`POST actions/${name}`, '', { plan })).body.says;
  };
  expect(await act('pause')).toBe('ada is paused.');
  expect(await harness.read('SELECT user_id, state FROM sync.accounts ORDER BY ALL')).toEqual([
    ['ada', 'paused'],
    ['ben', 'active'],
  ]);
  expect((await operator.ask('GET operations')).body).toMatchObject({
    sentence: '1 person needs a hand.',
    behind: [
      {
        id: 'ada',
        state: 'paused',
        cause: 'Paused by hand.',
        helps: 'Resume it to read on.',
        action: { name: 'resume', label: 'Resume', users: ['ada'] },
      },
    ],
  });
  expect(await act('resume')).toBe('ada is active.');
  expect((await operator.ask('POST actions/pause/plan', '', { users: ['ada', 'ben'] })).body.error.message).toBe(
    'This is done for one account at a time.',
  );
});

test('what cannot be done is refused in words: a run that ended, an invitation without an address', async () => {
  const { served } = await openHere('refused');
  const operator = await served.enter();
  expect((await operator.ask('POST actions/stop/plan', '', { id: 'r-1' })).body).toMatchObject({
    plan: null,
    says: ['Nobody works on this run any more.'],
  });
  const invite = async (name: string) => {
    const { status, body } = await operator.ask('POST actions/invite/plan', '', { users: [name] });
    return [status, body.error.message];
  };
  expect(await invite('cleo')).toEqual([400, expect.stringContaining('RINGNECK_CLIENT_ID')]);
  expect(await invite('cleo!')).toEqual([400, expect.stringContaining('"cleo!" cannot name an account')]);
  expect((await operator.ask('POST actions/erase/plan', '', { users: ['ada'] })).status).toBe(400);
});

test('who may look may not act, and without an owner nobody may', async () => {
  const { served } = await openHere('roles');
  const reader = await served.enter({ role: 'reader' });
  for (const name of ['backfill', 'repair', 'resume', 'pause', 'stop', 'invite', 'retry']) {
    expect((await reader.ask(`POST actions/${name}/plan`, '', {})).status).toBe(403);
    expect((await reader.ask(`POST actions/${name}`, '', { plan: 'x' })).status).toBe(403);
  }
  expect((await reader.ask('GET sessions')).status).toBe(403);
  const alone = await openConsoleHere(join(folder, 'alone'));
  const operator = await alone.enter();
  const refused = await operator.ask('POST actions/pause/plan', '', { users: ['ada'] });
  expect([refused.status, refused.body.error.message]).toEqual([503, 'Nobody owns the data folder.']);
  expect((await operator.ask('GET operations')).body.sentence).toBe(
    'ringneck up does not run: nothing is read, and nothing can be done here but look.',
  );
});
