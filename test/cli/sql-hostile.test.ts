import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { messageOf } from '../../src/errors.ts';
import { type Hostile, hostileSql } from '../support/hostile-sql.ts';
import { hashTables } from '../support/table-hash.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { openWarehouse, store, withDuckDB } from '../support/warehouse.ts';
import { ACTIVITY, STRESS } from '../support/wire.ts';
import { ringneck } from './ringneck.ts';

const CANARY = 'canary-7f3a91';
const SIDE_BY_SIDE = 4;
const MEMORY = { text: '200MB', bytes: 200e6 };
const SECONDS = { refused: 60, harmless: 60, bounded: 1 };

const folder = tempFolder();
const [data, home, tmp] = ['data', 'home', 'tmp'].map(name => join(folder, name)) as [string, string, string];
const file = join(data, 'warehouse.duckdb');
const surroundings = { cwd: home, env: { RINGNECK_DATA: data, RINGNECK_SECRET_KEY: `${CANARY} ${CANARY}`, HOME: home, TMPDIR: tmp } };

let asked = 0;
const web = createServer((_, response) => {
  asked++;
  response.end(`a\n${CANARY}\n`);
});
let corpus: Hostile[];

beforeAll(async () => {
  for (const path of [home, tmp, join(data, 'queue'), join(data, 'service')]) mkdirSync(path, { recursive: true });
  for (const name of ['accounts.secret', 'secret.key', 'other.db', 'queue/1', 'service/state.json'])
    writeFileSync(join(data, name), CANARY);
  for (const name of ['notes.csv', 'notes.parquet', 'evil.duckdb_extension']) writeFileSync(join(home, name), `a\n${CANARY}\n`);
  writeFileSync(join(home, '.duckdbrc'), `SELECT '${CANARY}';`);
  const warehouse = await openWarehouse(file);
  await store(warehouse, 'daily_stress', [STRESS]);
  await store(warehouse, 'daily_activity', [ACTIVITY]);
  await warehouse.close();
  await new Promise<void>(done => web.listen(0, '127.0.0.1', done));
  corpus = hostileSql({ data, home, tmp, port: (web.address() as AddressInfo).port });
  // Where the processes of queries get their folders.
  process.env.TMPDIR = tmp;
});
afterAll(() => {
  web.close();
});

/** Everything below a folder; of a file its size, its moment and what is in it. */
function list(path: string): Record<string, string> {
  return Object.fromEntries(
    readdirSync(path, { recursive: true, withFileTypes: true })
      .map(entry => join(entry.parentPath, entry.name))
      .sort()
      .map(name => {
        const about = statSync(name);
        if (!about.isFile()) return [name, 'no file'];
        return [name, `${about.size} ${about.mtimeMs} ${createHash('sha256').update(readFileSync(name)).digest('hex')}`];
      }),
  );
}

const hashes = () => withDuckDB(file, async connection => hashTables(async sql => (await connection.runAndReadAll(sql)).getRows()));

/** The writer's log comes and goes. */
const isNoLog = (name: string) => name !== 'warehouse.duckdb.wal';

interface Outcome extends Hostile {
  /** What it ended with: an error's message, or nothing. */
  error: string | undefined;
  /** The first of what it gave. */
  output: string;
}

/** Runs a statement as the command does, in a process of its own. */
async function run(path: string, hostile: Hostile): Promise<Outcome> {
  // The compiled one: its processes are started from beside it.
  const { startReader } = (await import(join(inject('compiled'), 'src/cli/sql/ask.js'))) as typeof import('../../src/cli/sql/ask.ts');
  let output = '';
  const reader = startReader({ memory: MEMORY, seconds: SECONDS[hostile.fate] });
  try {
    await reader.ask(
      { path, sql: hostile.sql, as: { format: 'table' } },
      async frame => {
        if (frame.kind === 'text' && output.length < 1e6) output += Buffer.from(frame.text).toString();
      },
      new AbortController().signal,
    );
    return { ...hostile, error: undefined, output };
  } catch (error) {
    // Of the compiled program's own class.
    expect(error).toHaveProperty('exitCode');
    return { ...hostile, error: messageOf(error), output };
  }
}

async function runAll(path: string, statements: readonly Hostile[]): Promise<Outcome[]> {
  const waiting = [...statements];
  const outcomes: Outcome[] = [];
  const work = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) outcomes.push(await run(path, next));
  };
  await Promise.all(Array.from({ length: SIDE_BY_SIDE }, work));
  return outcomes;
}

test('a hundred hostile statements end, write no file, read none but the warehouse, and reach no network', {
  timeout: 240_000,
}, async () => {
  expect(corpus.length).toBeGreaterThanOrEqual(60);
  const tables = await hashes();
  const before = list(folder);

  const outcomes = await runAll(file, corpus);

  expect(list(folder)).toEqual(before);
  expect(outcomes).toHaveLength(corpus.length);
  expect(outcomes.filter(({ fate, error }) => fate === 'refused' && error === undefined)).toEqual([]);
  const said = outcomes.map(({ output, error = '' }) => `${output}\n${error}`).join('\n');
  expect(said).not.toContain(CANARY);
  expect(said).not.toMatch(/root:x?:0:0/);
  expect(asked).toBe(0);
  expect(outcomes.filter(({ fate, error = '' }) => fate !== 'bounded' && /own process|stopped/.test(error))).toEqual([]);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  const RAW = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/;
  expect(outcomes.filter(({ output }) => RAW.test(output)).map(({ sql }) => sql)).toEqual([]);

  expect(await hashes()).toEqual(tables);
  const warehouse = await openWarehouse(file);
  await store(warehouse, 'daily_stress', [{ ...STRESS, id: 't-2', day: '2025-01-16' }]);
  expect(await warehouse.read('SELECT id FROM daily_stress ORDER BY id')).toEqual([['t-1'], ['t-2']]);
  await warehouse.close();
});

test('while a writer works, hostile statements over its snapshot leave writer and snapshot alone', { timeout: 120_000 }, async () => {
  const warehouse = await openWarehouse(file);
  const snapshot = join(data, 'snapshot.duckdb');
  await warehouse.snapshot(snapshot, 0o600);
  const targets = hostileSql({ data, home, tmp, port: (web.address() as AddressInfo).port }).filter(({ sql }) =>
    /USE_TMP_FILE|wal'|enable_logging|heckpoint|ORDER BY hash|RECURSIVE/.test(sql),
  );
  const statements = targets.map(hostile => ({ ...hostile, sql: hostile.sql.replaceAll(file, snapshot) }));
  expect(statements.length).toBeGreaterThanOrEqual(10);
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

test('through the command itself they end as quietly', { timeout: 120_000 }, async () => {
  const before = list(folder);
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
  for (const [sql, line] of sample) {
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
  expect(list(folder)).toEqual(before);
});
