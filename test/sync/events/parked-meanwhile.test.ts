import { expect, test } from 'vitest';
import { openEventHarness } from '../../support/event-harness.ts';
import { night } from '../../support/nights.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { until } from '../../support/until.ts';

const folder = tempFolder();

test('an event that waits for its place is not worked on with the token of a stranger that came meanwhile', async () => {
  const harness = await openEventHarness(folder, {
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
