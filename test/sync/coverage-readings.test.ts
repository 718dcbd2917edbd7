import { expect, test } from 'vitest';
import { windowEntry } from '../../src/ledger/windows.ts';
import { account, at, warehouseWith } from '../support/literal-pipeline.ts';
import { days, march, note, type Reading, told } from '../support/literal-readings.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();

test.each<[name: string, readings: Reading[], expected: string[]]>([
  ['nothing was asked', [], ['03-05 to 03-07 not_asked']],
  ['a complete reading', [{ days: march, outcome: 'complete', when: '2025-03-09T00:00:00Z' }], ['03-05 to 03-07 empty']],
  [
    'a reading that began before the last day was over, and one that began as it ended',
    [
      { days: march, outcome: 'complete', when: '2025-03-07T23:59:59Z' },
      { days: ['2025-03-05', '2025-03-06'], outcome: 'complete', when: '2025-03-07T00:00:00Z' },
    ],
    ['03-05 to 03-06 empty', '03-07 not_asked: last read before the day was over'],
  ],
  [
    'a reading that failed after a complete one of a part',
    [
      { days: ['2025-03-05', '2025-03-05'], outcome: 'complete', when: '2025-03-08T00:00:00Z' },
      { days: ['2025-03-06', '2025-03-07'], outcome: 'failed', when: '2025-03-08T00:00:01Z', reason: 'answered 500' },
    ],
    ['03-05 empty', '03-06 to 03-07 failed: answered 500'],
  ],
  [
    'a complete reading after one that failed',
    [
      { days: march, outcome: 'failed', when: '2025-03-08T00:00:00Z', reason: 'answered 500' },
      { days: march, outcome: 'complete', when: '2025-03-08T00:00:01Z' },
    ],
    ['03-05 to 03-07 empty'],
  ],
  [
    'a reading that failed over days that were read before: the latest decides',
    [
      { days: march, outcome: 'complete', when: '2025-03-08T00:00:00Z' },
      { days: march, outcome: 'failed', when: '2025-03-09T00:00:00Z', reason: 'answered 500' },
    ],
    ['03-05 to 03-07 failed: answered 500'],
  ],
  [
    'a planned window after one that failed',
    [
      { days: march, outcome: 'failed', when: '2025-03-08T00:00:00Z', reason: 'answered 500' },
      { days: ['2025-03-06', '2025-03-07'], outcome: null, when: '2025-03-09T00:00:00Z' },
    ],
    ['03-05 failed: answered 500', '03-06 to 03-07 pending: failed before: answered 500'],
  ],
  [
    'a planned window whose days another run has read since, and one whose days had been read before',
    [
      { days: ['2025-03-05', '2025-03-05'], outcome: null, when: '2025-03-08T00:00:00Z' },
      { days: ['2025-03-05', '2025-03-05'], outcome: 'complete', when: '2025-03-08T12:00:00Z' },
      { days: ['2025-03-06', '2025-03-06'], outcome: 'complete', when: '2025-03-08T12:00:00Z' },
      { days: ['2025-03-06', '2025-03-07'], outcome: null, when: '2025-03-09T00:00:00Z' },
    ],
    ['03-05 to 03-06 empty', '03-07 pending'],
  ],
  ['a run that was stopped', [{ days: march, outcome: 'stopped' }], ['03-05 to 03-07 not_asked: its run was stopped']],
  [
    'a collection that is not offered',
    [{ days: march, outcome: 'not_offered', when: '2025-03-09T00:00:00Z', reason: 'answered 404' }],
    ['03-05 to 03-07 not_offered: answered 404'],
  ],
  [
    'a collection that is offered since: days that were not are to be read',
    [
      { days: ['2025-03-05', '2025-03-06'], outcome: 'not_offered', when: '2025-03-08T00:00:00Z', reason: 'answered 404' },
      { days: ['2025-03-07', '2025-03-07'], outcome: 'complete', when: '2025-03-09T00:00:00Z' },
    ],
    ['03-05 to 03-06 not_asked: was not offered, and is now', '03-07 empty'],
  ],
  [
    'a collection that was offered before, and whose next days lay in the future',
    [
      { days: ['2025-03-05', '2025-03-05'], outcome: 'complete', when: '2025-03-08T00:00:00Z' },
      { days: ['2025-03-06', '2025-03-07'], outcome: 'not_offered', when: '2025-03-08T00:00:01Z', reason: 'answered 404' },
      { days: ['2025-03-20', '2025-03-20'], outcome: 'complete' },
    ],
    ['03-05 empty', '03-06 to 03-07 not_offered: answered 404'],
  ],
  [
    'a collection that is refused: also the days that nobody asked for since',
    [{ days: ['2025-03-05', '2025-03-05'], outcome: 'not_authorised', when: '2025-03-09T00:00:00Z', reason: 'no scope' }],
    ['03-05 to 03-07 not_authorised: no scope'],
  ],
  [
    'a suspicious answer',
    [{ days: march, outcome: 'suspicious', when: '2025-03-09T00:00:00Z', reason: '12 are missing' }],
    ['03-05 to 03-07 suspicious: 12 are missing'],
  ],
  [
    'a reading that brought what could not be stored: while its day is unknown no day is empty',
    [
      {
        days: ['2025-03-05', '2025-03-06'],
        outcome: 'complete',
        when: '2025-03-09T00:00:00Z',
        rejects: { rejected: 3, undated: 1 },
      },
      {
        days: ['2025-03-07', '2025-03-07'],
        outcome: 'complete',
        when: '2025-03-09T00:00:00Z',
        rejects: { rejected: 3, undated: 0 },
      },
    ],
    ['03-05 to 03-06 failed: what came could not be stored, and its day is unknown (sync.rejected)', '03-07 empty'],
  ],
  [
    'a reading without such a document after one with it, and one that is planned',
    [
      { days: march, outcome: 'complete', when: '2025-03-09T00:00:00Z', rejects: { rejected: 1, undated: 1 } },
      {
        days: ['2025-03-05', '2025-03-05'],
        outcome: 'complete',
        when: '2025-03-09T00:00:01Z',
        rejects: { rejected: 0, undated: 0 },
      },
      { days: ['2025-03-07', '2025-03-07'], outcome: null, when: '2025-03-09T00:00:02Z' },
    ],
    ['03-05 empty', '03-06 failed: what came could not be stored, and its day is unknown (sync.rejected)', '03-07 pending'],
  ],
  ['a window that lay in the future when it was its turn', [{ days: march, outcome: 'complete' }], ['03-05 to 03-07 not_asked']],
])('%s', async (_, readings, expected) => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  for (const reading of readings) await note(warehouse, reading);
  expect(await told(warehouse, days)).toEqual(expected);
});

test('windows of a run that was killed while it was planned are not pending', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  await note(warehouse, { days: ['2025-03-05', '2025-03-05'], outcome: 'complete', when: '2025-03-08T00:00:00Z' });
  await warehouse.record([
    windowEntry(
      {
        runId: 'killed',
        userId: 'ada',
        collection: 'daily_stress',
        startAt: at('2025-03-05T00:00:00Z'),
        endAt: at('2025-03-08T00:00:00Z'),
      },
      { outcome: null },
    ),
  ]);
  expect(await told(warehouse, days)).toEqual(['03-05 empty', '03-06 to 03-07 not_asked']);
});
