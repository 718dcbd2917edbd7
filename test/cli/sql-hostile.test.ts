import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type HostileHarness, openHostileHarness, someOfEach } from '../support/hostile-harness.ts';
import { ringneck } from '../support/ringneck.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { openWarehouse, store } from '../support/warehouse.ts';
import { someOf } from '../support/whole.ts';
import { STRESS } from '../support/wire.ts';

let harness: HostileHarness;
beforeAll(async () => {
  harness = await openHostileHarness(tempFolder());
});
afterAll(() => harness.close());

/** The writer's log comes and goes. */
const isNoLog = (name: string) => name !== 'warehouse.duckdb.wal';

test('hostile statements of every kind end, write no file, read none but the warehouse, and reach no network', {
  timeout: 240_000,
}, async () => {
  const statements = someOfEach(harness.corpus);
  expect(statements.length).toBeGreaterThanOrEqual(15);
  await harness.withstand(statements);
});

test('while a writer works, hostile statements over its snapshot leave writer and snapshot alone', async () => {
  const { corpus, data, file, runAll } = harness;
  const warehouse = await openWarehouse(file);
  const snapshot = join(data, 'snapshot.duckdb');
  await warehouse.snapshot(snapshot, 0o600);
  const targets = corpus.filter(({ sql }) => /USE_TMP_FILE|wal'|enable_logging|heckpoint|ORDER BY hash|RECURSIVE/.test(sql));
  expect(targets.length).toBeGreaterThanOrEqual(10);
  const statements = someOf(targets, { more: 4 }).map(hostile => ({ ...hostile, sql: hostile.sql.replaceAll(file, snapshot) }));
  const content = createHash('sha256').update(readFileSync(snapshot)).digest('hex');
  const names = readdirSync(data).filter(isNoLog);

  let going = true;
  let stored = 0;
  const writing = (async () => {
    while (going) {
      stored++;
      await store(warehouse, 'daily_stress', [{ ...STRESS, id: `w-${stored}`, day: '2025-02-01' }]);
    }
  })();
  const outcomes = await runAll(snapshot, statements);
  going = false;
  await writing;

  expect(outcomes).toHaveLength(statements.length);
  expect(createHash('sha256').update(readFileSync(snapshot)).digest('hex')).toBe(content);
  expect(readdirSync(data).filter(isNoLog)).toEqual(names);
  expect(stored).toBeGreaterThan(20);
  expect(await warehouse.read(`SELECT count(*) FROM daily_stress WHERE id LIKE 'w-%'`)).toEqual([[stored]]);
  await warehouse.close();
});

test('through the command itself they end as quietly', async () => {
  const { file, list, surroundings, tmp } = harness;
  const before = list();
  const sample = [
    [`COPY (SELECT 'x') TO '${file}' (FORMAT csv, USE_TMP_FILE false)`, /^ringneck: Permission Error: .*\n$/],
    [`CALL enable_logging(storage := 'file', storage_path := '${tmp}/log'); SELECT 1`, /^ringneck: Invalid Configuration Error: .*\n$/],
    [`SELECT error(chr(27) || '[31m' || chr(155))`, /^ringneck: Invalid Input Error: \\u001b\[31m\\u009b\n$/],
    [`SELECT length(repeat('x', 4000000000))`, /^ringneck: the query was stopped: it took far more than 100MB of memory\n$/],
    ['SELECT DISTINCT hash(range) FROM range(2000000000)', /^ringneck: Out of Memory Error: .*--memory.*\n$/],
    [
      'SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range * b.range % 7 = 3',
      /^ringneck: the query was stopped after 2 s: .*\n$/,
    ],
  ] as const;
  for (const [sql, line] of someOf(sample, { more: 3 })) {
    const { code, stdout, stderr } = await ringneck(
      ['sql', sql, '--memory', '100MB', '--timeout', sql.includes('count') ? '2' : '60'],
      surroundings,
    );
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(line);
  }
  const profiled = await ringneck(
    ['sql', `PRAGMA enable_profiling; CALL enable_logging(storage := 'stdout'); SELECT 1 AS one`],
    surroundings,
  );
  expect(profiled).toEqual({ code: 0, stdout: 'one\n───\n  1\n', stderr: '' });
  expect(list()).toEqual(before);
});
