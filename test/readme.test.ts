import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { resources } from '../schema/index.ts';
import { settingsTable } from '../src/base/config.ts';
import { createProgram } from '../src/cli/program.ts';
import { mapResource } from '../src/warehouse/mapping.ts';
import { listTables } from '../src/warehouse/tables.ts';
import { listCreated } from '../src/warehouse/views.ts';
import { tempFolder } from './support/temp-folder.ts';
import { newPath, openWarehouse } from './support/warehouse.ts';

const folder = tempFolder();

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
const choices = readFileSync(new URL('../schema/CHOICES.md', import.meta.url), 'utf8');

test('the README lists the settings as they are', () => {
  expect(readme).toContain(settingsTable().trim());
});

test('the README lists every command, and no other', () => {
  const listed = [...readme.matchAll(/^\| `ringneck ([a-z-]+)` \|/gm)].map(match => match[1]);
  expect(listed).toEqual(
    createProgram()
      .commands.map(command => command.name())
      .filter(name => name !== 'help'),
  );
});

test.each(['account', 'subscriptions'])('the README lists every subcommand of %s', name => {
  const row = readme.split('\n').find(line => line.startsWith(`| \`ringneck ${name}\` |`));
  const command = createProgram().commands.find(one => one.name() === name);
  const listed = [...row!.matchAll(/`([a-z-]+)`/g)].map(match => match[1]);
  expect(listed.filter(word => word !== 'up')).toEqual(command!.commands.map(one => one.name()));
});

test('the README names every option that it uses as the command has it', () => {
  const known = new Set(
    createProgram().commands.flatMap(command => [command, ...command.commands].flatMap(one => one.options.map(option => option.long))),
  );
  const used = [...readme.replaceAll(/npm run [^`]+/g, '').matchAll(/(?<=[ `])--[a-z][a-z-]+/g)].map(([option]) => option);
  expect(used.length).toBeGreaterThan(5);
  expect(used.filter(option => !known.has(option) && option !== '--help')).toEqual([]);
});

test('the README names every table, view and macro', () => {
  const missing = [...listTables(resources.map(mapResource)), ...listCreated()]
    .map(({ name }) => name)
    .filter(name => !name.startsWith('sync.') && !readme.includes(`\`${name}\``) && !readme.includes(`\`${name}(`));
  expect(missing).toEqual([]);
});

test('every statement in the README runs', async () => {
  const statements = [...readme.matchAll(/["`](SELECT [^"`]+)["`]|```sql\n([^`]+)```|sql\("""([^"]+)"""\)/g)].map(
    ([, line, block, python]) => line ?? block ?? python!,
  );
  expect(statements.length).toBeGreaterThanOrEqual(4);
  const warehouse = await openWarehouse(newPath(folder));
  for (const statement of statements) await warehouse.read(statement);
  await warehouse.close();
});

test('ARCHITECTURE.md names every room, and files that exist', () => {
  const page = readFileSync(new URL('../ARCHITECTURE.md', import.meta.url), 'utf8');
  const src = readdirSync(new URL('../src', import.meta.url)).map(name => `src/${name}`);
  const table = page.slice(page.indexOf('| room |'), page.indexOf('## The way of a page'));
  const rooms = [...table.matchAll(/`((?:src\/)?[a-z]+)`/g)].map(([, room]) => room!);
  expect(rooms.filter(room => !room.startsWith('src/'))).toEqual(['schema', 'jobs']);
  expect(rooms.filter(room => room.startsWith('src/')).sort()).toEqual(src.sort());
  const named = [...page.matchAll(/`([a-zA-Z/-]+(?:\.[a-zA-Z]+|\/))`/g)].map(([, path]) => path!).filter(path => path.includes('/'));
  expect(named.length).toBeGreaterThan(15);
  expect(named.filter(path => !existsSync(new URL(`../${path}`, import.meta.url)))).toEqual([]);
});

test('the README shows the figures of a run', () => {
  expect(readme.split('\n').filter(line => /^\| .+ \| .*× .*\| (yes|\*\*no\*\*) \|$/.test(line)).length).toBeGreaterThanOrEqual(5);
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

test('the services that the README starts have a folder each: one folder holds the people of one', () => {
  const started = readme.match(/^.*npx ringneck service .*$/gm)!;
  expect(started.map(line => line.split(' ')[0])).toEqual(['npx', 'RINGNECK_DATA=./live']);
});
