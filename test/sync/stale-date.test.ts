import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { Answer, Asked } from '../support/fault-service.ts';
import { startFaultService } from '../support/fault-service.ts';
import { openHarness } from '../support/harness.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
const DAY = 86_400_000;
const NOON = Date.parse('2025-06-20T12:00:00Z');
const PLAIN = '/v2/usercollection/heartrate';
const STRESS = '/v2/usercollection/daily_stress';
const date = (ms: number) => ({ date: new Date(ms).toUTCString() });
const rows = ({ query }: Asked) => {
  const [from, to] = ['start_datetime', 'end_datetime'].map(name => Date.parse(query.get(name)!));
  const data: unknown[] = [];
  for (let ms = Math.ceil(from! / 3_600_000) * 3_600_000; ms < to!; ms += 3_600_000)
    data.push({ timestamp: new Date(ms).toISOString().replace('.000Z', '+00:00'), timestamp_unix: ms, bpm: 61, source: 'awake' });
  return { data, next_token: null };
};

test('an answer from a cache, whose Date is 20 days old, cuts nothing off the heart rate that is asked for', async () => {
  const service = await startFaultService({
    '/v2/usercollection/*': () => ({ headers: date(NOON) }),
    [PLAIN]: asked => ({ headers: date(NOON), json: rows(asked) }),
    [STRESS]: () => ({ headers: date(NOON - 20 * DAY) }),
  });
  onTestFinished(() => service.close());
  const harness = await openHarness(join(folder, 'cached'), service.url, { now: () => NOON });
  await harness.add([{ name: 'ada', token: 't-ada' }]);
  await harness.backfill({ from: '2025-05-01', to: '2025-05-01', collections: ['daily_stress'] });
  await harness.backfill({ from: '2025-05-28', to: '2025-06-17', collections: ['heart_rate'] });
  expect(await harness.read('SELECT count(*), max(ts)::VARCHAR FROM heart_rate')).toEqual([[504, '2025-06-17 23:00:00']]);
});

test('of what lies behind the moment that heart rate was asked up to nothing is known', async () => {
  const theirs = { ms: NOON + 60 * DAY };
  const service = await startFaultService({
    '/v2/usercollection/*': () => ({ headers: date(theirs.ms) }),
    [PLAIN]: asked => ({ headers: date(theirs.ms), json: rows(asked) }),
  });
  onTestFinished(() => service.close());
  const harness = await openHarness(join(folder, 'moved'), service.url, { now: () => NOON });
  await harness.add([{ name: 'ada', token: 't-ada' }]);
  // Its clock is known, and goes on by 20 days while nobody asks.
  await harness.backfill({ from: '2025-05-01', to: '2025-05-01', collections: ['daily_stress'] });
  theirs.ms += 20 * DAY;
  const range = { from: '2025-08-18', to: '2025-08-24', collections: ['heart_rate'] };
  await harness.backfill(range);
  expect(await harness.read('SELECT max(ts)::VARCHAR FROM heart_rate')).toEqual([['2025-08-19 11:00:00']]);
  const { runs } = await harness.commands.coverage(range);
  expect(runs.filter(({ state }) => state === 'empty')).toEqual([]);
  await harness.backfill(range);
  expect(await harness.read('SELECT count(*), max(ts)::VARCHAR FROM heart_rate')).toEqual([[168, '2025-08-24 23:00:00']]);
});

test('one answer whose Date is 60 days ahead settles no day that has not come', async () => {
  const stress = { id: 'b', day: '2025-07-05', day_summary: 'normal' };
  const theirs = { ms: NOON + 60 * DAY };
  const service = await startFaultService({
    '/v2/usercollection/*': () => ({ headers: date(NOON) }),
    [STRESS]: () => ({ headers: date(theirs.ms), json: { data: theirs.ms === NOON + 25 * DAY ? [stress] : [], next_token: null } }),
  });
  onTestFinished(() => service.close());
  const ours = { ms: NOON };
  const harness = await openHarness(join(folder, 'ahead'), service.url, { now: () => ours.ms });
  await harness.add([{ name: 'ada', token: 't-ada' }]);
  const range = { from: '2025-06-01', to: '2025-07-10', collections: ['daily_stress'] };
  await harness.backfill(range);
  theirs.ms = NOON + 25 * DAY;
  ours.ms = theirs.ms;
  await harness.backfill(range);
  expect(await harness.read('SELECT id FROM daily_stress')).toEqual([['b']]);
});

test('what a cache kept for two hours brings nothing back that is gone, and overwrites nothing', async () => {
  const ours = { ms: NOON };
  const stress = (id: string, day_summary: string) => ({ id, day: '2025-06-18', day_summary });
  let answer: Answer = { headers: date(NOON), json: { data: [stress('a', 'normal'), stress('gone', 'normal')], next_token: null } };
  const old = { ...answer, headers: { ...date(NOON), age: '7200' } };
  const service = await startFaultService({
    [STRESS]: () => answer,
    [`${STRESS}/gone`]: { status: 404, json: { detail: 'Document not found.' } },
  });
  onTestFinished(() => service.close());
  const harness = await openHarness(join(folder, 'kept'), service.url, { now: () => ours.ms });
  await harness.add([{ name: 'ada', token: 't-ada' }]);
  const range = { from: '2025-06-18', to: '2025-06-18', collections: ['daily_stress'], refresh: true };
  await harness.backfill(range);
  ours.ms += 7_200_000;
  answer = { headers: date(ours.ms), json: { data: [stress('a', 'stressful')], next_token: null } };
  await harness.backfill(range);
  answer = old;
  expect(await harness.backfill(range)).toMatchObject({ state: 'failed', failures: [{ kind: 'unavailable' }] });
  expect(await harness.read('SELECT id, day_summary FROM daily_stress')).toEqual([['a', 'stressful']]);
  expect((await harness.read('SELECT id FROM sync.tombstones')).flat()).toEqual(['gone']);
});

test('heart rate that waited over midnight, at a service that shows no clock, leaves the day that was asked for in part unread', async () => {
  const ours = { ms: Date.parse('2025-06-20T23:50:00Z') };
  const service = await startFaultService({
    '/v2/usercollection/*': {},
    [PLAIN]: (asked, nth) => {
      if (nth > 1) {
        const row = { timestamp: '2025-06-20T23:55:00+00:00', timestamp_unix: 1_750_463_700_000, bpm: 61, source: 'awake' };
        return { json: { data: asked.query.get('end_datetime')! > row.timestamp ? [row] : [], next_token: null } };
      }
      ours.ms += 20 * 60_000;
      return { status: 429, headers: { 'retry-after': '1' }, json: { detail: 'slow down' } };
    },
  });
  onTestFinished(() => service.close());
  const harness = await openHarness(join(folder, 'midnight'), service.url, { now: () => ours.ms });
  await harness.add([{ name: 'ada', token: 't-ada' }]);
  const range = { from: '2025-06-20', to: '2025-06-20', collections: ['heart_rate'] };
  await harness.backfill(range);
  expect((await harness.commands.coverage(range)).runs).toMatchObject([
    { from: '2025-06-20', to: '2025-06-20', state: 'not_asked', reason: 'last read before the day was over' },
  ]);
  await harness.commands.repair(range, { emit: () => {}, signal: new AbortController().signal });
  expect(await harness.read('SELECT ts::VARCHAR FROM heart_rate')).toEqual([['2025-06-20 23:55:00']]);
});
