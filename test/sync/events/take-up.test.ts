import { join } from 'node:path';
import { Redis } from 'ioredis';
import { expect, onTestFinished, test, vi } from 'vitest';
import { accountEntry, getAccount, listParkedCollections, setAccountState } from '../../../src/ledger/accounts.ts';
import { type EventsJob, enqueueEvents, eventQueue } from '../../../src/sync/events/accept-event.ts';
import { EventProcessor } from '../../../src/sync/events/process-event.ts';
import { takeUpEvents } from '../../../src/sync/events/take-up.ts';
import { hasRedis, startRedis } from '../../queue/redis-server.ts';
import { spo2 } from '../../service/documents.ts';
import { openEventHarness } from '../../support/event-harness.ts';
import { openHarness } from '../../support/harness.ts';
import { account, at, pipelineOf, warehouseWith } from '../../support/literal-pipeline.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { until } from '../../support/until.ts';

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
  const first = await openHarness(path, 'http://127.0.0.1:9', { queue: 'embedded' });
  const since = at('2025-03-11T00:00:00Z');
  await first.app.warehouse.record([
    ...['ada', 'ben'].map(name => accountEntry(account(name, { serviceUserId: `s-${name}`, since }))),
    ...parked(200),
  ]);
  const pipeline = await first.app.pipeline();
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

  const second = await openHarness(path, 'http://127.0.0.1:9', { queue: 'embedded' });
  const again = await second.app.pipeline();
  expect(again.inbox.size).toBe(0);
  await takeUpEvents(again);
  expect(again.inbox.size).toBe(200);
});

const EVENT = {
  event_type: 'update',
  data_type: 'sleep',
  object_id: 'night-1',
  event_time: '2025-03-10T10:00:00Z',
  user_id: 's-ada',
} as const;

async function openPaused(name: string) {
  const harness = await openHarness(join(folder, name), 'http://127.0.0.1:9', { queue: 'embedded' });
  const { warehouse } = harness.app;
  await warehouse.record([accountEntry(account('ada', { serviceUserId: 's-ada' }))]);
  const paused = await setAccountState(warehouse, await getAccount(warehouse, 'ada'), 'paused', 'paused by command');
  return { warehouse, paused, pipeline: await harness.app.pipeline() };
}

test('an event that is parked while its account is being resumed is taken up, whichever comes first', async () => {
  const { warehouse, paused, pipeline } = await openPaused('raced');
  pipeline.tokens.find = () => undefined;
  const processor = new EventProcessor(pipeline, {});
  let before = paused;
  let raced = 0;
  for (let turns = 0; turns < 12; turns++) {
    const receivedAt = warehouse.clock.next();
    const resumed = setAccountState(warehouse, before, 'active', null).then(() => takeUpEvents(pipeline));
    for (let turn = 0; turn < turns; turn++) await new Promise(resolve => setImmediate(resolve));
    const { step } = await processor.process({ receivedAt, event: EVENT, tries: { misses: 0, absences: 0, failures: 0 } });
    await resumed;
    const [row] = await warehouse.read(`SELECT reason FROM sync.events WHERE epoch_us(received_at) = ${receivedAt}`);
    if (row?.[0] === 'the account is paused: paused by command') {
      raced++;
      expect({ turns, goesOn: 'again' in step || pipeline.inbox.has(String(receivedAt)) }).toEqual({ turns, goesOn: true });
      pipeline.inbox.finish(String(receivedAt));
      // Also where the process ended before anybody went on with it.
      await takeUpEvents(pipeline);
      expect({ turns, isTakenUp: pipeline.inbox.has(String(receivedAt)) }).toEqual({ turns, isTakenUp: true });
    }
    for (const key of [...pipeline.inbox.keys()]) pipeline.inbox.finish(key);
    before = await setAccountState(warehouse, await getAccount(warehouse, 'ada'), 'paused', 'paused by command');
    await warehouse.record([{ table: 'sync.events', key: { received_at: receivedAt } }]);
  }
  expect(raced).toBeGreaterThan(0);
});

test('an event that is parked by what is wrong with itself is not taken up before its account changes', async () => {
  const { warehouse, paused, pipeline } = await openPaused('itself');
  await setAccountState(warehouse, paused, 'active', null);
  const processor = new EventProcessor(pipeline, {});
  const receivedAt = warehouse.clock.next();
  const event = { ...EVENT, object_id: '..' };
  const { step } = await processor.process({ receivedAt, event, tries: { misses: 0, absences: 0, failures: 0 } });
  expect(step).toMatchObject({ finished: { outcome: 'parked' } });
  await takeUpEvents(pipeline);
  expect(pipeline.inbox.size).toBe(0);
  const account = await getAccount(warehouse, 'ada');
  await setAccountState(warehouse, await setAccountState(warehouse, account, 'paused', null), 'active', null);
  await takeUpEvents(pipeline);
  expect(pipeline.inbox.size).toBe(1);
});

test('a window whose turn came while its account was being resumed is no refusal of its collection', async () => {
  const { warehouse, paused, pipeline } = await openPaused('window');
  // The moment of a resume is fixed before it is committed.
  const since = warehouse.clock.next();
  const request = {
    kind: 'backfill' as const,
    from: '2025-03-01',
    to: '2025-03-02',
    users: ['ada'],
    collections: ['sleep'],
    refresh: false,
  };
  const run = await pipeline.runs.start(request);
  expect(await run.done).toMatchObject({ state: 'failed', failures: [{ message: 'the account is paused: paused by command' }] });
  await warehouse.record([accountEntry({ ...paused, state: 'active', reason: null, since })]);
  expect(await listParkedCollections(warehouse)).toEqual([]);
  expect(
    await warehouse.read(`SELECT DISTINCT state FROM sync.coverage_between('2025-03-01', '2025-03-02') WHERE collection = 'sleep'`),
  ).toEqual([['not_asked']]);
});

test.skipIf(!hasRedis)('events of an account that is resumed while its Redis takes nothing are stored when it is back', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.remove());
  const harness = await openEventHarness(folder, { queueUrl: redis.url });
  onTestFinished(() => harness.close());
  const { warehouse } = harness.pipeline;
  const person = await harness.person('ada', { daily_spo2: [spo2('2025-03-09', 'spo2-1')] });
  await setAccountState(warehouse, await getAccount(warehouse, 'ada'), 'paused', 'paused by command');
  expect(await person.tell({})).toMatchObject({ outcome: 'parked' });
  const client = new Redis(redis.url);
  onTestFinished(() => client.disconnect());
  await client.call('REPLICAOF', '127.0.0.1', '1');
  await setAccountState(warehouse, await getAccount(warehouse, 'ada'), 'active', null);
  expect(await takeUpEvents(harness.pipeline)).toBe(true);
  expect(harness.pipeline.inbox.size).toBe(1);
  await client.call('REPLICAOF', 'NO', 'ONE');
  await harness.settled(2);
  expect(await person.outcomes()).toMatchObject([{ outcome: 'stored' }]);
});

test('events that the inbox could not take when their account was resumed are taken up as soon as it can, which is said once', async () => {
  const warehouse = await warehouseWith(folder, [account('ada', { serviceUserId: 's-ada', since: at('2025-03-11T00:00:00Z') })]);
  await warehouse.record(parked(11).map(entry => ({ ...entry, row: { ...entry.row, user_id: 'ada' } })));
  const pipeline = await pipelineOf(warehouse, at('2025-03-11T00:00:00Z') / 1000, ['sleep'], { takeUpMs: 5 });
  onTestFinished(() => pipeline.runs.close());
  const kept = new Set<string>();
  let refusals = 0;
  const append = async (key: string) => {
    if (refusals++ < 30) throw new Error('no room on the disk');
    kept.add(key);
  };
  const warn = vi.fn();
  Object.assign(pipeline, { inbox: { append, has: (key: string) => kept.has(key) }, log: { ...pipeline.log, warn, info: () => {} } });
  expect(await takeUpEvents(pipeline)).toBe(false);
  await until('all are taken up', async () => kept.size === 11);
  const asked = refusals;
  await until('the timer has come again', () => new Promise(resolve => setTimeout(() => resolve(true), 30)));
  expect(refusals).toBe(asked);
  expect(warn).toHaveBeenCalledExactlyOnceWith(
    { reason: 'no room on the disk' },
    'events that waited for their accounts could not be taken up: tried again each minute',
  );
});

test('who resumes an account whose events cannot be taken up now is told so', async () => {
  const harness = await openHarness(join(folder, 'told'), 'http://127.0.0.1:9', { queue: 'embedded' });
  const { warehouse } = harness.app;
  await warehouse.record([accountEntry(account('ada', { serviceUserId: 's-ada' })), ...parked(11)]);
  const { inbox } = await harness.app.pipeline();
  const append = vi.spyOn(inbox, 'append').mockRejectedValue(new Error('no room on the disk'));
  expect(await harness.commands.resumeAccounts({ names: ['ada'] })).toMatchObject([
    { state: 'active', warning: 'events that waited for their accounts could not be taken up now: it is tried again each minute' },
  ]);
  append.mockRestore();
  expect(await harness.commands.resumeAccounts({ names: ['ada'] })).toMatchObject([{ state: 'active', warning: null }]);
  expect(inbox.size).toBe(1);
});
