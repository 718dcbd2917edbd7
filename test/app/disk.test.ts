import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { startFaultService } from '../support/fault-service.ts';
import { hasLake, lakeSettings, newLake } from '../support/lake.ts';
import { startRingneck } from '../support/ringneck.ts';
import { runHere } from '../support/run-here.ts';
import { startSandbox } from '../support/sandbox.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
const disk = join(folder, 'disk');
mkdirSync(disk);
// A small disk of our own takes the right to mount.
const able = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=600m', 'tmpfs', disk]).status === 0;
afterAll(() => {
  if (able) execFileSync('umount', ['--lazy', disk]);
});

const fill = () => execFileSync('fallocate', ['-l', '120m', join(disk, 'fill')]);
const makeRoom = () => rmSync(join(disk, 'fill'), { force: true });

test.runIf(able)(
  'before the disk is full a backfill waits and says so, goes on when there is room, and does not begin while there is none',
  async () => {
    const sandbox = await startSandbox({ count: 1, from: '2025-01-01', to: '2025-01-10' });
    onTestFinished(() => sandbox.close());
    const service = await startFaultService({}, { upstream: sandbox.url });
    onTestFinished(() => service.close());
    const data = join(disk, 'data');
    const env = { RINGNECK_DATA: data, RINGNECK_SERVICE_URL: service.url, RINGNECK_PORT: '0' };
    await runHere(['account', 'add', 'ada'], { env, input: sandbox.people[0]!.token });
    const args = ['backfill', '--from', '2025-01-01', '--to', '2025-01-10', '--json'];

    // In the middle of a run.
    let answer: () => void = () => undefined;
    const held = new Promise<void>(resolve => {
      answer = resolve;
    });
    service.on('/v2/usercollection/sleep', async () => {
      await held;
      return undefined;
    });
    const running = startRingneck(args, { env });
    await running.said('windows');
    fill();
    answer();
    await running.said('waits for room on the disk');
    const full = new RegExp(`^ringneck: The disk of ${data} is almost full: \\d+ MB free, and 512 MB are kept in reserve\\. .*$`, 'm');
    expect(running.process.exitCode).toBe(null);
    makeRoom();
    const ended = await running.end();
    expect(ended.code).toBe(0);
    expect(JSON.parse(ended.stdout)).toMatchObject({ state: 'complete', failures: [], windows: { failed: 0 } });

    // Whoever stops it does not wait for room.
    let answerAgain: () => void = () => undefined;
    const heldAgain = new Promise<void>(resolve => {
      answerAgain = resolve;
    });
    service.on('/v2/usercollection/sleep', async () => {
      await heldAgain;
      return undefined;
    });
    const stopped = startRingneck([...args, '--refresh'], { env });
    await stopped.said('windows');
    fill();
    answerAgain();
    await stopped.said('waits for room on the disk');
    stopped.process.kill('SIGINT');
    const end = await stopped.end();
    expect([end.code, end.stdout]).toEqual([1, '']);
    expect(end.stderr).toMatch(full);

    // From the first. What only reads works.
    const other = await runHere(['backfill', '--last', '2'], { env });
    expect([other.code, other.stdout]).toEqual([1, '']);
    expect(other.stderr).toMatch(full);
    expect((await runHere(['account', 'list'], { env })).code).toBe(0);
    expect((await runHere(['sql', 'SELECT 1 AS a', '--format', 'csv'], { env })).stdout).toBe('a\n1\n');

    makeRoom();
    const again = await runHere([...args, '--refresh'], { env });
    expect(again.code).toBe(0);
    expect(JSON.parse(again.stdout)).toMatchObject({ state: 'complete', failures: [], windows: { failed: 0 } });
    const left = `SELECT count(*) AS n FROM sync.windows WHERE outcome IS NULL OR outcome <> 'complete'`;
    expect((await runHere(['sql', left, '--format', 'csv'], { env })).stdout).toBe('n\n0\n');
  },
);

test.runIf(able && hasLake)(
  'where the files of a lake have no room a backfill does not begin, nor an erasing, and doctor says which disk it is',
  async () => {
    const sandbox = await startSandbox({ count: 1, from: '2025-01-01', to: '2025-01-03' });
    onTestFinished(() => sandbox.close());
    const { address } = await newLake(disk);
    const env = {
      RINGNECK_DATA: join(folder, 'of-a-lake'),
      RINGNECK_SERVICE_URL: sandbox.url,
      ...lakeSettings(address.catalogue, address.data),
    };
    expect((await runHere(['account', 'add', 'ada'], { env, input: sandbox.people[0]!.token })).stdout).toBe('ada active\n');
    fill();
    onTestFinished(makeRoom);
    const full = new RegExp(
      `^ringneck: The disk of ${address.data} is almost full: \\d+ MB free, and 512 MB are kept in reserve\\. .*$`,
      'm',
    );
    for (const args of [
      ['backfill', '--from', '2025-01-01', '--to', '2025-01-03'],
      ['account', 'remove', 'ada', '--erase', '--yes'],
    ]) {
      const refused = await runHere(args, { env });
      expect([refused.code, refused.stdout]).toEqual([1, '']);
      expect(refused.stderr).toMatch(full);
    }
    expect((await runHere(['doctor'], { env })).stdout).toMatch(
      new RegExp(`disk +\\d+ MB free in ${address.data}: nothing is written below 512 MB`),
    );
  },
);
