import { copyFileSync, readdirSync, readFileSync, readlinkSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { getPriority } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { Questions } from '../../../src/app/questions/questions.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { placeTwoPeople } from '../person-files/two-people.ts';

const folder = tempFolder();

function openQuestions(path: string, now?: () => number): Questions {
  const questions = new Questions(path, now);
  onTestFinished(() => questions.close());
  return questions;
}

/** What of a folder any process has open; as Linux tells, what was removed too. */
const openIn = (data: string) =>
  readdirSync('/proc')
    .filter(pid => /^\d+$/.test(pid))
    .flatMap(pid => {
      try {
        return readdirSync(`/proc/${pid}/fd`).map(fd => readlinkSync(`/proc/${pid}/fd/${fd}`));
      } catch {
        // It has ended.
        return [];
      }
    })
    .filter(path => path.startsWith(`${data}/`));

test.runIf(process.platform === 'linux')('nobody has a file open any more that was removed, as when somebody is erased', async () => {
  const data = join(folder, 'removed');
  await placeTwoPeople(data, { asSnapshot: true });
  const path = join(data, 'snapshot.duckdb');
  const questions = openQuestions(path);
  expect((await questions.ask('people')).id).toContain('ada');
  expect(openIn(data)).toEqual([path]);
  rmSync(path);
  await expect.poll(() => openIn(data), { timeout: 10_000 }).toEqual([]);
});

test.runIf(process.platform === 'linux')(
  'a file that can no longer be looked at is let go, which ends nobody but with a word to who asks',
  async () => {
    const data = join(folder, 'looping');
    await placeTwoPeople(data, { asSnapshot: true });
    const path = join(data, 'snapshot.duckdb');
    const questions = openQuestions(path);
    expect((await questions.ask('people')).id).toContain('ada');
    expect(openIn(data)).toEqual([path]);
    rmSync(path);
    symlinkSync(path, path);
    await expect.poll(() => openIn(data), { timeout: 10_000 }).toEqual([]);
    await expect(questions.ask('people')).rejects.toThrow('ELOOP');
  },
);

test.runIf(process.platform === 'linux')('what is asked while the file is replaced is answered, and the old file is let go', async () => {
  const data = join(folder, 'replaced');
  await placeTwoPeople(data, { asSnapshot: true });
  const path = join(data, 'snapshot.duckdb');
  const questions = openQuestions(path);
  const ask = () => ['people', 'coverage-days', 'taken-at', 'runs', 'duckdb'].map(name => questions.ask(name));
  const before = ask();
  copyFileSync(path, `${path}.new`);
  renameSync(`${path}.new`, path);
  const after = ask();
  expect(await Promise.all(after)).toEqual(await Promise.all(before));
  await expect.poll(() => openIn(data), { timeout: 10_000 }).toEqual([path]);
});

test.runIf(process.platform === 'linux')('who answers gives way to the pipeline: for the processor, and when memory runs out', async () => {
  const data = join(folder, 'gives-way');
  await placeTwoPeople(data, { asSnapshot: true });
  await openQuestions(join(data, 'snapshot.duckdb')).ask('people');
  const isOurs = (pid: string) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`${data}/`);
    } catch {
      // It has ended.
      return false;
    }
  };
  const answering = readdirSync('/proc').filter(pid => /^\d+$/.test(pid) && isOurs(pid));
  const told = answering.map(pid => [getPriority(Number(pid)), readFileSync(`/proc/${pid}/oom_score_adj`, 'utf8')]);
  expect(told).toEqual([[10, '1000\n']]);
});

test('what was answered is kept for an hour at most: which day it is matters', async () => {
  const data = join(folder, 'hour');
  await placeTwoPeople(data, { asSnapshot: true });
  let now = Date.UTC(2025, 0, 1, 23, 59);
  const questions = openQuestions(join(data, 'snapshot.duckdb'), () => now);
  const [before, stamp] = [await questions.ask('coverage-days'), questions.stamp];
  expect(await questions.ask('coverage-days')).toBe(before);
  now += 60_000;
  expect(await questions.ask('coverage-days')).not.toBe(before);
  expect(questions.stamp).not.toBe(stamp);
});
