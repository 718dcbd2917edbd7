import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { Asked } from '../support/fault-service.ts';
import { startFaultService } from '../support/fault-service.ts';
import { openHarness } from '../support/harness.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
const PLAIN = '/v2/usercollection/heartrate';
const DAY = 86_400_000;

async function setUp(name: string, rowsPerDay: number, client = {}) {
  const answer = ({ query }: Asked) => {
    const [from, to] = ['start_datetime', 'end_datetime'].map(name => Date.parse(query.get(name)!));
    const data: unknown[] = [];
    for (let ms = from!; ms < to!; ms += DAY / rowsPerDay) {
      data.push({ timestamp: new Date(ms).toISOString().replace('Z', '+00:00'), timestamp_unix: ms, bpm: 60, source: 'awake' });
    }
    return { json: { data, next_token: null } };
  };
  const service = await startFaultService({ [PLAIN]: answer });
  onTestFinished(() => service.close());
  const harness = await openHarness(join(folder, name), service.url, { now: () => Date.parse('2025-06-01T12:00:00Z'), client });
  await harness.add([{ name: 'ada', token: 'token-of-ada' }]);
  const asked = () =>
    service.asked
      .filter(({ path }) => path === PLAIN)
      .map(({ query }) => ['start', 'end'].map(end => query.get(`${end}_datetime`)!.slice(0, 10)).join(' '))
      .sort();
  const windows = () =>
    harness.read('SELECT start_at::DATE::VARCHAR, end_at::DATE::VARCHAR, documents, outcome, reason FROM sync.windows ORDER BY start_at');
  return { harness, asked, windows };
}

const march = { from: '2025-03-01', to: '2025-03-28', collections: ['heart_rate'] };

test('a window of more than 150,000 rows of heart rate is read in parts, each of them a window of its own', async () => {
  const { harness, asked, windows } = await setUp('rows', 5400);
  expect(await harness.backfill(march)).toMatchObject({ state: 'complete', windows: { planned: 4, done: 4, failed: 0 }, samples: 151_200 });
  expect(asked()).toEqual([
    '2025-03-01 2025-03-08',
    '2025-03-01 2025-03-29',
    '2025-03-08 2025-03-15',
    '2025-03-15 2025-03-22',
    '2025-03-22 2025-03-29',
  ]);
  expect(await windows()).toEqual([
    ['2025-03-01', '2025-03-08', 37_800, 'complete', null],
    ['2025-03-08', '2025-03-15', 37_800, 'complete', null],
    ['2025-03-15', '2025-03-22', 37_800, 'complete', null],
    ['2025-03-22', '2025-03-29', 37_800, 'complete', null],
  ]);
  expect(await harness.read('SELECT count(*), min(ts)::VARCHAR, max(ts)::VARCHAR FROM heart_rate')).toEqual([
    [151_200, '2025-03-01 00:00:00', '2025-03-28 23:59:44'],
  ]);
  expect(await harness.backfill(march)).toMatchObject({ windows: { planned: 0, skipped: 1 } });
}, 60_000);

test('a window whose answer has too many bytes is read in parts, down to single days', async () => {
  // Two days of 24 rows have more bytes than that, one has less.
  const { harness, asked } = await setUp('bytes', 24, { maxResponseBytes: 4000 });
  const days = { ...march, to: '2025-03-04' };
  expect(await harness.backfill(days)).toMatchObject({ state: 'complete', windows: { planned: 4, done: 4, failed: 0 }, samples: 96 });
  expect(asked()).toEqual([
    '2025-03-01 2025-03-02',
    '2025-03-01 2025-03-05',
    '2025-03-02 2025-03-03',
    '2025-03-03 2025-03-04',
    '2025-03-04 2025-03-05',
  ]);
});

test('a single day whose answer has too many bytes fails, and says so', async () => {
  const { harness, windows } = await setUp('day', 240, { maxResponseBytes: 4000 });
  const report = await harness.backfill({ ...march, to: '2025-03-02' });
  const message = `GET ${PLAIN}: the answer is larger than 4000 bytes`;
  expect(report).toMatchObject({ state: 'failed', windows: { planned: 2, done: 0, failed: 2 } });
  expect(report.failures).toEqual([
    { user_id: 'ada', collection: 'heart_rate', from: '2025-03-01', to: '2025-03-02', kind: 'too_large', message },
  ]);
  expect(await windows()).toEqual([
    ['2025-03-01', '2025-03-02', null, 'failed', message],
    ['2025-03-02', '2025-03-03', null, 'failed', message],
  ]);
});

test('documents in an answer of too many bytes are read in parts, so that a day that is too large takes only those beside it along', async () => {
  const DAYS = Array.from({ length: 12 }, (_, n) => `2025-03-${String(n + 1).padStart(2, '0')}`);
  const STRESS = '/v2/usercollection/daily_stress';
  const answer = ({ query }: Asked) => {
    const [from, to] = ['start_date', 'end_date'].map(name => query.get(name)!);
    const days = DAYS.filter(day => day >= from! && day <= to!);
    const note = (day: string) => (day === '2025-03-06' ? { note: 'x'.repeat(4000) } : {});
    return { json: { data: days.map(day => ({ id: `stress-${day}`, day, day_summary: 'normal', ...note(day) })), next_token: null } };
  };
  const service = await startFaultService({ [STRESS]: answer });
  onTestFinished(() => service.close());
  const harness = await openHarness(join(folder, 'documents'), service.url, {
    now: () => Date.parse('2025-06-01T12:00:00Z'),
    client: { maxResponseBytes: 4000 },
  });
  await harness.add([{ name: 'ada', token: 'token-of-ada' }]);
  const report = await harness.backfill({ from: '2025-03-01', to: '2025-03-12', collections: ['daily_stress'] });
  const message = `GET ${STRESS}: the answer is larger than 4000 bytes`;
  expect(report.failures).toEqual([
    { user_id: 'ada', collection: 'daily_stress', from: '2025-03-04', to: '2025-03-08', kind: 'too_large', message },
  ]);
  expect(await harness.read('SELECT day::VARCHAR FROM daily_stress ORDER BY day')).toEqual(
    DAYS.filter(day => day !== '2025-03-06').map(day => [day]),
  );
  expect(await harness.read('SELECT start_at::DATE::VARCHAR, end_at::DATE::VARCHAR, outcome FROM sync.windows ORDER BY start_at')).toEqual([
    ['2025-03-01', '2025-03-04', 'complete'],
    ['2025-03-04', '2025-03-05', 'failed'],
    ['2025-03-05', '2025-03-06', 'failed'],
    ['2025-03-06', '2025-03-07', 'failed'],
    ['2025-03-07', '2025-03-08', 'failed'],
    ['2025-03-08', '2025-03-09', 'failed'],
    ['2025-03-09', '2025-03-10', 'complete'],
    ['2025-03-10', '2025-03-13', 'complete'],
  ]);
});
