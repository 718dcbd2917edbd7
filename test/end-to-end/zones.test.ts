import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Sample } from '../../schema/fields.ts';
import type { AppCommands } from '../../src/app/commands.ts';
import { connectControl } from '../../src/app/control/connect-control.ts';
import { shareRedis } from '../queue/redis-server.ts';
import { startRingneck } from '../support/ringneck.ts';
import { inspectFile } from '../support/table-hash.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { findDifference, readEverything } from '../support/wire-reader.ts';

const folder = tempFolder();
const newQueue = shareRedis();
// The clocks of New York change on 2 November, and on the 6th ben flies to London and naps on the way.
const days = { from: '2025-11-01', to: '2025-11-07' };
const range = ['--from', days.from, '--to', days.to];

/** The service in one process, backfill and mirror in another, both of machines in this zone. */
async function roundTrip(zone: string): Promise<Record<string, string>> {
  const data = join(folder, zone.replace('/', '-'));
  const settings = { TZ: zone, RINGNECK_DATA: data, RINGNECK_PORT: '0', RINGNECK_NIGHTLY: '0 0 29 2 *' };
  const service = startRingneck(['service', '--people', '2', '--seed', '7', ...range, '--port', '0', '--json'], {
    env: { ...settings, ...newQueue() },
  });
  const { url, people } = JSON.parse(await service.line()) as { url: string; people: { name: string; token: string }[] };
  const env = { ...settings, ...newQueue(), RINGNECK_SERVICE_URL: url };
  const up = startRingneck(['up', '--mirror', '0'], { env });
  await up.said('"msg":"up"');
  const [, mirror] = /"url":"([^"]+)","msg":"the mirror is served"/.exec(up.stderr)!;
  // The second one lives in New York.
  const { name, token } = people[1]!;
  // Done by `up`, in its zone.
  const control = (await connectControl<AppCommands>(data))!;
  await control.call('addAccount', { name, token });
  expect(await control.call('backfill', { ...days, refresh: false, plan: false })).toMatchObject({ state: 'complete', failures: [] });
  const mirrorToken = (await control.call('mirrorToken', { name })).token;
  const there = await readEverything(url, token, days);
  const here = await readEverything(mirror!, mirrorToken, days);
  for (const [collection, documents] of Object.entries(there)) {
    expect(findDifference(documents, here[collection]!), `${collection} in ${zone}`).toBeUndefined();
  }
  for (const collection of ['daily_activity', 'sleep', 'daily_readiness', 'heart_rate']) {
    expect(there[collection]!.length, collection).toBeGreaterThan(4);
  }
  // Also where the clocks change, and on the day of the flight (2.5).
  const lengths = there.daily_activity!.map(({ met }) => (met as Sample).items.length);
  expect(new Set(lengths)).toEqual(new Set([1440]));
  expect(there.sleep!.map(({ bedtime_start: start, bedtime_end: end }) => [start, end])).toContainEqual([
    '2025-11-06T14:04:00.000-05:00',
    '2025-11-06T21:05:30.000+00:00',
  ]);
  for (const command of [up, service]) {
    command.kill('SIGTERM');
    expect(await command.end()).toMatchObject({ code: 0 });
  }
  const { hashes, broken } = await inspectFile(data);
  expect(broken).toEqual([]);
  return hashes;
}

test('the machine’s time zone makes no difference to anything that is read, stored or served', async () => {
  const [west, east] = await Promise.all(['America/New_York', 'Asia/Kathmandu'].map(roundTrip));
  expect(west).toEqual(east);
});
