import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { startCollecting } from '../../jobs/collect-window.ts';
import { silentLog } from '../../src/base/log.ts';
import { openQueues } from '../../src/queue/open.ts';
import { heartRateCollection } from '../../src/sync/collections.ts';
import type { Collection } from '../../src/sync/pipeline.ts';
import { UNASKED } from '../../src/sync/read-collection.ts';
import { collectQueue } from '../../src/sync/runs/runs.ts';
import { type Script, startFaultService } from '../support/fault-service.ts';
import { openHarness } from '../support/harness.ts';
import { account, pipelineOf, warehouseWith } from '../support/literal-pipeline.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';

const folder = tempFolder();
const NOON = Date.parse('2025-03-10T12:00:00Z');
const HOUR = 3_600_000;
const HEART_RATE = '/v2/usercollection/heartrate';
const DOWN = { status: 500, json: {} };
/** Four windows of 28 days. */
const WINTER = { from: '2024-10-01', to: '2025-01-20', collections: ['heart_rate'] };
const SECOND = '2024-10-29T00:00:00.000Z';

/** A service with such heart rate, and accounts that are read from it. */
async function setUp(name: string, heartRate: Script, retryDelayMs = 1) {
  const service = await startFaultService({ '/v2/usercollection/personal_info': { json: { id: 'x' } }, [HEART_RATE]: heartRate });
  onTestFinished(() => service.close());
  const harness = await openHarness(join(folder, name), service.url, { now: () => NOON, retryDelayMs });
  await harness.add(['ada', 'ben'].map(user => ({ name: user, token: `token-${user}` })));
  const { queues, runs } = await harness.app.pipeline();
  /** From when ada's heart rate was asked for, request by request. */
  const asked = () =>
    service.asked
      .filter(({ path, token }) => path === HEART_RATE && token === 'token-ada')
      .map(({ query }) => query.get('start_datetime')!.slice(0, 10));
  return { harness, queues, runs, asked };
}

test('a run puts one job for each account into the queue, however many windows it has', async () => {
  const { harness, queues, asked } = await setUp('jobs', {});
  const addAll = vi.spyOn(queues, 'addAll');
  expect(await harness.backfill(WINTER)).toMatchObject({ state: 'complete', windows: { planned: 8, done: 8, failed: 0 } });
  expect(addAll.mock.calls.map(([, jobs]) => jobs.map(({ data }) => (data as { userId: string }).userId))).toEqual([['ada', 'ben']]);
  expect(asked().sort()).toEqual(['2024-10-01', '2024-10-29', '2024-11-26', '2024-12-24']);
});

test('a window that fails is tried three times, further and further apart, and its neighbours are read once meanwhile', async () => {
  const times: number[] = [];
  const { harness, asked } = await setUp(
    'fails',
    ({ token, query }) => {
      if (token !== 'token-ada' || query.get('start_datetime') !== SECOND) return {};
      times.push(performance.now());
      return DOWN;
    },
    150,
  );
  const report = await harness.backfill(WINTER);
  expect(report).toMatchObject({ state: 'failed', windows: { planned: 8, done: 7, failed: 1 } });
  expect(report.failures).toMatchObject([{ user_id: 'ada', collection: 'heart_rate', from: '2024-10-29', to: '2024-11-25' }]);
  const dates = asked();
  const attempts = dates.filter(date => date === '2024-10-29').length;
  expect(attempts % 3).toBe(0);
  expect(dates.slice(-attempts * (2 / 3)).every(date => date === '2024-10-29')).toBe(true);
  expect(dates).toHaveLength(attempts + 3);
  // Each attempt has requests of its own, one right after the other.
  const [, second, third] = Array.from({ length: 3 }, (_, attempt) => times[(attempt * attempts) / 3]! - times[0]!);
  expect(second).toBeGreaterThanOrEqual(149);
  expect(third! - second!).toBeGreaterThanOrEqual(299);
});

test('while all that an account has left is put off it has no worker, and status tells so', async () => {
  const { harness, queues, runs } = await setUp('put-off', ({ query }) => (query.get('start_datetime') === SECOND ? DOWN : {}), HOUR);
  const ended = harness.backfill({ ...WINTER, users: ['ada'] }).catch(() => undefined);
  const { warehouse } = await harness.app.pipeline();
  const queue = await collectQueue(warehouse);
  await until('the job is put off', async () => (await queues.counts(queue)).delayed === 1);
  expect(await queues.counts(queue)).toEqual({ waiting: 0, active: 0, delayed: 1, failed: 0 });
  expect((await harness.commands.status({})).queue).toMatchObject({
    waiting: 0,
    active: 0,
    delayed: 1,
    failed: 0,
    events: 0,
    problem: null,
  });
  const [run] = runs.active();
  expect(run!.progress.windows).toMatchObject({ planned: 4, done: 3 });
  await run!.stop();
  await ended;
});

test('where there are more accounts than workers each has so many windows in its turn as it may have side by side', async () => {
  const warehouse = await warehouseWith(folder, [account('ada'), account('ben')]);
  const queues = await openQueues({ folder: join(folder, 'queue'), log: silentLog });
  onTestFinished(() => queues.close({ graceMs: 0 }));
  const order: string[] = [];
  const collection: Collection = {
    ...heartRateCollection,
    async collect({ userId }, { ledger }) {
      order.push(userId);
      const result = { outcome: 'complete', ...UNASKED, requests: 1, documents: 0 } as const;
      await warehouse.record(ledger(result));
      return result;
    },
  };
  const tokens = { find: () => 'token', findSignIn: () => undefined, whyMissing: () => undefined, digest: (text: string) => text };
  const pipeline = Object.assign(await pipelineOf(warehouse, NOON), { queues, tokens, collections: [collection], requestsPerToken: 1 });
  const run = await pipeline.runs.start({ ...WINTER, kind: 'backfill', users: ['ada', 'ben'], refresh: false });
  await startCollecting(pipeline, { inHand: 1 });
  expect(await run.done).toMatchObject({ state: 'complete', windows: { planned: 8, done: 8 } });
  expect(order).toEqual(['ada', 'ada', 'ben', 'ben', 'ada', 'ada', 'ben', 'ben']);
});
