import { expect, test } from 'vitest';
import { findLate } from '../../src/ledger/late-heart-rate.ts';
import { windowEntry } from '../../src/ledger/windows.ts';
import { account, at, warehouseWith } from '../support/literal-pipeline.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { resourceNamed } from '../support/warehouse.ts';
import { ACTIVITY, SLEEP } from '../support/wire.ts';

const folder = tempFolder();
const NOW = Date.parse('2025-03-30T12:00:00Z');

interface Read {
  at: string;
  days: [from: string, to: string];
  outcome: 'complete' | 'failed' | 'suspicious' | 'stopped' | null;
  /** Whether anything was asked for. */
  isRead?: boolean;
}

interface Come {
  id: string;
  day: string;
  at: string;
  table?: 'sleep' | 'daily_activity' | 'daily_sleep';
  outcome?: 'stored' | 'unchanged' | 'parked';
  user?: string;
}

/** A backfill of ada's heart rate from February on, of 15 March. */
const first: Read = { at: '2025-03-15T03:00:00Z', days: ['2025-02-01', '2025-03-15'], outcome: 'complete' };

/** The days of ada's heart rate that are to be read before those of 28 March, after what was read, and what events have brought. */
async function lateAfter(reads: readonly Read[], documents: readonly Come[]): Promise<string[]> {
  const warehouse = await warehouseWith(folder, [account('ada'), account('bob')]);
  for (const [i, { at: when, days, outcome, isRead = true }] of reads.entries()) {
    const window = {
      runId: `r${i}`,
      userId: 'ada',
      collection: 'heart_rate',
      startAt: at(`${days[0]}T00:00:00Z`),
      endAt: at(`${days[1]}T00:00:00Z`) + 86_400_000_000,
    };
    const moments = { requestedAt: at(when), readAt: at(when), committedAt: at(when) };
    await warehouse.record([
      { table: 'sync.runs', key: { run_id: `r${i}` }, row: { kind: 'sweep', started_at: at(when), state: 'running', request: '{}' } },
      windowEntry(window, { outcome, ...(outcome === 'complete' && isRead ? moments : { committedAt: moments.committedAt }) }),
    ]);
  }
  for (const [i, { id, day, at: when, table = 'sleep', outcome = 'stored', user = 'ada' }] of documents.entries()) {
    const document = { ...(table === 'sleep' ? SLEEP : ACTIVITY), id, day };
    const page = { userId: user, resource: resourceNamed(table), requestedAt: warehouse.clock.next() };
    if (table !== 'daily_sleep') await warehouse.storeDocuments({ ...page, documents: [document] });
    const row = { object_id: id, user_id: user, data_type: table, outcome, committed_at: at(when), settled_at: at(when) };
    await warehouse.record([{ table: 'sync.events', key: { received_at: at(when) + i }, row }]);
  }
  const spans = await findLate({ warehouse, now: () => NOW }, { users: ['ada'], before: '2025-03-28' });
  return spans.map(({ userId, collection, from, to }) => `${userId} ${collection} ${from.slice(5)} to ${to.slice(5)}`);
}

const late: Come = { id: 'n-1', day: '2025-02-20', at: '2025-03-30T11:00:00Z' };

test('of a night or an activity that an event has brought, the day and its neighbours are late until they are read again', async () => {
  expect(await lateAfter([first], [late])).toEqual(['ada heart_rate 02-19 to 02-21']);
  expect(await lateAfter([first], [{ ...late, table: 'daily_activity' }])).toEqual(['ada heart_rate 02-19 to 02-21']);
  const after: Read = { at: '2025-03-30T11:00:01Z', days: ['2025-02-19', '2025-02-20'], outcome: 'complete' };
  expect(await lateAfter([first, after], [late])).toEqual(['ada heart_rate 02-21 to 02-21']);
  expect(await lateAfter([first, { ...after, at: '2025-03-30T10:59:59Z' }], [late])).toEqual(['ada heart_rate 02-19 to 02-21']);
  expect(await lateAfter([first], [late, { ...late, id: 'n-2', day: '2025-02-23' }, { ...late, id: 'n-3', day: '2025-03-02' }])).toEqual([
    'ada heart_rate 02-19 to 02-24',
    'ada heart_rate 03-01 to 03-03',
  ]);
});

test('that the service answers for heart rate again is no reading of any day', async () => {
  const answers: Read = { at: '2025-03-30T11:30:00Z', days: ['2025-02-20', '2025-02-20'], outcome: 'complete', isRead: false };
  expect(await lateAfter([first, answers], [late])).toEqual(['ada heart_rate 02-19 to 02-21']);
});

test('a night that came with the answer for another is late too, though its own event found it unchanged', async () => {
  expect(await lateAfter([first], [{ ...late, outcome: 'unchanged' }])).toEqual(['ada heart_rate 02-19 to 02-21']);
});

test('nothing is late because of other documents, other people, events that stored nothing, or events of more than a month ago', async () => {
  const others: Come[] = [
    { ...late, table: 'daily_sleep' },
    { ...late, user: 'bob', id: 'n-9' },
    { ...late, outcome: 'parked', at: '2025-03-30T10:00:00Z' },
  ];
  expect(await lateAfter([first], others.slice(0, 2))).toEqual([]);
  expect(await lateAfter([first], others.slice(2))).toEqual([]);
  expect(await lateAfter([{ ...first, at: '2025-02-20T00:00:00Z' }], [{ ...late, at: '2025-02-28T11:59:59Z' }])).toEqual([]);
  expect(await lateAfter([{ ...first, at: '2025-02-20T00:00:00Z' }], [{ ...late, at: '2025-02-28T12:00:01Z' }])).toHaveLength(1);
});

test('nothing is late of the days that are read anyway, nor of a time that nobody asked for', async () => {
  expect(await lateAfter([first], [{ ...late, day: '2025-03-28' }])).toEqual(['ada heart_rate 03-27 to 03-27']);
  expect(await lateAfter([first], [{ ...late, day: '2025-03-29' }])).toEqual([]);
  expect(await lateAfter([first], [{ ...late, day: '2025-02-01' }])).toEqual(['ada heart_rate 02-01 to 02-02']);
  expect(await lateAfter([first], [{ ...late, day: '0001-01-01' }])).toEqual([]);
  expect(await lateAfter([], [late])).toEqual([]);
});

test('what could not be read is left alone for six hours, and so is what a run is about to read', async () => {
  const failed: Read = { at: '2025-03-30T11:30:00Z', days: ['2025-02-19', '2025-02-21'], outcome: 'failed' };
  for (const outcome of ['failed', null] as const) expect(await lateAfter([first, { ...failed, outcome }], [late])).toEqual([]);
  expect(await lateAfter([first, { ...failed, outcome: 'stopped' }], [late])).toEqual(['ada heart_rate 02-19 to 02-21']);
  // One of a clock that was ahead is of no time.
  const ahead: Read = { ...failed, at: '2025-05-30T00:00:00Z' };
  expect(await lateAfter([first, ahead], [late])).toEqual(['ada heart_rate 02-19 to 02-21']);
  const before = { ...late, at: '2025-03-30T05:00:00Z' };
  expect(await lateAfter([first, { ...failed, at: '2025-03-30T05:59:59Z' }], [before])).toEqual(['ada heart_rate 02-19 to 02-21']);
  // An answer that is not believed is one.
  expect(await lateAfter([first, { ...failed, outcome: 'suspicious', at: '2025-03-30T05:30:00Z' }], [before])).toEqual([]);
});
