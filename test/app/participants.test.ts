import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { accountEntry } from '../../src/ledger/accounts.ts';
import { openHarness } from '../support/harness.ts';
import { runHere } from '../support/run-here.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { openWarehouse, rows, rowsOf, withDuckDB } from '../support/warehouse.ts';

const folder = tempFolder();
let folders = 0;

/** A data folder that is yet to be made, and what a study does in it. */
function study() {
  const data = join(folder, `d${++folders}`);
  const env = { RINGNECK_DATA: data };
  const path = (name: string) => join(folder, `${folders}-${name}`);
  return {
    path,
    run: (...args: string[]) => runHere(args, { env }),
    import: (content: string | Uint8Array, ...options: string[]) => {
      writeFileSync(path('people.csv'), content);
      return runHere(['participants', 'import', path('people.csv'), ...options], { env });
    },
    rows: (sql: string) => withDuckDB(join(data, 'warehouse.duckdb'), connection => rowsOf(connection, sql)),
    env,
  };
}

const PEOPLE = `name,Group,enrolled_from,Enrolled until,birth year,max_heart_rate,site,bmi,consented,code
ada,training,2025-01-06,2025-03-30,1984,182,Graz,22.5,true,007
ben,control,2025-01-06,,1990,,"Linz, east",,false,12e3
`;

const ADA = {
  ...{
    user_id: 'ada',
    group_name: 'training',
    enrolled_from: '2025-01-06',
    enrolled_until: '2025-03-30',
    birth_year: 1984,
    max_heart_rate: 182,
  },
  extra: { bmi: 22.5, code: '007', consented: true, site: 'Graz' },
};
const BEN = {
  ...{ user_id: 'ben', group_name: 'control', enrolled_from: '2025-01-06', enrolled_until: null, birth_year: 1990, max_heart_rate: null },
  extra: { code: '12e3', consented: false, site: 'Linz, east' },
};

test('what a study knows of its participants is a table, before anybody has an account', async () => {
  const { import: importPeople, rows } = study();
  expect(await importPeople(PEOPLE)).toEqual({
    code: 0,
    stdout: '2 participants: 2 added, 0 changed, 0 unchanged\n',
    stderr: 'no account yet: ada, ben\nin extra of participants: site, bmi, consented, code\n',
  });
  expect(await rows('FROM participants ORDER BY user_id')).toEqual([ADA, BEN]);
  expect(await rows(`SELECT user_id, extra->>'site' AS site, (extra->>'bmi')::DOUBLE AS bmi FROM participants ORDER BY ALL`)).toEqual([
    { user_id: 'ada', site: 'Graz', bmi: 22.5 },
    { user_id: 'ben', site: 'Linz, east', bmi: null },
  ]);
});

test('a second import of the same changes nothing; a column that a file lacks stays, an empty field empties', async () => {
  const { import: importPeople, rows } = study();
  await importPeople(PEOPLE);
  expect((await importPeople(PEOPLE)).stdout).toBe('2 participants: 0 added, 0 changed, 2 unchanged\n');
  const { stdout } = await importPeople('name;max_heart_rate;site\nben;190;\nada;182;Graz\nzoe;;Wien\n', '--json');
  expect(JSON.parse(stdout)).toEqual({
    ...{ added: ['zoe'], changed: ['ben'], unchanged: ['ada'], without_account: ['ben', 'ada', 'zoe'], bad: [] },
    extra: ['site'],
  });
  const nothing = { group_name: null, enrolled_from: null, enrolled_until: null, birth_year: null, max_heart_rate: null };
  expect(await rows('FROM participants ORDER BY user_id')).toEqual([
    ADA,
    { ...BEN, max_heart_rate: 190, extra: { code: '12e3', consented: false } },
    { user_id: 'zoe', ...nothing, extra: { site: 'Wien' } },
  ]);
});

test('of many who have no account yet some are named; a header alone is nobody', async () => {
  const { import: importPeople } = study();
  const names = Array.from({ length: 1_202 }, (_, i) => `p${i + 1000}`);
  const { code, stdout, stderr } = await importPeople(`name,group_name\n${names.map(name => `${name},a\n`).join('')}`);
  expect([code, stdout]).toEqual([0, '1,202 participants: 1,202 added, 0 changed, 0 unchanged\n']);
  expect(stderr).toBe(`no account yet: ${names.slice(0, 20).join(', ')} and 1,182 more\n`);
  expect(await importPeople('name,group_name\n')).toEqual({
    code: 0,
    stdout: '0 participants: 0 added, 0 changed, 0 unchanged\n',
    stderr: '',
  });
});

test('a wrong line is named with its column, its value and what is wanted, and nothing of the file is stored', async () => {
  const { import: importPeople, rows, path } = study();
  await importPeople('name,group_name\nada,a\n');
  const wrong = [
    'name,enrolled_from,enrolled_until,birth_year,max_heart_rate,note',
    'ada,2025-02-30,,85,300,fine',
    'b n,,,,,"two',
    'lines"',
    'cleo,2025-03-01,2025-02-28,1985,180,fine',
    'cleo,,,,,',
    'dora,1',
  ];
  const file = path('people.csv');
  expect(await importPeople(`${wrong.join('\n')}\n`)).toEqual({
    code: 1,
    stdout: '',
    stderr: `${[
      `${file}, line 2, enrolled_from "2025-02-30": wanted a day, YYYY-MM-DD`,
      `${file}, line 2, birth_year "85": wanted a whole number from 1900 to ${new Date().getUTCFullYear()}`,
      `${file}, line 2, max_heart_rate "300": wanted a whole number from 60 to 250`,
      `${file}, line 3, name "b n": wanted the name of an account: 1 to 64 letters, digits, ".", "_" or "-"`,
      `${file}, line 3, note "two\\nlines": wanted a text of at most 1000 characters, without line breaks`,
      `${file}, line 6, name "cleo": wanted another one than that of line 5`,
      `${file}, line 7, fields "2": wanted 6, as the first line has`,
      `ringneck: ${file}: nothing was done: put right what is named above, and try again`,
    ].join('\n')}\n`,
  });
  // What a line says may not fit what is stored.
  await importPeople('name,enrolled_from\nada,2025-03-01\n');
  const { code, stderr } = await importPeople('name,enrolled_until\nben,2025-01-01\nada,2025-02-01\n');
  expect([code, stderr.split('\n')[0]]).toEqual([
    1,
    `${file}, line 3, enrolled_until "2025-02-01": wanted a day not before enrolled_from, 2025-03-01`,
  ]);
  expect(await rows('SELECT user_id, group_name, enrolled_from, enrolled_until FROM participants')).toEqual([
    { user_id: 'ada', group_name: 'a', enrolled_from: '2025-03-01', enrolled_until: null },
  ]);
});

test.each<[string | Uint8Array, string]>([
  ['', ' is empty: its first line names the columns, name,group_name …'],
  ['nam,group\nada,a\n', ', line 1: there is no column "name", only "nam", "group_name"'],
  [
    'name,access_token\n',
    ', line 1: tokens and passwords are no facts of participants: take the column "access_token" out, or use ringneck account add --file',
  ],
  ['name,site,site\n', ', line 1: the column "site" is there twice'],
  ['name,caf\u00e9,cafe\u0301\n', ', line 1: the column "caf\u00e9" is there twice'],
  ['name,group_name,group\n', ', line 1: the column "group_name" is there twice'],
  ['name,,site\n', ', line 1: column 2 has no name'],
  [
    `name,site\n${'ada,a\n'.repeat(10_001)}`,
    ' has 10001 lines below the first: at most 10000 are taken at a time. Make several files of it, each with its first line',
  ],
  ['name,a;b\n', ', line 1: "a;b" cannot name a column: 1 to 64 letters, digits, blanks and _ . ( ) % / + -'],
  ['user_id,extra\n', ', line 1: no column can be called "extra": write each of its values as a column of its own'],
  [
    'name,token\nada,secret\n',
    ', line 1: tokens and passwords are no facts of participants: take the column "token" out, or use ringneck account add --file',
  ],
  ['name,site\nada,"Graz\n', ', line 2: a field begins with a quote that nothing ends'],
  [new Uint8Array([0x6e, 0xe4]), ' is not UTF-8 text: save it as CSV in UTF-8'],
])('a file that says of nobody who they are is wrong usage: %s', async (content, message) => {
  const { import: importPeople, path, env } = study();
  expect(await importPeople(content)).toEqual({ code: 2, stdout: '', stderr: `ringneck: ${path('people.csv')}${message}\n` });
  expect(existsSync(env.RINGNECK_DATA)).toBe(false);
});

test('what is exported is imported to the same, and replaces no file', async () => {
  const [first, second] = [study(), study()];
  await first.import(PEOPLE);
  const exported = [
    'name,group_name,enrolled_from,enrolled_until,birth_year,max_heart_rate,bmi,code,consented,site',
    'ada,training,2025-01-06,2025-03-30,1984,182,22.5,007,true,Graz',
    'ben,control,2025-01-06,,1990,,,12e3,false,"Linz, east"',
  ];
  const text = `${exported.join('\n')}\n`;
  expect(await first.run('participants', 'export')).toEqual({ code: 0, stdout: text, stderr: '' });
  const file = first.path('exported.csv');
  expect(await first.run('participants', 'export', file)).toEqual({ code: 0, stdout: `${file}: 2 participants\n`, stderr: '' });
  expect([readFileSync(file, 'utf8'), statSync(file).mode & 0o777]).toEqual([text, 0o600]);
  expect(await first.run('participants', 'export', file)).toMatchObject({
    ...{ code: 2, stderr: `ringneck: ${file} is there already: name a new file, or remove that one\n` },
  });
  await second.run('participants', 'import', file);
  expect(await second.rows('FROM participants ORDER BY user_id')).toEqual([ADA, BEN]);
});

test('who lacks a column that others have has nothing in it, whatever it is called', async () => {
  const { import: importPeople, run } = study();
  await importPeople('name,toString,constructor\nada,1,2\n');
  await importPeople('name,group_name\nben,a\n');
  expect((await run('participants', 'export')).stdout).toBe(
    'name,group_name,enrolled_from,enrolled_until,birth_year,max_heart_rate,constructor,toString\nada,,,,,,2,1\nben,a,,,,,,\n',
  );
});

test('who is taken out of the list is named; who is not in it is an error, and all stay', async () => {
  const { import: importPeople, run } = study();
  await importPeople(PEOPLE);
  expect(await run('participants', 'remove', 'ada', 'zoe')).toMatchObject({
    ...{ code: 2, stderr: 'ringneck: no participant "zoe": ringneck participants export lists all\n' },
  });
  expect(await run('participants', 'remove', 'ada')).toMatchObject({ code: 0, stdout: 'ada removed\n' });
  expect((await run('participants', 'export')).stdout).toMatch(/^name,.*\nben,.*\n$/);
});

test('participants are in snapshots, which follow each change, and known to who describes, exports and erases', async () => {
  const harness = await openHarness(join(folder, 'whole'), 'http://127.0.0.1:9');
  const { app, commands } = harness;
  const person = { facts: {}, extra: {} };
  const since = app.warehouse.clock.next();
  await app.warehouse.record([accountEntry({ userId: 'ada', serviceUserId: null, state: 'active', reason: null, since })]);
  const path = join(folder, 'whole', 'snapshot.duckdb');
  const inSnapshot = () =>
    withDuckDB(path, connection => rowsOf(connection, 'SELECT user_id, birth_year FROM participants ORDER BY user_id LIMIT 2'));
  // A refreshed copy is one of which little has changed.
  const names = ['ada', 'ben', ...Array.from({ length: 18 }, (_, i) => `zoe-${i + 10}`)];
  const people = names.map((name, i) => ({ ...person, line: i + 2, name, facts: { birth_year: 1984 + i } }));
  expect(await commands.importParticipants({ people })).toMatchObject({ added: names, without_account: names.slice(1) });
  await app.warehouse.snapshot(path, 0o600);
  const commits = app.warehouse.commits;
  await commands.importParticipants({ people: [{ ...person, line: 2, name: 'ben', facts: { birth_year: 1999 } }] });
  expect(app.warehouse.commits).toBeGreaterThan(commits);
  await app.warehouse.refreshSnapshot(path, 0o600);
  expect(await inSnapshot()).toEqual([
    { user_id: 'ada', birth_year: 1984 },
    { user_id: 'ben', birth_year: 1999 },
  ]);
  await harness.close();
  const env = { RINGNECK_DATA: join(folder, 'whole') };
  expect((await runHere(['describe', 'participants.birth_year'], { env })).stdout).toContain('Year of birth');
  const out = join(folder, 'exported');
  expect((await runHere(['export', '--format', 'ndjson', '--table', 'participants', '--user', 'ben', '--out', out], { env })).code).toBe(0);
  expect(JSON.parse(readFileSync(join(out, 'participants', 'participants.ndjson'), 'utf8'))).toMatchObject({
    user_id: 'ben',
    birth_year: 1999,
  });
  expect((await runHere(['account', 'remove', 'ada', '--erase', '--yes'], { env })).stderr).not.toMatch(/found/);
  const warehouse = await openWarehouse(join(folder, 'whole', 'warehouse.duckdb'));
  expect(await rows(warehouse, 'SELECT min(user_id) AS first, count(*) AS n FROM participants')).toEqual([{ first: 'ben', n: 19 }]);
  await warehouse.close();
});
