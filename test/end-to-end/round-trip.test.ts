import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { serveMirror } from '../../src/app/mirror.ts';
import { openHarness } from '../support/harness.ts';
import { startSandbox } from '../support/sandbox.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { COLLECTIONS, findDifference, readEverything, shift } from '../support/wire-reader.ts';

const folder = tempFolder();

const ALL = [...Object.keys(COLLECTIONS), 'heart_rate'].sort();
/** The collections of 4.2 and 4.3. */
const SPECIFIED = ALL.filter(name => !['daily_sleep', 'sleep_time', 'ring_configuration'].includes(name));

// Both kinds of summer time begin in these days; the third person's clock is a quarter of an hour off.
const days = { from: '2025-03-07', to: '2025-04-06' };

test.each([
  { name: 'a usual service', count: 3, settings: {}, ...days, offered: ALL },
  {
    name: 'one that counts the last day in, with small pages',
    count: 2,
    settings: { inclusiveEnd: true, pageSize: 3, heartRatePageSize: 170 },
    from: '2025-03-26',
    to: '2025-04-06',
    offered: ALL,
  },
  {
    name: 'one that has the specified routes only',
    count: 1,
    settings: { specificationOnly: true, pageSize: 7 },
    from: '2025-03-26',
    to: '2025-04-06',
    offered: SPECIFIED,
  },
])('what comes from $name goes out again at the mirror', async ({ name, count, settings, from, to, offered }) => {
  const sandbox = await startSandbox({ count, ...days, settings });
  onTestFinished(() => sandbox.close());
  const harness = await openHarness(join(folder, name), sandbox.url);
  await harness.add(sandbox.people);
  // The last day may be left out, and local days reach beyond those of UTC.
  const range = { from: shift(from, -1), to: shift(to, 1) };
  const report = await harness.backfill(range);
  expect(report).toMatchObject({ state: 'complete', failures: [], rejected: 0 });
  expect(report.heart_rate_path).toBe(offered === ALL ? '/v2/usercollection/heartrate' : '/v2/sandbox/usercollection/heartrate');
  expect(await harness.read('SELECT * FROM sync.drift')).toEqual([]);

  const mirror = await serveMirror(harness.app, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => mirror.close());
  for (const person of sandbox.people) {
    const { token } = await harness.commands.mirrorToken({ name: person.name });
    const there = await readEverything(sandbox.url, person.token, range);
    const here = await readEverything(mirror.url, token, range);
    expect(Object.keys(there).sort()).toEqual(offered);
    expect(Object.keys(here).sort()).toEqual(ALL);
    for (const collection of offered) {
      expect(there[collection]!.length, collection).toBeGreaterThan(0);
      expect(findDifference(there[collection]!, here[collection]!), `${collection} of ${person.name}`).toBeUndefined();
    }
    // Rings are known by the nights that name them, although no collection offers them.
    if (offered !== ALL) expect(here.ring_configuration!.length).toBeGreaterThan(0);
  }
});
