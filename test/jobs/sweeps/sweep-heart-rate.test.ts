import { expect, test } from 'vitest';
import type { OpenWindow } from '../../../jobs/account-windows.ts';
import { sweepHeartRates } from '../../../jobs/sweeps/heart-rate.ts';
import { windowEntry } from '../../../jobs/windows.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { until } from '../../support/until.ts';
import { account, at, pipelineOf, warehouseWith } from '../literal-pipeline.ts';

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
  const heartRates = sweepHeartRates(
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
    await pipeline.runs.find(window.runId)!.settle(window, 'complete', undefined, 'complete');
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

test('a night that comes late brings the heart rate about its day, in a run of its own, days side by side together', async () => {
  const { pipeline, heartRates, pass, endRun, takeRun, settle, isQuiet } = await setUp('ada', 'ben');
  await pipeline.warehouse.record([asked('ada', '2025-01-01T00:00:00Z')]);
  heartRates.request('ada', '2025-02-10');
  heartRates.request('ben', '2025-03-10');
  heartRates.request('ada', '2025-02-12');
  heartRates.request('ada', '2025-01-05');
  heartRates.request('ada', '2025-02-10');
  pass(2);
  expect(await endRun()).toEqual(['ada', 'ben']);
  const windows = await takeRun();
  const days = windows.map(({ userId, startAt, endAt }) => [
    userId,
    ...[startAt, endAt].map(at => new Date(at! / 1000).toISOString().slice(0, 10)),
  ]);
  expect(days).toEqual([
    ['ada', '2025-01-04', '2025-01-07'],
    ['ada', '2025-02-09', '2025-02-14'],
  ]);
  const run = pipeline.runs.find(windows[0]!.runId)!;
  expect(run.request).toMatchObject({ kind: 'backfill', refresh: true, users: ['ada'], collections: ['heart_rate'] });
  for (const window of windows) await settle(window);
  expect(await isQuiet()).toBe(true);
});

test('a document of before the first day that was ever asked for brings no heart rate of then: nobody asked for it', async () => {
  const { pipeline, heartRates, pass, endRun, takeRun, settle, isQuiet } = await setUp('ada', 'ben');
  await pipeline.warehouse.record([asked('ada', '2025-02-10T00:00:00Z')]);
  for (const day of ['0001-01-01', '2019-05-05', '2025-02-08', '2025-02-10']) heartRates.request('ada', day);
  heartRates.request('ben', '2025-02-10');
  pass(2);
  expect(await endRun()).toEqual(['ada', 'ben']);
  const windows = await takeRun();
  expect(windows.map(({ userId, startAt, endAt }) => [userId, startAt, endAt])).toEqual([
    ['ada', at('2025-02-10T00:00:00Z'), at('2025-02-12T00:00:00Z')],
  ]);
  for (const window of windows) await settle(window);
  expect(await isQuiet()).toBe(true);
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
