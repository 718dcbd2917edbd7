import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { Warehouse } from '../../src/warehouse/warehouse.ts';
import { placeTwoPeople } from '../app/person-files/two-people.ts';
import { openAssistant } from '../mcp/served.ts';
import { openConsoleHere } from '../support/console-harness.ts';
import { runHere } from '../support/run-here.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { withDuckDB } from '../support/warehouse.ts';

const folder = tempFolder();
const names = (body: { people: { id: string }[] }) => body.people.map(({ id }) => id);

test('a person sees nobody else, a reader everybody', async () => {
  const data = join(folder, 'two');
  const console = await openConsoleHere(data);
  await placeTwoPeople(data, { asSnapshot: 'beside' });
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
  await placeTwoPeople(data, { asSnapshot: 'beside' });
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
  expect(readdirSync(join(data, 'console-sessions'))).toEqual([]);
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

test('who had a name sees nothing of who gets it once the account was removed, in the console and by an assistant', async () => {
  const data = join(folder, 'given-again');
  const console = await openConsoleHere(data);
  const run = (input: string, ...line: string[]) => runHere(line, { env: { RINGNECK_DATA: data, RINGNECK_LOG_LEVEL: 'silent' }, input });
  // Without a service: nobody says whose a token is.
  await run('token-of-ada', 'account', 'add', 'ada');
  await run('token-of-ben', 'account', 'add', 'p01');
  const [ada, ben] = [await console.enter({ role: 'person', person: 'ada' }), await console.enter({ role: 'person', person: 'p01' })];
  const unused = console.createLink({ role: 'person', person: 'p01' }).split('#')[1];
  const assistant = await openAssistant(data, { user: 'p01' });
  expect([names((await ben.ask('GET people')).body), await assistant.call('list_people')]).toEqual([
    ['p01'],
    expect.stringContaining('["p01"'),
  ]);
  await run('', 'account', 'remove', 'p01');
  await run('token-of-cleo', 'account', 'add', 'p01');
  expect([await ben.ask('GET people'), await console.send('POST', '/api/enter', { body: { code: unused } })]).toMatchObject([
    { status: 401 },
    { status: 401 },
  ]);
  expect(await assistant.call('list_people')).toContain('error: p01 may be another person than when this began');
  expect(names((await ada.ask('GET people')).body)).toEqual(['ada']);
  await assistant.close();
});

test('a move that was killed is finished before the session of its person is judged', async () => {
  const data = join(folder, 'move-killed');
  const console = await openConsoleHere(data);
  await placeTwoPeople(data);
  const ada = await console.enter({ role: 'person', person: 'ada' });
  writeFileSync(join(data, 'moving.json'), JSON.stringify({ format: 1, from: 'ada', to: 'anna' }));
  await Warehouse.rename({ path: join(data, 'warehouse.duckdb') }, { from: 'ada', to: 'anna' }, () => undefined);
  expect(await ada.ask('GET people')).toMatchObject({
    status: 503,
    body: { error: { message: expect.stringContaining(`an account is being moved in ${data}; try again in a moment`) } },
  });
  expect((await runHere(['account', 'list'], { env: { RINGNECK_DATA: data, RINGNECK_LOG_LEVEL: 'silent' } })).code).toBe(0);
  expect((await ada.ask('GET session')).body).toMatchObject({ role: 'person', person: 'anna' });
});

test('where a snapshot was taken along nobody is shown one person, whose name may be another one’s by now', async () => {
  const data = join(folder, 'taken-along');
  const console = await openConsoleHere(data);
  await placeTwoPeople(data, { asSnapshot: 'beside' });
  const [ada, reader] = [await console.enter({ role: 'person', person: 'ada' }), await console.enter({ role: 'reader' })];
  renameSync(join(data, 'warehouse.duckdb'), join(folder, 'elsewhere.duckdb'));
  const why = `one person is shown only where the warehouse lies, for elsewhere a name may have become another person's, and ${data} has none: set RINGNECK_DATA to its folder`;
  expect(await ada.ask('GET people')).toMatchObject({ status: 400, body: { error: { message: why } } });
  expect(() => console.createLink({ role: 'person', person: 'ada' })).toThrow(why);
  expect(names((await reader.ask('GET people')).body)).toEqual(['ada', 'bob-zz']);
});

test('a session that cannot be changed opens nothing by a former name, and neither a move nor an erasing waits for it', async () => {
  const data = join(folder, 'held');
  const console = await openConsoleHere(data);
  await placeTwoPeople(data);
  const ada = await console.enter({ role: 'person', person: 'ada' });
  const hold = () => mkdirSync(join(data, 'console-sessions', `${'A'.repeat(43)}.session`), { recursive: true, mode: 0o700 });
  const run = (...line: string[]) => runHere(line, { env: { RINGNECK_DATA: data, RINGNECK_LOG_LEVEL: 'silent' } });
  hold();
  expect((await run('account', 'move', 'ada', 'anna')).code).toBe(0);
  expect((await ada.ask('GET session')).status).toBe(401);
  hold();
  expect((await run('account', 'remove', 'bob-zz', '--erase', '--yes')).code).toBe(0);
  expect((await run('account', 'list', '--json')).stdout).toContain('"anna"');
  expect(readdirSync(data).filter(name => /^(console-sessions|moving|erasing)/.test(name))).toEqual([]);
});

/** The files of a folder that processes of the console are for. */
const answeredFrom = (data: string) =>
  readdirSync('/proc')
    .filter(pid => /^\d+$/.test(pid))
    .flatMap(pid => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
      } catch {
        // It has ended.
        return [];
      }
    })
    .filter(path => path.startsWith(`${data}/`));

test.runIf(process.platform === 'linux')('of a person who looks no more no process is left, and who comes again is answered', async () => {
  const data = join(folder, 'idle');
  let now = Date.UTC(2025, 0, 2, 12);
  const console = await openConsoleHere(data, { now: () => now });
  await placeTwoPeople(data, { asSnapshot: 'beside' });
  const ada = await console.enter({ role: 'person', person: 'ada' });
  const bob = await console.enter({ role: 'person', person: 'bob-zz' });
  const reader = await console.enter({ role: 'reader' });
  for (const visitor of [ada, bob, reader]) await visitor.ask('GET people');
  expect(answeredFrom(join(data, 'person-files'))).toHaveLength(2);
  now += 300_000;
  await expect.poll(() => answeredFrom(data), { timeout: 10_000 }).toEqual([join(data, 'snapshot.duckdb')]);
  expect(names((await ada.ask('GET people')).body)).toEqual(['ada']);
});
