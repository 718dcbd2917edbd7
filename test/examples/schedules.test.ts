import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { CronExpressionParser } from 'cron-parser';
import { expect, test } from 'vitest';
import { createProgram } from '../../src/cli/program.ts';
import { tempFolder } from '../support/temp-folder.ts';

const examples = fileURLToPath(new URL('../../examples', import.meta.url));
const folder = tempFolder();
const PROGRAM = '/usr/local/bin/ringneck';
const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0;

/** Stands for the program: notes how it was called, says something, and ends as it is told. */
const standIn = join(folder, 'bin/ringneck');
mkdirSync(join(folder, 'bin'));
writeFileSync(standIn, '#!/bin/sh\necho "$@" >> "$CALLS"\necho said; echo complained >&2\nexit "$CODE"\n');
chmodSync(standIn, 0o755);

let lines = 0;

/** What a line of the shell prints where the program ends with this code, and how it calls it. */
function runLine(line: string, code: number): { printed: string; calls: string[] } {
  const calls = join(folder, `calls${++lines}`);
  const env = { PATH: `${join(folder, 'bin')}:/usr/bin:/bin`, CALLS: calls, CODE: String(code) };
  const { stdout, stderr } = spawnSync('/bin/sh', ['-c', line], { cwd: folder, env, encoding: 'utf8' });
  const called = readFileSync(calls, 'utf8').trimEnd().split('\n');
  return { printed: stdout + stderr, calls: called.map(call => call.replace(/\d{4}-\d\d-\d\d$/, 'TODAY')) };
}

/** Has the command line read these arguments, and does nothing; throws where it would refuse them. */
async function readArguments(line: string): Promise<void> {
  const program = createProgram();
  const silence = (command: Command): void => {
    command.exitOverride().configureOutput({ writeErr: () => {}, writeOut: () => {} });
    for (const sub of command.commands) silence(sub);
    if (!command.commands.length) command.action(() => {});
  };
  silence(program);
  await program.parseAsync(['node', 'ringneck', ...line.split(' ')]);
}

const crontab = readFileSync(join(examples, 'cron/crontab'), 'utf8')
  .split('\n')
  .filter(line => line && !line.startsWith('#'));
const jobs = crontab
  .filter(line => !/^\w+=/.test(line))
  .map(line => {
    const [, when = '', command = ''] = /^((?:\S+ +){5})(.*)$/.exec(line) ?? [];
    // cron takes what follows a bare % for standard input.
    expect(command).not.toMatch(/(?<!\\)%/);
    return { when: when.trim(), command: command.replaceAll('\\%', '%').replace('/home/ada/ring', folder) };
  });

const FIRST = new Date('2025-03-31T12:00:00Z');
const nextAt = (when: string) =>
  CronExpressionParser.parse(when, { currentDate: FIRST, tz: 'UTC', strict: false }).next().toDate().toISOString();

test('the crontab reads each night, repairs on Mondays, and makes a backup on Sundays', () => {
  expect(jobs.map(({ when }) => nextAt(when))).toEqual([
    '2025-04-01T03:30:00.000Z',
    '2025-04-07T05:00:00.000Z',
    '2025-04-06T04:15:00.000Z',
  ]);
});

test('each line of the crontab calls the program as it can be called, and prints only where that fails', async () => {
  const well = jobs.map(({ command }) => runLine(command, 0));
  expect(well.map(({ printed }) => printed)).toEqual(['', '', '']);
  expect(well.flatMap(({ calls }) => calls)).toEqual(['nightly', 'snapshot', 'coverage --repair', 'backup /mnt/backups/ring-TODAY']);
  for (const { calls } of well) for (const call of calls) await readArguments(call);
  const failed = jobs.map(({ command }) => runLine(command, 75));
  expect(failed.map(({ printed }) => printed)).toEqual(Array(3).fill('said\ncomplained\n'));
  expect(failed.map(({ calls }) => calls.length)).toEqual([1, 1, 1]);
});

test('what the command line does not know is refused here, too', async () => {
  await expect(readArguments('nightly --dayz 3')).rejects.toThrow("unknown option '--dayz'");
  await expect(readArguments('backup')).rejects.toThrow("missing required argument 'folder'");
});

const units = readdirSync(join(examples, 'systemd'));
const unit = (name: string) => readFileSync(join(examples, 'systemd', name), 'utf8');

/** The directives of a unit, `Section.Name` to value. */
function directivesOf(text: string): Map<string, string> {
  let section = '';
  const found = new Map<string, string>();
  for (const line of text.split('\n').filter(one => one && !one.startsWith('#'))) {
    const [, name] = /^\[(\w+)\]$/.exec(line) ?? [];
    const [, key, value = ''] = /^(\w+)=(.*)$/.exec(line) ?? [];
    if (name) section = name;
    else if (key && section) found.set(`${section}.${key}`, value);
    else throw new Error(`neither a section nor a directive: ${line}`);
  }
  return found;
}

test('the units work in the folder that the service owns, as its user, and may write where they have to', () => {
  const [backup, timer, service] = units.sort().map(name => directivesOf(unit(name)));
  expect(units).toEqual(['ringneck-backup.service', 'ringneck-backup.timer', 'ringneck.service']);
  expect(service?.get('Service.WorkingDirectory')).toBe(`/var/lib/${service?.get('Service.StateDirectory')}`);
  expect(backup?.get('Service.WorkingDirectory')).toBe(service?.get('Service.WorkingDirectory'));
  expect(backup?.get('Service.User')).toBe(service?.get('Service.User'));
  expect(backup?.get('Service.ReadWritePaths')).toBe('/var/lib/ringneck /var/backups/ringneck');
  expect(timer?.get('Timer.OnCalendar')).toBe('*-*-* 04:15');
  expect([service?.get('Install.WantedBy'), timer?.get('Install.WantedBy')]).toEqual(['multi-user.target', 'timers.target']);
});

test('each unit calls the program as it can be called', async () => {
  const calls = units.flatMap(name => {
    const line = directivesOf(unit(name)).get('Service.ExecStart');
    if (line === undefined) return [];
    // systemd reads %% as %, and $$ as $.
    const command = line.replaceAll('%%', '%').replaceAll('$$', '$').replaceAll(PROGRAM, standIn);
    return runLine(command, 0).calls;
  });
  expect(calls).toEqual(['backup /var/backups/ringneck/TODAY', 'up']);
  for (const call of calls) await readArguments(call);
});

test.skipIf(!hasSystemd)('systemd has nothing against the units', () => {
  const place = join(folder, 'units');
  mkdirSync(place);
  // It looks whether the program is there.
  for (const name of units) writeFileSync(join(place, name), unit(name).replaceAll(PROGRAM, standIn));
  const verify = (name: string) => spawnSync('systemd-analyze', ['verify', join(place, name)], { encoding: 'utf8' });
  const complaints = units.flatMap(name =>
    verify(name)
      .stderr.split('\n')
      .filter(line => line.includes('ringneck')),
  );
  expect(complaints).toEqual([]);
  writeFileSync(join(place, 'ringneck-odd.service'), unit('ringneck.service').replaceAll(PROGRAM, standIn).replace('UMask=', 'UMusk='));
  expect(verify('ringneck-odd.service').stderr).toContain('UMusk');
});
