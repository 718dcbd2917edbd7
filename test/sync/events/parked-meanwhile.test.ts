import { expect, test } from 'vitest';
import { sleep } from '../../../schema/resources/sleep.ts';
import { RangeReads } from '../../../src/sync/events/range-reads.ts';
import { shareRedis } from '../../queue/redis-server.ts';
import { openEventHarness } from '../../support/event-harness.ts';
import { night } from '../../support/nights.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { until } from '../../support/until.ts';

const folder = tempFolder();
const newQueue = shareRedis();

test('an event that waits for its place is not worked on with the token of a stranger that came meanwhile', async () => {
  const harness = await openEventHarness(folder, {
    queueUrl: newQueue().RINGNECK_QUEUE_URL,
    settings: { specificationOnly: true },
    delays: { unreadable: [1, 2, 3], confirm: 1, confirmDelete: 1, failed: [1, 2, 3] },
  });
  const ids = Array.from({ length: 17 }, (_, i) => `ada-${i}`);
  const ada = await harness.person('ada', { sleep: ids.map(id => night(id)) });
  await harness.person('ben', { sleep: [night('ben-1'), night('ben-2', '2025-03-08')] });
  let release = () => {};
  const released = new Promise<void>(resolve => {
    release = resolve;
  });
  let held = 0;
  harness.faults.on('/v2/usercollection/daily_spo2/*', async ({ token }) => {
    if (token !== 'ada-token') return undefined;
    held++;
    await released;
    return undefined;
  });
  // As many as there are places.
  for (const id of ids.slice(0, 16)) await ada.announce({ data_type: 'daily_spo2', object_id: id, event_type: 'create' });
  await until('they ask', () => held >= 1);
  await ada.announce({ data_type: 'sleep', object_id: 'ada-16', event_type: 'create' });
  // The last waits for its place by now.
  await new Promise(resolve => setTimeout(resolve, 60));
  await ada.account({ state: 'parked', reason: 'the token is that of another person', since: 1_741_000_000_000_000 });
  harness.tokens.set('ada', 'ben-token');
  release();
  await until('all have their outcome', async () => (await ada.outcomes()).length === 17);
  expect(await harness.rows("SELECT id FROM sleep WHERE user_id = 'ada'")).toEqual([]);
  expect(harness.faults.asked.filter(({ token }) => token === 'ben-token')).toEqual([]);
  await harness.close();
});

test('a range that is read with the token of a stranger brings nothing to an event that came with the right one', async () => {
  const harness = await openEventHarness(folder, { queueUrl: newQueue().RINGNECK_QUEUE_URL, later: true });
  await harness.person('ada', { sleep: [night('ada-1')] });
  await harness.person('ben', { sleep: [night('ben-1')] });
  const absent: string[] = [];
  const ranges = new RangeReads(harness.pipeline, async ({ event, token }) => {
    absent.push(`${event.object_id} by ${token}`);
    return { finished: { outcome: 'parked', reason: 'not there' } };
  });
  const ask = (token: string, object_id: string) => {
    const event = {
      event_type: 'create',
      data_type: 'sleep',
      object_id,
      event_time: '2025-03-10T15:00:00Z',
      user_id: 'service-ada',
    } as const;
    const tries = { misses: 0, absences: 0, failures: 0 };
    harness.tokens.set('ada', token);
    return ranges.read({ receivedAt: 1, event, tries, userId: 'ada', resource: sleep, token }, {});
  };
  // The second waits for the read of the first; the token is replaced, and the third comes.
  const asked = [ask('ben-token', 'ada-0'), ask('ben-token', 'ada-2'), ask('ada-token', 'ben-1')];
  await expect(Promise.allSettled(asked)).resolves.toMatchObject([
    { reason: { message: 'the token of ada was replaced meanwhile' } },
    { reason: { message: 'the token of ada was replaced meanwhile' } },
    { value: { finished: { outcome: 'parked' } } },
  ]);
  expect(absent).toEqual(['ben-1 by ada-token']);
  expect(await harness.rows("SELECT id FROM sleep WHERE user_id = 'ada'")).toEqual([{ id: 'ada-1' }]);
  await harness.close();
});
