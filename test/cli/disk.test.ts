import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { tempFolder } from '../support/temp-folder.ts';
import { ringneck, type Sandbox, startRingneck, startSandbox } from './ringneck.ts';

const folder = tempFolder();
const disk = join(folder, 'disk');
mkdirSync(disk);
// A small disk of our own takes the right to mount.
const able = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=600m', 'tmpfs', disk]).status === 0;
afterAll(() => {
  if (able) execFileSync('umount', ['--lazy', disk]);
});

let sandbox: Sandbox;
beforeAll(async () => {
  if (able) sandbox = await startSandbox(join(folder, 'service'), '--rate-limit', '20/2');
});

const fill = () => execFileSync('fallocate', ['-l', '120m', join(disk, 'fill')]);
const makeRoom = () => rmSync(join(disk, 'fill'), { force: true });

test.runIf(able)(
  'before the disk is full a backfill ends with the folder’s name, and goes on when there is room',
  async () => {
    const data = join(disk, 'data');
    const env = { RINGNECK_DATA: data, RINGNECK_SERVICE_URL: sandbox.url, RINGNECK_PORT: '0' };
    await ringneck(['account', 'add', 'ada'], { env, input: sandbox.people[0]!.token });
    const args = ['backfill', '--from', '2025-01-01', '--to', '2025-01-31', '--json'];

    // In the middle of a run.
    const running = await startRingneck(args, { env });
    await running.said('windows');
    fill();
    const ended = await running.end();
    expect([ended.code, ended.stdout]).toEqual([1, '']);
    const full = new RegExp(`^ringneck: The disk of ${data} is almost full: \\d+ MB free, and 512 MB are kept in reserve\\. .*$`, 'm');
    expect(ended.stderr).toMatch(full);

    // From the first. What only reads works.
    const other = await ringneck(['backfill', '--last', '2'], { env });
    expect([other.code, other.stdout]).toEqual([1, '']);
    expect(other.stderr).toMatch(full);
    expect((await ringneck(['account', 'list'], { env })).code).toBe(0);
    expect((await ringneck(['sql', 'SELECT 1 AS a', '--format', 'csv'], { env })).stdout).toBe('a\n1\n');

    makeRoom();
    const again = await ringneck(args, { env });
    expect(again.code).toBe(0);
    expect(JSON.parse(again.stdout)).toMatchObject({ state: 'complete', failures: [], windows: { failed: 0 } });
    const left = `SELECT count(*) AS n FROM sync.windows WHERE outcome IS NULL OR outcome <> 'complete'`;
    expect((await ringneck(['sql', left, '--format', 'csv'], { env })).stdout).toBe('n\n0\n');
  },
  180_000,
);
