import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, inject, test } from 'vitest';
import { NeedsRebuild } from '../../src/warehouse/needs-rebuild.ts';
import type { Warehouse } from '../../src/warehouse/warehouse.ts';
import { startChild } from '../support/child.ts';
import { below, pick, type Random, randomFrom } from '../support/random-documents.ts';
import { findBroken } from '../support/table-hash.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse, resourceNamed, rowsOf, store, withDuckDB } from '../support/warehouse.ts';
import { isWhole, seed } from '../support/whole.ts';
import { ACTIVITY, RING, SLEEP, STRESS } from '../support/wire.ts';

const folder = tempFolder();
const open = new Set<Warehouse>();
let filledOnce: Promise<string> | undefined;
afterAll(async () => {
  for (const warehouse of open) await warehouse.close();
});

const USERS = ['ann', 'bob', 'zoe'];
const MINUTE = 60_000_000;
const T = 1_736_899_200_000_000;

/** What a file holds, as rows and one hash for each table, every column counted. */
function contentsOf(path: string): Promise<Record<string, string>> {
  return withDuckDB(path, async connection => {
    const tables = (
      await connection.runAndReadAll(
        `SELECT schema_name || '.' || table_name FROM duckdb_tables() WHERE NOT internal AND table_name <> 'snapshot' ORDER BY 1`,
      )
    ).getRows() as [string][];
    const counted = tables.map(([table]) => `SELECT '${table}', count(*) || ' ' || coalesce(sum(hash(t)::HUGEINT), 0) FROM ${table} t`);
    return Object.fromEntries((await connection.runAndReadAll(counted.join(' UNION ALL '))).getRows());
  });
}

const aboutOf = (path: string) =>
  withDuckDB(path, connection =>
    rowsOf(connection, 'SELECT changed_rows, newest_sk, program, duckdb, format, sorted_at = taken_at AS sorted FROM sync.snapshot'),
  );

const brokenIn = (path: string) => withDuckDB(path, connection => findBroken(async sql => (await connection.runAndReadAll(sql)).getRows()));

/** Many documents of three people, so that a few more are few: made once, each test has a copy. */
async function filled(path: string): Promise<Warehouse> {
  filledOnce ??= fill(newPath(folder));
  const made = await filledOnce;
  mkdirSync(dirname(path), { recursive: true });
  copyFileSync(made, path);
  return openWarehouse(path);
}

async function fill(path: string): Promise<string> {
  const warehouse = await openWarehouse(path);
  for (const userId of USERS) {
    const days = Array.from({ length: 28 }, (_, n) => `2025-02-${String(n + 1).padStart(2, '0')}`);
    const send = (name: string, documents: unknown[]) =>
      warehouse.storeDocuments({ userId, resource: resourceNamed(name), requestedAt: warehouse.clock.next(), documents });
    await send(
      'daily_activity',
      days.map(day => ({ ...ACTIVITY, id: `a-${day}`, day })),
    );
    await send(
      'sleep',
      days.map(day => ({ ...SLEEP, id: `s-${day}`, day })),
    );
    await send(
      'daily_stress',
      days.map(day => ({ ...STRESS, id: `t-${day}`, day })),
    );
    await send('ring_configuration', [RING]);
    await beat(warehouse, userId, T, T + 500 * MINUTE, warehouse.clock.next(), () => 60);
  }
  await warehouse.close();
  return path;
}

function beat(
  warehouse: Warehouse,
  userId: string,
  from: number,
  to: number,
  requestedAt: number,
  bpm: (minute: number) => number | undefined,
) {
  const rows = [];
  for (let at = Math.ceil(from / MINUTE) * MINUTE; at < to; at += MINUTE) {
    const value = bpm(at / MINUTE);
    const timestamp = new Date(at / 1000).toISOString();
    if (value !== undefined) rows.push({ timestamp, timestamp_unix: at / 1000, bpm: value, source: 'rest' });
  }
  return warehouse.storeHeartRate({ userId, from, to, requestedAt, rows });
}

/** One of the things that happen to a warehouse. */
async function change(warehouse: Warehouse, random: Random, older: number): Promise<void> {
  const userId = pick(random, USERS);
  const day = `2025-02-${String(1 + below(random, 28)).padStart(2, '0')}`;
  const requestedAt = random() < 0.2 ? older : warehouse.clock.next();
  const send = (name: string, documents: unknown[], removed: string[] = []) =>
    warehouse.storeDocuments({ userId, resource: resourceNamed(name), requestedAt, documents, removed });
  const items = Array.from({ length: below(random, 9) }, () => (random() < 0.2 ? null : random()));
  switch (below(random, 8)) {
    case 0:
      return void (await send('daily_activity', [{ ...ACTIVITY, id: `a-${day}`, day, met: { ...ACTIVITY.met, items } }]));
    case 1:
      // Another day for the same document: its samples move.
      return void (await send('sleep', [{ ...SLEEP, id: `s-${day}`, day: '2025-03-01', heart_rate: { ...SLEEP.heart_rate, items } }]));
    case 2:
      return void (await send(pick(random, ['daily_activity', 'sleep', 'daily_stress']), [], [`${pick(random, ['a', 's', 't'])}-${day}`]));
    case 3:
      return void (await send('ring_configuration', [{ ...RING, firmware_version: String(below(random, 5)) }]));
    case 4: {
      const from = T + below(random, 500) * MINUTE;
      const bpm = pick<(minute: number) => number | undefined>(random, [
        () => undefined,
        () => 61,
        minute => (minute % 3 ? 60 : undefined),
      ]);
      return void (await beat(warehouse, userId, from, from + (1 + below(random, 40)) * MINUTE, requestedAt, bpm));
    }
    case 5:
      return warehouse.record([{ table: 'sync.windows', row: { run_id: `r${below(random, 3)}`, user_id: userId, collection: 'sleep' } }]);
    case 6:
      return warehouse.record([
        {
          table: 'sync.runs',
          key: { run_id: `r${below(random, 3)}` },
          row: { kind: 'backfill', state: pick(random, ['running', 'complete']) },
        },
      ]);
    default:
      return warehouse.record([{ table: 'sync.accounts', key: { user_id: userId }, row: { state: pick(random, ['active', 'parked']) } }]);
  }
}

test('brought up to date again and again, by this process and the next, it holds what a full one holds', async () => {
  const random = randomFrom(seed);
  const path = newPath(folder);
  const [refreshed, full] = [join(dirname(path), 'refreshed.duckdb'), join(dirname(path), 'full.duckdb')];
  let warehouse = await filled(path);
  open.add(warehouse);
  await warehouse.snapshot(refreshed, 0o600);
  const rebuilt: string[] = [];
  let rounds = 0;
  for (; rounds < (isWhole ? 48 : 4); rounds++) {
    const older = warehouse.clock.next();
    for (let n = below(random, 6); n >= 0; n--) await change(warehouse, random, older);
    if (random() < 0.2) {
      await warehouse.close();
      open.delete(warehouse);
      warehouse = await openWarehouse(path);
      open.add(warehouse);
    }
    try {
      // Some changes come while it is under way: they belong to the next one.
      const done = warehouse.refreshSnapshot(refreshed, 0o600);
      if (random() < 0.3) await change(warehouse, random, older);
      await done;
    } catch (error) {
      if (!(error instanceof NeedsRebuild)) throw error;
      rebuilt.push(error.message);
      await warehouse.snapshot(refreshed, 0o600);
    }
    if (rounds % 4 !== 3) continue;
    await warehouse.refreshSnapshot(refreshed, 0o600).catch(() => warehouse.snapshot(refreshed, 0o600));
    await warehouse.copy(full, 0o600);
    expect(await contentsOf(refreshed), `seed ${seed}`).toEqual(await contentsOf(full));
    expect(await brokenIn(refreshed)).toEqual([]);
  }
  expect(rebuilt.filter(reason => reason !== 'much has changed since it was sorted')).toEqual([]);
  if (isWhole) expect(rebuilt.length).toBeLessThan(rounds / 2);
  await warehouse.close();
  open.delete(warehouse);
});

test('a changed, a new and a removed document are in it, and nothing else was rewritten', async () => {
  const path = newPath(folder);
  const published = join(dirname(path), 'snapshot.duckdb');
  const warehouse = await filled(path);
  await warehouse.snapshot(published, 0o640);
  expect(await aboutOf(published)).toEqual([
    { changed_rows: 0, newest_sk: 255, program: '0.1.0', duckdb: 'v1.5.5', format: 4, sorted: true },
  ]);
  const before = statSync(published).ino;
  await store(warehouse, 'daily_activity', [{ ...ACTIVITY, id: 'a-2025-02-03', day: '2025-02-04', met: { ...ACTIVITY.met, items: [7] } }]);
  await store(warehouse, 'daily_stress', [{ ...STRESS, id: 'new', day: '2025-04-01' }], ['t-2025-02-01']);
  await warehouse.refreshSnapshot(published, 0o640);
  await warehouse.close();
  expect(statSync(published).ino).not.toBe(before);
  expect(statSync(published).mode & 0o777).toBe(0o640);
  expect(readdirSync(dirname(path)).sort()).toEqual(['snapshot.duckdb', 'warehouse.duckdb', 'warehouse.duckdb.handover']);
  // One document and four samples left for one document and one sample; one document came and one went for a tombstone; the rest is drift.
  const [about] = (await aboutOf(published)) as [{ changed_rows: number; newest_sk: number; sorted: boolean }];
  expect(about).toMatchObject({ changed_rows: 10, newest_sk: 257, sorted: false });
  await withDuckDB(published, async connection => {
    expect(
      await rowsOf(
        connection,
        `SELECT m.day, value FROM daily_activity d JOIN daily_activity_met m USING (sk) WHERE d.user_id = 'ann' AND id = 'a-2025-02-03'`,
      ),
    ).toEqual([{ day: '2025-02-04', value: 7 }]);
    expect(
      await rowsOf(connection, `SELECT id FROM daily_stress WHERE user_id = 'ann' AND (day > '2025-03-01' OR day < '2025-02-02')`),
    ).toEqual([{ id: 'new' }]);
    expect(await rowsOf(connection, 'SELECT user_id, collection, id FROM sync.tombstones')).toEqual([
      { user_id: 'ann', collection: 'daily_stress', id: 't-2025-02-01' },
    ]);
  });
});

test('views and macros are in it and work under whatever name it is opened', async () => {
  const path = newPath(folder);
  const published = join(dirname(path), 'a copy.duckdb');
  const warehouse = await filled(path);
  const views = await warehouse.read(
    `SELECT schema_name, view_name FROM duckdb_views() WHERE NOT internal AND database_name = current_database() ORDER BY ALL`,
  );
  expect(views.length).toBeGreaterThan(0);
  await warehouse.snapshot(published, 0o600);
  await store(warehouse, 'daily_stress', [{ ...STRESS, id: 'new' }]);
  await warehouse.refreshSnapshot(published, 0o600);
  await warehouse.close();
  await withDuckDB(':memory:', async connection => {
    await connection.run(`ATTACH '${published}' AS other (READ_ONLY)`);
    await connection.run('USE other');
    for (const [schema, view] of views) await connection.run(`SELECT * FROM ${schema}.${view}`);
    expect(await rowsOf(connection, `SELECT local(TIMESTAMP '2025-01-01 00:00:00', 3600)::VARCHAR AS at`)).toEqual([
      { at: '2025-01-01 01:00:00' },
    ]);
  });
});

test('it is made anew where there is none, and where the one that is there cannot be brought up to date', async () => {
  const path = newPath(folder);
  const published = join(dirname(path), 'snapshot.duckdb');
  let warehouse = await filled(path);
  const refusalOf = () =>
    warehouse.refreshSnapshot(published, 0o600).then(
      () => 'none',
      (error: unknown) => (error instanceof NeedsRebuild ? error.message : String(error)),
    );
  expect(await refusalOf()).toBe('there is none yet');
  writeFileSync(published, 'this is no database');
  expect(await refusalOf()).toMatch(/not a valid DuckDB database/);
  rmSync(published);
  await withDuckDB(published, connection => connection.run('CREATE TABLE sleep (id VARCHAR)'));
  expect(await refusalOf()).toBe('it was made by another version');
  await warehouse.snapshot(published, 0o600);
  expect(await refusalOf()).toBe('none');
  writeFileSync(`${published}.wal`, '');
  expect(await refusalOf()).toBe('somebody has opened it for writing');
  rmSync(`${published}.wal`);
  await withDuckDB(published, connection => connection.run("DELETE FROM daily_activity_met WHERE day = DATE '2025-02-07'"));
  expect(await refusalOf()).toBe('somebody else has changed it');
  await warehouse.close();
  warehouse = await openWarehouse(path);
  expect(await refusalOf()).toBe('somebody else has changed it');
  await warehouse.close();
  // A process that was not told of the last one cannot know that; it counts.
  rmSync(`${path}.handover`);
  warehouse = await openWarehouse(path);
  expect(await refusalOf()).toBe('it differs from the warehouse in daily_activity_met');
  await warehouse.snapshot(published, 0o600);
  await withDuckDB(published, connection => connection.run(`UPDATE sync.snapshot SET declarations = 'older'`));
  await warehouse.close();
  rmSync(`${path}.handover`);
  warehouse = await openWarehouse(path);
  expect(await refusalOf()).toBe('it was made by another version');
  for (const day of ['2025-05-01', '2025-05-02', '2025-05-03']) {
    await store(warehouse, 'daily_activity', [{ ...ACTIVITY, id: day, day, met: { ...ACTIVITY.met, items: Array(400).fill(1) } }]);
  }
  await warehouse.snapshot(published, 0o600);
  for (const day of ['2025-05-01', '2025-05-02', '2025-05-03']) {
    await store(warehouse, 'daily_activity', [{ ...ACTIVITY, id: day, day, met: { ...ACTIVITY.met, items: Array(400).fill(2) } }]);
  }
  expect(await refusalOf()).toBe('much has changed since it was sorted');
  await warehouse.close();
});

test('an interruption ends it, leaves the last one and nothing beside it, and the next one holds everything', async () => {
  const path = newPath(folder);
  const published = join(dirname(path), 'snapshot.duckdb');
  const warehouse = await filled(path);
  await warehouse.snapshot(published, 0o600);
  const before = readFileSync(published);
  await store(warehouse, 'daily_stress', [{ ...STRESS, id: 'new' }]);
  for (const afterMs of [0, 5, 20, 60]) {
    const closing = new AbortController();
    const full = afterMs % 10 === 0;
    const done = full ? warehouse.snapshot(published, 0o600, closing.signal) : warehouse.refreshSnapshot(published, 0o600, closing.signal);
    const outcome = done.then(
      () => 'done',
      (error: Error) => error.message,
    );
    await sleep(afterMs);
    closing.abort(new Error('closing'));
    if ((await outcome) === 'done') continue;
    expect(await outcome).toBe('closing');
    expect(readdirSync(dirname(path)).filter(name => !name.startsWith('warehouse'))).toEqual(['snapshot.duckdb']);
    expect(readFileSync(published).equals(before)).toBe(true);
  }
  await warehouse.refreshSnapshot(published, 0o600);
  await warehouse.close();
  expect(await withDuckDB(published, connection => rowsOf(connection, `SELECT count(*) AS n FROM daily_stress WHERE id = 'new'`))).toEqual([
    { n: 1 },
  ]);
});

test('killed at any moment it leaves a whole one, and the next process goes on from it', async () => {
  const path = newPath(folder);
  const [published, full] = [join(dirname(path), 'snapshot.duckdb'), join(dirname(path), 'full.duckdb')];
  const base = await filled(path);
  await base.snapshot(published, 0o600);
  await base.close();
  const script = fileURLToPath(new URL('../support/child-refresher.mjs', import.meta.url));
  let said = 0;
  for (const afterMs of [10, 60, 150]) {
    const child = startChild(script, inject('compiled'), path, published, String(said));
    said = Number(await child.line());
    await sleep(afterMs);
    child.process.kill('SIGKILL');
    await child.ended;
    // What was said was published before.
    const [row] = (await withDuckDB(published, connection =>
      rowsOf(connection, `SELECT max(efficiency) AS n FROM sleep WHERE user_id = 'kim'`),
    )) as [{ n: number }];
    expect(row.n).toBeGreaterThanOrEqual(said);
    expect(await brokenIn(published)).toEqual([]);
    said = row.n + 1;
  }
  const warehouse = await openWarehouse(path);
  await warehouse.refreshSnapshot(published, 0o600);
  await warehouse.copy(full, 0o600);
  await warehouse.close();
  expect(await contentsOf(published)).toEqual(await contentsOf(full));
  expect(readdirSync(dirname(path)).sort()).toEqual(['full.duckdb', 'snapshot.duckdb', 'warehouse.duckdb', 'warehouse.duckdb.handover']);
});

/** Of a warehouse that is open: whether its snapshot, brought up to date now, holds what a new one would. */
async function refreshesToTheWhole(path: string, published: string): Promise<void> {
  const full = join(dirname(path), 'full.duckdb');
  const warehouse = await openWarehouse(path);
  await warehouse.refreshSnapshot(published, 0o600);
  await warehouse.copy(full, 0o600);
  await warehouse.close();
  expect(await contentsOf(published)).toEqual(await contentsOf(full));
  rmSync(full);
}

test('what the last process left is believed once, and not where somebody else has changed the warehouse', async () => {
  const path = newPath(folder);
  const published = join(dirname(path), 'snapshot.duckdb');
  const left = 'warehouse.duckdb.handover';
  let warehouse = await filled(path);
  await warehouse.snapshot(published, 0o600);
  await warehouse.close();
  expect(readdirSync(dirname(path))).toContain(left);
  // The path may hold the name of a person who is erased.
  expect(readFileSync(join(dirname(path), left), 'utf8')).not.toContain('snapshot.duckdb');
  warehouse = await openWarehouse(path);
  expect(readdirSync(dirname(path))).not.toContain(left);
  await store(warehouse, 'daily_stress', [{ ...STRESS, id: 'not published', day: '2025-06-01' }]);
  await warehouse.close();
  expect(JSON.parse(readFileSync(join(dirname(path), left), 'utf8'))).not.toHaveProperty('publication');
  await refreshesToTheWhole(path, published);

  expect(readdirSync(dirname(path))).toContain(left);
  // As many rows as before: a count would not tell.
  await withDuckDB(path, connection =>
    connection.run(
      `UPDATE daily_stress SET content_hash = 'changed', day_summary = 'restored' WHERE user_id = 'ann' AND id = 't-2025-02-03'`,
    ),
  );
  await refreshesToTheWhole(path, published);
});

test('what a killed process has committed is found by the next one, though its file is as the last one left it', async () => {
  const path = newPath(folder);
  const published = join(dirname(path), 'snapshot.duckdb');
  const warehouse = await filled(path);
  // Beside which what the child stores is little.
  await beat(warehouse, 'bob', T + 600 * MINUTE, T + 300_600 * MINUTE, warehouse.clock.next(), () => 60);
  await warehouse.snapshot(published, 0o600);
  await warehouse.close();
  const [left, stats] = [readFileSync(`${path}.handover`), statSync(path)];
  const child = startChild(fileURLToPath(new URL('../support/child-writer.mjs', import.meta.url)), inject('compiled'), path, '0');
  await child.line();
  child.process.kill('SIGKILL');
  await child.ended;
  // As after a power loss that has brought it back.
  writeFileSync(`${path}.handover`, left);
  expect(statSync(`${path}.wal`).size).toBeGreaterThan(0);
  expect(statSync(path).mtimeMs).toBe(stats.mtimeMs);
  await refreshesToTheWhole(path, published);
});
