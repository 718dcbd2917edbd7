import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { RunRequest } from '../../../src/ledger/runs.ts';
import { type AccountJob, type PlannedWindow, windowEntry } from '../../../src/ledger/windows.ts';
import { QueueUnavailable } from '../../../src/queue/queues.ts';
import type { OpenWindow } from '../../../src/sync/runs/account-windows.ts';
import { planWindows } from '../../../src/sync/runs/plan-windows.ts';
import type { Run } from '../../../src/sync/runs/run.ts';
import { startFaultService } from '../../support/fault-service.ts';
import { openHarness } from '../../support/harness.ts';
import { account, at, type LiteralPipeline, pipelineOf, warehouseWith } from '../../support/literal-pipeline.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { until } from '../../support/until.ts';
import { rows } from '../../support/warehouse.ts';

const folder = tempFolder();
const START = Date.parse('2025-03-10T12:00:00Z');
const DAY = 86_400_000;

const request = (changes: Partial<RunRequest> = {}): RunRequest => ({
  kind: 'backfill',
  from: '2025-01-01',
  to: '2025-01-31',
  users: ['ada'],
  collections: ['sleep', 'heart_rate'],
  refresh: false,
  ...changes,
});

async function setUp(users: readonly string[] = ['ada'], names?: readonly string[]) {
  const warehouse = await warehouseWith(
    folder,
    users.map(user => account(user)),
  );
  return { warehouse, pipeline: await pipelineOf(warehouse, START, names) };
}

/** Does what is done at the end of a window. */
async function settle(
  { warehouse }: LiteralPipeline,
  run: Run,
  window: OpenWindow,
  outcome: 'complete' | 'failed' | 'not_offered' | 'not_authorised',
  kind: string = outcome,
  reason?: string,
): Promise<void> {
  const requestedAt = at('2025-03-10T12:00:01Z');
  const readAt = at('2025-03-10T12:00:01.5Z');
  const committedAt = at('2025-03-10T12:00:02Z');
  await warehouse.record([
    windowEntry(window, { outcome, ...(reason ? { reason } : {}), requestedAt, readAt, committedAt, requests: 2, documents: 9 }),
  ]);
  await run.finishWindow(window, outcome, reason, kind);
}

const describe = ({ userId, collection, startAt, endAt }: PlannedWindow) =>
  `${userId} ${collection} ${startAt === null ? '-' : new Date(startAt / 1000).toISOString().slice(0, 10)} ${
    endAt === null ? '-' : new Date(endAt / 1000).toISOString().slice(0, 10)
  }`;

test('the rows of the ledger, from the plan to the end', async () => {
  const { warehouse, pipeline } = await setUp();
  const run = await pipeline.runs.start(request({ collections: ['heart_rate'] }));
  const planned = {
    run_id: run.id,
    user_id: 'ada',
    collection: 'heart_rate',
    requested_at: null,
    read_at: null,
    service_at: null,
    route: null,
    committed_at: null,
    requests: null,
    documents: null,
    removed: null,
    outcome: null,
    reason: null,
    rows_by_day: null,
    rejected: null,
    rejected_undated: null,
    pages: null,
  };
  expect(await rows(warehouse, 'SELECT * EXCLUDE request, request::VARCHAR AS request FROM sync.runs')).toEqual([
    {
      run_id: run.id,
      kind: 'backfill',
      started_at: '2025-03-10 12:00:00',
      ended_at: null,
      state: 'running',
      request: '{"kind":"backfill","from":"2025-01-01","to":"2025-01-31","users":["ada"],"collections":["heart_rate"],"refresh":false}',
    },
  ]);
  expect(await rows(warehouse, 'SELECT * FROM sync.windows ORDER BY start_at')).toEqual([
    { ...planned, start_at: '2025-01-01 00:00:00', end_at: '2025-01-29 00:00:00' },
    { ...planned, start_at: '2025-01-29 00:00:00', end_at: '2025-02-01 00:00:00' },
  ]);

  const [first, second] = pipeline.take();
  await settle(pipeline, run, first!, 'complete');
  pipeline.clock.ms += 5_000;
  await settle(pipeline, run, second!, 'failed', 'unavailable', 'GET /v2/usercollection/heartrate: answered 500');
  const read = {
    requested_at: '2025-03-10 12:00:01',
    read_at: '2025-03-10 12:00:01.5',
    committed_at: '2025-03-10 12:00:02',
    requests: 2,
    documents: 9,
  };
  expect(await rows(warehouse, 'SELECT * FROM sync.windows ORDER BY start_at')).toEqual([
    { ...planned, ...read, start_at: '2025-01-01 00:00:00', end_at: '2025-01-29 00:00:00', outcome: 'complete' },
    {
      ...planned,
      ...read,
      start_at: '2025-01-29 00:00:00',
      end_at: '2025-02-01 00:00:00',
      outcome: 'failed',
      reason: 'GET /v2/usercollection/heartrate: answered 500',
    },
  ]);
  expect(await rows(warehouse, 'SELECT run_id, state, started_at, ended_at FROM sync.runs')).toEqual([
    { run_id: run.id, state: 'failed', started_at: '2025-03-10 12:00:00', ended_at: '2025-03-10 12:00:05' },
  ]);
  expect(await run.done).toEqual({
    run: run.id,
    state: 'failed',
    from: '2025-01-01',
    to: '2025-01-31',
    windows: { planned: 2, done: 1, skipped: 0, failed: 1 },
    documents: 0,
    samples: 0,
    unchanged: 0,
    rejected: 0,
    removed: 0,
    requests: 0,
    waits: 0,
    failures: [
      {
        user_id: 'ada',
        collection: 'heart_rate',
        from: '2025-01-29',
        to: '2025-01-31',
        kind: 'unavailable',
        message: 'GET /v2/usercollection/heartrate: answered 500',
      },
    ],
  });
});

test('users take turns; a collection without dates waits for the others of its account, and for those of no other', async () => {
  const { pipeline } = await setUp(['ada', 'ben'], ['ring_configuration', 'sleep', 'heart_rate']);
  const run = await pipeline.runs.start(request({ users: ['ada', 'ben'], collections: ['ring_configuration', 'sleep', 'heart_rate'] }));
  const dated = pipeline.take();
  expect(dated.map(describe)).toEqual([
    'ada sleep 2025-01-01 2025-02-01',
    'ben sleep 2025-01-01 2025-02-01',
    'ada heart_rate 2025-01-01 2025-01-29',
    'ben heart_rate 2025-01-01 2025-01-29',
    'ada heart_rate 2025-01-29 2025-02-01',
    'ben heart_rate 2025-01-29 2025-02-01',
  ]);
  const [adaSleep, benSleep, adaFirst, benFirst, adaLast, benLast] = dated as [
    OpenWindow,
    OpenWindow,
    OpenWindow,
    OpenWindow,
    OpenWindow,
    OpenWindow,
  ];
  for (const window of [adaSleep, benSleep, adaFirst]) await settle(pipeline, run, window, 'complete');
  expect(pipeline.take()).toEqual([]);
  await settle(pipeline, run, adaLast, 'failed', 'unavailable', 'away');
  const [adaRing] = pipeline.take();
  expect(describe(adaRing!)).toBe('ada ring_configuration - -');
  await settle(pipeline, run, adaRing!, 'not_offered');
  for (const window of [benFirst, benLast]) await settle(pipeline, run, window, 'complete');
  const [benRing] = pipeline.take();
  expect(describe(benRing!)).toBe('ben ring_configuration - -');
  await settle(pipeline, run, benRing!, 'not_offered');
  expect(await run.done).toMatchObject({ state: 'failed', windows: { planned: 8, done: 7, failed: 1 } });
});

test('what is covered and settled is skipped, and read again with refresh', async () => {
  const { warehouse, pipeline } = await setUp();
  const run = await pipeline.runs.start(request());
  for (const window of pipeline.take()) await settle(pipeline, run, window, 'complete');
  const parts = { warehouse, collections: pipeline.collections, settledDays: 14 };
  expect(await planWindows(parts, request())).toEqual({ windows: [], skipped: 3 });
  expect((await planWindows(parts, request({ to: '2025-02-02' }))).windows.map(describe)).toEqual([
    'ada sleep 2025-02-01 2025-02-03',
    'ada heart_rate 2025-02-01 2025-02-03',
  ]);
  expect((await planWindows(parts, request({ refresh: true }))).windows).toHaveLength(3);
  const none = await pipeline.runs.start(request());
  expect(await none.done).toMatchObject({ state: 'complete', windows: { planned: 0, done: 0, skipped: 3, failed: 0 } });
});

test('a collection that was refused before is not planned', async () => {
  const { warehouse, pipeline } = await setUp(['ada', 'ben']);
  const run = await pipeline.runs.start(request());
  for (const window of pipeline.take())
    await settle(pipeline, run, window, window.collection === 'sleep' ? 'not_authorised' : 'complete', 'unauthorized', 'no scope');
  const { windows } = await planWindows(
    { warehouse, collections: pipeline.collections, settledDays: 14 },
    request({ users: ['ada', 'ben'], refresh: true }),
  );
  expect(windows.map(describe)).toEqual([
    'ada heart_rate 2025-01-01 2025-01-29',
    'ada heart_rate 2025-01-29 2025-02-01',
    'ben sleep 2025-01-01 2025-02-01',
    'ben heart_rate 2025-01-01 2025-01-29',
    'ben heart_rate 2025-01-29 2025-02-01',
  ]);
});

test('failures of one collection for one reason are one, over their whole range', async () => {
  const { pipeline } = await setUp();
  const run = await pipeline.runs.start(request({ collections: ['heart_rate'], from: '2024-11-01', to: '2025-02-20' }));
  const [a, b, c, d] = pipeline.take();
  await settle(pipeline, run, c!, 'failed', 'unavailable', 'away');
  await settle(pipeline, run, a!, 'failed', 'unavailable', 'away');
  await settle(pipeline, run, b!, 'failed', 'malformed', 'not JSON');
  await settle(pipeline, run, d!, 'complete');
  expect((await run.done).failures).toEqual([
    { user_id: 'ada', collection: 'heart_rate', from: '2024-11-01', to: '2025-01-23', kind: 'unavailable', message: 'away' },
    { user_id: 'ada', collection: 'heart_rate', from: '2024-11-29', to: '2024-12-26', kind: 'malformed', message: 'not JSON' },
  ]);
});

test('a window that is too large is read in parts, which have its place; after a crash those that are left are taken up', async () => {
  const { warehouse, pipeline } = await setUp();
  Object.assign(pipeline, { requestsPerToken: 0.5 });
  const run = await pipeline.runs.start(request({ collections: ['heart_rate'] }));
  const [large] = pipeline.take();
  await pipeline.runs.cut(run, large!);
  // Another attempt at the same window was under way.
  await pipeline.runs.cut(run, large!);
  const [first] = pipeline.take();
  expect(describe(first!)).toBe('ada heart_rate 2025-01-01 2025-01-08');
  expect(run.isPending(large!)).toBe(false);
  await settle(pipeline, run, first!, 'complete');
  expect(pipeline.take().map(describe)).toEqual(['ada heart_rate 2025-01-08 2025-01-15']);
  expect(run.progress.windows).toEqual({ planned: 5, done: 1, skipped: 0, failed: 0 });
  expect(new Set(pipeline.jobs.map(({ opts }) => opts?.jobId)).size).toBe(pipeline.jobs.length);

  const next = await pipelineOf(warehouse, START + 60_000);
  expect(next.runs.find(run.id)!.progress.windows).toEqual({ planned: 5, done: 1, skipped: 0, failed: 0 });
  expect(next.take().map(describe)).toEqual([
    'ada heart_rate 2025-01-08 2025-01-15',
    'ada heart_rate 2025-01-15 2025-01-22',
    'ada heart_rate 2025-01-22 2025-01-29',
    'ada heart_rate 2025-01-29 2025-02-01',
  ]);
});

test('a window that is settled twice counts once', async () => {
  const { pipeline } = await setUp();
  const run = await pipeline.runs.start(request());
  const [first, ...rest] = pipeline.take();
  await settle(pipeline, run, first!, 'complete');
  await settle(pipeline, run, first!, 'failed', 'unavailable', 'away');
  for (const window of rest) await settle(pipeline, run, window, 'complete');
  expect(await run.done).toMatchObject({ state: 'complete', windows: { planned: 3, done: 3, failed: 0 }, failures: [] });
});

test('the same request while its run goes on joins that run', async () => {
  const { pipeline } = await setUp();
  const run = await pipeline.runs.start(request());
  expect(await pipeline.runs.start(request())).toBe(run);
  expect(await pipeline.runs.start(request({ to: '2025-02-01' }))).not.toBe(run);
});

test('a queue that lost its jobs gets those again of accounts that something is left of and nobody is at', async () => {
  const { warehouse } = await setUp(['ada', 'ben', 'cleo']);
  const pipeline = await pipelineOf(warehouse, START, undefined, { lookMs: 5 });
  const run = await pipeline.runs.start(request({ users: ['ada', 'ben', 'cleo'], collections: ['heart_rate'] }));
  const [ada, ben, cleo] = pipeline.jobs.splice(0);
  expect([ada, ben, cleo].map(job => (job!.data as AccountJob).userId)).toEqual(['ada', 'ben', 'cleo']);
  const windows = run.enter(ada!.data as AccountJob)!;
  for (const windows = run.enter(ben!.data as AccountJob)!; !windows.isDone; ) await settle(pipeline, run, windows.take()!, 'complete');
  pipeline.held.clear();
  await until('what is lost is enqueued again', () => pipeline.jobs.length > 0);
  expect(pipeline.jobs.splice(0)).toEqual([cleo]);
  // Its worker leaves, and the queue does not know it any more.
  run.leave(ada!.data as AccountJob);
  await until('the other one is enqueued again', () => pipeline.jobs.length > 0);
  expect(pipeline.jobs).toEqual([ada]);
  expect(run.enter(ada!.data as AccountJob)).toBe(windows);
  expect(run.enter(ada!.data as AccountJob)).toBeUndefined();
  run.leave(ada!.data as AccountJob);
  for (const window of pipeline.take()) await settle(pipeline, run, window, 'complete');
  run.leave(cleo!.data as AccountJob);
  pipeline.held.clear();
  await until('cleo is enqueued again', () => pipeline.jobs.length > 0);
  for (const window of pipeline.take()) await settle(pipeline, run, window, 'complete');
  expect(await run.done).toMatchObject({ state: 'complete', windows: { planned: 6, done: 6, failed: 0 } });
  pipeline.held.clear();
  await new Promise(resolve => setTimeout(resolve, 30));
  expect(pipeline.jobs).toEqual([]);
});

test('runs are looked after only while there are any: a process without work does nothing', async () => {
  const running = new Set<unknown>();
  const [set, clear] = [globalThis.setInterval, globalThis.clearInterval];
  vi.spyOn(globalThis, 'setInterval').mockImplementation(((...given: Parameters<typeof set>) => {
    const timer = set(...given);
    running.add(timer);
    return timer;
  }) as typeof set);
  vi.spyOn(globalThis, 'clearInterval').mockImplementation(timer => {
    running.delete(timer);
    clear(timer);
  });
  onTestFinished(() => void vi.restoreAllMocks());
  const { pipeline } = await setUp();
  // It looks once a minute for runs that nobody works on.
  expect(running.size).toBe(1);
  const run = await pipeline.runs.start(request());
  expect(running.size).toBe(3);
  for (const window of pipeline.take()) await settle(pipeline, run, window, 'complete');
  await run.done;
  expect(running.size).toBe(1);
  const next = await pipeline.runs.start(request({ refresh: true }));
  expect(running.size).toBe(3);
  pipeline.runs.close();
  await expect(next.done).rejects.toMatchObject({ exitCode: 75 });
  expect(running.size).toBe(0);
});

test('a stopped run goes on when the same is asked for within a day, and only what is left is read', async () => {
  const { warehouse, pipeline } = await setUp();
  const run = await pipeline.runs.start(request());
  const [first] = pipeline.take();
  await settle(pipeline, run, first!, 'complete');
  await run.stop();
  expect(await run.done).toMatchObject({ state: 'stopped', windows: { planned: 3, done: 1, failed: 0 } });
  expect(await rows(warehouse, 'SELECT outcome, count(*) AS n FROM sync.windows GROUP BY ALL ORDER BY ALL')).toEqual([
    { outcome: 'complete', n: 1 },
    { outcome: 'stopped', n: 2 },
  ]);
  expect(await rows(warehouse, 'SELECT state FROM sync.runs')).toEqual([{ state: 'stopped' }]);

  pipeline.clock.ms += DAY;
  const again = await pipeline.runs.start(request());
  expect(again.id).toBe(run.id);
  expect(await rows(warehouse, 'SELECT state, started_at, ended_at FROM sync.runs')).toEqual([
    { state: 'running', started_at: '2025-03-10 12:00:00', ended_at: null },
  ]);
  const left = pipeline.take();
  expect(left.map(describe)).toEqual(['ada heart_rate 2025-01-01 2025-01-29', 'ada heart_rate 2025-01-29 2025-02-01']);
  for (const window of left) await settle(pipeline, again, window, 'complete');
  expect(await again.done).toMatchObject({ run: run.id, state: 'complete', windows: { planned: 3, done: 3, failed: 0 } });
  expect(await rows(warehouse, 'SELECT count(*) AS n FROM sync.windows')).toEqual([{ n: 3 }]);
});

test('after more than a day, or asked for something else, it is a new run', async () => {
  const { pipeline } = await setUp();
  const run = await pipeline.runs.start(request());
  await run.stop();
  expect((await pipeline.runs.start(request({ refresh: true }))).id).not.toBe(run.id);
  pipeline.clock.ms += DAY + 1;
  expect((await pipeline.runs.start(request())).id).not.toBe(run.id);
});

test.each(['nightly', 'sweep'] as const)('a %s that was stopped is asked for anew: all its days are read again', async kind => {
  const { warehouse, pipeline } = await setUp();
  const asked = request({ kind, refresh: true });
  const run = await pipeline.runs.start(asked);
  const [first] = pipeline.take();
  await settle(pipeline, run, first!, 'complete');
  await run.stop();
  pipeline.clock.ms += 60_000;
  const again = await pipeline.runs.start(asked);
  expect(again.id).not.toBe(run.id);
  expect(pipeline.take().map(describe).sort()).toEqual([
    'ada heart_rate 2025-01-01 2025-01-29',
    'ada heart_rate 2025-01-29 2025-02-01',
    'ada sleep 2025-01-01 2025-02-01',
  ]);
  await again.stop();
  expect((await again.done).read_before).toBeUndefined();
  expect(await rows(warehouse, 'SELECT count(*) AS n FROM sync.runs')).toEqual([{ n: 2 }]);
});

test('a nightly that could not note its end goes on', async () => {
  const { warehouse, pipeline } = await setUp();
  const asked = request({ kind: 'nightly', refresh: true });
  const run = await pipeline.runs.start(asked);
  run.suspend(new Error('no room'));
  expect(await rows(warehouse, 'SELECT state FROM sync.runs')).toEqual([{ state: 'running' }]);
  expect((await pipeline.runs.start(asked)).id).toBe(run.id);
});

test('a night that was killed goes on, and is no answer to who asks for the last days now', async () => {
  const { warehouse, pipeline } = await setUp();
  const asked = request({ kind: 'nightly', refresh: true });
  const killed = await pipeline.runs.start(asked);
  const [first] = pipeline.take();
  await settle(pipeline, killed, first!, 'complete');
  const next = await pipelineOf(warehouse, pipeline.clock.ms);
  expect(next.runs.active().map(({ id, takenUp }) => [id, takenUp])).toEqual([[killed.id, true]]);
  const again = await next.runs.start(asked);
  expect(again.id).not.toBe(killed.id);
  expect(again.progress.windows).toMatchObject({ planned: 3, done: 0 });
  // Who asks while that one is under way joins it.
  expect((await next.runs.start(asked)).id).toBe(again.id);
});

test('a run that goes on tells how many of its windows were read before, and from when on', async () => {
  const { pipeline } = await setUp();
  const asked = request({ refresh: true });
  const run = await pipeline.runs.start(asked);
  const [first] = pipeline.take();
  await settle(pipeline, run, first!, 'complete');
  await run.stop();
  expect((await run.done).read_before).toBeUndefined();
  const again = await pipeline.runs.start(asked);
  for (const window of pipeline.take()) await settle(pipeline, again, window, 'complete');
  expect(await again.done).toMatchObject({
    state: 'complete',
    windows: { planned: 3, done: 3 },
    read_before: { windows: 1, since: '2025-03-10T12:00:01.500Z' },
  });
});

test('what failed before a run was stopped is read again when it goes on: complete means everything', async () => {
  const { pipeline } = await setUp();
  const run = await pipeline.runs.start(request());
  const [first] = pipeline.take();
  await settle(pipeline, run, first!, 'failed', 'unavailable', 'away');
  await run.stop();
  const again = await pipeline.runs.start(request());
  expect(again.id).toBe(run.id);
  const left = pipeline.take();
  expect(left.map(describe).sort()).toEqual([
    'ada heart_rate 2025-01-01 2025-01-29',
    'ada heart_rate 2025-01-29 2025-02-01',
    'ada sleep 2025-01-01 2025-02-01',
  ]);
  for (const window of left) await settle(pipeline, again, window, 'complete');
  expect(await again.done).toMatchObject({ state: 'complete', windows: { planned: 3, done: 3, failed: 0 }, failures: [] });
});

test('after a crash the run is taken up with the windows that are not in the ledger', async () => {
  const { warehouse, pipeline } = await setUp(['ada'], ['ring_configuration', 'sleep', 'heart_rate']);
  const asked = request({ collections: ['ring_configuration', 'sleep', 'heart_rate'] });
  const run = await pipeline.runs.start(asked);
  const [first] = pipeline.take();
  await settle(pipeline, run, first!, 'complete');

  const next = await pipelineOf(warehouse, START + 60_000, ['ring_configuration', 'sleep', 'heart_rate']);
  const taken = next.runs.find(run.id)!;
  expect(taken.progress.windows).toEqual({ planned: 4, done: 1, skipped: 0, failed: 0 });
  const left = next.take();
  expect(left.map(describe)).toEqual(['ada heart_rate 2025-01-01 2025-01-29', 'ada heart_rate 2025-01-29 2025-02-01']);
  expect(await next.runs.start(asked)).toBe(taken);
  for (const window of left) await settle(next, taken, window, 'complete');
  const [ring] = next.take();
  expect(describe(ring!)).toBe('ada ring_configuration - -');
  await settle(next, taken, ring!, 'complete');
  expect(await taken.done).toMatchObject({ run: run.id, state: 'complete', windows: { planned: 4, done: 4 } });
  expect(next.runs.active()).toEqual([]);
  expect(await rows(warehouse, 'SELECT state, started_at, ended_at FROM sync.runs')).toEqual([
    { state: 'complete', started_at: '2025-03-10 12:00:00', ended_at: '2025-03-10 12:01:00' },
  ]);
});

test('a crash between the last window and the end of the run leaves nothing to read, and the run ends at the next start', async () => {
  const { warehouse, pipeline } = await setUp();
  const run = await pipeline.runs.start(request({ collections: ['sleep'] }));
  const [only] = pipeline.take();
  const committedAt = at('2025-03-10T12:00:02Z');
  await warehouse.record([windowEntry(only!, { outcome: 'complete', committedAt })]);
  const next = await pipelineOf(warehouse, START + 1000);
  expect(next.take()).toEqual([]);
  expect(next.runs.find(run.id)).toBeUndefined();
  expect(await rows(warehouse, 'SELECT state, ended_at FROM sync.runs')).toEqual([{ state: 'complete', ended_at: '2025-03-10 12:00:01' }]);
});

test('what is left of a plan that was not brought to its end is no run, and leaves the ledger with the next plan or start', async () => {
  const { warehouse, pipeline } = await setUp();
  const write = warehouse.record.bind(warehouse);
  let slices = 0;
  warehouse.record = entries => (++slices === 2 ? Promise.reject(new Error('killed')) : write(entries));
  const long = { from: '2000-01-01', to: '2024-12-31', collections: ['heart_rate'] };
  await expect(pipeline.runs.start(request(long))).rejects.toThrow('killed');
  warehouse.record = write;
  expect(await rows(warehouse, 'SELECT count(*) AS n FROM sync.windows')).toEqual([{ n: 100 }]);
  expect(await rows(warehouse, 'SELECT count(*) AS n FROM sync.runs')).toEqual([{ n: 0 }]);
  const run = await pipeline.runs.start(request({ collections: ['sleep'] }));
  expect(await rows(warehouse, `SELECT count(*) AS n FROM sync.windows WHERE run_id <> '${run.id}'`)).toEqual([{ n: 0 }]);
  await run.stop();
  await warehouse.record([
    { table: 'sync.windows', row: { run_id: 'killed', user_id: 'ada', collection: 'sleep', start_at: 0, end_at: 1 } },
  ]);
  const next = await pipelineOf(warehouse, START);
  expect(await rows(warehouse, `SELECT count(*) AS n FROM sync.windows WHERE run_id = 'killed'`)).toEqual([{ n: 0 }]);
  expect(next.runs.active()).toEqual([]);
});

test('a run that the ledger calls running and nobody works on is taken up while the process goes on, after a minute', async () => {
  const { warehouse } = await setUp();
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const pipeline = await pipelineOf(warehouse, START);
  const takeUp = vi.spyOn(pipeline.runs, 'takeUp');
  await warehouse.record([
    {
      table: 'sync.runs',
      key: { run_id: 'left' },
      row: {
        kind: 'backfill',
        started_at: at('2025-03-10T11:00:00Z'),
        ended_at: null,
        state: 'running',
        request: JSON.stringify(request()),
      },
    },
    windowEntry(
      {
        runId: 'left',
        userId: 'ada',
        collection: 'sleep',
        startAt: at('2025-01-01T00:00:00Z'),
        endAt: at('2025-02-01T00:00:00Z'),
      },
      { outcome: null },
    ),
  ]);
  await vi.advanceTimersByTimeAsync(59_999);
  expect(takeUp).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  expect(takeUp).toHaveBeenCalledOnce();
  await takeUp.mock.results[0]!.value;
  const [window] = pipeline.take();
  expect(describe(window!)).toBe('ada sleep 2025-01-01 2025-02-01');
  const run = pipeline.runs.find('left')!;
  await settle(pipeline, run, window!, 'complete');
  expect(await run.done).toMatchObject({ run: 'left', state: 'complete', windows: { planned: 1, done: 1 } });
  expect(pipeline.jobs).toEqual([]);
});

test('a process that ends leaves its runs to the next start', async () => {
  const { warehouse, pipeline } = await setUp();
  const run = await pipeline.runs.start(request());
  pipeline.runs.close();
  await expect(run.done).rejects.toMatchObject({ exitCode: 75 });
  expect(run.signal.aborted).toBe(true);
  expect(await rows(warehouse, 'SELECT state FROM sync.runs')).toEqual([{ state: 'running' }]);
  const next = await pipelineOf(warehouse, START);
  expect(next.take()).toHaveLength(3);
});

test('a run that is begun while the process ends is left to the next start too, and nobody waits for it', async () => {
  const { warehouse, pipeline } = await setUp();
  const begun = pipeline.runs.start(request());
  pipeline.runs.close();
  await expect(begun).rejects.toMatchObject({ exitCode: 75 });
  expect(pipeline.runs.active()).toEqual([]);
  expect(pipeline.take()).toEqual([]);
  expect(await rows(warehouse, 'SELECT state FROM sync.runs')).toEqual([{ state: 'running' }]);
  const next = await pipelineOf(warehouse, START);
  expect(next.take()).toHaveLength(3);
});

test('a run that was stopped is not taken up at the next start', async () => {
  const { warehouse, pipeline } = await setUp();
  const run = await pipeline.runs.start(request());
  await run.stop();
  const next = await pipelineOf(warehouse, START);
  expect(next.take()).toEqual([]);
  expect(next.runs.active()).toEqual([]);
});

test('a stopped run that goes on is another part of itself: what the first part left in the queue or in hand does nothing', async () => {
  const { pipeline } = await setUp();
  const first = await pipeline.runs.start(request({ collections: ['heart_rate'] }));
  const [job] = pipeline.jobs;
  const [left] = pipeline.take();
  await first.stop();
  await first.done;
  const second = await pipeline.runs.start(request({ collections: ['heart_rate'] }));
  expect(second.id).toBe(first.id);
  expect(second.enter(job!.data as AccountJob)).toBeUndefined();
  expect(second.isPending(left!)).toBe(false);
  const before = second.progress.windows.done;
  await second.finishWindow(left!, 'complete', undefined, 'complete');
  expect(second.progress.windows.done).toBe(before);
  expect(pipeline.jobs[0]!.opts!.jobId).not.toBe(job!.opts!.jobId);
});

test('two equal requests in one moment are one run, and only the first may end it', async () => {
  const { pipeline } = await setUp();
  const [one, other] = await Promise.all([
    pipeline.runs.start(request({ collections: ['sleep'] })),
    pipeline.runs.start(request({ collections: ['sleep'] })),
  ]);
  expect(other).toBe(one);
  expect([one.claim(), other.claim()]).toEqual([true, false]);
});

test('an account has few windows in hand, after a long wait for a limit one, and the next follows when one is settled', async () => {
  const { pipeline } = await setUp();
  Object.assign(pipeline, { requestsPerToken: 1 });
  const run = await pipeline.runs.start(request({ collections: ['heart_rate'], from: '2024-09-01', to: '2025-02-28' }));
  const windows = run.enter(pipeline.jobs[0]!.data as AccountJob)!;
  const [first, second] = [windows.take(), windows.take()];
  expect([first, second].map(window => describe(window!))).toEqual([
    'ada heart_rate 2024-09-01 2024-09-29',
    'ada heart_rate 2024-09-29 2024-10-27',
  ]);
  expect(windows.take()).toBeUndefined();
  await settle(pipeline, run, first!, 'complete');
  const third = windows.take();
  expect(windows.take()).toBeUndefined();
  windows.slowDown();
  await settle(pipeline, run, second!, 'complete');
  expect(windows.take()).toBeUndefined();
  await settle(pipeline, run, third!, 'complete');
  expect(describe(windows.take()!)).toBe('ada heart_rate 2024-11-24 2024-12-22');
  expect(windows.take()).toBeUndefined();
});

test('a window that is put off lets the others go first, and is the next when its time has come', async () => {
  const { pipeline } = await setUp();
  const run = await pipeline.runs.start(request({ collections: ['heart_rate'], to: '2025-03-25' }));
  const windows = run.enter(pipeline.jobs[0]!.data as AccountJob)!;
  const first = windows.take()!;
  windows.putOff(first, 20);
  expect(run.countWindows()).toEqual({ active: 0, delayed: 1 });
  expect(describe(windows.take()!)).toBe('ada heart_rate 2025-01-29 2025-02-26');
  expect(run.countWindows()).toEqual({ active: 1, delayed: 1 });
  await until('its time has come', () => windows.findWait() === undefined);
  expect(windows.take()).toBe(first);
  expect(describe(windows.take()!)).toBe('ada heart_rate 2025-02-26 2025-03-26');
  expect(windows.hasNext()).toBe(false);
});

test('a run of which all that is left waits tells until when and for whom', async () => {
  const { pipeline } = await setUp(['ada', 'ben']);
  const run = await pipeline.runs.start(request({ users: ['ada', 'ben'], collections: ['sleep', 'heart_rate'] }));
  const accounts = pipeline.jobs.map(({ data }) => run.enter(data as AccountJob)!);
  const [ada, ben] = accounts.map(windows => {
    const taken: OpenWindow[] = [];
    for (let window = windows.take(); window; window = windows.take()) taken.push(window);
    return taken;
  });
  const told = () => run.tellProgress(() => START).waiting_until;
  for (const [i, window] of ada!.entries()) accounts[0]!.putOff(window, 3_600_000 + i * 60_000);
  expect(told()).toBeUndefined();
  for (const window of ben!) await settle(pipeline, run, window, 'complete');
  const waiting = told()!;
  expect(waiting.users).toEqual(['ada']);
  expect(Date.parse(waiting.at)).toBeGreaterThan(Date.parse('2025-03-10T12:59:00Z'));
  expect(Date.parse(waiting.at)).toBeLessThanOrEqual(Date.parse('2025-03-10T13:00:00Z'));
  expect(run.summary()).not.toHaveProperty('waiting_until');
});

test('a short wait is no reason to give no estimate', async () => {
  const { pipeline } = await setUp();
  const run = await pipeline.runs.start(request({ collections: ['sleep'] }));
  const windows = run.enter(pipeline.jobs[0]!.data as AccountJob)!;
  windows.putOff(windows.take()!, 5_000);
  expect(run.tellProgress(() => START).waiting_until).toBeUndefined();
});

test('a run has a job for each account, named by run, part and number', async () => {
  const { pipeline } = await setUp(['ada', 'ben']);
  const run = await pipeline.runs.start(request({ users: ['ada', 'ben'] }));
  const job = (userId: string, number: number) => ({
    name: 'account',
    data: { runId: run.id, part: run.part, number, userId },
    opts: { removeOnComplete: true, removeOnFail: true, jobId: `${run.id}-${run.part}-${number}` },
  });
  expect(pipeline.jobs).toEqual([job('ada', 0), job('ben', 1)]);
});

test('a wait for the queue is over once it has taken something, and a run that has ended waits for nothing', async () => {
  const service = await startFaultService({ '/v2/usercollection/*': {} });
  onTestFinished(() => service.close());
  const harness = await openHarness(join(folder, 'queue-waits'), service.url);
  await harness.add([{ name: 'ada', token: 'token-ada' }]);
  const { queues } = await harness.app.pipeline();
  const addAll = queues.addAll.bind(queues);
  // It has them, and does not say so; what follows it takes.
  let additions = 0;
  vi.spyOn(queues, 'addAll').mockImplementation(async (...given) => {
    await addAll(...given);
    if (++additions === failing) throw new QueueUnavailable('the queue gives no answer; try again');
  });
  let failing = 1;
  const range = { from: '2025-03-01', to: '2025-03-02', collections: ['daily_stress'] };
  const first = await harness.backfill(range);
  expect(first).toMatchObject({ state: 'complete' });
  expect(first).not.toHaveProperty('waiting_for');
  failing = 0;
  const { runs } = await harness.app.pipeline();
  const next = await runs.start(request({ ...range, refresh: true }));
  await next.done;
  expect(next.progress).not.toHaveProperty('waiting_for');
});
