import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startSchedules } from '../../../jobs/schedules.ts';
import { createLog } from '../../../src/base/log.ts';
import { windowEntry } from '../../../src/ledger/windows.ts';
import type { OpenWindow } from '../../../src/sync/runs/account-windows.ts';
import { nightlySchedule } from '../../../src/sync/sweeps/nightly.ts';
import { sweepSchedule } from '../../../src/sync/sweeps/sweep.ts';
import { startFaultService } from '../../support/fault-service.ts';
import { openHarness } from '../../support/harness.ts';
import { account, at, pipelineOf, warehouseWith } from '../../support/literal-pipeline.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { until } from '../../support/until.ts';

const folder = tempFolder();
const NOON = Date.parse('2025-03-10T12:00:00Z');
const HOUR = 3_600_000;
/** Longer than what the test does to a run that ends, however slow the machine. */
const PATIENCE_MS = 1_000;

/** A pipeline whose windows the test settles. */
async function setUp() {
  const warehouse = await warehouseWith(folder, [account('ada'), account('ben')]);
  const lines: string[] = [];
  const log = createLog({ level: 'info', pretty: false, stream: { write: line => void lines.push(line) } });
  const pipeline = Object.assign(await pipelineOf(warehouse, NOON), { log });
  const settle = async (window: OpenWindow) => {
    await warehouse.record([windowEntry(window, { outcome: 'complete', requestedAt: at('2025-03-10T12:00:00Z') })]);
    await pipeline.runs.find(window.runId)!.finishWindow(window, 'complete', undefined, 'complete');
  };
  return {
    pipeline,
    settle,
    said: () => lines.map(line => JSON.parse(line) as { level: number; msg: string }).map(({ level, msg }) => `${level} ${msg}`),
    /** Runs it, and settles all of its windows but those of one account; which accounts it reads. */
    async run(schedule: { run(): Promise<void> }, heldUp?: string): Promise<{ users: string[]; held: OpenWindow[] }> {
      const done = schedule.run();
      let over = false;
      const ended = done.finally(() => {
        over = true;
      });
      const held: OpenWindow[] = [];
      const users = new Set<string>();
      while (!over) {
        for (const window of pipeline.take()) {
          users.add(window.userId);
          if (window.userId === heldUp) held.push(window);
          else await settle(window);
        }
        await new Promise(resolve => setTimeout(resolve, 1));
      }
      await ended;
      return { users: [...users].sort(), held };
    },
  };
}

test('an account that the service holds up for hours is left out of the sweeps that follow, and read again when its own has ended', async () => {
  const { pipeline, run, settle, said } = await setUp();
  const sweep = sweepSchedule(pipeline, { hours: 6, days: 3 }, PATIENCE_MS);
  const nightly = nightlySchedule(pipeline, { pattern: '30 3 * * *', timeZone: 'UTC', days: 14 }, PATIENCE_MS);

  const first = await run(sweep, 'ben');
  expect(first.users).toEqual(['ada', 'ben']);
  expect(said()).toEqual(['30 sweep run takes long: the next one does not wait for it']);
  pipeline.clock.ms += 6 * HOUR;
  expect((await run(sweep)).users).toEqual(['ada']);
  // A night reads further back: the sweep under way does not do for it.
  const second = await run(nightly, 'ben');
  expect(second.users).toEqual(['ada', 'ben']);
  pipeline.clock.ms += 24 * HOUR;
  expect((await run(nightly)).users).toEqual(['ada']);
  expect(pipeline.runs.active().length).toBe(2);

  for (const window of first.held) await settle(window);
  // The night under way reads what the sweep would.
  expect((await run(sweep)).users).toEqual(['ada']);
  for (const window of second.held) await settle(window);
  await until('their ends are told', () => said().filter(line => line.endsWith('run ended')).length === 5);
  expect((await run(sweep)).users).toEqual(['ada', 'ben']);
  expect(said().filter(line => line === '30 nightly run ended').length).toBe(2);
  expect(pipeline.runs.active()).toEqual([]);
});

test('a sweep of which all accounts are held up is not begun again', async () => {
  const { pipeline, run } = await setUp();
  await pipeline.runs.start({
    kind: 'sweep',
    from: '2025-03-09',
    to: '2025-03-11',
    users: ['ada', 'ben'],
    collections: ['sleep', 'heart_rate'],
    refresh: true,
  });
  pipeline.jobs.length = 0;
  expect((await run(sweepSchedule(pipeline, { hours: 6, days: 3 }, PATIENCE_MS))).users).toEqual([]);
  expect(await pipeline.warehouse.read('SELECT count(*) FROM sync.runs')).toEqual([[1]]);
});

test('what was missed is told although heart rate is held up by the service', async () => {
  const heldUp = await startFaultService({
    '/v2/usercollection/personal_info': { json: { id: 'x' } },
    '/v2/usercollection/heartrate': { status: 429, headers: { 'retry-after': '3600' }, json: { detail: 'slow' } },
  });
  onTestFinished(() => heldUp.close());
  const harness = await openHarness(join(folder, 'judge'), heldUp.url, { queue: 'embedded', now: () => NOON });
  await harness.add([{ name: 'ada', token: 'token-ada' }]);
  const since = at('2025-03-01T00:00:00Z');
  await harness.app.warehouse.record([
    {
      table: 'sync.subscriptions',
      key: { event_type: 'update', data_type: 'sleep' },
      row: { id: 'x', state: 'active', since },
    },
    {
      table: 'sync.missed_events',
      key: { user_id: 'ada', collection: 'sleep', id: 'night', event_type: 'update', found_at: at('2025-03-10T10:00:00Z') },
      row: { read_before_at: since + 1, missed_at: null },
    },
  ]);
  const told: unknown[] = [];
  const schedules = await startSchedules(await harness.app.pipeline(), {
    nightly: { pattern: '30 3 * * *', timeZone: 'UTC', days: 4 },
    sweep: { hours: 6, days: 3 },
    heartRateMinutes: 15,
    webhooks: true,
    onMissed: missed => void told.push(missed),
  });
  onTestFinished(() => schedules.close());
  await until('what was missed is told', () => told.length > 0);
  expect(told).toEqual([{ user: 'ada', collection: 'sleep', count: 1 }]);
  await until('heart rate was asked for', () => heldUp.asked.some(({ path }) => path.endsWith('/heartrate')));
  expect(await harness.read('SELECT kind, state FROM sync.runs')).toEqual([['sweep', 'running']]);
});
