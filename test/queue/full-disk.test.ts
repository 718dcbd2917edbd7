import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { silentLog } from '../../src/base/log.ts';
import { openQueues } from '../../src/queue/open.ts';
import { tempFolder } from '../support/temp-folder.ts';

const disk = join(tempFolder(), 'disk');
mkdirSync(disk);
// A small disk of our own takes the right to mount.
const able = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=200m', 'tmpfs', disk]).status === 0;
afterAll(() => {
  if (able) execFileSync('umount', ['--lazy', disk]);
});

/** Leaves so much free. */
function fillTo(megabytes: number): void {
  const { bavail, bsize } = statfsSync(disk);
  execFileSync('fallocate', ['-l', String(bavail * bsize - megabytes * 1024 * 1024), join(disk, 'fill')]);
}

test.runIf(able)('on a full disk the queue takes nothing in, ends, does not begin, and goes on once there is room', async () => {
  const folder = join(disk, 'queue');
  const open = () => openQueues({ folder, log: silentLog });
  const queues = await open();
  await queues.add('collect', 'account', { n: 1 });
  fillTo(0);
  await expect(queues.add('collect', 'account', { n: 2 })).rejects.toThrow(/is almost full: 0 MB free/);
  rmSync(join(disk, 'fill'));
  await queues.add('collect', 'account', { n: 3 });
  fillTo(0);
  await queues.close();
  await expect(open()).rejects.toThrow(/cannot be opened: The disk of .* is almost full/);
  rmSync(join(disk, 'fill'));
  const again = await open();
  const jobs = await again.queue('collect').getJobs(['waiting']);
  expect(jobs.map(({ data }) => data)).toEqual(expect.arrayContaining([{ n: 1 }, { n: 3 }]));
  expect(jobs).toHaveLength(2);
  await again.close();
});
