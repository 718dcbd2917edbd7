import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { placeTwoPeople } from '../app/person-files/two-people.ts';
import { openConsoleHere } from '../support/console-harness.ts';
import { runHere } from '../support/run-here.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { withDuckDB } from '../support/warehouse.ts';

const folder = tempFolder();
const names = (body: { people: { id: string }[] }) => body.people.map(({ id }) => id);

test('a person sees nobody else, a reader everybody', async () => {
  const data = join(folder, 'two');
  const console = await openConsoleHere(data);
  await placeTwoPeople(data, { asSnapshot: true });
  const reader = await console.enter({ role: 'reader' });
  expect(names((await reader.ask('GET people')).body)).toEqual(['ada', 'bob-zz']);
  const ada = await console.enter({ role: 'person', person: 'ada' });
  expect(names((await ada.ask('GET people')).body)).toEqual(['ada']);
  expect((await ada.ask('GET session')).body).toMatchObject({ role: 'person', person: 'ada', can_act: false });
});

test('a snapshot of another version is told as that', async () => {
  const data = join(folder, 'other');
  const console = await openConsoleHere(data);
  await placeTwoPeople(data, { asSnapshot: true });
  await withDuckDB(join(data, 'snapshot.duckdb'), connection => connection.run('DROP VIEW nights CASCADE'));
  const reader = await console.enter({ role: 'reader' });
  expect((await reader.ask('GET people')).body.error.message).toBe(
    `${join(data, 'snapshot.duckdb')} was made by another version of Ringneck: ringneck snapshot publishes a new one, and so does ringneck up`,
  );
});

test('the session of a person whose account is gone is over', async () => {
  const data = join(folder, 'gone');
  const console = await openConsoleHere(data);
  await placeTwoPeople(data, { asSnapshot: true });
  const cleo = await console.enter({ role: 'person', person: 'cleo' });
  expect((await cleo.ask('GET people')).body.error).toEqual({
    kind: 'session',
    message: 'The session is over.',
    help: 'A fresh link: ringneck console',
  });
});

test('erasing a person empties the tail of the log, which may name them', async () => {
  const data = join(folder, 'logged');
  await placeTwoPeople(data, { asSnapshot: false });
  // That of the program which erases.
  const log: typeof import('../../src/base/log.ts') = await import(join(inject('compiled'), 'src/base/log.js'));
  log.createLog({ level: 'info', pretty: false, stream: { write: () => undefined } }).warn({ account: 'ada' }, 'an account is parked');
  expect(log.recentLines().join()).toContain('"account":"ada"');
  const env = { RINGNECK_DATA: data, RINGNECK_LOG_LEVEL: 'silent' };
  expect((await runHere(['account', 'remove', 'ada', '--erase', '--yes'], { env })).code).toBe(0);
  expect(log.recentLines().join()).not.toContain('ada');
});

test('erasing a person ends all sessions, and the links that nobody has used', async () => {
  const data = join(folder, 'erased');
  const console = await openConsoleHere(data);
  await placeTwoPeople(data, { asSnapshot: false });
  const reader = await console.enter({ role: 'reader' });
  const unused = console.createLink({ role: 'person', person: 'ada' }).split('#')[1];
  const { code } = await runHere(['account', 'remove', 'ada', '--erase', '--yes'], {
    env: { RINGNECK_DATA: data, RINGNECK_LOG_LEVEL: 'silent' },
  });
  expect(code).toBe(0);
  expect((await console.send('POST', '/api/enter', { body: { code: unused } })).status).toBe(401);
  expect(existsSync(join(data, 'console-sessions.json'))).toBe(false);
  expect((await reader.ask('GET session')).status).toBe(401);
});

test('who looks at their own data does so by the new name of their account, and not at those of who gets the former one', async () => {
  const data = join(folder, 'moved');
  const console = await openConsoleHere(data);
  await placeTwoPeople(data, { asSnapshot: false });
  const reader = await console.enter({ role: 'reader' });
  const ada = await console.enter({ role: 'person', person: 'ada' });
  const unused = console.createLink({ role: 'person', person: 'ada' }).split('#')[1];
  const run = (...line: string[]) => runHere(line, { env: { RINGNECK_DATA: data, RINGNECK_LOG_LEVEL: 'silent' } });
  expect((await run('account', 'move', 'ada', 'anna')).code).toBe(0);
  expect((await run('account', 'move', 'bob-zz', 'ada')).code).toBe(0);
  expect(names((await ada.ask('GET people')).body)).toEqual(['anna']);
  expect((await ada.ask('GET session')).body).toMatchObject({ role: 'person', person: 'anna' });
  expect((await reader.ask('GET session')).body).toMatchObject({ role: 'reader', person: null });
  const entered = await console.send('POST', '/api/enter', { body: { code: unused } });
  const [cookie = ''] = (entered.headers.get('set-cookie') ?? '').split(';');
  expect((await console.send('GET', '/api/session', { headers: { cookie } })).body.person).toBe('anna');
});
