import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { windowEntry } from '../../../src/ledger/windows.ts';
import { startSweep } from '../../../src/sync/sweeps/sweep.ts';
import { type Asked, startFaultService } from '../../support/fault-service.ts';
import { openHarness } from '../../support/harness.ts';
import { account, at, pipelineOf, warehouseWith } from '../../support/literal-pipeline.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const folder = tempFolder();
const NOW = Date.parse('2025-03-30T12:00:00Z');
const DAY = 86_400_000;

interface Read {
  kind?: 'backfill' | 'nightly' | 'sweep';
  at: string;
  days: [from: string, to: string];
  outcome: 'complete' | 'failed' | 'suspicious';
  collection?: string;
  user?: string;
  /** The first of the days that the run was for, where it is another. */
  from?: string;
  /** How far the clock of an earlier command was ahead: all that was settled since lies as far ahead in the order. */
  aheadDays?: number;
}

/** The windows of a sweep of three days after these readings. */
async function sweepAfter(...readings: Read[]): Promise<string[]> {
  const warehouse = await warehouseWith(folder, [account('ada'), account('bob')]);
  for (const [
    i,
    { kind = 'nightly', at: when, days, outcome, collection = 'heart_rate', user = 'ada', from, aheadDays = 0 },
  ] of readings.entries()) {
    const runId = `r${i}`;
    const request = { kind, from: from ?? days[0], to: days[1], refresh: true, users: [user], collections: [collection] };
    const window = {
      runId,

      userId: user,
      collection,
      startAt: at(`${days[0]}T00:00:00Z`),
      endAt: at(`${days[1]}T00:00:00Z`) + 86_400_000_000,
    };
    const asked = outcome === 'complete' ? { requestedAt: at(when), readAt: at(when) } : {};
    const state = outcome === 'complete' ? 'complete' : 'failed';
    await warehouse.record([
      {
        table: 'sync.runs',
        key: { run_id: runId },
        row: { kind, started_at: at(when), ended_at: at(when), state, request: JSON.stringify(request) },
      },
      windowEntry(window, { outcome, ...asked, committedAt: at(when) + aheadDays * DAY * 1000 }),
    ]);
  }
  const pipeline = await pipelineOf(warehouse, NOW);
  await startSweep(pipeline, { kind: 'sweep', days: 3 });
  return pipeline
    .take()
    .map(({ userId, collection, startAt, endAt }) => {
      const [from, to] = [startAt! / 1000, endAt! / 1000 - 86_400_000].map(ms => new Date(ms).toISOString().slice(5, 10));
      return `${userId} ${collection} ${from} to ${to}`;
    })
    .sort();
}

/** What every one of these sweeps reads. */
const LAST = ['ada heart_rate 03-29 to 03-31', 'ada sleep 03-29 to 03-31', 'bob heart_rate 03-29 to 03-31', 'bob sleep 03-29 to 03-31'];

const before: Read = { at: '2025-03-08T03:30:00Z', days: ['2025-02-22', '2025-03-09'], outcome: 'complete' };
const away: Read = { at: '2025-03-30T03:30:00Z', days: ['2025-03-07', '2025-03-31'], outcome: 'failed' };
const again: Read = { kind: 'sweep', at: '2025-03-30T09:00:00Z', days: ['2025-03-29', '2025-03-31'], outcome: 'complete' };

test('what a night has failed to read, and nobody has read since, the next sweep reads once the service answers', async () => {
  expect(await sweepAfter(before, away, again)).toEqual(['ada heart_rate 03-08 to 03-28', ...LAST]);
  // Also where a clock that was ahead has left the order of what is settled far ahead of it.
  const aheadDays = 60;
  expect(await sweepAfter(before, { ...away, aheadDays }, { ...again, aheadDays })).toEqual(['ada heart_rate 03-08 to 03-28', ...LAST]);
  // Of a collection that is still failing the last days are enough.
  expect(await sweepAfter(before, away)).toEqual(LAST);
  expect(await sweepAfter(before, again, { ...away, at: '2025-03-30T10:00:00Z' })).toEqual(LAST);
  expect(await sweepAfter(before, away, { ...again, collection: 'sleep' })).toEqual(LAST);
  // An answer that is not believed is one.
  expect(await sweepAfter(before, away, { ...again, outcome: 'suspicious' })).toEqual(['ada heart_rate 03-08 to 03-28', ...LAST]);
});

test('days of which one was read between are read without it; one that was read before it was over is not read', async () => {
  const between: Read = { kind: 'sweep', at: '2025-03-16T09:00:00Z', days: ['2025-03-15', '2025-03-17'], outcome: 'complete' };
  expect(await sweepAfter(before, between, away, again)).toEqual(
    ['ada heart_rate 03-08 to 03-14', 'ada heart_rate 03-16 to 03-28', ...LAST].sort(),
  );
  const all: Read = { kind: 'backfill', at: '2025-03-30T08:00:00Z', days: ['2025-03-01', '2025-03-30'], outcome: 'complete' };
  expect(await sweepAfter(before, away, all, again)).toEqual(LAST);
});

test('what failed again is tried again after six hours, each of its days by itself', async () => {
  const LATE = '2025-03-30T06:00:01Z';
  expect(await sweepAfter(before, { ...away, at: LATE }, again)).toEqual(LAST);
  const part: Read = { ...away, kind: 'sweep', at: '2025-03-30T05:59:59Z', days: ['2025-03-24', '2025-03-26'], from: '2025-03-28' };
  expect(await sweepAfter(before, away, part, again)).toEqual(
    [
      'ada heart_rate 03-08 to 03-23',
      'ada heart_rate 03-24 to 03-24',
      'ada heart_rate 03-25 to 03-25',
      'ada heart_rate 03-26 to 03-26',
      'ada heart_rate 03-27 to 03-28',
      ...LAST,
    ].sort(),
  );
  // What a run reads of days before its own tells nothing of whether the service answers for the last.
  expect(await sweepAfter(before, { ...away, at: '2025-03-29T03:30:00Z' }, { ...again, at: '2025-03-30T05:00:00Z' }, part)).toContain(
    'ada heart_rate 03-08 to 03-23',
  );
});

test('what a backfill failed to read is left to who asked for it, and what fails for a month to a repair', async () => {
  expect(await sweepAfter({ ...away, kind: 'backfill' }, again)).toEqual(LAST);
  const first: Read = { ...away, at: '2025-02-27T11:00:00Z', days: ['2025-02-10', '2025-02-26'] };
  expect(await sweepAfter(first, { ...first, at: '2025-03-12T11:00:00Z' }, again)).toEqual(LAST);
  expect(await sweepAfter({ ...first, at: '2025-02-28T13:00:00Z' }, again)).toEqual(['ada heart_rate 02-10 to 02-26', ...LAST]);
});

test.each<[string, number | undefined, { windows: object; state: string }, string[]]>([
  [
    'arrives with the second sweep after it',
    undefined,
    { state: 'complete', windows: { planned: 2, done: 2 } },
    ['02-28', '03-01', '03-02', '03-03', '03-04', '03-05', '03-06', '03-07', '03-08', '03-09', '03-10'],
  ],
  [
    'of which one day never comes is not in the way of the last days',
    Date.parse('2025-03-04T06:00:00Z'),
    { state: 'failed', windows: { planned: 2, failed: 1 } },
    ['02-28', '03-01', '03-09', '03-10'],
  ],
])('heart rate of a week in which the service was ill %s', async (name, broken, expected, arrived) => {
  const clock = { ms: Date.parse('2025-03-01T12:00:00Z') };
  const state = { isIll: false };
  const service = await startFaultService({
    '/v2/usercollection/heartrate': ({ query }: Asked) => {
      const [from, to] = ['start_datetime', 'end_datetime'].map(name => Date.parse(query.get(name)!)) as [number, number];
      if (state.isIll || (broken && from <= broken && to > broken)) return { status: 500, json: {} };
      const data: unknown[] = [];
      for (let ms = Math.ceil(from / 3_600_000) * 3_600_000; ms < to; ms += 3_600_000)
        data.push({ timestamp: new Date(ms).toISOString().replace('.000Z', '+00:00'), timestamp_unix: ms, bpm: 61, source: 'awake' });
      return { json: { data, next_token: null } };
    },
  });
  onTestFinished(() => service.close());
  const harness = await openHarness(join(folder, name.slice(0, 7)), service.url, { now: () => clock.ms });
  await harness.add([{ name: 'ada', token: 't-ada' }]);
  const sweep = async () => {
    const { run } = await startSweep(await harness.app.pipeline(), { kind: 'sweep', days: 3, collections: ['heart_rate'] });
    return run.done;
  };
  expect(await sweep()).toMatchObject({ state: 'complete' });
  state.isIll = true;
  for (let day = 2; day <= 9; day++) {
    clock.ms += DAY;
    expect(await sweep()).toMatchObject({ state: 'failed', windows: { planned: 1 } });
  }
  state.isIll = false;
  clock.ms += DAY;
  expect(await sweep()).toMatchObject({ state: 'complete', windows: { planned: 1 } });
  clock.ms += 3_600_000;
  expect(await sweep()).toMatchObject(expected);
  const findArrived = async () => (await harness.read(`SELECT DISTINCT strftime(ts, '%m-%d') FROM heart_rate ORDER BY 1`)).flat();
  expect(await findArrived()).toEqual(arrived);
  if (!broken) return;
  // Not with every second sweep: that would be an alarm every half an hour.
  for (const minutes of [15, 30]) {
    clock.ms += minutes * 60_000;
    expect(await sweep()).toMatchObject({ state: 'complete', windows: { planned: 1 } });
  }
  const told: string[] = [];
  (await harness.app.pipeline()).onFailure = Object.assign(({ message }: { message: string }) => told.push(message), {
    close: async () => {},
  });
  clock.ms += 6 * 3_600_000;
  expect(await sweep()).toMatchObject({ state: 'failed', windows: { planned: 9, done: 8, failed: 1 } });
  expect(told).toEqual(['sweep 2025-03-04 to 2025-03-04: GET /v2/usercollection/heartrate: answered 500, after 4 attempts']);
  expect(await findArrived()).toEqual(['02-28', '03-01', '03-02', '03-03', '03-05', '03-06', '03-07', '03-08', '03-09', '03-10']);
  clock.ms += 6 * 3_600_000 - 1;
  expect(await sweep()).toMatchObject({ state: 'complete', windows: { planned: 1 } });
  clock.ms += 60_000;
  expect(await sweep()).toMatchObject({ state: 'failed', windows: { planned: 2, failed: 1 } });
});
