import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { type EventsJob, enqueueEvents, eventQueue } from '../../jobs/accept-event.ts';
import { accountEntry } from '../../jobs/accounts.ts';
import { takeUpEvents } from '../../jobs/events/take-up.ts';
import { openHouse } from '../support/house.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';
import { account, at } from './literal-pipeline.ts';

const folder = tempFolder();
const BEGIN = at('2025-03-10T10:00:00Z');

/** Of two people, one event after the other; the first has many. */
const parked = (count: number) =>
  Array.from({ length: count }, (_, i) => {
    const user_id = i < count - 10 ? 'ada' : 'ben';
    const event = { event_type: 'update', data_type: 'sleep', object_id: `night-${i}`, service_user_id: `s-${user_id}` };
    return {
      table: 'sync.events' as const,
      key: { received_at: BEGIN + i },
      row: { ...event, user_id, event_time: BEGIN + i, outcome: 'parked', committed_at: BEGIN + count + i },
    };
  });

test('events that were parked are handed to what fills the queue, which holds few of one person; those left are taken up at the next start', async () => {
  const path = join(folder, 'parked');
  const first = await openHouse(path, 'http://127.0.0.1:9');
  const since = at('2025-03-11T00:00:00Z');
  await first.owner.warehouse.record([
    ...['ada', 'ben'].map(name => accountEntry(account(name, { serviceUserId: `s-${name}`, since }))),
    ...parked(200),
  ]);
  const pipeline = await first.owner.pipeline();
  const queue = await eventQueue(pipeline.warehouse);
  await takeUpEvents(pipeline);
  await takeUpEvents(pipeline);
  expect(pipeline.inbox.size).toBe(200);
  expect(JSON.parse(pipeline.inbox.find(String(BEGIN))!)).toEqual({
    event_type: 'update',
    data_type: 'sleep',
    object_id: 'night-0',
    event_time: '2025-03-10T10:00:00.000Z',
    user_id: 's-ada',
  });
  const filling = enqueueEvents(pipeline, queue);
  onTestFinished(() => filling.close());
  const keys = async () =>
    (await pipeline.queues.queue(queue).getJobs(['waiting'])).flatMap(
      ({ data, id }) => (data as Partial<EventsJob>).keys ?? id!.replace('inbox-', ''),
    );
  await until('both have their turn', async () => (await keys()).length >= 58);
  expect((await keys()).filter(key => Number(key) - BEGIN < 190)).toHaveLength(48);
  expect(await keys()).toHaveLength(58);
  await filling.close();
  await first.close();

  const second = await openHouse(path, 'http://127.0.0.1:9');
  const again = await second.owner.pipeline();
  expect(again.inbox.size).toBe(0);
  await takeUpEvents(again);
  expect(again.inbox.size).toBe(200);
});
