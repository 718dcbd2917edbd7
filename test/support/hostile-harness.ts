import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, inject } from 'vitest';
import { messageOf } from '../../src/base/errors.ts';
import { type Hostile, hostileSql } from './hostile-sql.ts';
import { hashTables } from './table-hash.ts';
import { openWarehouse, store, withDuckDB } from './warehouse.ts';
import { someOf } from './whole.ts';
import { ACTIVITY, STRESS } from './wire.ts';

/** In every file and answer that a statement must not reach. */
const CANARY = 'canary-7f3a91';
const SIDE_BY_SIDE = 4;
export const MEMORY = { text: '200MB', bytes: 200e6 };
export const SECONDS = { refused: 60, harmless: 60, bounded: 1 };

export interface Outcome extends Hostile {
  /** What it ended with: an error's message, or nothing. */
  error: string | undefined;
  /** The first of what it gave. */
  output: string;
}

/** A data folder, a home and a web server that hostile statements would like to reach. */
export interface HostileHarness {
  data: string;
  tmp: string;
  /** The warehouse. */
  file: string;
  /** Of a command in another process. */
  surroundings: { cwd: string; env: Record<string, string> };
  corpus: Hostile[];
  /** Everything below its folder; of a file its size, its moment and what is in it. */
  list(): Record<string, string>;
  /** Runs statements as the command does, each in a process of its own. */
  runAll(path: string, statements: readonly Hostile[]): Promise<Outcome[]>;
  /** Runs statements over the warehouse, and sees that none did what it must not. */
  withstand(statements: readonly Hostile[]): Promise<void>;
  close(): void;
}

/** Runs one statement over a file, in a process of its own. */
export type RunHostile = (path: string, hostile: Hostile) => Promise<Outcome>;

/** @param run as the command does it, unless told otherwise */
export async function openHostileHarness(folder: string, run: RunHostile = runAsCommand): Promise<HostileHarness> {
  const [data, home, tmp] = ['data', 'home', 'tmp'].map(name => join(folder, name)) as [string, string, string];
  const file = join(data, 'warehouse.duckdb');
  for (const path of [home, tmp, join(data, 'queue'), join(data, 'service')]) mkdirSync(path, { recursive: true, mode: 0o700 });
  for (const name of ['accounts.secret', 'secret.key', 'other.db', 'queue/1', 'service/state.json'])
    writeFileSync(join(data, name), CANARY, { mode: 0o600 });
  for (const name of ['notes.csv', 'notes.parquet', 'evil.duckdb_extension']) writeFileSync(join(home, name), `a\n${CANARY}\n`);
  writeFileSync(join(home, '.duckdbrc'), `SELECT '${CANARY}';`);
  const warehouse = await openWarehouse(file);
  await store(warehouse, 'daily_stress', [STRESS]);
  await store(warehouse, 'daily_activity', [ACTIVITY]);
  await warehouse.close();
  let asked = 0;
  const web = createServer((_, response) => {
    asked++;
    response.end(`a\n${CANARY}\n`);
  });
  await new Promise<void>(done => web.listen(0, '127.0.0.1', done));
  const corpus = hostileSql({ data, home, tmp, port: (web.address() as AddressInfo).port });
  const outerTmp = process.env.TMPDIR;
  // Where the processes of queries get their folders.
  process.env.TMPDIR = tmp;

  const list = () =>
    Object.fromEntries(
      readdirSync(folder, { recursive: true, withFileTypes: true })
        .map(entry => join(entry.parentPath, entry.name))
        .sort()
        .map(name => {
          const about = statSync(name);
          if (!about.isFile()) return [name, 'no file'];
          return [name, `${about.size} ${about.mtimeMs} ${createHash('sha256').update(readFileSync(name)).digest('hex')}`];
        }),
    );
  const hashes = () => withDuckDB(file, async connection => hashTables(async sql => (await connection.runAndReadAll(sql)).getRows()));

  async function withstand(statements: readonly Hostile[]): Promise<void> {
    const tables = await hashes();
    const before = list();

    const outcomes = await runAll(run, file, statements);

    expect(list()).toEqual(before);
    expect(outcomes).toHaveLength(statements.length);
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
  }

  return {
    data,
    tmp,
    file,
    surroundings: { cwd: home, env: { RINGNECK_DATA: data, RINGNECK_SECRET_KEY: `${CANARY} ${CANARY}`, HOME: home, TMPDIR: tmp } },
    corpus,
    list,
    runAll: (path, statements) => runAll(run, path, statements),
    withstand,
    close() {
      web.close();
      if (outerTmp === undefined) delete process.env.TMPDIR;
      else process.env.TMPDIR = outerTmp;
    },
  };
}

/** One of twenty of what tries the same, by the seed: mostly one of each kind. */
export function someOfEach(statements: readonly Hostile[]): Hostile[] {
  const kinds = [...new Set(statements.map(({ tries }) => tries))];
  return kinds.flatMap(kind => {
    const all = statements.filter(({ tries }) => tries === kind);
    return someOf(all, { more: Math.ceil(all.length / 20) });
  });
}

async function runAll(run: RunHostile, path: string, statements: readonly Hostile[]): Promise<Outcome[]> {
  const waiting = [...statements];
  const outcomes: Outcome[] = [];
  const work = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) outcomes.push(await run(path, next));
  };
  await Promise.all(Array.from({ length: SIDE_BY_SIDE }, work));
  return outcomes;
}

async function runAsCommand(path: string, hostile: Hostile): Promise<Outcome> {
  // The compiled one: its processes are started from beside it.
  const compiled = join(inject('compiled'), 'src/app/query/query-process.js');
  const { QueryProcess } = (await import(compiled)) as typeof import('../../src/app/query/query-process.ts');
  let output = '';
  const reader = new QueryProcess({ memory: MEMORY, seconds: SECONDS[hostile.fate], more: { memory: 'no more', seconds: 'no more' } });
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
