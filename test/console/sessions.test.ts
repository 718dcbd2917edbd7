import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { removeConsoleSessions, renameInConsoleSessions } from '../../src/app/console-sessions.ts';
import { Sessions } from '../../src/console/server/sessions.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
let folders = 0;
const ADA = { role: 'person', person: 'ada' } as const;
const READER = { role: 'reader', person: null } as const;

/** What another process does as this one asks what time it is: before, between and after its steps. */
function openBeside(act: (data: string) => void, moment: number) {
  const data = join(folder, `f${++folders}`);
  mkdirSync(data, { mode: 0o700 });
  const clock = { ms: 1_748_736_000_000, asked: Number.NEGATIVE_INFINITY };
  const sessions = new Sessions(data, () => {
    if (++clock.asked === moment) act(data);
    return clock.ms;
  });
  const enter = (grant: typeof ADA | typeof READER) => sessions.enter(sessions.createCode(grant))?.cookie ?? '';
  return {
    sessions,
    clock,
    enter,
    cookies: { ada: enter(ADA), reader: enter(READER) },
    code: sessions.createCode(ADA),
    act: () => act(data),
  };
}

type Beside = ReturnType<typeof openBeside>;

const steps: [string, (beside: Beside) => void][] = [
  ['a session is used', ({ sessions, cookies }) => sessions.find(cookies.reader)],
  ['somebody comes in', ({ enter }) => enter(READER)],
  ['a session is ended', ({ sessions, cookies }) => sessions.end(sessions.find(cookies.reader)?.id ?? '')],
];
const moments = [1, 2, 3, 4, 5, 6];

test.each(steps)('an account that gets another name while %s is looked at by that one alone', (_, step) => {
  for (const moment of moments) {
    const beside = openBeside(data => renameInConsoleSessions(data, 'ada', 'anna'), moment);
    Object.assign(beside.clock, { ms: beside.clock.ms + 59_000, asked: 0 });
    step(beside);
    // A step that asks less often was over by then.
    if (beside.clock.asked < moment) beside.act();
    expect(beside.sessions.find(beside.cookies.ada)?.person).toBe('anna');
    expect(beside.sessions.enter(beside.code)?.session.person).toBe('anna');
  }
});

test.each(steps)('what an erasing ends while %s stays ended', (_, step) => {
  for (const moment of moments) {
    const beside = openBeside(removeConsoleSessions, moment);
    Object.assign(beside.clock, { ms: beside.clock.ms + 59_000, asked: 0 });
    step(beside);
    if (beside.clock.asked < moment) beside.act();
    expect([beside.sessions.find(beside.cookies.ada), beside.sessions.enter(beside.code)]).toEqual([undefined, undefined]);
  }
});

test('a link that is used as its account gets another name opens a session of that one', () => {
  for (const moment of moments) {
    const beside = openBeside(data => renameInConsoleSessions(data, 'ada', 'anna'), moment);
    beside.clock.asked = 0;
    const { cookie = '' } = beside.sessions.enter(beside.code) ?? {};
    if (beside.clock.asked < moment) beside.act();
    expect(beside.sessions.find(cookie)?.person).toBe('anna');
  }
});

test('a session whose file makes no sense lets nobody in, and goes when an account gets another name', () => {
  const { sessions, cookies, act } = openBeside(data => renameInConsoleSessions(data, 'ada', 'anna'), 0);
  const data = join(folder, `f${folders}`, 'console-sessions');
  const { id = '' } = sessions.find(cookies.reader) ?? {};
  writeFileSync(join(data, `${id}.session`), '{"role":');
  expect(sessions.find(cookies.reader)).toBe(undefined);
  act();
  expect([readdirSync(data).length, sessions.find(cookies.ada)?.person]).toEqual([2, 'anna']);
});

test('no more than a thousand links wait, and the oldest gives way', () => {
  const { sessions, clock, code } = openBeside(() => undefined, 0);
  clock.ms += 1;
  const content = JSON.stringify({ ...READER, at: clock.ms });
  const sessionsFolder = join(folder, `f${folders}`, 'console-sessions');
  for (let n = 1; n <= 999; n++) writeFileSync(join(sessionsFolder, `${String(n).padStart(43, '0')}.link`), content);
  const last = sessions.createCode(READER);
  expect([sessions.enter(code), sessions.enter(last)?.session.role]).toEqual([undefined, 'reader']);
});

test('a folder that takes no files is named, with what to do', () => {
  const data = join(folder, 'taken');
  mkdirSync(data);
  writeFileSync(join(data, 'console-sessions'), '');
  expect(() => new Sessions(data, () => 0).createCode(READER)).toThrow(
    `${data}/console-sessions cannot be written (EEXIST: file already exists, mkdir '${data}/console-sessions'): ` +
      'make it, and the folder that it lies in, writable for the user who runs ringneck.',
  );
  rmSync(data, { recursive: true });
});

test('a clock that is put back by two minutes at most ends no session and no link; by more, nothing is younger than it is', () => {
  const { sessions, clock, cookies, code } = openBeside(() => undefined, 0);
  const unused = sessions.createCode(READER);
  clock.ms -= 120_000;
  expect([sessions.find(cookies.reader)?.role, sessions.enter(code)?.session.person]).toEqual(['reader', 'ada']);
  clock.ms -= 1_000;
  expect([sessions.find(cookies.ada), sessions.enter(unused)]).toEqual([undefined, undefined]);
});

test('a session whose file cannot be read is named, and keeps nobody else out', () => {
  const data = join(folder, 'unreadable');
  mkdirSync(data, { mode: 0o700 });
  const told: string[] = [];
  const sessions = new Sessions(
    data,
    () => 1_748_736_000_000,
    error => told.push(String(error)),
  );
  const first = sessions.enter(sessions.createCode(READER));
  const path = join(data, 'console-sessions', `${'x'.repeat(43)}.session`);
  mkdirSync(path);
  const second = sessions.enter(sessions.createCode(READER));
  expect([sessions.find(first?.cookie ?? '')?.role, second?.session.role, sessions.list().length]).toEqual(['reader', 'reader', 2]);
  expect(told).toEqual(Array(2).fill(expect.stringContaining(`${path} cannot be read (EISDIR`)));
});
