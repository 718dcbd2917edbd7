import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { resources } from '../schema/index.ts';
import { fillPage, PAGE_PARTS } from '../src/app/catalogue/page-parts.ts';
import { settingsTable } from '../src/base/config.ts';
import { createProgram } from '../src/cli/program.ts';
import { mapResource } from '../src/warehouse/mapping.ts';
import { listCreated } from '../src/warehouse/schema/views.ts';
import { listTables } from '../src/warehouse/tables.ts';
import { tempFolder } from './support/temp-folder.ts';
import { newPath, openWarehouse } from './support/warehouse.ts';

const folder = tempFolder();

const page = (name: string) => readFileSync(new URL(`../${name}`, import.meta.url), 'utf8');
const choices = page('schema/CHOICES.md');
const readme = page('README.md');
const commands = page('docs/commands.md');
/** What is written by hand for users. */
const pages = readdirSync(new URL('../docs', import.meta.url)).filter(name => name.endsWith('.md'));
const manual = ['README.md', ...pages.map(name => `docs/${name}`)];
/** Most of its lines are for other programs. */
const EXAMPLES = 'examples/README.md';

test('the README has fewer than 1,200 words', () => {
  expect(readme.split(/\s+/).filter(Boolean).length).toBeLessThan(1200);
});

test('the README links every page of the manual', () => {
  expect([...manual.slice(1), EXAMPLES].filter(name => !readme.includes(`](${name})`))).toEqual([]);
});

test.each(Object.entries(PAGE_PARTS))('the generated parts of %s are as the declarations give them', async (name, parts) => {
  expect(await fillPage(page(name), parts)).toBe(page(name));
});

test('docs/commands.md lists every command, and no other', () => {
  const listed = [...commands.matchAll(/^\| `ringneck ([a-z-]+)` \|/gm)].map(match => match[1]);
  expect(listed).toEqual(
    createProgram()
      .commands.map(command => command.name())
      .filter(name => name !== 'help'),
  );
});

test.each(['account', 'participants', 'subscriptions', 'lake'])('docs/commands.md lists every subcommand of %s', name => {
  const row = commands.split('\n').find(line => line.startsWith(`| \`ringneck ${name}\` |`));
  const command = createProgram().commands.find(one => one.name() === name);
  const listed = [...row!.matchAll(/`([a-z-]+)`/g)].map(match => match[1]);
  expect(listed.filter(word => word !== 'up')).toEqual(command!.commands.map(one => one.name()));
});

test.each(manual)('%s uses only commands and options that there are', name => {
  const program = createProgram();
  const text = page(name).replaceAll(/npm run [^`\n]+|npx --package=\S+/g, '');
  const known = new Set(
    [program, ...program.commands].flatMap(command =>
      [command, ...command.commands].flatMap(one => one.options.map(option => option.long)),
    ),
  );
  const used = [...text.matchAll(/(?<=[ `])--[a-z][a-z-]+/g)].map(([option]) => option);
  expect(used.filter(option => !known.has(option) && option !== '--help')).toEqual([]);
  const names = program.commands.map(command => command.name());
  const called = [...text.matchAll(/(?:`|npx )ringneck ([a-z]+)/g)].map(([, command]) => command!);
  expect(called.filter(command => !names.includes(command))).toEqual([]);
});

test.each([...manual, EXAMPLES])('%s names only settings that there are', name => {
  const known = settingsTable().match(/RINGNECK_[A-Z_]+/g)!;
  expect(
    [...page(name).matchAll(/RINGNECK_[A-Z_]*[A-Z]/g)].map(([setting]) => setting).filter(setting => !known.includes(setting)),
  ).toEqual([]);
});

test('docs/warehouse.md names every table, view and macro', () => {
  const warehouse = page('docs/warehouse.md');
  const missing = [...listTables(resources.map(mapResource)), ...listCreated()]
    .map(({ name }) => name)
    .filter(name => !name.startsWith('sync.') && !warehouse.includes(`\`${name}\``) && !warehouse.includes(`\`${name}(`));
  expect(missing).toEqual([]);
});

// The cookbook and the data dictionary have tests of their own, with data.
test.each(['README.md', 'docs/commands.md', 'docs/enrolling.md', 'docs/warehouse.md', 'docs/near-real-time.md', 'docs/troubleshooting.md'])(
  'every statement in %s runs',
  async name => {
    const statements = [...page(name).matchAll(/["`](SELECT [^"`]+)["`]|```sql\n([^`]+)```|sql\("""([^"]+)"""\)/g)].map(
      ([, line, block, python]) => line ?? block ?? python!,
    );
    expect(statements.length).toBeGreaterThan(0);
    const warehouse = await openWarehouse(newPath(folder));
    for (const statement of statements) await warehouse.read(statement);
    await warehouse.close();
  },
);

test('ARCHITECTURE.md names every room, and files that exist', () => {
  const map = page('ARCHITECTURE.md');
  const src = readdirSync(new URL('../src', import.meta.url)).map(name => `src/${name}`);
  const table = map.slice(map.indexOf('| room |'), map.indexOf('## The way of a page'));
  const rooms = [...table.matchAll(/`((?:src\/)?[a-z-]+)`/g)].map(([, room]) => room!);
  expect(rooms.filter(room => !room.startsWith('src/'))).toEqual(['schema', 'jobs']);
  expect(rooms.filter(room => room.startsWith('src/')).sort()).toEqual(src.sort());
  const named = [...map.matchAll(/`([a-zA-Z/-]+(?:\.[a-zA-Z]+|\/))`/g)].map(([, path]) => path!).filter(path => path.includes('/'));
  expect(named.length).toBeGreaterThan(15);
  expect(named.filter(path => !existsSync(new URL(`../${path}`, import.meta.url)))).toEqual([]);
});

test('docs/figures.md shows the figures of a run', () => {
  expect(
    page('docs/figures.md')
      .split('\n')
      .filter(line => /^\| .+ \| .*× .*\| (yes|\*\*no\*\*) \|$/.test(line)).length,
  ).toBeGreaterThanOrEqual(5);
});

test('every test that CHOICES.md names exists', () => {
  const folder = new URL('.', import.meta.url);
  const sources = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.test.ts'))
    .map(name => readFileSync(new URL(name, folder), 'utf8'))
    .join('\n');
  const rows = choices.split('\n').filter(line => line.startsWith('| ') && !line.startsWith('| point'));
  const named = rows.map(row => /\| "([^|]+)" \|$/.exec(row)?.[1]);
  expect(rows.length).toBeGreaterThan(25);
  expect(named.filter(name => name === undefined)).toEqual([]);
  // Whole names: a part of one may be that of another test.
  expect(named.filter(name => !["'", '`', '"'].some(quote => sources.includes(`${quote}${name}${quote}`)))).toEqual([]);
});

test('the services that the manual starts have a folder each: one folder holds the people of one', () => {
  const started = manual.flatMap(name => page(name).match(/^.*npx ringneck service .*$/gm) ?? []);
  expect(started.map(line => line.split(' ')[0])).toEqual(['npx', 'RINGNECK_DATA=./live']);
});
