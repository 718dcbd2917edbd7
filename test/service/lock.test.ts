import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, inject, onTestFinished, test } from 'vitest';
import { TryLaterError } from '../../src/base/errors.ts';
import { lockFolder } from '../../src/service/lock.ts';
import { isWhole } from '../support/whole.ts';

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'lock-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** A process that tries the lock at the moment `at`, says "held" or why not, and waits to be killed. */
async function startContender(folder: string, at = 0): Promise<{ child: ChildProcess; said: string }> {
  const program = `
    const { lockFolder } = await import(${JSON.stringify(join(inject('compiled'), 'src/service/lock.js'))});
    await new Promise(resolve => setTimeout(resolve, ${at} - 50 - Date.now()));
    while (Date.now() < ${at});
    try { lockFolder(${JSON.stringify(folder)}); console.log('held'); } catch (error) { console.log(error.message); }
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [chunk] = await once(child.stdout!, 'data');
  return { child, said: String(chunk).trim() };
}

async function killHard(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL');
  await once(child, 'exit');
}

test('a second process is refused with the PID of the first', async () => {
  const folder = makeFolder();
  const unlock = lockFolder(folder);
  expect((await startContender(folder)).said).toContain(`in use by the service with PID ${process.pid}`);
  unlock();
  const { child, said } = await startContender(folder);
  expect(said).toBe('held');
  expect(() => lockFolder(folder)).toThrow(TryLaterError);
  expect(() => lockFolder(folder)).toThrow(`PID ${child.pid}`);
});

test('a second service in the same process is refused too', () => {
  const folder = makeFolder();
  lockFolder(folder);
  expect(() => lockFolder(folder)).toThrow(`PID ${process.pid}`);
});

test('the lock of a process that was killed is taken over', async () => {
  const folder = makeFolder();
  const { child, said } = await startContender(folder);
  expect(said).toBe('held');
  await killHard(child);
  lockFolder(folder)();
});

test('of many that meet a dead holder at the same moment one wins, again and again', async () => {
  const folder = makeFolder();
  let holder = (await startContender(folder)).child;
  for (let round = 0; round < (isWhole ? 5 : 2); round++) {
    await killHard(holder);
    const at = Date.now() + 1500;
    const contenders = await Promise.all(Array.from({ length: 8 }, () => startContender(folder, at)));
    const winners = contenders.filter(({ said }) => said === 'held');
    expect(winners).toHaveLength(1);
    holder = winners[0]!.child;
    for (const { child, said } of contenders.filter(({ said }) => said !== 'held')) {
      expect(said).toContain(`PID ${holder.pid}`);
      await killHard(child);
    }
  }
});

test('a PID that now belongs to another process holds nothing', () => {
  const folder = makeFolder();
  writeFileSync(join(folder, 'lock.4'), JSON.stringify({ pid: process.pid, started: 'an-earlier-boot 12' }));
  lockFolder(folder)();
});

test('a lock that a crash of the machine left torn holds nothing', () => {
  const folder = makeFolder();
  writeFileSync(join(folder, 'lock.4'), '');
  lockFolder(folder)();
});

test('one file stays, readable to its owner only', () => {
  const folder = makeFolder();
  for (let i = 0; i < 3; i++) lockFolder(folder)();
  expect(readdirSync(folder)).toEqual(['lock.3']);
  expect(readFileSync(join(folder, 'lock.3'), 'utf8')).toBe('{"pid":0,"started":""}');
  expect(statSync(join(folder, 'lock.3')).mode & 0o777).toBe(0o600);
});
