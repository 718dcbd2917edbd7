import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { keepSchedules } from '../../jobs/schedules.ts';
import { startSweep } from '../../src/sync/sweeps/sweep.ts';
import { spo2 } from '../service/documents.ts';
import { openEventHarness } from '../support/event-harness.ts';
import { startFaultService } from '../support/fault-service.ts';
import { openHarness } from '../support/harness.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';

const folder = tempFolder();
const TEN_DAYS = 10 * 86_400_000;

/** The machine's clock, ten days ahead until it is set right. */
function clockAhead(): { setRight(): void } {
  const real = Date.now.bind(Date);
  let ahead = TEN_DAYS;
  const now = vi.spyOn(Date, 'now').mockImplementation(() => real() + ahead);
  onTestFinished(() => now.mockRestore());
  return {
    setRight() {
      ahead = 0;
    },
  };
}

test('schedules go on when the machine’s clock is set back', async () => {
  const clock = clockAhead();
  const service = await startFaultService();
  onTestFinished(() => service.close());
  const harness = await openHarness(join(folder, randomUUID()), service.url, { queue: 'embedded' });
  let times = 0;
  const often = {
    name: 'often',
    repeat: async () => ({ everyMs: 300, afterMs: 0 }),
    missed: async () => false,
    run: async () => void times++,
  };
  onTestFinished(await keepSchedules(await harness.app.pipeline(), [often], { checkMs: 100 }));
  await until('it goes', () => times > 1);
  clock.setRight();
  // One may have been due before.
  const before = times + 1;
  await until('it goes on', () => times > before + 1);
});

test('an event that waits for its document is fetched when the machine’s clock is set back', async () => {
  const clock = clockAhead();
  const harness = await openEventHarness(folder);
  onTestFinished(() => harness.close());
  const person = await harness.person('late', { daily_spo2: [] });
  await person.announce({ event_type: 'create' });
  await until('it waits', async () => (await harness.queue.getDelayedCount()) === 1);
  person.documents.daily_spo2 = [spo2('2025-03-09', 'spo2-1')];
  clock.setRight();
  await harness.settled(1);
  expect(await harness.rows('SELECT id FROM daily_spo2')).toEqual([{ id: 'spo2-1' }]);
});

test('an event that was put off by a clock ahead is fetched at the next start, by one that is right', async () => {
  const clock = clockAhead();
  const data = join(folder, randomUUID());
  const first = await openEventHarness(folder, { data });
  const before = await first.person('early', { daily_spo2: [] });
  await before.announce({ event_type: 'create' });
  await until('it waits', async () => (await first.queue.getDelayedCount()) === 1);
  await first.close();
  clock.setRight();
  const second = await openEventHarness(folder, { data, later: true });
  onTestFinished(() => second.close());
  await second.person('early', { daily_spo2: [spo2('2025-03-09', 'spo2-1')] });
  await second.start();
  await second.settled(1);
  expect(await second.rows('SELECT id FROM daily_spo2')).toEqual([{ id: 'spo2-1' }]);
});

test('a run whose window is put off comes to its end when the machine’s clock is set back', async () => {
  const clock = clockAhead();
  let isWell = false;
  const nights = '/v2/usercollection/sleep';
  const service = await startFaultService({
    '/v2/usercollection/personal_info': { json: { id: 'ada-1' } },
    [nights]: () => (isWell ? { json: { data: [], next_token: null } } : { status: 500, json: {} }),
  });
  onTestFinished(() => service.close());
  const harness = await openHarness(join(folder, randomUUID()), service.url, { queue: 'embedded', retryDelayMs: 2_000 });
  await harness.add([{ name: 'ada', token: 'ada' }]);
  const pipeline = await harness.app.pipeline();
  const { run } = await startSweep(pipeline, { kind: 'sweep', days: 3, collections: ['sleep'] });
  await until('it asks', () => service.asked.some(({ path }) => path === nights));
  await until('it is put off', () => run.countWindows().delayed > 0);
  isWell = true;
  clock.setRight();
  expect(await run.done).toMatchObject({ state: 'complete' });
});
