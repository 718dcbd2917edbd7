import { readdirSync } from 'node:fs';
import { Writable } from 'node:stream';
import { beforeAll, expect, test } from 'vitest';
import type { Format } from '../../../src/app/query/formats.ts';
import { oneLine } from '../../../src/app/query/one-line.ts';
import { writeResult } from '../../../src/app/query/write-result.ts';
import { openQueries, type Queries } from '../../../src/warehouse/readers/query.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { newPath, openWarehouse } from '../../support/warehouse.ts';

const folder = tempFolder();
let reader: Queries;
let files: string[];
beforeAll(async () => {
  const path = newPath(folder);
  await (await openWarehouse(path)).close();
  reader = await openQueries(path);
  files = readdirSync(folder);
  return () => reader.close();
});

async function written(sql: string, format: Format): Promise<string> {
  let text = '';
  const out = new Writable({
    write(chunk, _, done) {
      text += chunk;
      setImmediate(done);
    },
    // Smaller than any result: each write has to wait.
    highWaterMark: 1,
  });
  await writeResult(await reader.query(sql), format, out);
  return text;
}

const TWO = `SELECT 'a,"b' AS x, NULL AS y, 1.5::DOUBLE AS z, 9007199254740993 AS big, DATE '2025-01-31' AS day, ['p', NULL] AS list
             UNION ALL SELECT '', 'ü', -0.25, 3, NULL, [] ORDER BY big DESC`;

test('json is an array of objects; whole numbers beyond 2^53 are strings', async () => {
  expect(await written(TWO, 'json')).toBe(
    '[{"x":"a,\\"b","y":null,"z":1.5,"big":"9007199254740993","day":"2025-01-31","list":["p",null]},\n' +
      '{"x":"","y":"ü","z":-0.25,"big":3,"day":null,"list":[]}]\n',
  );
});

test('ndjson is an object on each line', async () => {
  expect(await written(TWO, 'ndjson')).toBe(
    '{"x":"a,\\"b","y":null,"z":1.5,"big":"9007199254740993","day":"2025-01-31","list":["p",null]}\n' +
      '{"x":"","y":"ü","z":-0.25,"big":3,"day":null,"list":[]}\n',
  );
});

test('csv is quoted where it must be; nothing is NULL, "" is an empty text', async () => {
  expect(await written(TWO, 'csv')).toBe(
    'x,y,z,big,day,list\n' + '"a,""b",,1.5,9007199254740993,2025-01-31,"[p, NULL]"\n' + '"",ü,-0.25,3,,[]\n',
  );
  expect(await written(`SELECT 'a\nb' AS "x,y", 'c\rd' AS z`, 'csv')).toBe('"x,y",z\n"a\nb","c\rd"\n');
});

test('a table sets numbers to the right, and counts wide characters as two', async () => {
  expect(await written(TWO, 'table')).toBe(
    [
      'x     y      z               big  day         list',
      '────  ─  ─────  ────────────────  ──────────  ─────────',
      'a,"b       1.5  9007199254740993  2025-01-31  [p, NULL]',
      '      ü  -0.25                 3              []',
      '',
    ].join('\n'),
  );
  expect(await written(`SELECT '睡眠' AS s, 1 AS n UNION ALL SELECT 'ab', 22 ORDER BY n`, 'table')).toBe(
    ['s      n', '────  ──', '睡眠   1', 'ab    22', ''].join('\n'),
  );
});

test('what could move the cursor of a terminal is written out in a table, and one row stays one line', async () => {
  expect(await written(`SELECT 'a' || chr(27) || '[2J' || chr(10) || 'b' AS x`, 'table')).toBe(
    ['x', '─────────────', 'a\\u001b[2J\\nb', ''].join('\n'),
  );
});

test.each<[Format, string]>([
  ['table', 'a  b\n─  ─\n'],
  ['json', '[]\n'],
  ['csv', 'a,b\n'],
  ['ndjson', ''],
])('an empty result as %s', async (format, expected) => {
  expect(await written(`SELECT 1 AS a, 'x' AS b WHERE false`, format)).toBe(expected);
});

test('of several statements the last one’s result is written', async () => {
  expect(await written('CREATE TEMP TABLE t AS SELECT 1 AS a; INSERT INTO t VALUES (2); SELECT sum(a) AS s FROM t;', 'csv')).toBe('s\n3\n');
});

test('a result of many chunks is whole in every format', async () => {
  const many = 'SELECT i FROM range(25000) t(i)';
  const csv = await written(many, 'csv');
  expect(csv.split('\n')).toHaveLength(25_002);
  expect(csv.endsWith('\n24999\n')).toBe(true);
  expect(JSON.parse(await written(many, 'json'))).toHaveLength(25_000);
  const table = (await written(many, 'table')).split('\n');
  expect([table.length, table[2], table.at(-2)]).toEqual([25_003, '    0', '24999']);
});

test.each([
  ['DELETE FROM daily_stress', 'read-only'],
  ['UPDATE daily_stress SET day_summary = NULL', 'read-only'],
  ['DROP TABLE daily_stress', 'read-only'],
  ['CREATE TABLE mine (a INTEGER)', 'read-only'],
  [`SELECT * FROM read_csv('/etc/passwd')`, 'disabled by configuration'],
  [`SELECT * FROM read_text('/etc/hostname')`, 'disabled by configuration'],
  [`SELECT * FROM '/etc/passwd'`, 'does not exist'],
  [`COPY daily_stress TO '${folder}/stolen.csv'`, 'disabled by configuration'],
  [`EXPORT DATABASE '${folder}/stolen'`, 'disabled by configuration'],
  [`ATTACH '${folder}/other.duckdb' AS other`, 'disabled by configuration'],
  ['INSTALL httpfs', 'disabled by configuration'],
  ['LOAD httpfs', 'disabled through configuration'],
  [`SET memory_limit = '100GB'`, 'locked'],
  ['SET enable_external_access = true', 'locked'],
  ['SET lock_configuration = false', 'locked'],
])('%s is refused', async (query, words) => {
  await expect(written(query, 'csv')).rejects.toThrow(words);
  expect(readdirSync(folder)).toEqual(files);
  expect(await written('SELECT count(*) AS n FROM daily_stress', 'csv')).toBe('n\n0\n');
});

test('an error of several lines is one, with its place', () => {
  expect(
    oneLine(
      'Catalog Error: Table with name slep does not exist!\nDid you mean "sleep"?\nLINE 1: SELECT * FROM slep\n                      ^',
    ),
  ).toBe('Catalog Error: Table with name slep does not exist! Did you mean "sleep"? (line 1, at "slep")');
  expect(oneLine('Parser Error: syntax error at or near "x"\nLINE 12: x y\n         ^')).toBe(
    'Parser Error: syntax error at or near "x" (line 12, at "x y")',
  );
  expect(oneLine('Parser Error: syntax error at end of input')).toBe('Parser Error: syntax error at end of input');
  expect(oneLine('one\ntwo')).toBe('one two');
});
