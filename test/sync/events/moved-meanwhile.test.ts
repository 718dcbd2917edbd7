import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { shareRedis } from '../../queue/redis-server.ts';
import { openEventHarness } from '../../support/event-harness.ts';
import { night } from '../../support/nights.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { until } from '../../support/until.ts';

const folder = tempFolder();
const newQueue = shareRedis();
const SLEEP = '/v2/usercollection/sleep';

test('an event of a deletion removes nothing that another reading stores under other days meanwhile', async () => {
  const harness = await openEventHarness(folder, { queueUrl: newQueue().RINGNECK_QUEUE_URL });
  onTestFinished(() => harness.close());
  harness.faults.on(`${SLEEP}/*`, { status: 404, json: { detail: 'Not Found' } });
  const person = await harness.person('moved', { sleep: [night('beside', '2025-02-23'), night('moving', '2025-03-04')] });
  await person.store('sleep', [night('beside', '2025-02-23'), night('moving', '2025-02-22')]);
  await person.announce({ event_type: 'create', data_type: 'sleep', object_id: 'moving' });
  await until('the create waits', async () => (await harness.queue.getDelayedCount()) === 1);
  const [create] = await harness.queue.getDelayed();
  await person.announce({ event_type: 'delete', data_type: 'sleep', object_id: 'moving' });
  await until('both wait', async () => (await harness.queue.getDelayedCount()) === 2);
  const remove = (await harness.queue.getDelayed()).find(({ id }) => id !== create?.id);
  let open = () => {};
  const opened = new Promise<void>(resolve => {
    open = resolve;
  });
  const asked = () => harness.faults.asked.filter(({ path }) => path === SLEEP).length;
  const before = asked();
  harness.faults.on(SLEEP, async () => {
    await opened;
    return undefined;
  });
  await create?.promote();
  await until('its second reading is under way', () => asked() > before);
  await remove?.promote();
  // Its reading waits in line behind that one by now.
  await sleep(500);
  open();
  await harness.settled(2);
  expect(await harness.rows("SELECT id, day::VARCHAR AS day FROM sleep WHERE user_id = 'moved' ORDER BY id")).toEqual([
    { id: 'beside', day: '2025-02-23' },
    { id: 'moving', day: '2025-03-04' },
  ]);
});

test('an event of a deletion removes what was stored while another account is read', async () => {
  const harness = await openEventHarness(folder, { queueUrl: newQueue().RINGNECK_QUEUE_URL, delays: { confirmDelete: 1 } });
  onTestFinished(() => harness.close());
  harness.faults.on(`${SLEEP}/*`, { status: 404, json: { detail: 'Not Found' } });
  const person = await harness.person('brief', { sleep: [night('beside', '2025-03-03'), night('short', '2025-03-04')] });
  // An answer of somebody else's that takes its time.
  const { clock } = harness.pipeline.warehouse;
  const late = clock.lease();
  await person.tell({ event_type: 'create', data_type: 'sleep', object_id: 'short' });
  person.documents.sleep?.pop();
  expect(await person.tell({ event_type: 'delete', data_type: 'sleep', object_id: 'short' })).toMatchObject({ outcome: 'removed' });
  expect(await harness.rows("SELECT id FROM sleep WHERE user_id = 'brief'")).toEqual([{ id: 'beside' }]);
  clock.release(late);
});
