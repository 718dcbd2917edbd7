import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { BackfillInput } from '../../../src/app/run-commands.ts';
import type { Asked, FaultService } from '../../support/fault-service.ts';
import { startFaultService } from '../../support/fault-service.ts';
import { type Harness, openHarness } from '../../support/harness.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const folder = tempFolder();
let folders = 0;

const PLAIN = '/v2/usercollection/heartrate';
const START = Date.parse('2025-03-01T00:00:00Z');

type Row = { timestamp: string; timestamp_unix: number; bpm: number; source: string };

/** A row of every five minutes from the first of March. */
const row = (number: number, bpm = 60): Row => {
  const ms = START + number * 300_000;
  return { timestamp: new Date(ms).toISOString().replace('.000Z', '+00:00'), timestamp_unix: ms, bpm, source: 'awake' };
};

const rowsFrom = (first: number, count: number): Row[] => Array.from({ length: count }, (_, i) => row(first + i));

/** Those of the rows that lie in what was asked for. */
const answerOf = (rows: readonly Row[], { query }: Asked) => {
  const [from, to] = ['start_datetime', 'end_datetime'].map(name => Date.parse(query.get(name)!));
  return { json: { data: rows.filter(({ timestamp_unix: ms }) => ms >= from! && ms < to!), next_token: null } };
};

async function setUp(): Promise<{ service: FaultService; harness: Harness; serve(rows: readonly Row[]): void }> {
  const service = await startFaultService();
  onTestFinished(() => service.close());
  const harness = await openHarness(join(folder, `h${++folders}`), service.url, { now: () => Date.parse('2025-10-01T12:00:00Z') });
  await harness.add([{ name: 'ada', token: 'token-of-ada' }]);
  return { service, harness, serve: rows => service.on(PLAIN, asked => answerOf(rows, asked)) };
}

/** The first week of March lies in one window. */
const read = (harness: Harness, input: Partial<BackfillInput> = {}) =>
  harness.backfill({ from: '2025-03-01', to: '2025-03-07', collections: ['heart_rate'], refresh: true, ...input });

const stored = async (harness: Harness) => (await harness.read('SELECT count(*) FROM heart_rate'))[0]![0];

const lastWindow = async (harness: Harness) =>
  (await harness.read('SELECT outcome, reason, removed FROM sync.windows ORDER BY committed_at DESC LIMIT 1'))[0];

test('an answer without most of the stored heart rate is read again, then suspicious: every row stays until somebody says that they are gone', async () => {
  const { service, harness, serve } = await setUp();
  serve(rowsFrom(0, 2016));
  expect(await read(harness)).toMatchObject({ state: 'complete', samples: 2016, removed: 0 });
  serve([row(7, 99)]);
  const before = service.asked.length;
  const reason =
    '2015 of 2016 stored rows are missing from two answers; nothing was removed: if they are gone, backfill --refresh --accept-deletions removes them';
  expect(await read(harness)).toMatchObject({ state: 'failed', removed: 0, failures: [{ kind: 'suspicious', message: reason }] });
  expect(service.asked.length - before).toBe(2);
  expect(await stored(harness)).toBe(2016);
  expect(await lastWindow(harness)).toEqual(['suspicious', reason, null]);
  expect(await harness.read("SELECT bpm FROM heart_rate WHERE ts = TIMESTAMP '2025-03-01 00:35:00'")).toEqual([[60]]);

  expect(await read(harness, { acceptDeletions: true })).toMatchObject({ state: 'complete', removed: 2015 });
  expect(await harness.read('SELECT bpm FROM heart_rate')).toEqual([[99]]);
  expect(await lastWindow(harness)).toEqual(['complete', null, 2015]);
});

test('one answer that lacks most rows is forgiven by the next', async () => {
  const { service, harness, serve } = await setUp();
  serve(rowsFrom(0, 100));
  await read(harness);
  service.on(PLAIN, (asked, nth) => answerOf(nth === 1 ? [row(3)] : rowsFrom(1, 100), asked));
  expect(await read(harness)).toMatchObject({ state: 'complete', removed: 1, requests: 2 });
  expect(await harness.read('SELECT count(*), min(ts)::VARCHAR FROM heart_rate')).toEqual([[100, '2025-03-01 00:05:00']]);
});

test('more than ten and more than a fifth of the stored rows at once stay; fewer leave, and are counted', async () => {
  const { harness, serve } = await setUp();
  for (const [i, { count, gone, removed }] of [
    { count: 12, gone: 10, removed: 10 },
    { count: 55, gone: 11, removed: 11 },
    { count: 54, gone: 11, removed: 0 },
  ].entries()) {
    const name = `u${i}`;
    await harness.add([{ name, token: `token-of-${name}` }]);
    serve(rowsFrom(0, count));
    await read(harness, { users: [name] });
    serve(rowsFrom(gone, count - gone));
    expect(await read(harness, { users: [name] })).toMatchObject({ removed, state: removed ? 'complete' : 'failed' });
    expect(await harness.read(`SELECT count(*) FROM heart_rate WHERE user_id = '${name}'`), name).toEqual([[count - removed]]);
  }
});

test('three days that are gone of 28 stay: they are more than a fifth of a week', async () => {
  const { harness, serve } = await setUp();
  const days = { from: '2025-03-01', to: '2025-03-28' };
  serve(rowsFrom(0, 28 * 288));
  expect(await read(harness, days)).toMatchObject({ state: 'complete', samples: 8064 });
  serve([...rowsFrom(0, 8 * 288), ...rowsFrom(11 * 288, 17 * 288)]);
  const reason =
    '864 of 2016 stored rows are missing from two answers; nothing was removed: if they are gone, backfill --refresh --accept-deletions removes them';
  expect(await read(harness, days)).toMatchObject({ state: 'failed', removed: 0, failures: [{ kind: 'suspicious', message: reason }] });
  expect(await stored(harness)).toBe(8064);
});

test('rows whose source or rate is another one now are replaced, however many: nothing is missing', async () => {
  const { harness, serve } = await setUp();
  serve(rowsFrom(0, 100));
  await read(harness);
  serve(rowsFrom(0, 100).map((one, i) => ({ ...one, ...(i % 2 ? { source: 'workout' } : { bpm: 61 }) })));
  expect(await read(harness)).toMatchObject({ state: 'complete', removed: 0, samples: 100 });
  expect(await harness.read('SELECT source, bpm, count(*) FROM heart_rate GROUP BY ALL ORDER BY ALL')).toEqual([
    ['awake', 61, 50],
    ['workout', 60, 50],
  ]);
});

test('what a suspicious answer brings after all that is stored is stored; nothing else is touched', async () => {
  const { harness, serve } = await setUp();
  serve(rowsFrom(0, 100));
  await read(harness);
  serve([row(0, 99), { ...row(1), source: 'sleep' }, row(200), row(201)]);
  expect(await read(harness)).toMatchObject({ state: 'failed', removed: 0, samples: 2 });
  expect(await harness.read("SELECT count(*), min(bpm), max(bpm) FROM heart_rate WHERE source = 'awake'")).toEqual([[102, 60, 60]]);
  // The next whole answer replaces all of it.
  serve(rowsFrom(0, 150));
  expect(await read(harness)).toMatchObject({ state: 'complete', removed: 2 });
  expect(await stored(harness)).toBe(150);
});

/** The same rows, so much later. */
const moved = (rows: readonly Row[], byMs: number): Row[] =>
  rows.map(({ timestamp_unix: ms, ...one }) => ({ ...one, timestamp: new Date(ms + byMs).toISOString(), timestamp_unix: ms + byMs }));

test.each([60_000, 1_000, -1_000, -60_000, 299_000, -299_000])(
  'a suspicious answer of the stored rows %i ms later stores no second series beside them, not even a first or last row',
  async byMs => {
    const { harness, serve } = await setUp();
    serve(rowsFrom(10, 100));
    await read(harness);
    serve(moved(rowsFrom(10, 100), byMs));
    const before = await harness.read('FROM heart_rate ORDER BY ts');
    for (let nth = 1; nth <= 2; nth++) {
      expect(await read(harness)).toMatchObject({ state: 'failed', removed: 0, samples: 0, failures: [{ kind: 'suspicious' }] });
    }
    expect(await harness.read('FROM heart_rate ORDER BY ts')).toEqual(before);
  },
);

test('a suspicious answer of other moments brings each new row once, however often it is read', async () => {
  const { harness, serve } = await setUp();
  serve(rowsFrom(10, 100));
  await read(harness);
  // Two rows have come since.
  serve(moved(rowsFrom(10, 102), 1_000));
  expect(await read(harness)).toMatchObject({ state: 'failed', samples: 2 });
  expect(await read(harness)).toMatchObject({ state: 'failed', samples: 0 });
  serve(moved(rowsFrom(10, 103), 3_000));
  expect(await read(harness)).toMatchObject({ state: 'failed', samples: 1 });
  expect(await harness.read('SELECT count(*), max(ts)::VARCHAR FROM heart_rate')).toEqual([[103, '2025-03-01 09:20:03']]);
  // What comes before all of it is new too.
  serve([row(3), row(50, 99)]);
  expect(await read(harness)).toMatchObject({ state: 'failed', removed: 0, samples: 1 });
  expect(await harness.read('SELECT count(*), min(ts)::VARCHAR, max(bpm) FROM heart_rate')).toEqual([[104, '2025-03-01 00:15:00', 60]]);
});

test('a row that a suspicious answer has too near to the stored ones comes with the next plain reading', async () => {
  const { harness, serve } = await setUp();
  serve(rowsFrom(0, 100));
  await read(harness);
  const soon = moved([row(99)], 60_000);
  serve([row(0), ...soon, row(100)]);
  expect(await read(harness)).toMatchObject({ state: 'failed', samples: 1 });
  serve([...rowsFrom(0, 100), ...soon, row(100)]);
  expect(await read(harness)).toMatchObject({ state: 'complete', removed: 0, samples: 1 });
  expect(await stored(harness)).toBe(102);
});

test('the brake counts all windows of a run: heart rate that is missing a little everywhere stays', async () => {
  const { harness, serve } = await setUp();
  // Ten rows in each of seven windows.
  const window = 28 * 288;
  const all = Array.from({ length: 7 }, (_, i) => rowsFrom(i * window, 10)).flat();
  serve(all);
  const days = { from: '2025-03-01', to: '2025-09-12' };
  await read(harness, days);
  expect(await stored(harness)).toBe(70);
  serve(all.filter((_, i) => i % 10 === 0));
  const report = await read(harness, days);
  // Nine are missing from each window: those of one may leave, with those of another they would be more than ten.
  expect(report).toMatchObject({ state: 'failed', removed: 9, failures: [{ kind: 'suspicious' }] });
  expect(await stored(harness)).toBe(61);
  expect(
    await harness.read(`SELECT outcome, count(*), sum(removed) FROM sync.windows WHERE run_id = '${report.run}' GROUP BY 1 ORDER BY 1`),
  ).toEqual([
    ['complete', 1, 9],
    ['suspicious', 6, null],
  ]);
  expect(report.requests).toBe(13);
});

test('rows of another day than was asked for, as a cache sends them that ignores the query, empty no day and remove no row', async () => {
  const { service, harness, serve } = await setUp();
  serve(rowsFrom(0, 9));
  await read(harness);
  service.on(PLAIN, { json: { data: rowsFrom(20 * 288, 20), next_token: null } });
  const message = `GET ${PLAIN}: answered another range than the one that was asked for`;
  expect(await read(harness)).toMatchObject({ state: 'failed', removed: 0, samples: 0, failures: [{ kind: 'malformed', message }] });
  expect(await harness.read('SELECT count(*), max(ts)::VARCHAR FROM heart_rate')).toEqual([[9, '2025-03-01 00:40:00']]);
  expect(await lastWindow(harness)).toEqual(['failed', message, null]);
});

test('an answer with rows of the hours after the range alone is an empty one: what is stored stays', async () => {
  const { service, harness, serve } = await setUp();
  serve(rowsFrom(0, 9));
  await read(harness);
  service.on(PLAIN, { json: { data: rowsFrom(7 * 288, 12), next_token: null } });
  const reason =
    'two empty answers over 9 stored rows; nothing was removed: if they are gone, backfill --refresh --accept-deletions removes them';
  expect(await read(harness)).toMatchObject({
    state: 'failed',
    removed: 0,
    samples: 0,
    failures: [{ kind: 'suspicious', message: reason }],
  });
  expect(await stored(harness)).toBe(9);
});
