import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { type Asked, type FaultService, startFaultService } from '../support/fault-service.ts';
import { type Harness, openHarness } from '../support/harness.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
let folders = 0;

const PLAIN = '/v2/usercollection/heartrate';
const TWO_DAYS = { from: '2025-03-01', to: '2025-03-02', collections: ['heart_rate'] };

const row = (timestamp: string, bpm: unknown) => ({
  timestamp,
  timestamp_unix: Date.parse(timestamp),
  bpm,
  source: 'awake',
});

const first = row('2025-03-01T10:00:00+00:00', 60);
const second = row('2025-03-01T10:05:00+00:00', 61);
const third = row('2025-03-02T09:00:00+00:00', 62);

/** A page for each list of rows, the token at its end. */
const pagesOf =
  (...pages: unknown[][]) =>
  ({ query }: Asked) => {
    const number = Number(query.get('next_token') ?? 0);
    return { json: { data: pages[number], next_token: number + 1 < pages.length ? String(number + 1) : null } };
  };

async function setUp(now = '2025-06-01T12:00:00Z'): Promise<{ service: FaultService; harness: Harness }> {
  const service = await startFaultService({ [PLAIN]: pagesOf([first, second], [third]) });
  onTestFinished(() => service.close());
  const harness = await openHarness(join(folder, `h${++folders}`), service.url, { now: () => Date.parse(now) });
  await harness.add([{ name: 'ada', token: 'token-of-ada' }]);
  await harness.backfill(TWO_DAYS);
  return { service, harness };
}

const refresh = (harness: Harness) => harness.backfill({ ...TWO_DAYS, refresh: true });

const stored = (harness: Harness) => harness.read("SELECT strftime(ts, '%d %H:%M'), bpm FROM heart_rate ORDER BY ts");

const ALL = [
  ['01 10:00', 60],
  ['01 10:05', 61],
  ['02 09:00', 62],
];

test('an answer whose bytes are known, and all of whose rows are stored, is counted as unchanged and not compared row by row', async () => {
  const { harness } = await setUp();
  // Something that no comparison of bytes can see: it would be fixed by one of rows.
  await harness.read('UPDATE heart_rate SET bpm = 99 WHERE bpm = 61');
  const again = await refresh(harness);
  expect(again).toMatchObject({ state: 'complete', requests: 2, samples: 0, unchanged: 3, removed: 0, rejected: 0 });
  expect(await stored(harness)).toEqual([
    ['01 10:00', 60],
    ['01 10:05', 99],
    ['02 09:00', 62],
  ]);
  const windows = await harness.read(
    `SELECT outcome, requests, documents, removed, rows_by_day::VARCHAR, rejected, pages IS NOT NULL, count(DISTINCT pages) OVER () FROM sync.windows`,
  );
  const window = ['complete', 2, 3, 0, '[2,1]', 0, true, 1];
  expect(windows).toEqual([window, window]);
});

test('a row that is not stored any more is stored again, though the answer is known', async () => {
  const { harness } = await setUp();
  await harness.read('DELETE FROM heart_rate WHERE bpm = 61');
  expect(await refresh(harness)).toMatchObject({ state: 'complete', samples: 1, unchanged: 2 });
  expect(await stored(harness)).toEqual(ALL);
});

test('an answer that comes back after another one is stored, though it is known', async () => {
  const { service, harness } = await setUp();
  service.on(PLAIN, pagesOf([first, row('2025-03-01T10:05:00+00:00', 70)], [third]));
  expect(await refresh(harness)).toMatchObject({ samples: 1, unchanged: 2 });
  service.on(PLAIN, pagesOf([first, second], [third]));
  // The reading that brought the other answer is the last of its range; of the first one nothing is known any more.
  expect(await refresh(harness)).toMatchObject({ samples: 1, unchanged: 2 });
  expect(await stored(harness)).toEqual(ALL);
});

test('what another reading of a part of the range has changed since is fixed by the answer that was known before', async () => {
  const { service, harness } = await setUp();
  service.on(PLAIN, pagesOf([first, row('2025-03-01T10:05:00+00:00', 70)]));
  await harness.backfill({ ...TWO_DAYS, to: '2025-03-01', refresh: true });
  expect(await stored(harness)).toEqual([ALL[0], ['01 10:05', 70], ALL[2]]);
  service.on(PLAIN, pagesOf([first, second], [third]));
  expect(await refresh(harness)).toMatchObject({ samples: 1, unchanged: 2 });
  expect(await stored(harness)).toEqual(ALL);
});

test('pages that are known are read all the same where a later one is another', async () => {
  const { service, harness } = await setUp();
  service.on(PLAIN, pagesOf([first, second], [row('2025-03-02T09:00:00+00:00', 80)]));
  expect(await refresh(harness)).toMatchObject({ state: 'complete', samples: 1, unchanged: 2 });
  service.on(PLAIN, pagesOf([first, second], [row('2025-03-02T09:00:00+00:00', 80)], [row('2025-03-02T10:00:00+00:00', 81)]));
  expect(await refresh(harness)).toMatchObject({ state: 'complete', samples: 1, unchanged: 3 });
  expect(await stored(harness)).toEqual([
    ['01 10:00', 60],
    ['01 10:05', 61],
    ['02 09:00', 80],
    ['02 10:00', 81],
  ]);
});

test('fewer pages than were known take rows away only as any answer does', async () => {
  const { service, harness } = await setUp();
  service.on(PLAIN, pagesOf([first, second]));
  // The first page ends otherwise: it tells of no second one.
  expect(await refresh(harness)).toMatchObject({ state: 'complete', removed: 1, unchanged: 2 });
  expect(await stored(harness)).toEqual(ALL.slice(0, 2));
});

const pagesInLedger = (harness: Harness) => harness.read('SELECT pages FROM sync.windows');

test.each([
  ['a row could not be stored', pagesOf([first, row('2025-03-01T11:00:00+00:00', null)])],
  ['a row lies outside of the range', pagesOf([first, row('2025-03-04T11:00:00+00:00', 60)])],
  ['a page has no row', pagesOf([first], [])],
  ['the end of a page does not tell the next one', () => ({ text: JSON.stringify({ next_token: null, data: [first] }) })],
])('nothing is kept to know an answer by where %s', async (_, answer) => {
  const service = await startFaultService({ [PLAIN]: answer });
  onTestFinished(() => service.close());
  const harness = await openHarness(join(folder, `h${++folders}`), service.url, { now: () => Date.parse('2025-06-01T12:00:00Z') });
  await harness.add([{ name: 'ada', token: 'token-of-ada' }]);
  await harness.backfill(TWO_DAYS);
  expect(await stored(harness)).toEqual([['01 10:00', 60]]);
  expect(await pagesInLedger(harness)).toEqual([[null]]);
});

test('nothing is kept to know an answer by whose range was not over', async () => {
  const { harness } = await setUp('2025-03-02T12:00:00Z');
  expect(await stored(harness)).toEqual(ALL);
  expect(await pagesInLedger(harness)).toEqual([[null]]);
});

test('a part of a window that was too large is known by nothing that the whole was known by', async () => {
  const { service, harness } = await setUp();
  const days = { from: '2025-03-01', to: '2025-03-28', collections: ['heart_rate'] };
  const late = [row('2025-03-22T10:00:00+00:00', 60), row('2025-03-23T10:00:00+00:00', 61)];
  const second = (i: number) => row(new Date(Date.UTC(2025, 2, 1) + i * 1000).toISOString().replace('.000Z', '+00:00'), 60);
  const all = [...Array.from({ length: 150_001 }, (_, i) => second(i)), ...late];
  const answer =
    (rows: { timestamp: string }[]) =>
    ({ query }: Asked) => {
      const [from, to] = ['start_datetime', 'end_datetime'].map(name => Date.parse(query.get(name)!)) as [number, number];
      const data = rows.filter(({ timestamp }) => Date.parse(timestamp) >= from && Date.parse(timestamp) < to);
      return { json: { data, next_token: null } };
    };
  service.on(PLAIN, answer(late));
  await harness.backfill(days);
  service.on(PLAIN, answer(all));
  expect(await harness.backfill({ ...days, refresh: true })).toMatchObject({ state: 'complete', failures: [] });
  expect(await harness.read(`SELECT rows_by_day::VARCHAR, documents FROM sync.windows WHERE start_at = DATE '2025-03-22'`)).toEqual([
    ['[1,1,0,0,0,0,0]', 2],
  ]);
});
