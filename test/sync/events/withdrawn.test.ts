import { expect, test } from 'vitest';
import { withdrawnReason } from '../../../src/ledger/unproven.ts';
import { shareRedis } from '../../queue/redis-server.ts';
import { openEventHarness } from '../../support/event-harness.ts';
import { night } from '../../support/nights.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { until } from '../../support/until.ts';

const folder = tempFolder();
const newQueue = shareRedis();

test.each([
  ['who has withdrawn, the account being paused', 'paused', withdrawnReason('ada')],
  ['who has withdrawn, the account being removed', 'removed', withdrawnReason('ada')],
  ['who was removed', 'removed', null],
] as const)('of %s no event is kept, until they are back', async (_, state, reason) => {
  const harness = await openEventHarness(folder, { queueUrl: newQueue().RINGNECK_QUEUE_URL });
  const ada = await harness.person('ada', { sleep: [night('ada-1'), night('ada-2', '2025-03-08')] });
  const ben = await harness.person('ben', { sleep: [night('ben-1')] });
  await ada.account({ state, reason, since: 1_741_000_000_000_000 });
  await ada.announce({ data_type: 'sleep', object_id: 'ada-1' });
  await ben.tell({ data_type: 'sleep', object_id: 'ben-1' });
  await until('nothing waits', () => harness.pipeline.inbox.keys().length === 0);
  expect(await harness.rows('SELECT object_id FROM sync.events')).toEqual([{ object_id: 'ben-1' }]);
  await ada.account({ state: 'active', reason: null, since: 1_741_000_000_000_001 });
  expect(await ada.tell({ data_type: 'sleep', object_id: 'ada-2' })).toMatchObject({ user_id: 'ada', outcome: 'stored' });
  expect(await harness.rows("SELECT id FROM sleep WHERE user_id = 'ada'")).toEqual([{ id: 'ada-2' }]);
  await harness.close();
});
