import { expect, test } from 'vitest';
import { type SubscriptionRow, subscriptionEntry } from '../../../src/ledger/subscriptions.ts';
import { windowEntry } from '../../../src/ledger/windows.ts';
import { judgeMissedEvents, type MissedEvents, noteUnannounced } from '../../../src/sync/sweeps/missed-events.ts';
import type { Warehouse } from '../../../src/warehouse/warehouse.ts';
import type { DocumentChange } from '../../../src/warehouse/write-result.ts';
import { account, at, collections, pipelineOf, warehouseWith } from '../../support/literal-pipeline.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { resourceNamed, rows } from '../../support/warehouse.ts';

const folder = tempFolder();
/** When everything was read before, and when the sweep found the change. */
const BEFORE = at('2025-03-10T06:00:00Z');
const FOUND = at('2025-03-10T12:00:00Z');
const MINUTE = 60_000_000;

const subscription = (dataType: string, changes: Partial<SubscriptionRow> = {}): SubscriptionRow => ({
  eventType: 'update',
  dataType,
  id: '6f0ca8e5-7a2d-4d55-9b6a-0a1d2f1f0001',
  callbackUrl: 'https://example.org/webhook',
  state: 'active',
  reason: null,
  since: at('2025-03-01T00:00:00Z'),
  renewedAt: null,
  expiresAt: null,
  ...changes,
});

const documents: Record<string, unknown> = {
  sleep_time: { id: 'night', day: '2025-03-09' },
  daily_stress: { id: 'calm', day: '2025-03-10', day_summary: 'normal' },
};

/** A warehouse in which sleep_time and daily_stress of the first days of March were read at six in the morning. */
async function setUp(subscriptions: readonly SubscriptionRow[] = [subscription('sleep_time'), subscription('daily_stress')]) {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  const pipeline = { ...(await pipelineOf(warehouse, FOUND / 1000)), collections };
  await warehouse.record([
    ...subscriptions.map(subscriptionEntry),
    ...['sleep_time', 'daily_stress', 'daily_activity'].map(collection =>
      windowEntry(
        { runId: 'r', userId: 'ada', collection, startAt: at('2025-03-01T00:00:00Z'), endAt: at('2025-03-12T00:00:00Z') },
        { outcome: 'complete', requestedAt: BEFORE, committedAt: BEFORE + 1 },
      ),
    ),
  ]);
  for (const [name, document] of Object.entries(documents)) {
    await warehouse.storeDocuments({ userId: 'ada', resource: resourceNamed(name), requestedAt: FOUND + 5, documents: [document] });
  }
  const missed: MissedEvents[] = [];
  const judge = async (minutes: number, webhooks = true) => {
    await judgeMissedEvents(
      { ...pipeline, now: () => (FOUND + minutes * MINUTE) / 1000 },
      { webhooks, onMissed: one => void missed.push(one) },
    );
    return missed.splice(0);
  };
  const find = (name: string, changes: DocumentChange[], options: { foundAt?: number; removedDay?: string } = {}) =>
    noteUnannounced(pipeline, {
      resource: resourceNamed(name),
      userId: 'ada',
      foundAt: options.foundAt ?? FOUND,
      changes,
      removed: options.removedDay ? changes.map(({ id }) => ({ id, day: options.removedDay! })) : [],
    });
  return { warehouse, judge, find };
}

/** Notes an event that was accepted so many minutes after the change was found. */
const arrive = (warehouse: Warehouse, minutes: number, dataType: string, objectId: string, eventType = 'update') =>
  warehouse.record([
    {
      table: 'sync.events',
      key: { received_at: FOUND + minutes * MINUTE },
      row: { event_type: eventType, data_type: dataType, object_id: objectId, service_user_id: 'x', outcome: 'unknown_user' },
    },
  ]);

const noted = (warehouse: Warehouse) => rows(warehouse, 'SELECT * FROM sync.missed_events ORDER BY collection, id');
const night: DocumentChange[] = [{ id: 'night', command: 'update' }];

test('a change that no event announced is noted at once, counted after 70 minutes, and told once', async () => {
  const { warehouse, judge, find } = await setUp();
  await find('sleep_time', night);
  const row = {
    found_at: '2025-03-10 12:00:00',
    read_before_at: '2025-03-10 06:00:00',
    user_id: 'ada',
    collection: 'sleep_time',
    id: 'night',
    event_type: 'update',
    missed_at: null,
    noted_at: '2025-03-10 12:00:00',
  };
  expect(await noted(warehouse)).toEqual([row]);
  expect(await judge(69)).toEqual([]);
  expect(await noted(warehouse)).toEqual([row]);
  expect(await judge(70)).toEqual([{ user: 'ada', collection: 'sleep_time', count: 1 }]);
  expect(await noted(warehouse)).toEqual([{ ...row, missed_at: '2025-03-10 13:10:00' }]);
  expect(await judge(500)).toEqual([]);
  expect(await noted(warehouse)).toEqual([{ ...row, missed_at: '2025-03-10 13:10:00' }]);
});

test.each([
  // Since the reading before: 360 minutes earlier.
  { minutes: -359, eventType: 'update', missed: 0 },
  { minutes: -361, eventType: 'update', missed: 1 },
  { minutes: 70, eventType: 'update', missed: 0 },
  { minutes: 71, eventType: 'update', missed: 1 },
  // Of any operation: we were told to look.
  { minutes: 5, eventType: 'create', missed: 0 },
])('an event $eventType $minutes minutes after the change was found: $missed missed', async ({ minutes, eventType, missed }) => {
  const { warehouse, judge, find } = await setUp();
  await find('sleep_time', night);
  await arrive(warehouse, minutes, 'sleep_time', 'night', eventType);
  expect((await judge(80)).length).toBe(missed);
  expect((await noted(warehouse)).length).toBe(missed);
});

test('an event of another kind or of another document announces nothing; activity is another name of daily_activity', async () => {
  const { warehouse, judge, find } = await setUp([subscription('sleep_time'), subscription('activity', { eventType: 'delete' })]);
  await find('sleep_time', night);
  await find('daily_activity', [{ id: 'walk', command: 'delete' }], { removedDay: '2025-03-05' });
  await arrive(warehouse, 1, 'daily_stress', 'night');
  await arrive(warehouse, 2, 'sleep_time', 'other');
  await arrive(warehouse, 3, 'activity', 'walk');
  expect(await judge(70)).toEqual([{ user: 'ada', collection: 'sleep_time', count: 1 }]);
});

test.each([
  ['none', []],
  ['one of another operation', [subscription('sleep_time', { eventType: 'create' })]],
  ['one of another kind', [subscription('sleep')]],
  ['one that is lost', [subscription('sleep_time', { state: 'lost' })]],
  ['one that is younger than the reading before', [subscription('sleep_time', { since: BEFORE + 1 })]],
] satisfies [string, SubscriptionRow[]][])('with %s of the subscriptions nothing is missed', async (_, subscriptions) => {
  const { warehouse, find } = await setUp(subscriptions);
  await find('sleep_time', night);
  expect(await noted(warehouse)).toEqual([]);
});

test('a subscription that ended or began anew while an event could still come: nothing is missed', async () => {
  const lost = await setUp();
  await lost.find('sleep_time', night);
  await lost.warehouse.record([subscriptionEntry(subscription('sleep_time', { state: 'lost' }))]);
  expect(await lost.judge(70)).toEqual([]);
  expect(await noted(lost.warehouse)).toEqual([]);

  const anew = await setUp();
  await anew.find('sleep_time', night);
  await anew.warehouse.record([subscriptionEntry(subscription('sleep_time', { since: FOUND + MINUTE }))]);
  expect(await anew.judge(70)).toEqual([]);
  expect(await noted(anew.warehouse)).toEqual([]);
});

test('where webhooks are not configured nothing is missed, and what was noted is forgotten', async () => {
  const { warehouse, judge, find } = await setUp();
  await find('sleep_time', night);
  expect(await judge(1, false)).toEqual([]);
  expect(await noted(warehouse)).toEqual([]);
});

test('the first reading of a day misses nothing', async () => {
  const { warehouse, find } = await setUp();
  await find('sleep_time', night, { foundAt: BEFORE - MINUTE });
  expect(await noted(warehouse)).toEqual([]);
  await warehouse.record([{ table: 'sync.windows', key: { run_id: 'r', collection: 'sleep_time' } }]);
  await find('sleep_time', night);
  expect(await noted(warehouse)).toEqual([]);
});

test('what an update of this program reads otherwise than before was not changed by the service', async () => {
  const { warehouse, find } = await setUp();
  await warehouse.record([{ table: 'sync.meta', key: { key: 'declared_at' }, row: { value: String(BEFORE + MINUTE) } }]);
  await find('sleep_time', night);
  expect(await noted(warehouse)).toEqual([]);
});

test('an activity that may still grow somewhere is left out, whatever the zone; another kind of the same day is not', async () => {
  const { warehouse, find } = await setUp([
    subscription('daily_activity', { eventType: 'delete' }),
    subscription('daily_stress', { eventType: 'update' }),
  ]);
  const found = async (day: string) => {
    await find('daily_activity', [{ id: `walk ${day}`, command: 'delete' }], { removedDay: day });
  };
  // At noon UTC of the 10th it is the 11th in the east; in the west the activity of the 9th ends at 4 p.m. UTC of the 10th.
  for (const day of ['2025-03-08', '2025-03-09', '2025-03-10', '2025-03-11']) await found(day);
  await find('daily_stress', [{ id: 'calm', command: 'update' }]);
  expect(await warehouse.read('SELECT id FROM sync.missed_events ORDER BY collection')).toEqual([['walk 2025-03-08'], ['calm']]);
});

test('of a removed document the day is the one it had', async () => {
  const { warehouse, judge, find } = await setUp([subscription('sleep_time', { eventType: 'delete' })]);
  await find('sleep_time', [{ id: 'gone', command: 'delete' }], { removedDay: '2025-03-04' });
  // Of this day nothing had been read.
  await find('sleep_time', [{ id: 'unknown', command: 'delete' }], { removedDay: '2025-02-27' });
  expect(await warehouse.read('SELECT id, event_type FROM sync.missed_events')).toEqual([['gone', 'delete']]);
  expect(await judge(90)).toEqual([{ user: 'ada', collection: 'sleep_time', count: 1 }]);
});

test('what was noted after the order ran ahead of the clock, or by a clock that was ahead, is judged 70 minutes later by a right one', async () => {
  const { warehouse, judge, find } = await setUp();
  const DAYS = 60 * 1440;
  // The order is two months ahead of the clock, which is right again.
  await find('sleep_time', night, { foundAt: FOUND + DAYS * MINUTE });
  expect(await judge(69)).toEqual([]);
  expect(await judge(70)).toEqual([{ user: 'ada', collection: 'sleep_time', count: 1 }]);

  // The clock itself was ahead when it was noted.
  const key = { user_id: 'ada', collection: 'daily_stress', id: 'calm', event_type: 'update', found_at: FOUND + DAYS * MINUTE };
  const row = { read_before_at: BEFORE, missed_at: null, noted_at: FOUND + DAYS * MINUTE };
  await warehouse.record([{ table: 'sync.missed_events', key, row }]);
  expect(await judge(100)).toEqual([]);
  expect(await judge(169)).toEqual([]);
  expect(await judge(170)).toEqual([{ user: 'ada', collection: 'daily_stress', count: 1 }]);
});

test('an event whose place in the order is ahead of the clock came when it was settled, at the latest', async () => {
  const { warehouse, judge, find } = await setUp();
  await find('sleep_time', night);
  await warehouse.record([
    {
      table: 'sync.events',
      key: { received_at: FOUND + 60 * 1440 * MINUTE },
      row: { event_type: 'update', data_type: 'sleep_time', object_id: 'night', outcome: 'stored', settled_at: FOUND + 5 * MINUTE },
    },
  ]);
  expect(await judge(70)).toEqual([]);
  expect(await noted(warehouse)).toEqual([]);
});
