import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { serveControl } from '../../src/app/control/serve-control.ts';
import { DataFolder } from '../../src/app/data-folder.ts';
import { readSettings } from '../../src/base/config.ts';
import { silentLog } from '../../src/base/log.ts';
import { LIMITS } from '../../src/mcp/server.ts';
import { placeTwoPeople } from '../app/person-files/two-people.ts';
import { MAIN } from '../support/ringneck.ts';
import { runHere } from '../support/run-here.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { type Assistant, assistantOf, openAssistant } from './served.ts';

const folder = tempFolder();
const data = join(folder, 'data');
let everybody: Assistant;
let ada: Assistant;

beforeAll(async () => {
  mkdirSync(data, { mode: 0o700 });
  await placeTwoPeople(data, { asSnapshot: true });
  everybody = await openAssistant(data);
  ada = await openAssistant(data, { user: 'ada' });
});
afterAll(async () => {
  await everybody.close();
  await ada.close();
});

const namesOf = (all: readonly { name: string }[]) => all.map(({ name }) => name);
const TOOLS = ['list_people', 'list_tables', 'describe_table', 'query', 'night', 'coverage'];

test('an assistant finds tools that read alone, pages and questions', async () => {
  const { client } = everybody;
  const { tools } = await client.listTools();
  expect(namesOf(tools)).toEqual(TOOLS);
  expect(tools.filter(({ annotations }) => annotations?.readOnlyHint !== true)).toEqual([]);
  expect(namesOf((await client.listPrompts()).prompts)).toEqual(['last-night', 'trend', 'missing', 'group']);
  expect(client.getInstructions()).toContain('Missing is not zero.');
  const prompt = await client.getPrompt({ name: 'last-night', arguments: { user: 'ada' } });
  expect(JSON.stringify(prompt.messages)).toContain('How was the last night of \\"ada\\"?');

  expect((await client.listResources()).resources.map(({ uri }) => uri)).toEqual(['ringneck://data-dictionary', 'ringneck://cookbook']);
  const read = async (uri: string) => (await client.readResource({ uri })).contents.map(content => ('text' in content ? content.text : ''));
  expect(await read('ringneck://data-dictionary')).toEqual([readFileSync('docs/data-dictionary.md', 'utf8')]);
  expect(await read('ringneck://cookbook')).toEqual([readFileSync('docs/cookbook.md', 'utf8')]);
});

const AT = '"data_of":"20';

test('it is told who is there, what can be asked, and what a table holds', async () => {
  const people = JSON.parse(await everybody.call('list_people'));
  expect(people.columns.map((column: { name: string }) => column.name)).toEqual(
    'user_id state reason group_name nights first_night newest_night'.split(' '),
  );
  expect(people.rows).toEqual([
    ['ada', 'active', null, 'adas group', 1, '2025-01-15', '2025-01-15'],
    ['bob-zz', 'active', null, 'bob-zz adas group', 1, '2025-01-15', '2025-01-15'],
  ]);
  const tables: { name: string }[] = JSON.parse(await everybody.call('list_tables'));
  expect(tables[0]).toMatchObject({ name: 'daily', kind: 'view', group: 'views' });
  expect(namesOf(tables)).toContain('sync.coverage');
  const nights = JSON.parse(await everybody.call('describe_table', { name: 'NIGHTS' }));
  expect(nights.columns).toContainEqual(expect.objectContaining({ name: 'total_sleep_duration', unit: 's' }));
  expect(nights.example).toContain("'ada'");
  expect(await everybody.call('describe_table', { name: 'nihgts' })).toBe(
    'error: there is no table, view or macro "nihgts": did you mean nights? list_tables lists them all.',
  );
});

test('a night comes with its naps and with what is usual; where there is none, with what is known of the day', async () => {
  const night = JSON.parse(await everybody.call('night', { user: 'ada' }));
  expect(night.night).toMatchObject({ user_id: 'ada', day: '2025-01-15', total_sleep_duration: 25080 });
  expect(night.against_the_28_days_before).toContainEqual({
    metric: 'total_sleep_duration',
    unit: 's',
    value: 25080,
    median_28: null,
    mad_28: null,
    robust_z_28: null,
  });
  expect([night.naps, night.coverage]).toEqual([[], undefined]);
  expect(JSON.parse(await everybody.call('night', { user: 'ada', day: '2025-01-14' }))).toMatchObject({
    night: null,
    coverage: [{ state: 'not_asked', documents: 0 }],
    note: expect.stringContaining('There is no night of that day.'),
  });
  expect(JSON.parse(await everybody.call('night', { user: 'nobody' })).note).toMatch(/^No night of this person is stored\. list_people /);
  expect(await everybody.call('night', { user: 'ada', day: 'yesterday' })).toMatch(/^error: .*Invalid/);
});

test('coverage tells days in a row of which the same is known', async () => {
  const asked = { user: 'ada', collection: 'sleep', from: '2025-01-13', to: '2025-01-16' };
  expect(JSON.parse(await everybody.call('coverage', asked)).rows).toEqual([
    ['ada', 'sleep', '2025-01-13', '2025-01-14', 'not_asked', null],
    ['ada', 'sleep', '2025-01-15', '2025-01-15', 'stored', null],
    ['ada', 'sleep', '2025-01-16', '2025-01-16', 'not_asked', null],
  ]);
  const all = JSON.parse(await everybody.call('coverage'));
  expect(new Set(all.rows.map(([user]: string[]) => user))).toEqual(new Set(['ada', 'bob-zz']));
  expect(await everybody.call('coverage', { from: '2025-01-02', to: '2025-01-01' })).toBe(
    'error: from 2025-01-02 is after to 2025-01-01: exchange them',
  );
  // An assistant that hears of no row alone says that nothing is missing.
  for (const odd of [{ user: 'adda' }, { collection: 'sleeps' }, { collection: 'ring_configuration' }, { from: '2999-01-01' }]) {
    const { rows, note } = JSON.parse(await everybody.call('coverage', odd));
    expect([rows, note], JSON.stringify(odd)).toEqual([[], expect.stringMatching(/^No rows: this does not say that nothing is missing\./)]);
  }
  expect(all).not.toHaveProperty('note');
  const { rows: collections } = JSON.parse(await everybody.call('query', { sql: 'SELECT collection FROM sync.collections' }));
  expect(collections).toContainEqual(['sleep']);
});

test('a query is answered with its types, and says where it is cut', async () => {
  const sql = `SET VARIABLE x = 1; SELECT 1 AS n, 'a"b' AS t, NULL AS nothing, 'inf'::DOUBLE AS large, [1, 2] AS list, DATE '2025-01-31' AS day`;
  const whole = await everybody.call('query', { sql });
  expect(whole).toContain(AT);
  expect(JSON.parse(whole)).toMatchObject({
    columns: [
      { name: 'n', type: 'INTEGER' },
      { name: 't', type: 'VARCHAR' },
      { name: 'nothing', type: 'INTEGER' },
      { name: 'large', type: 'DOUBLE' },
      { name: 'list', type: 'INTEGER[]' },
      { name: 'day', type: 'DATE' },
    ],
    rows: [[1, 'a"b', null, expect.any(String), [1, 2], '2025-01-31']],
  });
  expect(JSON.parse(whole)).not.toHaveProperty('cut');
  const cutOf = async (asked: object) => {
    const { rows, cut } = JSON.parse(await everybody.call('query', { ...asked }));
    return [rows.length, cut];
  };
  const more = 'There are more rows than these: count or group them in SQL, or name fewer days or people. Given:';
  expect(await cutOf({ sql: 'SELECT * FROM range(200)' })).toEqual([200, undefined]);
  expect(await cutOf({ sql: 'SELECT * FROM range(1000000000000)' })).toEqual([200, `${more} 200.`]);
  expect(await cutOf({ sql: 'SELECT * FROM range(3000)', limit: 2_000 })).toEqual([2_000, `${more} 2000.`]);
  expect(await cutOf({ sql: `SELECT repeat('x', 30000) FROM range(3)` })).toEqual([2, `${more} 2.`]);
  expect((await cutOf({ sql: `SELECT repeat('x', 70000)` }))[1]).toMatch(/^The first row alone is larger than 64 kB:/);
});

test('what goes wrong is an answer that says what to do next', async () => {
  const ask = (sql: string) => everybody.call('query', { sql });
  expect(await ask('SELECT asleep FROM nights')).toMatch(
    /^error: Binder Error: .*\(line 1, at "asleep.*list_tables and describe_table show/,
  );
  expect(await ask('DELETE FROM sleep')).toMatch(/^error: Invalid Input Error: .*read-only/);
  expect(await ask(`SELECT * FROM read_csv('/etc/passwd')`)).toMatch(/^error: Permission Error: .*no file, no network, no setting\.$/);
  expect(await everybody.call('query', { sql: 'SELECT 1', limit: 5_000 })).toMatch(/^error: .*limit/);

  const quick = await openAssistant(data, { limits: { ...LIMITS, seconds: 1 } });
  onTestFinished(() => quick.close());
  expect(
    await quick.call('query', { sql: 'SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range * b.range % 7 = 3' }),
  ).toBe('error: the query was stopped after 1 s: name fewer days or people, or take a view that has it counted already');
  expect(await quick.call('query', { sql: 'SELECT 1 AS n' })).toContain('[1]');
});

test('an argument that a tool does not have is refused: what came without it would be taken for an answer to it', async () => {
  const odd: [Assistant, string, Record<string, string>][] = [
    [ada, 'night', { user: 'bob-zz' }],
    [ada, 'coverage', { user: 'bob-zz' }],
    [everybody, 'coverage', { user_id: 'ada' }],
    [everybody, 'night', { user: 'ada', date: '2025-01-14' }],
    [everybody, 'query', { sql: 'SELECT 1', user: 'ada' }],
    [everybody, 'describe_table', { name: 'nights', user: 'ada' }],
    [everybody, 'list_people', { user: 'ada' }],
    [everybody, 'list_tables', { group: 'views' }],
  ];
  for (const [assistant, tool, asked] of odd) {
    const name = Object.keys(asked).at(-1);
    expect(await assistant.call(tool, asked), tool).toMatch(new RegExp(`^error: .*Unrecognized key: .?"${name}`, 's'));
  }
});

test('a question that is cancelled is not waited for by the next', async () => {
  const patient = await openAssistant(data, { limits: { ...LIMITS, seconds: 86_400 } });
  onTestFinished(() => patient.close());
  const cancelling = new AbortController();
  const sql = 'SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range * b.range % 7 = 3';
  const cancelled = patient.client.callTool({ name: 'query', arguments: { sql } }, undefined, { signal: cancelling.signal });
  setImmediate(() => cancelling.abort());
  await expect(cancelled).rejects.toThrow();
  expect(await patient.call('query', { sql: 'SELECT 1 AS n' })).toContain('[1]');
});

test('who may see one person sees nobody else, by whatever is asked', async () => {
  const { client, call } = ada;
  expect(namesOf((await client.listTools()).tools)).toEqual(TOOLS);
  expect(namesOf((await client.listPrompts()).prompts)).toEqual(['last-night', 'trend', 'missing']);
  const tables: { name: string; kind: string }[] = JSON.parse(await call('list_tables'));
  const asked: [string, Record<string, unknown>][] = [
    ['list_people', {}],
    ['list_tables', {}],
    ['describe_table', { name: 'nights' }],
    ['describe_table', { name: 'participants' }],
    ['describe_table', { name: 'sync.windows' }],
    ['night', { user: 'bob-zz' }],
    ['night', { user: 'bob-zz', day: '2025-01-15' }],
    ['coverage', { user: 'bob-zz', from: '2025-01-14', to: '2025-01-15' }],
    ['coverage', {}],
    ['query', { sql: `SELECT * FROM sync.coverage_between('2025-01-14', '2025-01-15', accounts := ['bob-' || 'zz'])` }],
    ['query', { sql: `ATTACH '${data}/snapshot.duckdb' AS whole` }],
    ['query', { sql: `FROM '${data}/snapshot.duckdb'` }],
    ['query', { sql: `SELECT content FROM read_blob('${data}/snapshot.duckdb')` }],
  ];
  const relations = namesOf(tables.filter(({ kind }) => kind === 'table' || kind === 'view'));
  const counts = relations.map(
    name => `SELECT '${name}', count(*) > 0, count(*) FILTER (contains(to_json(t)::VARCHAR, 'bob-' || 'zz')) FROM ${name} t`,
  );
  const { rows }: { rows: [string, boolean, number][] } = JSON.parse(await call('query', { sql: counts.join(' UNION ALL ') }));
  expect(rows.filter(([, , others]) => others > 0)).toEqual([]);
  expect(rows.filter(([, hasAny]) => hasAny).length).toBeGreaterThan(40);
  const answers: string[] = [];
  for (const [tool, args] of asked) answers.push(await call(tool, args));
  expect(answers.filter(text => /bob-zz/.test(text.replaceAll('bob-zz"]', '')))).toEqual([]);
  expect(JSON.parse(answers[0]!).rows).toHaveLength(1);
  expect(JSON.parse(await call('night')).night.user_id).toBe('ada');
});

test('without a warehouse, and for a name that nobody has, each answer says what to do', async () => {
  const empty = join(folder, 'empty');
  mkdirSync(empty, { mode: 0o700 });
  const nobody = await openAssistant(empty);
  onTestFinished(() => nobody.close());
  const nothing = `error: there is no warehouse in ${empty}: to begin here, ringneck account add NAME; where yours is elsewhere, go to that folder, or set RINGNECK_DATA to it`;
  expect(await nobody.call('list_people')).toBe(nothing);
  expect(await nobody.call('list_tables')).toBe(nothing);
  const carl = await openAssistant(data, { user: 'carl' });
  onTestFinished(() => carl.close());
  expect(await carl.call('query', { sql: 'SELECT 1' })).toBe(
    'error: no account "carl" is known here: ringneck account list shows those there are',
  );
});

test('what a snapshot that was taken along says is of the moment at which it was made, not at which it was copied', async () => {
  const { call } = everybody;
  const { data_of, rows } = JSON.parse(
    await call('query', { sql: `SELECT strftime(taken_at, '%Y-%m-%dT%H:%M:%S.%gZ') FROM sync.snapshot` }),
  );
  expect([data_of]).toEqual(rows[0]);
});

test('while the folder has an owner its snapshot is asked, each that is published; before and after it the warehouse', async () => {
  const owned = join(folder, 'owned');
  mkdirSync(owned, { mode: 0o700 });
  await placeTwoPeople(owned);
  const [all, alone] = [await openAssistant(owned), await openAssistant(owned, { user: 'ada' })];
  const groups = async (): Promise<unknown> => {
    const ask = async ({ call }: Assistant) =>
      JSON.parse(await call('query', { sql: 'SELECT group_name FROM participants ORDER BY 1' })).rows;
    return [await ask(all), await ask(alone)];
  };
  expect(await groups()).toEqual([[['adas group'], ['bob-zz adas group']], [['adas group']]]);

  const settings = readSettings({ RINGNECK_DATA: owned, RINGNECK_SERVICE_URL: 'http://127.0.0.1:9' });
  const owner = await DataFolder.open({ settings, log: silentLog });
  const control = await serveControl({ folder: owned, commands: owner.commands, log: silentLog });
  const write = (name: string) =>
    owner.app.warehouse.record([{ table: 'participants', key: { user_id: 'ada' }, row: { group_name: name } }]);
  expect(await groups()).toEqual([[['adas group'], ['bob-zz adas group']], [['adas group']]]);
  await write('a second group');
  // On a slow machine who asks has the last one, until this.
  await owner.commands.snapshot({});
  expect(await groups()).toEqual([[['a second group'], ['bob-zz adas group']], [['a second group']]]);
  await write('a third group');
  await control.close();
  await owner.close();
  expect(await groups()).toEqual([[['a third group'], ['bob-zz adas group']], [['a third group']]]);
  await all.close();
  await alone.close();
});

test('who gets the name of one person is not shown to who asks about that person', async () => {
  const moved = join(folder, 'moved');
  mkdirSync(moved, { mode: 0o700 });
  await placeTwoPeople(moved);
  const env = { RINGNECK_DATA: moved, RINGNECK_SERVICE_URL: 'http://127.0.0.1:9' };
  const move = async (from: string, to: string) => expect(await runHere(['account', 'move', from, to], { env })).toMatchObject({ code: 0 });
  const [alone, bob] = [await openAssistant(moved, { user: 'ada' }), await openAssistant(moved, { user: 'bob-zz' })];
  const groupOf = async ({ call }: Assistant) => call('query', { sql: 'SELECT group_name FROM participants' });
  const bobs = expect.stringContaining('["bob-zz adas group"]');
  expect([await groupOf(alone), await groupOf(bob)]).toEqual([expect.stringContaining('["adas group"]'), bobs]);
  await move('ada', 'anna');
  expect([await groupOf(alone), await groupOf(bob)]).toEqual([expect.stringMatching(/^error: no account "ada" is known here/), bobs]);
  await move('bob-zz', 'ada');
  const refused =
    'error: ada may be another person than when this began, for an account was moved, removed, erased or restored since: nothing is told of them until ringneck mcp is started anew';
  expect([await groupOf(alone), await alone.call('describe_table', { name: 'nights' }), await alone.call('list_tables')]).toEqual([
    refused,
    refused,
    refused,
  ]);
  await alone.close();
  await bob.close();
  expect(readdirSync(join(moved, 'person-files')).filter(name => name.endsWith('.new'))).toEqual([]);
});

test('the command speaks the protocol alone on standard output, and ends when its client does', async () => {
  const { PATH } = process.env;
  const tmp = join(folder, 'tmp');
  mkdirSync(tmp);
  const env = { PATH: PATH ?? '', TMPDIR: tmp, HOME: tmp, RINGNECK_DATA: data, RINGNECK_LOG_LEVEL: 'info' };
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [MAIN, 'mcp', '--user', 'ada'],
    env,
    cwd: tmp,
    stderr: 'pipe',
  });
  let said = '';
  transport.stderr?.on('data', (text: Buffer) => {
    said += text;
  });
  const failures: unknown[] = [];
  const client = new Client({ name: 'test', version: '1' });
  client.onerror = error => failures.push(error);
  await client.connect(transport);
  const { pid } = transport;
  const { call } = assistantOf(client, () => client.close());
  expect(JSON.parse(await call('query', { sql: `SELECT comment FROM enhanced_tag` })).rows).toEqual([['adas wine']]);
  const file = join(data, 'snapshot.duckdb');
  for (const sql of [
    `ATTACH '${file}' AS whole`,
    `FROM read_csv('${file}')`,
    `FROM read_blob('${file}')`,
    `FROM '${file}'`,
    `FROM glob('${data}/**')`,
    `FROM read_text('${join(data, '*.json')}')`,
    `PRAGMA database_list; PRAGMA enable_external_access`,
    `SET enable_external_access = true`,
    `COPY sleep TO '${join(tmp, 'out.csv')}'`,
    `INSTALL httpfs; LOAD httpfs`,
  ]) {
    const answer = await call('query', { sql });
    expect(answer, sql).toMatch(/^error: /);
    expect(answer, sql).not.toContain('bob-zz');
  }
  const rest = await call('query', { sql: `FROM duckdb_databases(); SELECT DISTINCT user_id FROM sync.accounts; SELECT getenv('HOME')` });
  expect(rest).not.toContain('bob-zz');
  await client.close();
  expect(() => process.kill(pid!, 0)).toThrow('ESRCH');
  expect(failures).toEqual([]);
  expect(readdirSync(tmp)).toEqual([]);
  const lines = said
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as { msg: string; tool: string });
  expect(lines).toEqual(lines.map(() => expect.objectContaining({ msg: 'asked', tool: 'query' })));
  expect(said).not.toContain('wine');
  expect(said).not.toContain('enhanced_tag');
});
