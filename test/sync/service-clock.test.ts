import { expect, test } from 'vitest';
import { createServiceClock } from '../../src/client/service-clock.ts';
import { askServiceClock } from '../../src/sync/service-clock.ts';
import { account, warehouseWith } from '../support/literal-pipeline.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
const DAY = 86_400_000;
const NOON = Date.parse('2025-03-10T12:00:00Z');

/** Asks a service whose answers show these dates in turn, so many days ahead of ours, for four accounts. */
async function ask(days: readonly number[], known: number | undefined) {
  const warehouse = await warehouseWith(
    folder,
    ['ada', 'ben', 'cem', 'dov'].map(name => account(name)),
  );
  const clock = { ms: NOON };
  const serviceClock = createServiceClock(() => clock.ms, known);
  let requests = 0;
  const client = {
    findSilence: () => undefined,
    probe: async () => {
      const sentMs = clock.ms;
      clock.ms += 100;
      serviceClock.note(clock.ms + days[requests++ % days.length]! * DAY, { sentMs, receivedMs: clock.ms });
    },
  };
  const pipeline = { serviceClock, client, warehouse, tokens: { find: (user: string) => `token-of-${user}` } };
  await askServiceClock(pipeline as unknown as Parameters<typeof askServiceClock>[0], undefined, async ms => {
    clock.ms += ms;
  });
  return { requests, tookMs: clock.ms - NOON, aheadDays: Math.round((serviceClock.aheadMs ?? 0) / DAY) };
}

test('a service whose dates differ in turn is waited for once, however many accounts there are', async () => {
  const { tookMs, aheadDays } = await ask([60, 120], 0);
  expect(tookMs).toBeLessThan(10_000);
  expect(aheadDays).toBe(0);
});

test('a service that shows another time twice, some seconds apart, is believed', async () => {
  expect(await ask([60], 0)).toEqual({ requests: 2, tookMs: 5_300, aheadDays: 60 });
});
