import { expect, test } from 'vitest';
import { reportAccounts } from '../../src/sync/status.ts';
import { account, at, collections, knownClock, warehouseWith } from '../support/literal-pipeline.ts';
import { NOON, note, type Reading, store, stress } from '../support/literal-readings.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();

const FIRST: Reading = { days: ['2025-02-01', '2025-02-10'], outcome: 'complete', when: '2025-02-12T00:00:00Z' };
const LAST: Reading = { days: ['2025-02-25', '2025-03-10'], outcome: 'complete', when: '2025-03-10T03:00:00Z' };

const whole = { state: 'up_to_date', reason: null, unread_days: 0 };
const holes = (days: number, from: string, to: string) => ({
  state: 'holes',
  reason: `${days === 1 ? '1 day is' : `${days} days are`} unread, or failed when last read, from ${from} to ${to}`,
  unread_days: days,
});

test.each<[string, Reading[], object]>([
  ['days between two ranges that nobody asked for', [FIRST, LAST], holes(14, '2025-02-11', '2025-02-24')],
  [
    'what was read between them by another',
    [FIRST, LAST, { ...FIRST, days: ['2025-02-08', '2025-02-26'], when: '2025-03-01T00:00:00Z' }],
    whole,
  ],
  [
    'more than one hole',
    [FIRST, LAST, { ...FIRST, days: ['2025-02-13', '2025-02-20'], when: '2025-03-01T00:00:00Z' }],
    holes(6, '2025-02-11', '2025-02-24'),
  ],
  [
    'days that failed, and after which all went well',
    [FIRST, { days: ['2025-02-11', '2025-02-24'], outcome: 'failed', when: '2025-02-25T00:00:00Z', reason: 'no' }, LAST],
    holes(14, '2025-02-11', '2025-02-24'),
  ],
  [
    'days at the beginning that failed',
    [
      { ...FIRST, outcome: 'failed', reason: 'no' },
      { ...LAST, days: ['2025-02-09', '2025-03-10'] },
    ],
    holes(8, '2025-02-01', '2025-02-08'),
  ],
  [
    'a day that was last read before it was over',
    [
      { ...FIRST, when: '2025-02-10T03:00:00Z' },
      { ...LAST, days: ['2025-02-11', '2025-03-10'] },
    ],
    holes(1, '2025-02-10', '2025-02-10'),
  ],
  [
    'days that were read, and failed or were not believed when last read',
    [
      { ...LAST, days: ['2025-02-01', '2025-03-10'] },
      { days: ['2025-02-11', '2025-02-24'], outcome: 'failed', when: '2025-03-10T04:00:00Z', reason: 'no' },
      { days: ['2025-02-20', '2025-02-26'], outcome: 'suspicious', when: '2025-03-10T05:00:00Z', reason: 'no' },
      { ...LAST, days: ['2025-02-13', '2025-02-14'], when: '2025-03-10T06:00:00Z' },
      { ...LAST, when: '2025-03-10T07:00:00Z' },
    ],
    holes(12, '2025-02-11', '2025-02-24'),
  ],
  [
    'days that were read, and refused when last read',
    [
      { ...LAST, days: ['2025-02-01', '2025-03-10'] },
      { days: ['2025-02-11', '2025-02-24'], outcome: 'not_authorised', when: '2025-03-10T04:00:00Z', reason: 'no scope' },
      { ...LAST, when: '2025-03-10T07:00:00Z' },
    ],
    holes(14, '2025-02-11', '2025-02-24'),
  ],
  [
    'days up to a reading that begins today',
    [FIRST, { ...LAST, days: ['2025-03-10', '2025-03-11'], when: '2025-03-10T10:00:00Z' }],
    holes(27, '2025-02-11', '2025-03-09'),
  ],
  ['the day before yesterday, and yesterday before it was over', [{ ...LAST, when: '2025-03-09T23:30:00Z' }], whole],
  ['days before the first that was planned', [LAST], whole],
  [
    'days after the last one are told as such',
    [FIRST],
    { state: 'not_asked', reason: 'nothing after 2025-02-10 was asked for', unread_days: 27 },
  ],
  [
    'a collection that the service does not offer',
    [FIRST, { ...LAST, outcome: 'not_offered', reason: 'answers 404' }],
    { state: 'not_offered', unread_days: 0 },
  ],
  [
    'a window that is still to be read',
    [FIRST, LAST, { days: ['2025-02-11', '2025-02-24'], outcome: null, run: 'under-way' }],
    { state: 'pending', unread_days: 0 },
  ],
])('status tells of days that nobody has read: %s', async (_, readings, expected) => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  for (const reading of readings) await note(warehouse, reading);
  expect(await only(warehouse)).toMatchObject(expected);
});

const only = async (warehouse: Awaited<ReturnType<typeof warehouseWith>>) => {
  const [ada] = await reportAccounts(
    { warehouse, now: () => NOON, serviceClock: knownClock(() => NOON) },
    collections.filter(({ name }) => name === 'daily_stress'),
    new Set(['under-way']),
  );
  return ada!.collections[0];
};

test('days whose documents came beside others that were read are no hole, unless that reading failed', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  await note(warehouse, FIRST);
  await note(warehouse, LAST);
  await store(warehouse, 'daily_stress', [stress('2025-02-11'), stress('2025-02-12'), stress('2025-02-24')]);
  expect(await only(warehouse)).toMatchObject(holes(11, '2025-02-13', '2025-02-23'));
  await note(warehouse, { days: ['2025-02-14', '2025-02-20'], outcome: 'failed', when: '2025-02-25T00:00:00Z', reason: 'no' });
  await note(warehouse, { ...LAST, when: '2025-03-10T04:00:00Z' });
  expect(await only(warehouse)).toMatchObject(holes(12, '2025-02-12', '2025-02-23'));
});

test('status tells how many documents came and could not be stored', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  await note(warehouse, { ...LAST, days: ['2025-02-01', '2025-03-10'] });
  const refused = (id: string) => ({
    table: 'sync.rejected',
    key: { user_id: 'ada', collection: 'daily_stress', id },
    row: { reason: 'day is missing', document: '{}', fetched_at: 1 },
  });
  await warehouse.record([refused('a'), refused('b')]);
  const reason = '2 that came could not be stored (sync.rejected)';
  expect(await only(warehouse)).toMatchObject({ state: 'up_to_date', reason, unread_days: 0 });
});

test('a day that was last read before it was over is a hole, also where documents of it are there', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  await note(warehouse, { days: ['2025-02-20', '2025-03-01'], outcome: 'complete', when: '2025-03-01T12:00:00Z' });
  await store(warehouse, 'daily_stress', [stress('2025-03-01')]);
  await note(warehouse, { ...LAST, days: ['2025-03-02', '2025-03-10'] });
  expect(await only(warehouse)).toMatchObject(holes(1, '2025-03-01', '2025-03-01'));
});

test('what was not read because its account was not active then is told once it is', async () => {
  const warehouse = await warehouseWith(folder, [account('ada', { since: at('2025-03-10T04:00:00Z') })]);
  await note(warehouse, FIRST);
  await note(warehouse, { ...LAST, outcome: 'not_authorised', when: '2025-03-10T04:00:00Z', reason: 'the account is paused' });
  expect(await only(warehouse)).toMatchObject({ state: 'not_asked', unread_days: 27 });
});

test('an account that is not asked has no holes to be fixed', async () => {
  const warehouse = await warehouseWith(folder, [account('ada', { state: 'paused', reason: 'paused by command' })]);
  await note(warehouse, FIRST);
  await note(warehouse, LAST);
  expect(await only(warehouse)).toMatchObject(whole);
});
