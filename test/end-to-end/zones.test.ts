import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Sample } from '../../schema/fields.ts';
import { runCli, startCli } from '../support/cli.ts';
import { inspectFile } from '../support/table-hash.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { findDifference, readEverything } from '../support/wire-reader.ts';

const folder = tempFolder();
// The clocks of New York change on 2 November, and on the 6th ben flies to London and naps on the way.
const days = { from: '2025-11-01', to: '2025-11-07' };
const range = ['--from', days.from, '--to', days.to];

/** Service, backfill and mirror, each a process whose machine is in this zone. */
async function roundTrip(zone: string): Promise<Record<string, string>> {
  const data = join(folder, zone.replace('/', '-'));
  const settings = { TZ: zone, RINGNECK_DATA: data, RINGNECK_PORT: '0', RINGNECK_NIGHTLY: '0 0 29 2 *' };
  const service = startCli(['service', '--people', '2', '--seed', '7', ...range, '--port', '0', '--json'], settings);
  while (!service.stdout.includes('\n')) await Promise.race([service.ended, new Promise(resolve => setTimeout(resolve, 20))]);
  const { url, people } = JSON.parse(service.stdout) as { url: string; people: { name: string; token: string }[] };
  const connected = { ...settings, RINGNECK_SERVICE_URL: url };
  const up = startCli(['up', '--mirror', '0'], connected);
  await up.says(/"msg":"up"/);
  const [, mirror] = /"url":"([^"]+)","msg":"the mirror is served"/.exec(up.stderr)!;
  // The second one lives in New York.
  const { name, token } = people[1]!;
  expect(await runCli(['account', 'add', name], connected, token)).toMatchObject({ code: 0 });
  const backfill = await runCli(['backfill', ...range, '--json'], connected);
  expect(backfill, backfill.stderr).toMatchObject({ code: 0 });
  const there = await readEverything(url, token, days);
  const here = await readEverything(mirror!, (await runCli(['account', 'mirror-token', name], connected)).stdout.trim(), days);
  for (const [collection, documents] of Object.entries(there)) {
    expect(findDifference(documents, here[collection]!), `${collection} in ${zone}`).toBeUndefined();
  }
  for (const collection of ['daily_activity', 'sleep', 'daily_readiness', 'heart_rate']) {
    expect(there[collection]!.length, collection).toBeGreaterThan(4);
  }
  // The activity day that began before the change has 25 hours, that of the flight 19.
  const lengths = there.daily_activity!.map(({ met }) => (met as Sample).items.length);
  expect(lengths).toEqual(expect.arrayContaining([1500, 1140]));
  expect(there.sleep!.map(({ bedtime_start: start, bedtime_end: end }) => [start, end])).toContainEqual([
    '2025-11-06T14:04:00.000-05:00',
    '2025-11-06T21:05:30.000+00:00',
  ]);
  for (const command of [up, service]) {
    command.process.kill('SIGTERM');
    expect(await command.ended).toMatchObject({ code: 0 });
  }
  const { hashes, broken } = await inspectFile(data);
  expect(broken).toEqual([]);
  return hashes;
}

test('the machine’s time zone makes no difference to anything that is read, stored or served', async () => {
  const [west, east] = await Promise.all(['America/New_York', 'Asia/Kathmandu'].map(roundTrip));
  expect(west).toEqual(east);
});
