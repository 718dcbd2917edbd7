import { expect, test, vi } from 'vitest';
import { windowEntry } from '../../../src/ledger/windows.ts';
import type { OpenWindow } from '../../../src/sync/runs/account-windows.ts';
import { HeartRateSweeps } from '../../../src/sync/sweeps/heart-rate.ts';
import type { Warehouse } from '../../../src/warehouse/warehouse.ts';
import { account, at, pipelineOf, warehouseWith } from '../../support/literal-pipeline.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { until } from '../../support/until.ts';
import { resourceNamed } from '../../support/warehouse.ts';
import { SLEEP } from '../../support/wire.ts';

const folder = tempFolder();
const NOON = Date.parse('2025-03-10T12:00:00Z');
/** Longer than what the test does to a run that ends, however slow the machine. */
const PATIENCE_MS = 1_000;

/** Accounts whose heart rate is read by runs that the test ends, at a clock that the test sets. */
async function setUp(...users: string[]) {
  const warehouse = await warehouseWith(folder, [...users.map(user => account(user)), account('paul', { state: 'paused' })]);
  const pipeline = await pipelineOf(warehouse, NOON);
  const { clock, jobs } = pipeline;
  let sleeping: { at: number; wake(): void }[] = [];
  const heartRates = new HeartRateSweeps(
    pipeline,
    (ms, signal) =>
      new Promise<void>((wake, reject) => {
        sleeping.push({ at: clock.ms + ms, wake });
        signal.addEventListener('abort', () => reject(signal.reason));
      }),
    PATIENCE_MS,
  );
  const settle = async (window: OpenWindow) => {
    await warehouse.record([windowEntry(window, { outcome: 'complete', requestedAt: clock.ms * 1000, committedAt: clock.ms * 1000 })]);
    await pipeline.runs.find(window.runId)!.finishWindow(window, 'complete', undefined, 'complete');
  };
  return {
    pipeline,
    heartRates,
    settle,
    /** The windows of the next run, which goes on. */
    async takeRun(): Promise<OpenWindow[]> {
      await until('a run has begun', () => jobs.length > 0);
      return pipeline.take();
    },
    /** How many wait for their time. */
    countSleeping: () => sleeping.length,
    pass(seconds: number) {
      clock.ms += seconds * 1_000;
      const due = sleeping.filter(({ at }) => at <= clock.ms);
      sleeping = sleeping.filter(({ at }) => at > clock.ms);
      for (const { wake } of due) wake();
    },
    /** The accounts of the next run, which ends then. */
    async endRun(): Promise<string[]> {
      await until('a run has begun', () => jobs.length > 0);
      const windows = pipeline.take();
      const run = pipeline.runs.find(windows[0]!.runId)!;
      const days = { startAt: Date.parse('2025-03-09T00:00:00Z') * 1000, endAt: Date.parse('2025-03-12T00:00:00Z') * 1000 };
      for (const window of windows) {
        expect(window).toMatchObject({ runId: run.id, collection: 'heart_rate', ...days });
        await settle(window);
      }
      expect(run.request).toMatchObject({ kind: 'sweep', refresh: true });
      return windows.map(({ userId }) => userId);
    },
    /** No run is under way, and none begins. */
    async isQuiet(): Promise<boolean> {
      await new Promise(resolve => setImmediate(resolve));
      return jobs.length === 0 && pipeline.runs.active().length === 0;
    },
  };
}

/** The ledger's word that an event of a document has come, and that it is stored. */
const come = (userId: string, id: string, moment: string) => [
  {
    table: 'sync.events',
    key: { received_at: at(moment) },
    row: { object_id: id, user_id: userId, data_type: 'sleep', outcome: 'stored', committed_at: at(moment), settled_at: at(moment) },
  },
];

const night = (warehouse: Warehouse, userId: string, id: string, day: string) =>
  warehouse.storeDocuments({
    userId,
    resource: resourceNamed('sleep'),
    requestedAt: warehouse.clock.next(),
    documents: [{ ...SLEEP, id, day }],
  });

/** The ledger's word that a backfill read the account's heart rate of the 28 days from then on. */
const asked = (userId: string, from: string) =>
  windowEntry(
    { runId: 'first', userId, collection: 'heart_rate', startAt: at(from), endAt: at(from) + 28 * 86_400_000_000 },
    { outcome: 'complete', requestedAt: at(from), committedAt: at(from) },
  );

test('requests of some moments are one reading, of all who asked, and of one account another follows after a minute at the earliest', async () => {
  const { heartRates, pass, endRun, isQuiet } = await setUp('ada', 'ben');
  heartRates.request('ada');
  heartRates.request('ben');
  heartRates.request('ada');
  expect(await isQuiet()).toBe(true);
  pass(2);
  expect(await endRun()).toEqual(['ada', 'ben']);
  expect(await isQuiet()).toBe(true);

  heartRates.request('ada');
  heartRates.request('ada');
  pass(57);
  expect(await isQuiet()).toBe(true);
  pass(3);
  expect(await endRun()).toEqual(['ada']);
  pass(3_600);
  expect(await isQuiet()).toBe(true);
});

test('what is requested while a reading goes on is read by the next, together', async () => {
  const { pipeline, heartRates, pass, endRun, isQuiet } = await setUp('ada', 'ben', 'cyd');
  heartRates.request('ada');
  pass(2);
  await until('the first reading goes on', () => pipeline.jobs.length === 1);
  heartRates.request('ben');
  pass(2);
  heartRates.request('ada');
  heartRates.request('cyd');
  pass(60);
  await new Promise(resolve => setImmediate(resolve));
  expect(pipeline.runs.active().length).toBe(1);
  expect(await endRun()).toEqual(['ada']);
  expect((await endRun()).sort()).toEqual(['ada', 'ben', 'cyd']);
  expect(await isQuiet()).toBe(true);
});

test('a night that comes late brings the heart rate about its day, whether or not the last days could be read', async () => {
  const { pipeline, heartRates, pass, takeRun, settle, isQuiet } = await setUp('ada', 'ben');
  await pipeline.warehouse.record([asked('ada', '2025-01-01T00:00:00Z'), ...come('ada', 'n-1', '2025-03-10T11:59:00Z')]);
  await night(pipeline.warehouse, 'ada', 'n-1', '2025-02-10');
  heartRates.request('ada');
  pass(2);
  const [last] = await takeRun();
  await pipeline.runs.find(last!.runId)!.finishWindow(last!, 'failed', 'answered 502', 'unavailable');
  const windows = await takeRun();
  const days = windows.map(({ userId, startAt, endAt }) => [userId, startAt, endAt]);
  expect(days).toEqual([['ada', at('2025-02-09T00:00:00Z'), at('2025-02-12T00:00:00Z')]]);
  const run = pipeline.runs.find(windows[0]!.runId)!;
  expect(run.request).toMatchObject({ kind: 'backfill', refresh: true, users: ['ada'], collections: ['heart_rate'] });
  for (const window of windows) await settle(window);
  expect(await isQuiet()).toBe(true);
});

test('whose heart rate the service refuses is not asked for late days', async () => {
  const { pipeline, heartRates, pass, isQuiet } = await setUp('ada');
  await pipeline.warehouse.record([asked('ada', '2025-01-01T00:00:00Z'), ...come('ada', 'n-1', '2025-03-10T11:59:00Z')]);
  await night(pipeline.warehouse, 'ada', 'n-1', '2025-02-10');
  const refused = {
    runId: 'r',
    userId: 'ada',
    collection: 'heart_rate',
    startAt: at('2025-03-01T00:00:00Z'),
    endAt: at('2025-03-02T00:00:00Z'),
  };
  await pipeline.warehouse.record([windowEntry(refused, { outcome: 'not_authorised', committedAt: at('2025-03-09T00:00:00Z') })]);
  heartRates.request('ada');
  pass(2);
  await vi.waitFor(async () => expect(await pipeline.warehouse.read('SELECT count(*) FROM sync.runs')).toEqual([[1]]));
  // Its row comes before its end.
  await vi.waitFor(async () => expect(await isQuiet()).toBe(true));
  expect(await pipeline.warehouse.read(`SELECT count(*) FROM sync.runs WHERE kind = 'backfill'`)).toEqual([[0]]);
});

test('the regular reading is of all active accounts; who is paused or unknown is not read on request either', async () => {
  const { heartRates, pass, endRun, isQuiet } = await setUp('ada', 'ben');
  const done = heartRates.sweepAll();
  expect(await endRun()).toEqual(['ada', 'ben']);
  await done;
  heartRates.request('paul');
  heartRates.request('zoe');
  pass(2);
  expect(await isQuiet()).toBe(true);
});

test('an account that the service holds up keeps the others for a while only, and is left out until its own reading has ended', async () => {
  const { pipeline, heartRates, pass, settle, takeRun, endRun, isQuiet } = await setUp('ada', 'ben');
  const first = heartRates.sweepAll();
  const [ofAda, ofBen] = await takeRun();
  expect([ofAda!.userId, ofBen!.userId]).toEqual(['ada', 'ben']);
  await settle(ofBen!);
  await first;
  expect(pipeline.runs.find(ofAda!.runId)!.state).toBe('complete');
  expect(pipeline.runs.active().map(({ id }) => id)).toEqual([ofAda!.runId]);

  heartRates.request('ada');
  heartRates.request('ben');
  pass(62);
  expect(await endRun()).toEqual(['ben']);
  const next = heartRates.sweepAll();
  expect(await endRun()).toEqual(['ben']);
  await next;
  expect(pipeline.runs.active().map(({ id }) => id)).toEqual([ofAda!.runId]);

  await settle(ofAda!);
  expect(await isQuiet()).toBe(true);
  const last = heartRates.sweepAll();
  expect(await endRun()).toEqual(['ada', 'ben']);
  await last;
});

test('after the close nothing is read', async () => {
  const { heartRates, pass, isQuiet } = await setUp('ada');
  heartRates.request('ada');
  heartRates.close();
  heartRates.request('ada');
  pass(3_600);
  expect(await isQuiet()).toBe(true);
});
