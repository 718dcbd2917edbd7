import { expect, test } from 'vitest';
import { UsageError } from '../../../src/base/errors.ts';
import { windowEntry } from '../../../src/ledger/windows.ts';
import { lastDays, prepareRequest } from '../../../src/sync/runs/backfill.ts';
import { COLLECTIONS } from '../../support/declared.ts';
import { account, at, collections, warehouseWith } from '../../support/literal-pipeline.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const folder = tempFolder();
const range = { from: '2025-01-01', to: '2025-01-31', kind: 'backfill' as const, refresh: false };

test.each([
  [1, '2025-03-10T15:30:00Z', '2025-03-11', '2025-03-11'],
  [2, '2025-03-10T15:30:00Z', '2025-03-10', '2025-03-11'],
  [30, '2025-03-10T15:30:00Z', '2025-02-10', '2025-03-11'],
  [2, '2025-03-10T00:00:00.000Z', '2025-03-10', '2025-03-11'],
  [2, '2025-03-09T23:59:59.999Z', '2025-03-09', '2025-03-10'],
  [3, '2024-02-28T12:00:00Z', '2024-02-27', '2024-02-29'],
  [366, '2024-12-31T12:00:00Z', '2024-01-02', '2025-01-01'],
])('the last %i days at %s are those from %s to %s', (count, now, from, to) => {
  expect(lastDays(count, { now: () => Date.parse(now), aheadMs: 0 })).toEqual({ from, to });
});

test.each([
  ['behind', '2025-06-10', '2025-06-08', '2025-06-21'],
  ['ahead', '2025-06-30', '2025-06-18', '2025-07-01'],
  ['31 days behind', '2025-05-20', '2025-05-18', '2025-06-21'],
  ['of another time', '2025-05-19', '2025-05-17', '2025-05-20'],
  ['of another year', '2024-02-28', '2024-02-26', '2024-02-29'],
])('on 2025-06-20 the last 4 days of a service whose clock is %s (%s) are those from %s to %s', (_, theirs, from, to) => {
  const nowMs = Date.parse(`${theirs}T12:00:00Z`);
  expect(lastDays(4, { now: () => nowMs, aheadMs: nowMs - Date.parse('2025-06-20T12:00:00Z') })).toEqual({ from, to });
});

test('all active accounts and all collections are asked for; who is parked or paused is told', async () => {
  const warehouse = await warehouseWith(folder, [
    account('ben', { state: 'parked', reason: 'forbidden: lapsed' }),
    account('ada'),
    account('dee', { state: 'removed' }),
    account('cat', { state: 'paused', reason: 'paused by command' }),
  ]);
  expect(await prepareRequest({ warehouse, collections }, {}, range)).toEqual({
    request: {
      kind: 'backfill',
      from: '2025-01-01',
      to: '2025-01-31',
      refresh: false,
      users: ['ada'],
      collections: COLLECTIONS,
    },
    skipped: [
      { user_id: 'ben', collection: null, state: 'parked', reason: 'forbidden: lapsed' },
      { user_id: 'cat', collection: null, state: 'paused', reason: 'paused by command' },
    ],
  });
});

test.each([
  [{ to: '9999-12-31' }, '--to 9999-12-31: give a day from 1900-01-01 to 2199-12-31'],
  [{ to: '2200-01-01' }, '--to 2200-01-01: give a day from 1900-01-01 to 2199-12-31'],
  [{ from: '0001-01-01' }, '--from 0001-01-01: give a day from 1900-01-01 to 2199-12-31'],
])('the range %j is wrong usage', async (days, message) => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  await expect(prepareRequest({ warehouse, collections }, {}, { ...range, ...days })).rejects.toThrow(new UsageError(message));
});

test('a selection is taken in the order of the specification, whatever order it was given in', async () => {
  const warehouse = await warehouseWith(folder, [account('ada'), account('ben'), account('cat')]);
  const { request } = await prepareRequest(
    { warehouse, collections },
    { users: ['cat', 'ada'], collections: ['heart_rate', 'sleep'] },
    { ...range, refresh: true },
  );
  expect(request).toEqual({
    kind: 'backfill',
    from: '2025-01-01',
    to: '2025-01-31',
    refresh: true,
    users: ['cat', 'ada'],
    collections: ['sleep', 'heart_rate'],
  });
});

test('a user named twice is asked once', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  const { request } = await prepareRequest({ warehouse, collections }, { users: ['ada', 'ada'], collections: ['sleep', 'sleep'] }, range);
  expect([request.users, request.collections]).toEqual([['ada'], ['sleep']]);
});

test('an account or a collection that does not exist is wrong usage that names those that do', async () => {
  const warehouse = await warehouseWith(folder, [account('ada'), account('dee', { state: 'removed' })]);
  const ask = (selection: object) => prepareRequest({ warehouse, collections }, selection, range);
  await expect(ask({ users: ['zoe'] })).rejects.toThrow(new UsageError('no account "zoe": there is ada'));
  await expect(ask({ users: ['dee'] })).rejects.toThrow('no account "dee": there is ada');
  await expect(ask({ collections: ['slep'] })).rejects.toThrow(/^no collection "slep": there are daily_readiness, .*, heart_rate$/);
});

test('collections that were refused are told, where they were asked for', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  const window = { runId: 'r', userId: 'ada', collection: 'sleep', startAt: at('2025-01-01T00:00:00Z'), endAt: null };
  await warehouse.record([windowEntry(window, { outcome: 'not_authorised', reason: 'no scope', committedAt: at('2025-02-01T00:00:00Z') })]);
  const { request, skipped } = await prepareRequest({ warehouse, collections }, {}, range);
  expect(request.users).toEqual(['ada']);
  expect(skipped).toEqual([{ user_id: 'ada', collection: 'sleep', state: 'not_authorised', reason: 'no scope' }]);
  expect((await prepareRequest({ warehouse, collections }, { collections: ['session'] }, range)).skipped).toEqual([]);
});
