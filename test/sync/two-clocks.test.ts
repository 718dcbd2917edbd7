import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { planRepair } from '../../src/sync/coverage.ts';
import { startSweep } from '../../src/sync/sweeps/sweep.ts';
import { startFaultService } from '../support/fault-service.ts';
import { type Harness, openHarness } from '../support/harness.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
const DAY = 86_400_000;
const NOON = Date.parse('2025-06-20T12:00:00Z');
const STRESS = '/v2/usercollection/daily_stress';
const stressOf = (day: string) => ({ id: day, day, day_summary: 'normal' });

/** A harness on 2025-06-20 whose service shows a clock so many days ahead of ours, and has the documents that are added. */
async function open(name: string, aheadDays: number) {
  const ours = { ms: NOON, aheadDays };
  const documents: { day: string }[] = [];
  const headers = () => ({ date: new Date(ours.ms + ours.aheadDays * DAY).toUTCString() });
  const service = await startFaultService({
    '/v2/usercollection/*': () => ({ headers: headers() }),
    [STRESS]: ({ query }) => {
      const [from = '', to = ''] = ['start_date', 'end_date'].map(key => query.get(key) ?? '');
      return { headers: headers(), json: { data: documents.filter(({ day }) => day >= from && day <= to), next_token: null } };
    },
  });
  onTestFinished(() => service.close());
  const harness = await openHarness(join(folder, name), service.url, { now: () => ours.ms });
  await harness.add([{ name: 'ada', token: 't-ada' }]);
  return { ours, harness, documents };
}

const sweep = async (harness: Harness) => (await startSweep(await harness.app.pipeline(), { kind: 'sweep', days: 3 })).run.done;
const last = { last: 3, refresh: false, plan: false, collections: ['daily_stress'] };
const context = { emit: () => {}, signal: new AbortController().signal };
const stored = async (harness: Harness) => (await harness.read('SELECT id FROM daily_stress ORDER BY id')).flat();

test('of a service whose Date is 10 days behind, sweeps, nights and --last read the days since too', async () => {
  const { harness, documents } = await open('behind', -10);
  documents.push(stressOf('2025-06-19'));
  expect(await sweep(harness)).toMatchObject({ from: '2025-06-09', to: '2025-06-21' });
  expect(await stored(harness)).toEqual(['2025-06-19']);
  expect(await harness.nightly(3)).toMatchObject({ to: '2025-06-21' });
  expect(await harness.commands.backfill(last, context)).toMatchObject({ from: '2025-06-09', to: '2025-06-21' });
});

test('of a service whose Date is 10 days ahead, sweeps, nights and --last read what is between too', async () => {
  const { harness, documents } = await open('ahead', 10);
  documents.push(stressOf('2025-06-19'));
  expect(await sweep(harness)).toMatchObject({ from: '2025-06-19', to: '2025-07-01' });
  expect(await stored(harness)).toEqual(['2025-06-19']);
  expect(await harness.commands.backfill(last, context)).toMatchObject({ from: '2025-06-19', to: '2025-07-01' });
  expect(await harness.nightly(3)).toMatchObject({ to: '2025-07-01' });
});

test('of a service whose Date is 32 days away only its own days are the last', async () => {
  const { harness } = await open('elsewhere', -32);
  expect(await sweep(harness)).toMatchObject({ from: '2025-05-18', to: '2025-05-20' });
});

test.each([
  ['behind', -10],
  ['ahead', 10],
])('while nobody reads for 6 days, the days that were open before by either clock are read again (%s)', async (name, days) => {
  const { ours, harness, documents } = await open(`away-${name}`, days);
  await sweep(harness);
  documents.push(stressOf(days < 0 ? '2025-06-11' : '2025-06-20'));
  ours.ms += 6 * DAY;
  await sweep(harness);
  expect(await stored(harness)).toEqual([days < 0 ? '2025-06-11' : '2025-06-20']);
});

test('a Date that was 10 days ahead and is right again leaves no day out that has come since', async () => {
  const { ours, harness, documents } = await open('right-again', 10);
  await sweep(harness);
  documents.push(stressOf('2025-06-22'));
  Object.assign(ours, { ms: NOON + 12 * DAY, aheadDays: 0 });
  await sweep(harness);
  expect(await stored(harness)).toEqual(['2025-06-22']);
});

test('a Date that is 10 days ahead settles no day that has not come, and calls none empty', async () => {
  const { ours, harness, documents } = await open('settles', 10);
  const range = { from: '2025-06-01', to: '2025-06-25', collections: ['daily_stress'] };
  // The second answer comes from a clock that is known.
  await harness.backfill(range);
  await harness.backfill(range);
  expect((await harness.commands.coverage(range)).runs).toMatchObject([
    { from: '2025-06-01', to: '2025-06-19', state: 'empty' },
    { from: '2025-06-20', to: '2025-06-25', state: 'not_asked' },
  ]);
  const proof = `SELECT max(day)::VARCHAR FROM sync.coverage_between('2025-06-01', '2025-06-30') WHERE state = 'empty'`;
  expect(await harness.read(`${proof} AND collection = 'daily_stress'`)).toEqual([['2025-06-19']]);
  documents.push(stressOf('2025-06-03'), stressOf('2025-06-08'));
  ours.ms += DAY;
  // 14 days after it the third is settled by both clocks; the eighth is so by theirs alone.
  await harness.backfill(range);
  expect(await stored(harness)).toEqual(['2025-06-08']);
});

test('a repair reads what is missing up to yesterday by the clock that is further, whichever that is', async () => {
  for (const days of [-10, 10]) {
    const { harness } = await open(`repair-${days}`, days);
    await harness.backfill({ from: '2025-05-25', to: '2025-06-05', collections: ['daily_stress'] });
    const { request } = await planRepair(await harness.app.pipeline(), { collections: ['daily_stress'] });
    expect(request!.spans!.at(-1)!.to).toBe(days < 0 ? '2025-06-19' : '2025-06-29');
  }
});

/** A harness on 2025-06-20 whose service shows this date, or none. */
async function openDated(name: string, shown: { ms: number | undefined }) {
  const ours = { ms: NOON };
  const service = await startFaultService({
    '/v2/usercollection/*': () => (shown.ms === undefined ? {} : { headers: { date: new Date(shown.ms).toUTCString() } }),
  });
  onTestFinished(() => service.close());
  const harness = await openHarness(join(folder, name), service.url, { now: () => ours.ms });
  await harness.add([{ name: 'ada', token: 't-ada' }]);
  return { ours, harness };
}

test('a service that says 1970 shows no date: the last days are ours, and so are those of the next sweep', async () => {
  const shown = { ms: 0 };
  const { ours, harness } = await openDated('never-set', shown);
  expect(await harness.commands.backfill(last, context)).toMatchObject({ from: '2025-06-19', to: '2025-06-21' });
  expect(await sweep(harness)).toMatchObject({ from: '2025-06-19', to: '2025-06-21' });
  ours.ms += 3_600_000;
  shown.ms = ours.ms;
  expect(await sweep(harness)).toMatchObject({ from: '2025-06-19', to: '2025-06-21' });
  expect(await harness.read('SELECT min(day)::VARCHAR FROM sync.coverage')).toEqual([['2025-06-19']]);
});

test.each([
  ['2199-01-01', Date.parse('2199-01-01')],
  ['60 days ago', NOON - 60 * DAY],
])('a first answer that says %s is asked again before it is believed', async (name, wrong) => {
  const shown = { ms: wrong };
  const { harness } = await openDated(`once-${name.slice(0, 4)}`, shown);
  shown.ms = NOON;
  expect(await harness.commands.backfill(last, context)).toMatchObject({ from: '2025-06-19', to: '2025-06-21' });
});

test('one wrong date in the last answer leaves the days that coverage tells of', async () => {
  const shown = { ms: NOON };
  const { harness } = await openDated('last-answer', shown);
  await harness.backfill({ from: '2025-06-10', to: '2025-06-19', collections: ['daily_stress', 'vo2_max'] });
  shown.ms = NOON - 60 * DAY;
  await harness.backfill({ from: '2025-06-10', to: '2025-06-10', collections: ['daily_stress'], refresh: true });
  // The view has no other clock than the machine's.
  const days = "SELECT min(day)::VARCHAR, max(day) = (now() AT TIME ZONE 'UTC')::DATE - 1 FROM sync.coverage";
  expect(await harness.read(days)).toEqual([['2025-06-10', true]]);
});

test.each([-60, 60])('a date that was %i days off and is shown no more: the last days are ours again, and not all since', async days => {
  const shown: { ms: number | undefined } = { ms: NOON + days * DAY };
  const { ours, harness } = await openDated(`gone${days}`, shown);
  await sweep(harness);
  shown.ms = undefined;
  ours.ms += DAY;
  expect(await sweep(harness)).toMatchObject({ from: '2025-06-20', to: '2025-06-22' });
});
