import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openHarness } from '../support/harness.ts';
import { runHere } from '../support/run-here.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { STRESS } from '../support/wire.ts';

const folder = tempFolder();
const DAY = 86_400_000;

test('status tells in one line what documents of the last 30 days had that their declaration does not foresee', async () => {
  const data = join(folder, 'drift');
  let now = Date.now() - 40 * DAY;
  const harness = await openHarness(data, 'http://127.0.0.1:9', { now: () => now });
  const { warehouse } = harness.app;
  const store = (id: string, more: object) =>
    warehouse.storeDocuments({
      userId: 'ada',
      resource: warehouse.mapping('daily_stress').resource,
      requestedAt: warehouse.clock.lease(),
      documents: [{ ...STRESS, id, ...more }],
    });
  await store('long ago', { forgotten: 1, day_summary: 'dull' });
  expect((await harness.commands.status({})).drift).toMatchObject([{ path: 'day_summary' }, { path: 'forgotten' }]);
  now += 35 * DAY;
  await store('then', { first: 1, second: 2, day_summary: 'dull' });
  const day = (micros: number) => new Date(micros).toISOString();
  const report = await harness.commands.status({});
  expect(report.drift).toEqual([
    {
      collection: 'daily_stress',
      path: 'day_summary',
      kind: 'unknown value',
      documents: 2,
      first_seen_at: expect.stringContaining(day(now - 35 * DAY).slice(0, 10)),
      last_seen_at: expect.stringContaining(day(now).slice(0, 10)),
      example: '$.day_summary',
    },
    expect.objectContaining({ path: 'first', kind: 'unknown field', documents: 1 }),
    expect.objectContaining({ path: 'second', kind: 'unknown field', documents: 1 }),
  ]);
  await harness.close();
  const { stdout } = await runHere(['status'], { env: { RINGNECK_DATA: data } });
  const since = day(now - 35 * DAY).slice(0, 10);
  expect(stdout).toContain(`\ndrift: 1 unknown value, 2 unknown fields since ${since}: ringneck sql 'FROM sync.drift'\n`);
});
