import { beforeAll, expect, test } from 'vitest';
import { resources } from '../../../schema/index.ts';
import { writeDataDictionary } from '../../../src/app/catalogue/data-dictionary.ts';
import { mapResource } from '../../../src/warehouse/mapping.ts';
import { listJoins } from '../../../src/warehouse/readers/joins.ts';
import { listCreated } from '../../../src/warehouse/schema/views.ts';
import { listTables } from '../../../src/warehouse/tables.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { newPath, openWarehouse } from '../../support/warehouse.ts';

const folder = tempFolder();
let page: string;
beforeAll(async () => {
  page = await writeDataDictionary();
});

test('the data dictionary has every table, view and macro, and every column with its type', () => {
  const tables = listTables(resources.map(mapResource));
  const sections = new Map(page.split(/^### `/m).map(section => [section.slice(0, section.indexOf('`')), section] as const));
  expect([...tables, ...listCreated()].map(({ name }) => name).filter(name => !sections.has(name))).toEqual([]);
  const missing = tables.flatMap(({ name, columns }) =>
    columns
      .filter(column => !sections.get(name)!.includes(`\n| \`${column.name}\` | ${column.type} | `))
      .map(column => `${name}.${column.name}`),
  );
  expect(missing).toEqual([]);
  expect(page).toContain('| `time_in_bed` | BIGINT | s | Time in bed |');
  expect(page).toContain('Specification: 2.12.');
});

test('every column and every name in the data dictionary is explained', () => {
  expect(page.split('\n').filter(line => /^\| `[^|]+\|[^|]+\|[^|]*\| *\|$/.test(line))).toEqual([]);
  expect(page).not.toMatch(/^### `[^\n]+\n\n\n/m);
});

test('every link in the data dictionary leads somewhere', () => {
  const headings = [...page.matchAll(/^#+ (.+)$/gm)].map(([, heading]) => heading!.toLowerCase().replace(/[`.]/g, '').replaceAll(' ', '-'));
  const links = [...page.matchAll(/\]\(#([^)]+)\)/g)].map(([, to]) => to!);
  expect(links.length).toBeGreaterThan(35);
  expect(links.filter(to => !headings.includes(to))).toEqual([]);
  expect(new Set(headings).size).toBe(headings.length);
});

test('every statement in the data dictionary runs', async () => {
  const statements = [...page.matchAll(/^```sql\n(.*?);\n```$/gms)].map(([, sql]) => sql!);
  expect(statements.length).toBeGreaterThan(30);
  const warehouse = await openWarehouse(newPath(folder));
  for (const statement of statements) await warehouse.read(`SELECT to_json(t)::VARCHAR FROM (${statement}) t`);
  await warehouse.close();
});

test('every join in the data dictionary runs', async () => {
  const joins = [...page.matchAll(/^\| `((?!anything)\S+)` \| `(JOIN \S+ (?:ON|USING) [^`]+)` \|/gm)].map(
    ([, from, join]) => `${from} ${join}`,
  );
  expect(joins.length).toBe(listJoins(resources).length);
  const warehouse = await openWarehouse(newPath(folder));
  for (const join of joins) expect(await warehouse.read(`SELECT count(*) FROM ${join}`)).toEqual([[0]]);
  await warehouse.close();
});

test('the data dictionary is the same each time', async () => {
  expect(await writeDataDictionary()).toBe(page);
});
