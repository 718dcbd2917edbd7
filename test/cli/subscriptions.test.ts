import { join } from 'node:path';
import { expect, test } from 'vitest';
import { SUBSCRIPTIONS } from '../support/declared.ts';
import { openListeningHarness } from '../support/listening-harness.ts';
import { runHere } from '../support/run-here.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';

const folder = tempFolder();
let folders = 0;
const newFolder = () => join(folder, `d${++folders}`);

test('ensure, list and remove work through the control socket, against the real service', async () => {
  const { harness, manager, webhooks, env, subscribed } = await openListeningHarness(newFolder());
  const cli = (...args: string[]) => runHere(['subscriptions', ...args], { env });

  // An owner that is no `up` does not listen at the callback.
  expect(await cli('ensure')).toEqual({
    code: 75,
    stdout: '',
    stderr: 'ringneck: the service verifies our callback, where only a running `ringneck up` listens: start it first\n',
  });
  expect(subscribed()).toEqual([]);

  manager.start();
  expect(await cli('ensure')).toEqual({ code: 0, stdout: `${SUBSCRIPTIONS} of ${SUBSCRIPTIONS} subscriptions are active\n`, stderr: '' });
  expect(subscribed()).toHaveLength(SUBSCRIPTIONS);
  expect(subscribed()).toEqual(expect.arrayContaining(['create vo2_max', 'delete sleep', 'update daily_activity']));
  const list = await harness.commands.subscriptionsList({});
  expect(list).toHaveLength(SUBSCRIPTIONS);
  const { id, expiration_time } = webhooks.subscriptions
    .list(webhooks.client.id)
    .find(one => one.event_type === 'delete' && one.data_type === 'sleep')!;
  expect(list.find(one => one.event_type === 'delete' && one.data_type === 'sleep')).toEqual({
    event_type: 'delete',
    data_type: 'sleep',
    state: 'active',
    reason: null,
    at_service: true,
    id,
    callback_url: env.RINGNECK_CALLBACK_URL!.replace(/\?.*/, ''),
    since: expect.any(String),
    renewed_at: expect.any(String),
    expiration_time: new Date(expiration_time).toISOString(),
  });
  const text = await runHere(['subscriptions', 'list'], { env });
  expect(text.stdout.split('\n')).toHaveLength(SUBSCRIPTIONS + 2);
  expect(text.stdout).not.toContain('not-for-logs');

  expect(await cli('remove')).toEqual({
    code: 0,
    stdout: `${SUBSCRIPTIONS} subscriptions removed; ringneck subscriptions ensure makes them again\n`,
    stderr: '',
  });
  expect(subscribed()).toEqual([]);
  expect((await harness.commands.subscriptionsList({})).map(({ state }) => state)).toEqual(Array(SUBSCRIPTIONS).fill('removed'));
  expect(await harness.commands.subscriptionsEnsure({})).toEqual({ active: SUBSCRIPTIONS, wanted: SUBSCRIPTIONS, problems: [] });
  expect(subscribed()).toHaveLength(SUBSCRIPTIONS);
});

test('remove --on-next-event: the event is answered 410, and so the service cancels its subscription', async () => {
  const { harness, manager, webhooks, env, subscribed } = await openListeningHarness(newFolder());
  manager.start();
  await manager.ensure();
  const removed = await runHere(['subscriptions', 'remove', '--on-next-event', '--json'], { env });
  expect([removed.code, JSON.parse(removed.stdout)]).toEqual([0, { removed: 0, failed: [], listed: false, on_next_event: true }]);
  expect(subscribed()).toHaveLength(SUBSCRIPTIONS);

  const event = {
    event_type: 'update',
    data_type: 'sleep',
    object_id: 'a',
    event_time: '2025-01-02T08:00:00+01:00',
    user_id: 'u',
  } as const;
  const [subscription] = webhooks.subscriptions.listFor(event);
  expect(await webhooks.post(subscription!, event)).toEqual({ outcome: 'gone', reason: 'answered 410' });
  webhooks.subscriptions.noteGone(subscription!.id);
  const listRemoved = async () => (await harness.commands.subscriptionsList({})).filter(({ state }) => state === 'removed');
  await until('it is noted', async () => (await listRemoved()).length > 0);
  expect(await listRemoved()).toMatchObject([
    { event_type: 'update', data_type: 'sleep', at_service: false, reason: 'its next event was answered 410' },
  ]);
});

test('a callback that the service cannot verify: exit code 1, and what to check', async () => {
  const { manager, receiver, env } = await openListeningHarness(newFolder());
  manager.start();
  await manager.remove({ onNextEvent: false });
  await receiver.close();
  const { code, stdout, stderr } = await runHere(['subscriptions', 'ensure'], { env });
  expect([code, stdout]).toEqual([1, `0 of ${SUBSCRIPTIONS} subscriptions are active\n`]);
  expect(stderr).toContain('check RINGNECK_CALLBACK_URL, the reverse proxy and RINGNECK_VERIFICATION_TOKEN');
  expect(stderr).not.toContain('not-for-logs');
  const of45 =
    /^ *(\w+ \w+, ){4}\w+ \w+ and 40 more +refused +the service could not verify our callback: check .* \(POST .* answered 422\)/;
  expect(stderr.trimEnd().split('\n')).toEqual([expect.stringMatching(/^subscriptions +state +reason$/), expect.stringMatching(of45)]);
  expect(stderr.match(/\(it says: /g)).toHaveLength(1);
  const { stdout: status } = await runHere(['status'], { env });
  expect(status.split('\n').filter(line => line.includes('refused '))).toEqual([expect.stringMatching(of45)]);
});

test('list and remove work without up; ensure does not', async () => {
  const { manager, env, subscribed, leave } = await openListeningHarness(newFolder());
  manager.start();
  await manager.ensure();
  await leave();
  const elsewhere = { ...env, RINGNECK_DATA: newFolder() };
  const list = await runHere(['subscriptions', 'list', '--json'], { env: elsewhere });
  expect(JSON.parse(list.stdout).map(({ state }: { state: string }) => state)).toEqual(Array(SUBSCRIPTIONS).fill('unknown'));
  expect((await runHere(['subscriptions', 'ensure'], { env: elsewhere })).code).toBe(75);
  expect(subscribed()).toHaveLength(SUBSCRIPTIONS);
  expect((await runHere(['subscriptions', 'remove', '--json'], { env: elsewhere })).stdout).toBe(
    `{"removed":${SUBSCRIPTIONS},"failed":[],"listed":true,"on_next_event":false}\n`,
  );
  expect(subscribed()).toEqual([]);
});

test('without webhooks there is nothing to list, and with a wrong secret it says what to check', async () => {
  const { env } = await openListeningHarness(newFolder());
  const { RINGNECK_SERVICE_URL } = env;
  const off = await runHere(['subscriptions', 'list'], {
    env: { RINGNECK_DATA: newFolder(), RINGNECK_SERVICE_URL: RINGNECK_SERVICE_URL! },
  });
  expect(off).toEqual({
    code: 2,
    stdout: '',
    stderr:
      'ringneck: webhooks are not configured: set RINGNECK_CALLBACK_URL, RINGNECK_CLIENT_ID, RINGNECK_CLIENT_SECRET, RINGNECK_VERIFICATION_TOKEN\n',
  });
  const wrong = { ...env, RINGNECK_DATA: newFolder(), RINGNECK_CLIENT_SECRET: 'not-for-logs-wrong' };
  const refused = await runHere(['subscriptions', 'list'], { env: wrong });
  expect([refused.code, refused.stdout]).toEqual([1, '']);
  expect(refused.stderr).toMatch(
    /^ringneck: GET \/v2\/webhook\/subscription: answered 401: check RINGNECK_CLIENT_ID and RINGNECK_CLIENT_SECRET \(it says: .+\)\n$/,
  );
  expect(refused.stderr).not.toContain('not-for-logs');
});

test.each([['subscriptions'], ['subscriptions', 'ensure'], ['subscriptions', 'list'], ['subscriptions', 'remove'], ['doctor']])(
  'the help of %s %s has an example',
  async (...command) => {
    const { code, stdout } = await runHere([...command, '--help']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/\nExample:\n {2}ringneck /);
  },
);
