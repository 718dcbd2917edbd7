import { execFile } from 'node:child_process';
import fs, { cpSync, existsSync, lstatSync, mkdirSync, statSync, symlinkSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { DuckDBConnection } from '@duckdb/node-api';
import { afterAll, expect, inject, test } from 'vitest';
import { RingneckError } from '../../src/base/errors.ts';
import { isCompactionDue } from '../../src/warehouse/store/file/due.ts';
import type { Warehouse } from '../../src/warehouse/warehouse.ts';
import { startChild } from '../support/child.ts';
import { findBroken } from '../support/table-hash.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse, resourceNamed, store, withDuckDB } from '../support/warehouse.ts';
import { isWhole, someOf } from '../support/whole.ts';
import { ACTIVITY, SLEEP, STRESS } from '../support/wire.ts';

const folder = tempFolder();
const open = new Set<Warehouse>();
afterAll(async () => {
  for (const warehouse of open) await warehouse.close();
});

const COMPACTOR = fileURLToPath(new URL('../support/child-compactor.mjs', import.meta.url));
const USERS = ['ann', 'bob', 'kim', 'zoe'];
const MINUTE = 60_000_000;
const T = 1_736_899_200_000_000;
const MET = Array.from({ length: 1440 }, (_, i) => 0.9 + (i % 7) / 10);

const dayOf = (n: number) => new Date(Date.UTC(2025, 0, 1 + n)).toISOString().slice(0, 10);

const activity = (n: number, steps: number) => ({
  ...ACTIVITY,
  id: `a-${n}`,
  day: dayOf(n),
  steps,
  met: { interval: 60, items: MET, timestamp: `${dayOf(n)}T04:00:00+02:00` },
});

/** Days that come in one after the other, each as often as it has versions. */
async function syncDays(warehouse: Warehouse, from: number, to: number, versions = [10, 20]): Promise<void> {
  for (let n = from; n < to; n++) {
    for (const steps of versions) {
      await Promise.all(
        USERS.flatMap(userId => [
          send(warehouse, userId, 'daily_activity', [activity(n, steps)]),
          send(warehouse, userId, 'sleep', [{ ...SLEEP, id: `s-${n}`, day: dayOf(n), awake_time: steps }]),
          send(warehouse, userId, 'daily_stress', [{ ...STRESS, id: `t-${n}`, day: dayOf(n), stress_high: steps }]),
        ]),
      );
    }
    await warehouse.record([{ table: 'sync.runs', key: { run_id: `r-${n}` }, row: { kind: 'nightly', state: 'complete' } }]);
  }
}

let filled: Promise<string> | undefined;

/** Puts a file there that thirty days have left as they came in: made once, each test has a copy. */
async function fill(path: string): Promise<void> {
  filled ??= (async () => {
    const made = newPath(folder);
    const warehouse = await opened(made);
    await syncDays(warehouse, 0, 30);
    for (const userId of USERS) await beat(warehouse, userId, 1_440, 60);
    await closed(warehouse);
    return made;
  })();
  const made = await filled;
  mkdirSync(dirname(path), { recursive: true });
  cpSync(made, path);
}

const send = (warehouse: Warehouse, userId: string, name: string, documents: unknown[], removed: string[] = []) =>
  warehouse.storeDocuments({ userId, resource: resourceNamed(name), requestedAt: warehouse.clock.next(), documents, removed });

function beat(warehouse: Warehouse, userId: string, minutes: number, bpm: number) {
  const rows = Array.from({ length: minutes }, (_, i) => {
    const at = T + i * MINUTE;
    return { timestamp: new Date(at / 1000).toISOString(), timestamp_unix: at / 1000, bpm, source: 'rest' };
  });
  return warehouse.storeHeartRate({ userId, from: T, to: T + 2_000 * MINUTE, requestedAt: warehouse.clock.next(), rows });
}

/** `rows hash` of every table, every column counted. */
async function contentsOf(warehouse: Warehouse): Promise<Record<string, unknown>> {
  const tables = await warehouse.read(
    `SELECT schema_name || '.' || table_name, '"' || schema_name || '"."' || table_name || '"' FROM duckdb_tables() WHERE NOT internal AND database_name = current_database() ORDER BY 1`,
  );
  const contents: Record<string, unknown> = {};
  for (const [table, quoted] of tables as [string, string][]) {
    const where = table === 'sync.meta' ? `WHERE key <> 'compacted'` : '';
    const [row] = await warehouse.read(`SELECT count(*) || ' ' || coalesce(sum(hash(t)::HUGEINT), 0) FROM ${quoted} t ${where}`);
    contents[table] = row![0];
  }
  return contents;
}

async function opened(path: string): Promise<Warehouse> {
  const warehouse = await openWarehouse(path);
  open.add(warehouse);
  return warehouse;
}

/** What another process is told that opens the file. */
async function openedElsewhere(path: string): Promise<string> {
  const script = `require('@duckdb/node-api').DuckDBInstance.create(process.argv[1]).then(() => console.log('opened'), error => console.log(error.message.split('\\n')[0]))`;
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', script, path]);
  return stdout;
}

async function closed(warehouse: Warehouse): Promise<void> {
  open.delete(warehouse);
  await warehouse.close();
}

/** Compacts a file, and keeps what a process would leave that is killed before each of its statements, or around the change of places. */
async function compactStepByStep(path: string): Promise<{ left: Map<string | number, string>; statements: number }> {
  const left = new Map<string | number, string>();
  const keep = (at: string | number) => {
    if (left.has(at)) return;
    const copy = `${dirname(path)}-${left.size}`;
    cpSync(dirname(path), copy, { recursive: true });
    left.set(at, join(copy, basename(path)));
  };
  const warehouse = await opened(path);
  const { run } = DuckDBConnection.prototype;
  const { renameSync } = fs;
  let statements = 0;
  DuckDBConnection.prototype.run = function (...given) {
    keep(++statements);
    return run.apply(this, given);
  };
  fs.renameSync = (from, to) => {
    keep('before the rename');
    renameSync(from, to);
    keep('after the rename');
  };
  syncBuiltinESMExports();
  try {
    await warehouse.compact();
  } finally {
    DuckDBConnection.prototype.run = run;
    fs.renameSync = renameSync;
    syncBuiltinESMExports();
  }
  await closed(warehouse);
  return { left, statements };
}

test('a compacted file holds the same in less room, and goes on: it is written, read, snapshot and opened again', async () => {
  const path = newPath(folder);
  await fill(path);
  await withDuckDB(path, connection => connection.run(`CREATE TABLE "notes.of o'neil" AS SELECT 'ann' AS user_id, 1 AS note`));
  const warehouse = await opened(path);
  await warehouse.snapshot(`${path}.snapshot`, 0o600);
  const before = await contentsOf(warehouse);
  const bytes = statSync(path).size;
  await warehouse.compact();
  expect(statSync(path).size).toBeLessThan(bytes * 0.8);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(await contentsOf(warehouse)).toEqual(before);
  expect(existsSync(`${path}.new`)).toBe(false);

  await store(warehouse, 'daily_activity', [activity(40, 1)]);
  const after = await contentsOf(warehouse);
  expect(after['main.daily_activity']).not.toEqual(before['main.daily_activity']);
  await warehouse.refreshSnapshot(`${path}.snapshot`, 0o600);
  expect(await openedElsewhere(path)).toMatch(/Conflicting lock/);
  await closed(warehouse);
  expect(existsSync(`${path}.wal`)).toBe(false);

  const again = await opened(path);
  expect(await contentsOf(again)).toEqual(after);
  expect(await findBroken(sql => again.read(sql))).toEqual([]);
  expect(await again.read('SELECT count(*) FROM met_minutes')).toEqual([[4 * 30 * 1440 + 1440]]);
  await closed(again);
  const published = await withDuckDB(`${path}.snapshot`, async connection =>
    (await connection.runAndReadAll('SELECT count(*) FROM daily_activity')).getRows(),
  );
  expect(published).toEqual([[121n]]);
});

test('what is stored, replaced and removed while a file is compacted is in it', async () => {
  const path = newPath(folder);
  await fill(path);
  const warehouse = await opened(path);
  let isDone = false;
  const compacting = warehouse.compact().finally(() => {
    isDone = true;
  });
  let rounds = 0;
  for (; !isDone; rounds++) {
    const userId = USERS[rounds % USERS.length]!;
    await Promise.all([
      warehouse.storeDocuments(
        {
          userId,
          resource: resourceNamed('daily_activity'),
          requestedAt: warehouse.clock.next(),
          documents: [activity(rounds % 40, 100 + rounds)],
          removed: [`a-${(rounds + 20) % 40}`],
        },
        { lane: 'live', ledger: [{ table: 'sync.events', row: { received_at: T + rounds, outcome: 'stored' } }] },
      ),
      warehouse.record([
        { table: 'sync.runs', key: { run_id: `r-${rounds % 35}` }, ...(rounds % 2 ? { row: { kind: 'sweep', state: `${rounds}` } } : {}) },
      ]),
    ]);
    if (rounds % 3 === 0) await beat(warehouse, userId, 500 + rounds, 60 + (rounds % 50));
  }
  await compacting;
  expect(rounds).toBeGreaterThan(3);
  expect(await findBroken(sql => warehouse.read(sql))).toEqual([]);
  expect(await warehouse.read('SELECT count(*) FROM sync.events')).toEqual([[rounds]]);
  const after = await contentsOf(warehouse);
  await closed(warehouse);
  const again = await opened(path);
  expect(await contentsOf(again)).toEqual(after);
});

test('killed at any step it leaves all there was, and the next process goes on', async () => {
  const path = newPath(folder);
  const first = await opened(path);
  await syncDays(first, 0, 3);
  const before = await contentsOf(first);
  await closed(first);

  const { left, statements } = await compactStepByStep(path);
  expect(statements).toBeGreaterThan(40);
  expect(existsSync(`${left.get('before the rename')}.new`)).toBe(true);
  // Most of what is dangerous is at the end, where the files change places.
  const end = Array.from({ length: 16 }, (_, i) => statements - i);
  const steps = ['before the rename', 'after the rename', 1, 3, Math.floor(statements / 2), ...end];
  for (const at of someOf(steps, { always: ['before the rename', 'after the rename', 1, statements], more: 2 })) {
    const warehouse = await opened(left.get(at)!);
    expect(await contentsOf(warehouse), `killed at ${at}`).toEqual(before);
    expect(existsSync(`${left.get(at)}.new`)).toBe(false);
    await closed(warehouse);
  }

  // The same with a process.
  const own = join(dirname(left.get(1)!), 'warehouse.duckdb');
  for (const at of ['after the rename', 'after a commit']) {
    const child = startChild(COMPACTOR, inject('compiled'), own, at);
    expect(await child.ended).toBe('SIGKILL');
    const warehouse = await opened(own);
    const said = await warehouse.read(`SELECT value FROM sync.meta WHERE key = 'said'`);
    expect(said, `killed ${at}`).toEqual(at === 'after a commit' ? [['after it was compacted']] : []);
    if (at === 'after the rename') expect(await contentsOf(warehouse)).toEqual(before);
    await closed(warehouse);
  }
});

test('killed while it is compacted again and again and stored into, it has all that was committed', async () => {
  const path = newPath(folder);
  const first = await opened(path);
  await syncDays(first, 0, 3);
  await closed(first);
  let said = 0;
  let last: number | undefined;
  for (let round = 0; round < (isWhole ? 5 : 2); round++) {
    const child = startChild(COMPACTOR, inject('compiled'), path, `busy since ${said}`);
    last = Number(await child.line());
    setTimeout(() => child.process.kill('SIGKILL'), 300 + round * 311);
    for (;;) {
      const line = await child.line().catch(() => undefined);
      if (line === undefined) break;
      last = Number(line);
    }
    await child.ended;
    const warehouse = await opened(path);
    expect(await findBroken(sql => warehouse.read(sql))).toEqual([]);
    const [[runs, newest] = []] = await warehouse.read(
      `SELECT count(*), (SELECT max(efficiency) FROM sleep WHERE id LIKE 'n-%') FROM sync.runs WHERE run_id LIKE 'n-%'`,
    );
    // The last commit may not have been said any more.
    expect([last, last + 1]).toContain(newest);
    expect(runs).toBe((newest as number) + 1);
    said = (newest as number) + 1;
    await closed(warehouse);
  }
  expect(said).toBeGreaterThan(isWhole ? 20 : 2);
});

test('a signal ends it and leaves the file as it was, nothing beside it, and the next one works', async () => {
  const path = newPath(folder);
  await fill(path);
  const warehouse = await opened(path);
  const before = await contentsOf(warehouse);
  const { ino } = statSync(path);
  const stopping = new AbortController();
  const compacting = warehouse.compact(stopping.signal);
  setTimeout(() => stopping.abort(new Error('stopped')), 30);
  await expect(compacting).rejects.toThrow('stopped');
  expect(statSync(path).ino).toBe(ino);
  expect(existsSync(`${path}.new`)).toBe(false);
  await warehouse.compact();
  expect(statSync(path).ino).not.toBe(ino);
  expect(await contentsOf(warehouse)).toEqual(before);
});

test('where the disk is short nothing is replaced, and what is stored afterwards is there', async () => {
  const path = newPath(folder);
  let isShort = false;
  const warehouse = await openWarehouse(path, {
    beforeGroup: () => {
      if (isShort) throw new RingneckError('the disk is almost full');
    },
  });
  open.add(warehouse);
  await syncDays(warehouse, 0, 3);
  const { ino } = statSync(path);
  isShort = true;
  await expect(warehouse.compact()).rejects.toThrow('the disk is almost full');
  isShort = false;
  expect(statSync(path).ino).toBe(ino);
  expect(existsSync(`${path}.new`)).toBe(false);
  await syncDays(warehouse, 3, 4);
  expect(await warehouse.read('SELECT count(*) FROM daily_activity')).toEqual([[16]]);
});

test('who reads meanwhile is not disturbed', async () => {
  const path = newPath(folder);
  const warehouse = await opened(path);
  await syncDays(warehouse, 0, 3);
  let reads = 0;
  const isDone = new AbortController();
  const reading = (async () => {
    while (!isDone.signal.aborted) {
      expect(await warehouse.read('SELECT count(*) FROM daily_activity_met')).toEqual([[4 * 3 * 1440]]);
      reads++;
    }
  })();
  await warehouse.compact();
  isDone.abort();
  await reading;
  expect(reads).toBeGreaterThan(3);
});

test('it is due for a large file that never was compacted, and again when it has grown beyond what came', () => {
  const [MB, DAY] = [1024 * 1024, 86_400_000_000];
  const last = { at: 0, bytes: 40 * MB, rows: 10_000_000 };
  expect(isCompactionDue({ bytes: 15 * MB, rows: 1 }, undefined, DAY)).toBe(false);
  expect(isCompactionDue({ bytes: 17 * MB, rows: 1 }, undefined, DAY)).toBe(true);
  // 2,000,000 rows more take 6 MB: 46 MB are expected.
  expect(isCompactionDue({ bytes: 50 * MB, rows: 12_000_000 }, last, DAY)).toBe(false);
  expect(isCompactionDue({ bytes: 51 * MB, rows: 12_000_000 }, last, DAY)).toBe(true);
  expect(isCompactionDue({ bytes: 51 * MB, rows: 12_000_000 }, last, DAY / 2)).toBe(false);
  expect(isCompactionDue({ bytes: 40 * MB, rows: 5_000_000 }, last, DAY)).toBe(true);
  expect(isCompactionDue({ bytes: 51 * MB, rows: 12_000_000 }, { ...last, at: 400 * DAY }, DAY)).toBe(true);
});

test('after all was rewritten it is as small as a file in which nothing else ever was', async () => {
  const [path, other] = [newPath(folder), newPath(folder)];
  await fill(path);
  const [warehouse, fresh] = [await opened(path), await opened(other)];
  for (const userId of USERS) await beat(fresh, userId, 1_440, 60);
  for (const one of [warehouse, fresh]) await syncDays(one, 0, 30, [30]);
  await fresh.compact();
  await warehouse.compact();
  expect(statSync(path).size).toBeLessThan(statSync(other).size * 1.3);
});

test('where the path is a link, the file that it leads to is replaced', async () => {
  const path = newPath(folder);
  const real = join(dirname(newPath(folder)), 'real.duckdb');
  for (const one of [path, real]) mkdirSync(dirname(one), { recursive: true });
  symlinkSync(real, path);
  const warehouse = await opened(path);
  await syncDays(warehouse, 0, 2);
  const before = await contentsOf(warehouse);
  const { ino } = statSync(real);
  await warehouse.compact();
  expect(lstatSync(path).isSymbolicLink()).toBe(true);
  expect(statSync(real).ino).not.toBe(ino);
  await warehouse.record([{ table: 'sync.runs', key: { run_id: 'last' }, row: { kind: 'sweep' } }]);
  await closed(warehouse);
  const again = await opened(path);
  expect({ ...(await contentsOf(again)), 'sync.runs': 0 }).toEqual({ ...before, 'sync.runs': 0 });
  expect(await again.read(`SELECT count(*) FROM sync.runs`)).toEqual([[3]]);
});

test('a table of others whose rows refer to one another is copied too, sorted where that is possible', async () => {
  const path = newPath(folder);
  await closed(await opened(path));
  await withDuckDB(path, async connection => {
    await connection.run('CREATE TABLE diagnoses (user_id VARCHAR, code VARCHAR PRIMARY KEY, follows VARCHAR REFERENCES diagnoses (code))');
    for (const [user, code, follows] of [
      ['zoe', 'a', null],
      ['ann', 'b', 'a'],
      ['bob', 'c', 'b'],
      ['ann', 'd', null],
    ]) {
      await connection.run(`INSERT INTO diagnoses VALUES ('${user}', '${code}', ${follows ? `'${follows}'` : 'NULL'})`);
    }
  });
  const warehouse = await opened(path);
  await warehouse.compact();
  await warehouse.compact();
  expect(await warehouse.read('SELECT code, follows FROM diagnoses ORDER BY rowid')).toEqual([
    ['d', null],
    ['a', null],
    ['b', 'a'],
    ['c', 'b'],
  ]);
});

test('a table of others whose rows refer to keys that differ only in what their collation does not see is copied too', async () => {
  const path = newPath(folder);
  await closed(await opened(path));
  await withDuckDB(path, async connection => {
    await connection.run(`CREATE TABLE notes (code VARCHAR COLLATE NOCASE PRIMARY KEY, follows VARCHAR REFERENCES notes (code));
      CREATE TABLE depths (depth DOUBLE PRIMARY KEY, below DOUBLE REFERENCES depths (depth))`);
    // A key is compared byte by byte, a number by its value.
    for (const row of [`('A', NULL)`, `('a', 'A')`, `('b', 'a')`]) await connection.run(`INSERT INTO notes VALUES ${row}`);
    for (const row of ['(0.0, NULL)', '(1.0, -0.0)']) await connection.run(`INSERT INTO depths VALUES ${row}`);
  });
  const warehouse = await opened(path);
  await warehouse.compact();
  expect(await warehouse.read('SELECT code, follows FROM notes ORDER BY rowid')).toEqual([
    ['A', null],
    ['a', 'A'],
    ['b', 'a'],
  ]);
  expect(await warehouse.read('SELECT count(*), count(below) FROM depths')).toEqual([[2, 1]]);
});

test('a compaction that is under way when the warehouse is closed leaves the file whole', async () => {
  const path = newPath(folder);
  const warehouse = await opened(path);
  await syncDays(warehouse, 0, 3);
  const before = await contentsOf(warehouse);
  const compacting = warehouse.compact().catch((error: Error) => error.message);
  await closed(warehouse);
  expect(await compacting).toBe('the warehouse is closed');
  const again = await opened(path);
  expect(await contentsOf(again)).toEqual(before);
});

test('where the disk does not confirm that the files have changed places, nothing more is stored into the one that was replaced', async () => {
  const path = newPath(folder);
  const fatal: string[] = [];
  const warehouse = await openWarehouse(path, { onFatal: error => void fatal.push(error.message) });
  await syncDays(warehouse, 0, 2);
  const { fsyncSync } = fs;
  fs.fsyncSync = () => {
    throw Object.assign(new Error('EIO: i/o error, fsync'), { code: 'EIO' });
  };
  syncBuiltinESMExports();
  try {
    await expect(warehouse.compact()).rejects.toThrow('the disk did not confirm it: EIO');
  } finally {
    fs.fsyncSync = fsyncSync;
    syncBuiltinESMExports();
  }
  expect(fatal).toHaveLength(1);
  await expect(send(warehouse, 'ann', 'daily_activity', [activity(2, 10)])).rejects.toThrow('start again');
  await warehouse.close();
  const again = await openWarehouse(path);
  open.add(again);
  expect(await again.read('SELECT count(*), sum(steps)::BIGINT FROM daily_activity')).toEqual([[8, 160]]);
});

test('a compaction that finds no room just before the files change places leaves all as it is', async () => {
  const path = newPath(folder);
  let calls = 0;
  let fullAt = Number.POSITIVE_INFINITY;
  const warehouse = await openWarehouse(path, {
    beforeGroup: () => {
      if (++calls >= fullAt) throw new RingneckError('the disk is full');
    },
  });
  open.add(warehouse);
  await syncDays(warehouse, 0, 2);
  calls = 0;
  await warehouse.compact();
  // Once for each table, before each of the two waits, and for what is noted at the end.
  const tables = calls - 3;
  const { ino } = statSync(path);
  for (const n of [1, 2]) {
    calls = 0;
    fullAt = tables + n;
    await expect(warehouse.compact()).rejects.toThrow('the disk is full');
    fullAt = Number.POSITIVE_INFINITY;
    expect(statSync(path).ino).toBe(ino);
    expect(existsSync(`${path}.new`)).toBe(false);
  }
  await syncDays(warehouse, 2, 3);
  expect(await warehouse.read('SELECT count(*) FROM daily_activity')).toEqual([[12]]);
});
