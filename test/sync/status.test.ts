import { expect, test } from 'vitest';
import { isoOf } from '../../schema/instant.ts';
import type { Outcome } from '../../src/ledger/windows.ts';
import { windowEntry } from '../../src/ledger/windows.ts';
import { reportAccounts } from '../../src/sync/status.ts';
import type { Warehouse } from '../../src/warehouse/warehouse.ts';
import { account, at, collections, knownClock, warehouseWith } from '../support/literal-pipeline.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { resourceNamed } from '../support/warehouse.ts';
import { ACTIVITY, STRESS } from '../support/wire.ts';

const folder = tempFolder();
const NOW = Date.parse('2025-03-10T12:00:00Z');
const REQUEST = JSON.stringify({ kind: 'backfill', from: '1970-01-01', to: '2025-03-11' });
let runs = 0;

async function note(
  warehouse: Warehouse,
  collection: string,
  outcome: Outcome | null,
  committed?: string,
  reason?: string,
  userId = 'ada',
  runId = `r${++runs}`,
  startAt = 0,
): Promise<void> {
  const window = { runId, userId, collection, startAt, endAt: at('2025-03-12T00:00:00Z') };
  const result = {
    outcome,
    ...(reason ? { reason } : {}),
    ...(committed ? { requestedAt: at(committed), readAt: at(committed), committedAt: at(committed) } : {}),
  };
  await warehouse.record([
    windowEntry(window, result),
    {
      table: 'sync.runs',
      key: { run_id: runId },
      row: {
        kind: 'backfill',
        state: outcome === null ? 'running' : 'complete',
        request: REQUEST,
        started_at: at(committed ?? '2025-03-10T00:00:00Z'),
      },
    },
  ]);
}

const report = (warehouse: Warehouse, names: readonly string[], workedOn: readonly string[] = []) =>
  reportAccounts(
    { warehouse, now: () => NOW, serviceClock: knownClock(() => NOW) },
    collections.filter(({ name }) => names.includes(name)),
    new Set(workedOn),
  );

const only = async (warehouse: Warehouse, name: string) => (await report(warehouse, [name]))[0]!.collections[0];

const INTERRUPTED =
  'the backfill of 1970-01-01 to 2025-03-11 was interrupted: the same command, or any start of ringneck up or ringneck nightly, goes on with it';
const FRESH = { state: 'up_to_date', reason: null, failures: 0 };
const notAskedAfter = (day: string) => ({ state: 'not_asked', reason: `nothing after ${day} was asked for`, failures: 0 });

test('moments are ISO 8601 in UTC', () => {
  expect(isoOf(1_741_608_000_000_000)).toBe('2025-03-10T12:00:00.000Z');
  expect(isoOf(1_741_608_000_000_001)).toBe('2025-03-10T12:00:00.000001Z');
});

test('the whole report of an account, its keys and their order', async () => {
  const warehouse = await warehouseWith(folder, [account('ada', { serviceUserId: 's-1' })]);
  const store = (name: string, documents: object[]) =>
    warehouse.storeDocuments({ userId: 'ada', resource: resourceNamed(name), requestedAt: warehouse.clock.lease(), documents });
  await store('daily_activity', [ACTIVITY, { ...ACTIVITY, id: 'a-2', day: '2025-03-28' }]);
  const row = (timestamp: string) => ({ timestamp, timestamp_unix: Date.parse(timestamp), bpm: 60, source: 'awake' });
  await warehouse.storeHeartRate({
    userId: 'ada',
    from: 0,
    to: at('2025-04-01T00:00:00Z'),
    requestedAt: warehouse.clock.lease(),
    rows: [row('2025-03-09T23:59:00.000+00:00'), row('2025-03-08T10:00:00.000+00:00')],
  });
  await note(warehouse, 'daily_activity', 'complete', '2025-03-10T11:58:30Z');
  await note(warehouse, 'heart_rate', 'complete', '2025-03-10T11:00:00Z');
  await note(warehouse, 'heart_rate', 'failed', '2025-03-10T11:30:00Z', 'GET /v2/usercollection/heartrate: answered 500');
  await note(warehouse, 'heart_rate', 'failed', '2025-03-10T11:31:00Z', 'GET /v2/usercollection/heartrate: answered 502');
  expect(await report(warehouse, ['daily_activity', 'ring_configuration', 'heart_rate'])).toEqual([
    {
      user_id: 'ada',
      service_user_id: 's-1',
      state: 'active',
      reason: null,
      since: '2025-01-01T00:00:00.000Z',
      collections: [
        {
          name: 'daily_activity',
          state: 'up_to_date',
          reason: null,
          newest_day: '2025-03-30',
          last_success: '2025-03-10T11:58:30.000Z',
          lag: 90,
          failures: 0,
          unread_days: 0,
        },
        {
          name: 'ring_configuration',
          state: 'never_asked',
          reason: null,
          newest_day: null,
          last_success: null,
          lag: null,
          failures: 0,
          unread_days: 0,
        },
        {
          name: 'heart_rate',
          state: 'failed',
          reason: 'GET /v2/usercollection/heartrate: answered 502',
          newest_day: '2025-03-09',
          last_success: '2025-03-10T11:00:00.000Z',
          lag: 3600,
          failures: 2,
          // All of its window, which was read since 1970 and failed since.
          unread_days: 20157,
        },
      ],
    },
  ]);
});

test.each<[string, [Outcome | null, string?, string?][], object]>([
  ['nothing', [], { state: 'never_asked', last_success: null, failures: 0 }],
  [
    'a window of a run that nobody works on',
    [[null]],
    { state: 'interrupted', reason: INTERRUPTED, last_success: null, failures: 0, unread_days: 20157 },
  ],
  [
    'one that was read to its end since then',
    [['complete', '2025-03-10T11:00:00Z'], [null]],
    { state: 'up_to_date', last_success: '2025-03-10T11:00:00.000Z', lag: 3_600, failures: 0, unread_days: 0 },
  ],
  [
    'a complete one after a failure',
    [
      ['failed', '2025-03-08T12:00:00Z', 'no'],
      ['complete', '2025-03-09T12:00:00Z'],
    ],
    { state: 'up_to_date', reason: null, failures: 0 },
  ],
  [
    'a failure after a complete one',
    [
      ['complete', '2025-03-09T12:00:00Z'],
      ['failed', '2025-03-10T11:00:00Z', 'no'],
    ],
    { state: 'failed', reason: 'no', last_success: '2025-03-09T12:00:00.000Z', failures: 1 },
  ],
  [
    'an answer that cannot be',
    [['suspicious', '2025-03-09T12:00:00Z', 'two empty answers over stored rows']],
    { state: 'suspicious', reason: 'two empty answers over stored rows', last_success: null, failures: 1 },
  ],
  [
    'a collection that is not offered, which is no failure',
    [['not_offered', '2025-03-09T12:00:00Z', 'answers 404']],
    { state: 'not_offered', reason: 'answers 404', last_success: '2025-03-09T12:00:00.000Z', failures: 0 },
  ],
  [
    'a collection that is refused',
    [['not_authorised', '2025-03-09T12:00:00Z', 'no scope']],
    { state: 'not_authorised', reason: 'no scope', last_success: null, failures: 1 },
  ],
  [
    'a run that was stopped',
    [['stopped']],
    {
      state: 'not_asked',
      reason: 'the run that was to read it was stopped: the same command reads it',
      failures: 0,
      unread_days: 20157,
    },
  ],
  [
    'a run that was stopped after a complete one',
    [['complete', '2025-03-09T12:00:00Z'], ['stopped']],
    { state: 'up_to_date', failures: 0 },
  ],
])('%s', async (_, windows, expected) => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  for (const [outcome, committed, reason] of windows) await note(warehouse, 'sleep', outcome, committed, reason);
  expect(await only(warehouse, 'sleep')).toMatchObject(expected);
});

test.each<[string, string, [from: string | null, to: string | null, requested: string], object]>([
  ['a reading of days long past', 'sleep', ['2025-01-01', '2025-01-10', '2025-03-10T11:00:00Z'], notAskedAfter('2025-01-09')],
  ['one that ends before yesterday', 'sleep', ['2025-01-01', '2025-03-09', '2025-03-10T11:00:00Z'], notAskedAfter('2025-03-08')],
  ['one that ends with yesterday', 'sleep', ['2025-01-01', '2025-03-10', '2025-03-10T11:00:00Z'], FRESH],
  ['one asked for before yesterday', 'heart_rate', ['2025-03-01', '2025-03-12', '2025-03-08T23:59:59Z'], notAskedAfter('2025-03-08')],
  ['one asked for yesterday', 'heart_rate', ['2025-03-01', '2025-03-12', '2025-03-09T00:00:01Z'], FRESH],
  ['a collection without days, before yesterday', 'ring_configuration', [null, null, '2025-03-08T12:00:00Z'], notAskedAfter('2025-03-08')],
  ['a collection without days, yesterday', 'ring_configuration', [null, null, '2025-03-09T12:00:00Z'], FRESH],
])('up to date is what was read up to yesterday: %s', async (_, collection, [from, to, requested], expected) => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  const midnight = (day: string | null) => (day === null ? null : at(`${day}T00:00:00Z`));
  const window = { runId: 'r', userId: 'ada', collection, startAt: midnight(from), endAt: midnight(to) };
  await warehouse.record([
    windowEntry(window, {
      outcome: 'complete',
      requestedAt: at(requested),
      readAt: at(requested),
      committedAt: at('2025-03-10T11:00:00Z'),
    }),
  ]);
  expect(await only(warehouse, collection)).toMatchObject(expected);
  // To read the days before takes nothing away from it.
  const older = { ...window, runId: 'older', startAt: at('2024-01-01T00:00:00Z'), endAt: midnight(from) };
  const moment = at('2025-03-10T11:30:00Z');
  if (from) await warehouse.record([windowEntry(older, { outcome: 'complete', requestedAt: moment, readAt: moment, committedAt: moment })]);
  expect(await only(warehouse, collection)).toMatchObject(expected);
});

test('a window that failed is seen among the others of its run, whichever came last, until a run has no failure', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  const ofRun = (run: string, window: number, outcome: Outcome, committed: string, reason?: string) =>
    note(warehouse, 'sleep', outcome, committed, reason, 'ada', run, window);
  await ofRun('first', 1, 'complete', '2025-03-09T12:00:00Z');
  await ofRun('first', 2, 'failed', '2025-03-09T12:00:01Z', 'no');
  await ofRun('first', 3, 'complete', '2025-03-09T12:00:02Z');
  const failed = { state: 'failed', reason: 'no', last_success: '2025-03-09T12:00:02.000Z', failures: 1 };
  expect(await only(warehouse, 'sleep')).toMatchObject(failed);
  await ofRun('second', 1, 'suspicious', '2025-03-09T13:00:00Z', 'empty');
  await ofRun('second', 2, 'complete', '2025-03-09T13:00:01Z');
  expect(await only(warehouse, 'sleep')).toMatchObject({ state: 'suspicious', reason: 'empty', failures: 2 });
  await ofRun('third', 1, 'complete', '2025-03-09T14:00:00Z');
  expect(await only(warehouse, 'sleep')).toMatchObject({ state: 'up_to_date', reason: null, failures: 0 });
});

test('each account has its own windows and days; one that was removed is not shown', async () => {
  const warehouse = await warehouseWith(folder, [
    account('ben', { state: 'parked', reason: 'forbidden: lapsed' }),
    account('ada'),
    account('dee', { state: 'removed' }),
  ]);
  const requestedAt = warehouse.clock.lease();
  await warehouse.storeDocuments({ userId: 'ben', resource: resourceNamed('daily_stress'), requestedAt, documents: [STRESS] });
  await note(warehouse, 'daily_stress', 'complete', '2025-03-10T11:59:59Z', undefined, 'ben');
  const accounts = await report(warehouse, ['daily_stress']);
  expect(accounts.map(({ user_id, state, reason }) => [user_id, state, reason])).toEqual([
    ['ada', 'active', null],
    ['ben', 'parked', 'forbidden: lapsed'],
  ]);
  expect(accounts.map(({ collections: [first] }) => [first!.state, first!.newest_day, first!.lag])).toEqual([
    ['never_asked', null, null],
    ['up_to_date', '2025-01-15', 1],
  ]);
});

test('a clock that was set back shows no negative lag', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  await note(warehouse, 'sleep', 'complete', '2025-03-10T13:00:00Z');
  expect(await only(warehouse, 'sleep')).toMatchObject({ lag: 0 });
});

test.each<[string, Outcome | undefined, object]>([
  ['nothing', undefined, { reason: null, last_success: null }],
  ['a complete reading', 'complete', { reason: null, last_success: '2025-03-09T12:00:00.000Z', lag: 86_400 }],
])('a planned window is pending while a run under way is to read it: after %s', async (_, before, expected) => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  if (before) await note(warehouse, 'sleep', before, '2025-03-09T12:00:00Z');
  await note(warehouse, 'sleep', null, undefined, undefined, 'ada', 'worked-on');
  const [ada] = await report(warehouse, ['sleep'], ['worked-on']);
  expect(ada!.collections).toMatchObject([{ state: 'pending', failures: 0, unread_days: 0, ...expected }]);
});

test('a failure tells more than a run that was interrupted, whose days count too', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  await note(warehouse, 'sleep', 'failed', '2025-03-10T11:00:00Z', 'no', 'ada', 'failed', at('2025-03-08T00:00:00Z'));
  await note(warehouse, 'sleep', null);
  expect(await only(warehouse, 'sleep')).toMatchObject({ state: 'failed', reason: 'no', unread_days: 20157 });
});

test('windows of a run that was killed while it was planned are not pending', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  const window = { runId: 'killed', userId: 'ada', startAt: 0, endAt: at('2025-03-12T00:00:00Z') };
  await warehouse.record(['sleep', 'daily_stress'].map(collection => windowEntry({ ...window, collection }, { outcome: null })));
  await note(warehouse, 'sleep', 'complete', '2025-03-10T00:00:00Z');
  expect((await report(warehouse, ['sleep', 'daily_stress']))[0]!.collections).toMatchObject([
    { name: 'daily_stress', state: 'never_asked' },
    { name: 'sleep', state: 'up_to_date' },
  ]);
});

test('days that lay in the future when it was their turn were not read: they make nothing up to date', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  await note(warehouse, 'daily_stress', 'complete', '2025-03-05T12:00:00Z');
  const unread = (committed: string) => {
    const window = { runId: `r${++runs}`, userId: 'ada', collection: 'daily_stress', startAt: at('2025-03-08T00:00:00Z') };
    return windowEntry({ ...window, endAt: at('2025-03-15T00:00:00Z') }, { outcome: 'complete', committedAt: at(committed) });
  };
  await warehouse.record([unread('2025-03-06T12:00:00Z')]);
  expect(await only(warehouse, 'daily_stress')).toMatchObject(notAskedAfter('2025-03-05'));
});
