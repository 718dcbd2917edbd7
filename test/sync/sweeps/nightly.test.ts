import { expect, test } from 'vitest';
import { forgetSweeps } from '../../../src/ledger/forget-sweeps.ts';
import { windowEntry } from '../../../src/ledger/windows.ts';
import { missed } from '../../../src/sync/sweeps/nightly.ts';
import type { Warehouse } from '../../../src/warehouse/warehouse.ts';
import { account, at, warehouseWith } from '../../support/literal-pipeline.ts';
import { store, stress, told } from '../../support/literal-readings.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const folder = tempFolder();
let runs = 0;

/** Notes a run that began then. */
async function ran(warehouse: Warehouse, kind: string, started: string): Promise<void> {
  const row = { kind, started_at: at(started), state: 'complete', request: '{}' };
  await warehouse.record([{ table: 'sync.runs', key: { run_id: `r${++runs}` }, row }]);
}

const ask = (warehouse: Warehouse, now: string, timeZone: string | undefined = 'UTC', pattern = '30 3 * * *') =>
  missed({ warehouse, now: () => Date.parse(now) }, { pattern, timeZone, days: 14 });

test('a night that went by without a run is missed, until it has run', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  await ran(warehouse, 'nightly', '2025-03-09T03:30:00.100Z');
  expect(await ask(warehouse, '2025-03-10T03:29:59Z')).toBe(false);
  expect(await ask(warehouse, '2025-03-10T03:30:01Z')).toBe(true);
  expect(await ask(warehouse, '2025-03-10T12:00:00Z')).toBe(true);
  await ran(warehouse, 'nightly', '2025-03-10T12:00:01Z');
  expect(await ask(warehouse, '2025-03-10T12:00:02Z')).toBe(false);
  expect(await ask(warehouse, '2025-03-11T03:29:00Z')).toBe(false);
  expect(await ask(warehouse, '2025-03-11T03:31:00Z')).toBe(true);
});

test('a backfill is no nightly run', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  await ran(warehouse, 'backfill', '2025-03-10T04:00:00Z');
  expect(await ask(warehouse, '2025-03-10T12:00:00Z')).toBe(true);
});

test('nobody misses what was due before the first account', async () => {
  expect(await ask(await warehouseWith(folder, []), '2025-03-10T12:00:00Z')).toBe(false);
  const young = await warehouseWith(folder, [account('ada', { since: at('2025-03-10T10:00:00Z') })]);
  expect(await ask(young, '2025-03-10T12:00:00Z')).toBe(false);
  expect(await ask(young, '2025-03-11T12:00:00Z')).toBe(true);
  const removed = await warehouseWith(folder, [account('ada', { state: 'removed' })]);
  await ran(removed, 'nightly', '2025-03-01T03:30:00Z');
  expect(await ask(removed, '2025-03-10T12:00:00Z')).toBe(false);
});

test('an account with a new token was there before: an earlier run tells', async () => {
  const warehouse = await warehouseWith(folder, [account('ada', { since: at('2025-03-10T10:00:00Z') })]);
  await ran(warehouse, 'backfill', '2025-03-08T12:00:00Z');
  expect(await ask(warehouse, '2025-03-10T12:00:00Z')).toBe(true);
});

test.each([
  // 03:30 in Kathmandu is 21:45 UTC of the day before.
  ['Asia/Kathmandu', '2025-03-09T21:44:00Z', false],
  ['Asia/Kathmandu', '2025-03-09T21:46:00Z', true],
  // 03:30 in New York is 07:30 UTC since the 9th, when summer time began.
  ['America/New_York', '2025-03-10T07:29:00Z', false],
  ['America/New_York', '2025-03-10T07:31:00Z', true],
  ['UTC', '2025-03-10T03:29:00Z', false],
  ['UTC', '2025-03-10T03:31:00Z', true],
])('the pattern is read in %s: at %s missed is %s', async (zone, now, expected) => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  await ran(warehouse, 'nightly', '2025-03-09T12:00:00Z');
  expect(await ask(warehouse, now, zone)).toBe(expected);
});

test('a time that the clock skips in spring is due when it goes on', async () => {
  // On 2025-03-30 in Zurich 02:30 does not exist: the clock goes from 02:00 to 03:00, which is 01:00 UTC.
  const warehouse = await warehouseWith(folder, [account('ada')]);
  await ran(warehouse, 'nightly', '2025-03-29T12:00:00Z');
  expect(await ask(warehouse, '2025-03-30T00:59:00Z', 'Europe/Zurich', '30 2 * * *')).toBe(false);
  expect(await ask(warehouse, '2025-03-30T01:31:00Z', 'Europe/Zurich', '30 2 * * *')).toBe(true);
  await ran(warehouse, 'nightly', '2025-03-30T01:31:30Z');
  expect(await ask(warehouse, '2025-03-30T01:32:00Z', 'Europe/Zurich', '30 2 * * *')).toBe(false);
  expect(await ask(warehouse, '2025-03-31T00:29:00Z', 'Europe/Zurich', '30 2 * * *')).toBe(false);
  expect(await ask(warehouse, '2025-03-31T00:31:00Z', 'Europe/Zurich', '30 2 * * *')).toBe(true);
});

test('a time that comes twice in autumn is due once', async () => {
  // On 2025-10-26 in Zurich it is 02:30 at 00:30 UTC and again at 01:30 UTC.
  const warehouse = await warehouseWith(folder, [account('ada')]);
  await ran(warehouse, 'nightly', '2025-10-25T12:00:00Z');
  expect(await ask(warehouse, '2025-10-26T00:29:00Z', 'Europe/Zurich', '30 2 * * *')).toBe(false);
  expect(await ask(warehouse, '2025-10-26T00:31:00Z', 'Europe/Zurich', '30 2 * * *')).toBe(true);
  await ran(warehouse, 'nightly', '2025-10-26T00:30:01Z');
  expect(await ask(warehouse, '2025-10-26T12:00:00Z', 'Europe/Zurich', '30 2 * * *')).toBe(false);
  expect(await ask(warehouse, '2025-10-27T01:31:00Z', 'Europe/Zurich', '30 2 * * *')).toBe(true);
});

test('without a zone the pattern is read in the machine’s', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  const due = new Date(2025, 2, 10, 3, 30);
  await ran(warehouse, 'nightly', new Date(due.getTime() - 3_600_000).toISOString());
  const settings = { pattern: '30 3 * * *', timeZone: undefined, days: 14 };
  expect(await missed({ warehouse, now: () => due.getTime() - 1_000 }, settings)).toBe(false);
  expect(await missed({ warehouse, now: () => due.getTime() + 1_000 }, settings)).toBe(true);
});

test('a week after its end a complete sweep leaves the ledger, a failed one after 31 days, but not one that settled a day, nor a night or a backfill', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  const now = () => Date.parse('2025-03-20T12:00:00Z');
  const run = async (runId: string, kind: string, ended: string, state = 'complete', from = '2025-03-11') => {
    const row = { kind, started_at: at('2025-02-18T11:00:00Z'), ended_at: at(ended), state, request: '{}' };
    const window = {
      runId,

      userId: 'ada',
      // Of what the complete ones read nothing failed.
      collection: state === 'complete' ? 'sleep' : 'daily_stress',
      startAt: at(`${from}T00:00:00Z`),
      endAt: at('2025-03-13T00:00:00Z'),
    };
    const requestedAt = at('2025-03-13T11:30:00Z');
    await warehouse.record([
      { table: 'sync.runs', key: { run_id: runId }, row },
      windowEntry(window, {
        outcome: state === 'complete' ? 'complete' : 'failed',
        requestedAt,
        readAt: requestedAt,
        committedAt: requestedAt,
      }),
      windowEntry({ ...window, collection: 'ring_configuration', startAt: null, endAt: null }, { outcome: 'complete', requestedAt }),
    ]);
  };
  await run('old', 'sweep', '2025-03-13T11:59:59Z');
  await run('young', 'sweep', '2025-03-13T12:00:01Z');
  await run('failed', 'sweep', '2025-02-17T12:00:01Z', 'failed');
  await run('failed long ago', 'sweep', '2025-02-17T11:59:59Z', 'failed');
  // What failed settles nothing, however far back it was to read.
  await run('failed far back', 'sweep', '2025-02-17T11:59:59Z', 'failed', '2025-01-10');
  await run('night', 'nightly', '2025-03-13T11:59:59Z');
  await run('backfill', 'backfill', '2025-03-13T11:59:59Z');
  // Read 14 days after the end of its first day: that day is settled. And a day later: it is not.
  await run('settled', 'sweep', '2025-03-13T11:59:59Z', 'complete', '2025-02-26');
  await run('nearly', 'sweep', '2025-03-13T11:59:59Z', 'complete', '2025-02-27');
  await noted(warehouse, 'answer', 'nightly', 'complete', '2025-03-19T03:30:00Z', ['2025-01-08', '2025-03-15']);
  await forgetSweeps({ warehouse, now, settledDays: 14 });
  const kept = ['answer', 'backfill', 'failed', 'night', 'settled', 'young'];
  expect((await warehouse.read('SELECT run_id FROM sync.runs ORDER BY 1')).flat()).toEqual(kept);
  expect((await warehouse.read('SELECT DISTINCT run_id FROM sync.windows ORDER BY 1')).flat()).toEqual(kept);
  expect(await warehouse.read('SELECT count(*) FROM sync.windows')).toEqual([[11]]);
});

/** Notes a run with one window of nights or of another collection, both days included. */
async function noted(
  warehouse: Warehouse,
  runId: string,
  kind: string,
  outcome: 'complete' | 'failed' | 'suspicious',
  read: string,
  days: [from: string, to: string] | null,
  collection = 'daily_stress',
): Promise<void> {
  const state = outcome === 'complete' ? 'complete' : 'failed';
  const row = { kind, started_at: at(read), ended_at: at(read), state, request: '{}' };
  const span = {
    startAt: days && at(`${days[0]}T00:00:00Z`),
    endAt: days && at(`${days[1]}T00:00:00Z`) + 86_400_000_000,
  };
  const asked = outcome === 'complete' ? { requestedAt: at(read), readAt: at(read) } : {};
  await warehouse.record([
    { table: 'sync.runs', key: { run_id: runId }, row },
    windowEntry({ runId, userId: 'ada', collection, ...span }, { outcome, ...asked, committedAt: at(read) }),
  ]);
}

const kept = async (warehouse: Warehouse) => (await warehouse.read(`SELECT run_id FROM sync.runs WHERE kind = 'sweep' ORDER BY 1`)).flat();

test.each([
  ['before it', '2025-03-08T03:30:00Z'],
  ['after it', '2025-03-08T09:30:00Z'],
])('a sweep stays whose days a night failed to read %s, and coverage says of them what it said', async (_, night) => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  await store(warehouse, 'daily_stress', [stress('2025-03-06')]);
  await noted(warehouse, 'night', 'nightly', 'failed', night, ['2025-02-22', '2025-03-07']);
  await noted(warehouse, 'sweep', 'sweep', 'complete', '2025-03-08T09:00:00Z', ['2025-03-06', '2025-03-07']);
  await noted(warehouse, 'sweep-before', 'sweep', 'complete', '2025-03-08T08:00:00Z', ['2025-03-06', '2025-03-07']);
  const days = { from: '2025-03-06', to: '2025-03-07' };
  const before = await told(warehouse, days);
  expect(before[0]).toContain('03-06 stored');
  await forgetSweeps({ warehouse, now: () => Date.parse('2025-03-16T00:00:00Z'), settledDays: 14 });
  expect(await told(warehouse, days)).toEqual(before);
  expect(await kept(warehouse)).toEqual(['sweep']);
  // Once a night has read them it goes too.
  await noted(warehouse, 'next-night', 'nightly', 'complete', '2025-03-16T03:30:00Z', ['2025-03-02', '2025-03-16']);
  await forgetSweeps({ warehouse, now: () => Date.parse('2025-03-17T00:00:00Z'), settledDays: 14 });
  expect(await kept(warehouse)).toEqual([]);
});

test('a sweep stays whose days lie beside those that a backfill failed to read, for these may have come in part', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  await store(warehouse, 'daily_stress', [stress('2025-03-06')]);
  await noted(warehouse, 'backfill', 'backfill', 'failed', '2025-03-08T10:00:00Z', ['2025-03-01', '2025-03-04']);
  await noted(warehouse, 'beside', 'sweep', 'complete', '2025-03-08T09:00:00Z', ['2025-03-06', '2025-03-06']);
  await noted(warehouse, 'further', 'sweep', 'complete', '2025-03-08T09:00:01Z', ['2025-03-07', '2025-03-07']);
  await forgetSweeps({ warehouse, now: () => Date.parse('2025-03-16T00:00:00Z'), settledDays: 14 });
  expect(await kept(warehouse)).toEqual(['beside']);
  expect(await told(warehouse, { from: '2025-03-06', to: '2025-03-06' })).toEqual(['03-06 stored']);
});

test('a sweep stays that read a collection without dates which a night did not; those of others do not', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  await noted(warehouse, 'night', 'nightly', 'suspicious', '2025-03-08T03:30:00Z', null, 'ring_configuration');
  await noted(warehouse, 'rings', 'sweep', 'complete', '2025-03-08T09:00:00Z', null, 'ring_configuration');
  await noted(warehouse, 'nights', 'sweep', 'complete', '2025-03-08T09:00:01Z', ['2025-03-05', '2025-03-07'], 'sleep');
  await forgetSweeps({ warehouse, now: () => Date.parse('2025-03-16T00:00:00Z'), settledDays: 14 });
  expect(await kept(warehouse)).toEqual(['rings']);
});

test('a sweep stays by which alone it is known that a day was last read before it was over', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  await store(warehouse, 'daily_stress', [stress('2025-03-06')]);
  await noted(warehouse, 'sweep', 'sweep', 'complete', '2025-03-06T12:00:00Z', ['2025-03-05', '2025-03-07']);
  await noted(warehouse, 'sweep-before', 'sweep', 'complete', '2025-03-06T06:00:00Z', ['2025-03-05', '2025-03-07']);
  const days = { from: '2025-03-06', to: '2025-03-06' };
  const early = ['03-06 stored: last read before the day was over'];
  expect(await told(warehouse, days)).toEqual(early);
  await forgetSweeps({ warehouse, now: () => Date.parse('2025-03-16T00:00:00Z'), settledDays: 14 });
  expect(await told(warehouse, days)).toEqual(early);
  expect(await kept(warehouse)).toEqual(['sweep']);
});

test('a failed sweep stays while nobody has read a day to its end of which it may have brought a part', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  const now = () => Date.parse('2025-03-10T12:00:00Z');
  await store(warehouse, 'daily_stress', ['2025-02-05', '2025-02-08'].map(stress));
  await noted(warehouse, 'backfill', 'backfill', 'complete', '2025-02-04T12:00:00Z', ['2025-02-01', '2025-02-03']);
  await noted(warehouse, 'failed', 'sweep', 'failed', '2025-02-06T12:00:00Z', ['2025-02-04', '2025-02-06']);
  const days = { from: '2025-02-01', to: '2025-02-08' };
  const before = [
    '02-01 to 02-03 empty',
    '02-04 to 02-06 failed',
    '02-07 not_asked',
    '02-08 not_asked: read beside other days only, and not to the end',
  ];
  expect(await told(warehouse, days)).toEqual(before);
  await forgetSweeps({ warehouse, now, settledDays: 14 });
  expect(await told(warehouse, days)).toEqual(before);
  // Half of the last day beside it is no answer.
  await noted(warehouse, 'early', 'nightly', 'complete', '2025-02-08T23:59:59Z', ['2025-02-02', '2025-02-08']);
  await forgetSweeps({ warehouse, now, settledDays: 14 });
  expect(await kept(warehouse)).toEqual(['failed']);
  await noted(warehouse, 'night', 'nightly', 'complete', '2025-02-09T03:30:00Z', ['2025-02-02', '2025-02-08']);
  await forgetSweeps({ warehouse, now, settledDays: 14 });
  expect(await kept(warehouse)).toEqual([]);
  expect(await told(warehouse, days)).toEqual(['02-01 to 02-04 empty', '02-05 stored', '02-06 to 02-07 empty', '02-08 stored']);
});

test('of sweeps that failed again and again the last of each day stays', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  for (const day of ['02-05', '02-06', '02-07']) {
    for (const hour of ['01', '12', '23']) {
      await noted(warehouse, `${day} at ${hour}`, 'sweep', 'failed', `2025-${day}T${hour}:00:00Z`, [`2025-${day}`, `2025-${day}`]);
    }
  }
  await noted(warehouse, 'elsewhere', 'sweep', 'failed', '2025-02-08T01:00:00Z', ['2025-02-05', '2025-02-05'], 'sleep');
  const days = { from: '2025-02-01', to: '2025-02-10' };
  const before = await told(warehouse, days);
  await forgetSweeps({ warehouse, now: () => Date.parse('2025-03-12T12:00:00Z'), settledDays: 14 });
  expect(await kept(warehouse)).toEqual(['02-05 at 23', '02-06 at 23', '02-07 at 23', 'elsewhere']);
  expect(await told(warehouse, days)).toEqual(before);
});
