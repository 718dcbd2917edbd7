import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { RingneckError } from '../../src/base/errors.ts';
import type { Queries } from '../../src/warehouse/readers/query.ts';
import { openQueries } from '../../src/warehouse/readers/query.ts';
import { childScript, startChild } from '../support/child.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse, store } from '../support/warehouse.ts';
import { ACTIVITY, STRESS } from '../support/wire.ts';

const folder = tempFolder();
const path = newPath(folder);
let reader: Queries;

beforeAll(async () => {
  const warehouse = await openWarehouse(path);
  await store(warehouse, 'daily_stress', [STRESS]);
  await store(warehouse, 'daily_activity', [ACTIVITY]);
  await warehouse.close();
  reader = await openQueries(path);
});
afterAll(() => reader.close());

async function texts(sql: string): Promise<{ head: string[]; rows: (string | null)[][] }> {
  const { columns, chunks } = await reader.query(sql);
  const rows: (string | null)[][] = [];
  for await (const chunk of chunks) for (const row of chunk) rows.push(row.map((value, i) => columns[i]!.text(value)));
  return { head: columns.map(({ name, type }) => `${name} ${type}`), rows };
}

test('a query gives its columns with their types, and its rows', async () => {
  const { columns, chunks } = await reader.query('SELECT id, day, day_summary, 1.5 AS x, extra FROM daily_stress');
  expect(columns.map(({ name, type, numeric }) => ({ name, type, numeric }))).toEqual([
    { name: 'id', type: 'VARCHAR', numeric: false },
    { name: 'day', type: 'DATE', numeric: false },
    { name: 'day_summary', type: 'VARCHAR', numeric: false },
    { name: 'x', type: 'DECIMAL(2,1)', numeric: true },
    { name: 'extra', type: 'JSON', numeric: false },
  ]);
  const rows = [];
  for await (const chunk of chunks) rows.push(...chunk.map(row => row.map((value, i) => columns[i]!.json(value))));
  expect(rows).toEqual([['"t-1"', '"2025-01-15"', '"normal"', '"1.5"', 'null']]);
});

test('a large result comes chunk by chunk, and need not be read to its end', async () => {
  const { chunks } = await reader.query('SELECT i, repeat(i::VARCHAR, 20) FROM range(5000000) t(i)');
  const first = await chunks.next();
  expect((first.value as unknown[]).length).toBeLessThanOrEqual(2048);
  expect((first.value as unknown[][])[0]).toEqual([0n, '00000000000000000000']);
  await chunks.return(undefined);
  expect(await texts('SELECT 1 AS one')).toEqual({ head: ['one INTEGER'], rows: [['1']] });
});

test('an empty result has columns, and no rows', async () => {
  expect(await texts('SELECT id FROM sleep')).toEqual({ head: ['id VARCHAR'], rows: [] });
});

test('of several statements the last one’s result is given, all are run', async () => {
  expect(await texts(`CREATE TEMP TABLE t AS SELECT 41 AS n; SELECT 1; -- a remark\n SELECT n + 1 AS m FROM t; ;`)).toEqual({
    head: ['m INTEGER'],
    rows: [['42']],
  });
});

test('a statement without a result has no columns, and is done', async () => {
  expect(await texts('CREATE TEMP TABLE u AS SELECT 7 AS n')).toEqual({ head: [], rows: [] });
  expect(await texts('INSERT INTO u VALUES (8)')).toEqual({ head: [], rows: [] });
  expect(await texts('SELECT n FROM u ORDER BY n')).toEqual({ head: ['n INTEGER'], rows: [['7'], ['8']] });
});

test.each(['', '   ', '-- only a remark', ';', '/* nothing */ ;;'])('"%s" is no statement', async sql => {
  await expect(reader.query(sql)).rejects.toThrow('there is no SQL statement to run');
});

test.each([
  ['a wrong word', 'SELEC 1', /^Parser Error: syntax error at or near "SELEC"\nLINE 1: SELEC 1\n {8}\^$/],
  [
    'a wrong column',
    'SELECT\n  foo FROM sleep',
    /^Binder Error: Referenced column "foo" not found in FROM clause!\n(.*\n)*LINE 2: {3}foo FROM sleep\n {10}\^$/,
  ],
  ['a wrong second statement', 'SELECT 1; SELECT * FROM nowhere', /^Catalog Error: Table with name nowhere does not exist!\n/],
  ['a NUL', 'SELECT 1 \0 FROM sleep', /^the SQL holds a NUL character$/],
  ['a parameter', 'SELECT $1', /^Invalid Input Error: Values were not provided for the following prepared statement parameters: 1$/],
])('%s is told in the words of DuckDB, with the place', async (_, sql, message) => {
  const failure = reader.query(sql);
  await expect(failure).rejects.toBeInstanceOf(RingneckError);
  await expect(failure).rejects.toThrow(message);
});

test('a query that fails while it runs fails as an error of ours', async () => {
  await expect(texts(`SELECT if(i = 900000, error('boom'), 1) FROM range(1000000) t(i)`)).rejects.toThrow(/^Invalid Input Error: boom$/);
  expect((await texts('SELECT 1 AS one')).rows).toEqual([['1']]);
});

test('an error after many rows is not taken for the end of the result', async () => {
  const { chunks } = await reader.query(`SELECT if(i = 900000, error('boom'), 1) FROM range(1000000) t(i)`);
  let rows = 0;
  const read = async () => {
    for await (const chunk of chunks) rows += chunk.length;
  };
  await expect(read()).rejects.toThrow(/^Invalid Input Error: boom$/);
  expect(rows).toBeGreaterThan(2048);
  await expect(texts(`SELECT 1; SELECT CASE WHEN i < 900000 THEN '1' ELSE 'x' END::INT FROM range(1000000) t(i)`)).rejects.toThrow(
    /^Conversion Error: Could not convert string 'x' to INT32/,
  );
  expect((await texts('SELECT 1 AS one')).rows).toEqual([['1']]);
});

test('the rows that are left are counted without being read, as far as time allows', async () => {
  const counted = await reader.query('SELECT i FROM range(30000) t(i)');
  const first = (await counted.chunks.next()).value as unknown[];
  expect(await counted.countRest(60_000)).toEqual({ rows: 30_000 - first.length, ended: true });
  await counted.chunks.return(undefined);

  const endless = await reader.query('SELECT i FROM range(100000000000) t(i)');
  await endless.chunks.next();
  expect(await endless.countRest(0)).toEqual({ rows: 2048, ended: false });
  await endless.chunks.return(undefined);

  const broken = await reader.query(`SELECT if(i = 900000, error('boom'), 1) FROM range(1000000) t(i)`);
  await broken.chunks.next();
  await expect(broken.countRest(60_000)).rejects.toThrow(/^Invalid Input Error: boom$/);
  await broken.chunks.return(undefined);
  expect((await texts('SELECT 1 AS one')).rows).toEqual([['1']]);
});

test('the result of each statement is given in turn, up to the one that fails', async () => {
  const found: unknown[] = [];
  const readAll = async () => {
    for await (const { columns, chunks } of reader.results(
      `SELECT 1 AS a; CREATE TEMP TABLE v AS SELECT 5 AS n; SELECT n FROM v; SELECT x`,
    )) {
      const rows = [];
      for await (const chunk of chunks) rows.push(...chunk);
      found.push([columns.map(({ name }) => name), rows]);
    }
  };
  await expect(readAll()).rejects.toThrow(/^Binder Error: Referenced column "x"/);
  expect(found).toEqual([
    [['a'], [[1]]],
    [[], []],
    [['n'], [[5]]],
  ]);
});

test('statements of every kind work: PIVOT, DESCRIBE, EXPLAIN, PREPARE, transactions', async () => {
  expect((await texts(`PIVOT (SELECT 'a' AS k, 1 AS v UNION ALL SELECT 'b', 2) ON k USING sum(v)`)).rows).toEqual([['1', '2']]);
  expect((await texts('DESCRIBE daily_stress')).rows).toHaveLength(10);
  expect((await texts('EXPLAIN SELECT 1')).rows).toHaveLength(1);
  expect((await texts('PREPARE p AS SELECT $1 + 1 AS x; EXECUTE p(41)')).rows).toEqual([['42']]);
  expect((await texts('BEGIN; SELECT 1 AS one')).rows).toEqual([['1']]);
  expect((await texts('COMMIT')).rows).toEqual([]);
  expect((await texts('SELECT 1 AS one')).rows).toEqual([['1']]);
});

test.each([
  ['writes', `INSERT INTO daily_stress (id) VALUES ('x')`, /read-only/],
  ['makes tables', 'CREATE TABLE x (i INTEGER)', /read-only/],
  ['reads files', `SELECT * FROM read_text('/etc/passwd')`, /disabled by configuration/],
  ['reads files by their name', `SELECT * FROM '/etc/passwd.csv'`, /disabled by configuration|does not exist/],
  ['writes files', `COPY daily_stress TO '/tmp/out.csv'`, /disabled by configuration/],
  ['attaches another file', `ATTACH '/tmp/other.duckdb'`, /disabled by configuration/],
  ['loads an extension', 'INSTALL httpfs', /disabled by configuration/],
  ['sets what is locked', "SET memory_limit = '100GB'", /locked/],
  ['switches external access on', 'SET enable_external_access = true', /locked|Cannot/],
])('SQL that %s is refused', async (_, sql, message) => {
  await expect(texts(sql)).rejects.toThrow(message);
});

test('no statement can write to the opened file by its name, nor to its log', async () => {
  const before = createHash('sha256').update(readFileSync(path)).digest('hex');
  for (const target of [path, `${path}.wal`, `${path}.wal.checkpoint`, `${path}.wal.recovery`]) {
    await expect(texts(`COPY (SELECT 'x') TO '${target}' (FORMAT csv, USE_TMP_FILE false)`)).rejects.toThrow(/has been disabled/);
  }
  await expect(texts(`CALL enable_logging(storage := 'file', storage_path := '${path}.wal')`)).rejects.toThrow(/LocalFileSystem disabled/);
  expect(readdirSync(dirname(path)).sort()).toEqual(['warehouse.duckdb', 'warehouse.duckdb.handover']);
  expect(createHash('sha256').update(readFileSync(path)).digest('hex')).toBe(before);
  expect((await texts('SELECT id FROM daily_stress')).rows).toEqual([['t-1']]);
});

test('a query that needs more memory than it may have fails, and writes nothing', async () => {
  const small = await openQueries(path, { memoryLimit: '64MB' });
  const read = async () => {
    const { chunks } = await small.query(
      'SELECT max(x) FROM (SELECT DISTINCT hash(i)::VARCHAR || repeat(chr(97), 20) AS x FROM range(3000000) t(i))',
    );
    for await (const _ of chunks);
  };
  await expect(read()).rejects.toThrow(/^Out of Memory Error: /);
  small.close();
  small.close();
  expect(readdirSync(dirname(path)).sort()).toEqual(['warehouse.duckdb', 'warehouse.duckdb.handover']);
});

test('a file that is not there, or no database, is told in one line', async () => {
  const missing = join(folder, 'missing.duckdb');
  await expect(openQueries(missing)).rejects.toThrow(`there is no file ${missing} yet: run a backfill first`);
  const nonsense = join(folder, 'nonsense.duckdb');
  writeFileSync(nonsense, 'nonsense'.repeat(10_000));
  await expect(openQueries(nonsense)).rejects.toThrow(new RegExp(`^cannot open ${nonsense}: [^\\n]+$`));
});

test('several readers share a file, and another’s short hold is waited out', async () => {
  const shared = newPath(folder);
  await (await openWarehouse(shared)).close();
  const child = startChild(childScript, 'hold', shared, '300');
  expect(await child.line()).toBe('ready');
  const other = await openQueries(shared, { patienceMs: 0 });
  other.close();
  expect(await child.ended).toBe(0);
  const app = startChild(childScript, 'own', shared);
  expect(await app.line()).toBe('ready');
  const waiting = openQueries(shared);
  app.process.stdin!.end();
  (await waiting).close();
});

test('what a process that was killed had committed can be read, though it never closed the file', async () => {
  const killed = newPath(folder);
  const warehouse = await openWarehouse(killed);
  await warehouse.close();
  const app = startChild(childScript, 'own', killed);
  expect(await app.line()).toBe('ready');
  app.process.kill('SIGKILL');
  await app.ended;
  const late = await openQueries(killed);
  const { chunks } = await late.query('SELECT count(*) FROM sleep');
  expect((await chunks.next()).value).toEqual([[0n]]);
  late.close();
});
