import { existsSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { resources } from '../../schema/index.ts';
import { mapAll } from '../../src/warehouse/mapping.ts';
import { createViews } from '../../src/warehouse/schema/views.ts';
import { warehouseScript } from '../../src/warehouse/tables.ts';
import type { Warehouse } from '../../src/warehouse/warehouse.ts';
import { childScript, startChild } from '../support/child.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse, resourceNamed, rowsOf, store, withDuckDB } from '../support/warehouse.ts';
import { ACTIVITY, SLEEP, STRESS } from '../support/wire.ts';

const folder = tempFolder();
const T = 1_736_899_200;

async function filled(): Promise<Warehouse> {
  const warehouse = await openWarehouse(newPath(folder));
  for (const userId of ['zoe', 'ann']) {
    for (const day of ['2025-03-31', '2025-03-29', '2025-03-30']) {
      await warehouse.storeDocuments({
        userId,
        resource: resourceNamed('daily_activity'),
        requestedAt: warehouse.clock.lease(),
        documents: [{ ...ACTIVITY, id: `a-${day}`, day, met: { ...ACTIVITY.met, timestamp: `${day}T04:00:00+02:00` } }],
      });
    }
    await warehouse.storeHeartRate({
      userId,
      from: T * 1_000_000,
      to: (T + 9) * 1_000_000,
      requestedAt: warehouse.clock.lease(),
      rows: [5, 1, 3].map(second => ({
        timestamp: new Date((T + second) * 1000).toISOString(),
        timestamp_unix: (T + second) * 1000,
        bpm: 60 + second,
        source: 'rest',
      })),
    });
  }
  await store(warehouse, 'sleep', [SLEEP, { ...SLEEP, id: 'bad', day: 'x', secret: 'kept out' }]);
  await store(warehouse, 'daily_stress', [STRESS], ['gone']);
  await warehouse.record([
    { table: 'sync.runs', key: { run_id: 'r' }, row: { kind: 'backfill', state: 'complete' } },
    { table: 'sync.windows', row: { run_id: 'r', user_id: 'ann', collection: 'sleep', outcome: 'complete' } },
    { table: 'sync.accounts', key: { user_id: 'ann' }, row: { state: 'active' } },
    { table: 'sync.routes', key: { route: 'GET /x' }, row: { last_status: 200 } },
  ]);
  return warehouse;
}

const PUBLISHED = [
  'daily_activity',
  'daily_activity_met',
  'daily_stress',
  'heart_rate',
  'sleep',
  'sleep_heart_rate',
  'sync.accounts',
  'sync.drift',
  'sync.events',
  'sync.missed_events',
  'sync.routes',
  'sync.runs',
  'sync.tombstones',
  'sync.windows',
];

test('a snapshot holds what the warehouse holds, sorted, with its comments, without internals', async () => {
  const warehouse = await filled();
  const path = join(dirname(warehouse.path), 'snapshot.duckdb');
  await warehouse.snapshot(path, 0o600);
  const expected = new Map<string, unknown>();
  for (const table of PUBLISHED)
    expected.set(table, await warehouse.read(`SELECT count(*), coalesce(bit_xor(hash(t)), 0) % 1000000007 FROM ${table} t`));
  const comments = await warehouse.read(
    `SELECT table_name, column_name, data_type, comment FROM duckdb_columns() WHERE NOT internal AND database_name = current_database() AND schema_name = 'main' ORDER BY ALL`,
  );
  expect(comments.length).toBeGreaterThan(200);
  await warehouse.close();

  await withDuckDB(path, async connection => {
    for (const table of PUBLISHED) {
      const reader = await connection.runAndReadAll(`SELECT count(*), coalesce(bit_xor(hash(t)), 0) % 1000000007 FROM ${table} t`);
      expect(reader.getRows().map(row => row.map(Number))).toEqual(expected.get(table));
    }
    expect(await rowsOf(connection, 'SELECT user_id, day FROM daily_activity')).toEqual([
      { user_id: 'ann', day: '2025-03-29' },
      { user_id: 'ann', day: '2025-03-30' },
      { user_id: 'ann', day: '2025-03-31' },
      { user_id: 'zoe', day: '2025-03-29' },
      { user_id: 'zoe', day: '2025-03-30' },
      { user_id: 'zoe', day: '2025-03-31' },
    ]);
    expect(await rowsOf(connection, 'SELECT user_id, ts FROM daily_activity_met LIMIT 5')).toEqual([
      { user_id: 'ann', ts: '2025-03-29 02:00:00' },
      { user_id: 'ann', ts: '2025-03-29 02:01:00' },
      { user_id: 'ann', ts: '2025-03-29 02:02:00' },
      { user_id: 'ann', ts: '2025-03-29 02:03:00' },
      { user_id: 'ann', ts: '2025-03-30 02:00:00' },
    ]);
    expect(await rowsOf(connection, 'SELECT user_id, bpm FROM heart_rate')).toEqual([
      { user_id: 'ann', bpm: 61 },
      { user_id: 'ann', bpm: 63 },
      { user_id: 'ann', bpm: 65 },
      { user_id: 'zoe', bpm: 61 },
      { user_id: 'zoe', bpm: 63 },
      { user_id: 'zoe', bpm: 65 },
    ]);
    expect(await rowsOf(connection, `SELECT table_name FROM duckdb_tables() WHERE schema_name = 'sync' ORDER BY 1`)).toEqual([
      { table_name: 'accounts' },
      { table_name: 'consents' },
      { table_name: 'drift' },
      { table_name: 'events' },
      { table_name: 'missed_events' },
      { table_name: 'rejected' },
      { table_name: 'routes' },
      { table_name: 'runs' },
      { table_name: 'snapshot' },
      { table_name: 'tombstones' },
      { table_name: 'windows' },
    ]);
    const found = await connection.runAndReadAll(
      `SELECT table_name, column_name, data_type, comment FROM duckdb_columns() WHERE NOT internal AND schema_name = 'main' ORDER BY ALL`,
    );
    expect(found.getRows()).toEqual(comments);
    expect(await rowsOf(connection, `SELECT table_name FROM duckdb_tables() WHERE coalesce(comment, '') = ''`)).toEqual([]);
  });
});

test('its mode is what was asked for; nothing is left beside it', async () => {
  const warehouse = await filled();
  const path = join(dirname(warehouse.path), 'shared/folder/for-all.duckdb');
  await warehouse.snapshot(path, 0o644);
  expect(statSync(path).mode & 0o777).toBe(0o644);
  await warehouse.snapshot(path, 0o600);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect([`${path}.new`, `${path}.new.wal`, `${path}.wal`].filter(file => existsSync(file))).toEqual([]);
  await warehouse.close();
});

test('whoever has the last one open keeps it whole, and the next reader sees the new one', async () => {
  const warehouse = await filled();
  const path = join(dirname(warehouse.path), 'snapshot.duckdb');
  await warehouse.snapshot(path, 0o600);
  const ask = async (child: ReturnType<typeof startChild>) => {
    child.process.stdin!.write('SELECT count(*), sum(sk)::INTEGER FROM daily_activity_met\n');
    return child.line();
  };
  const old = startChild(childScript, 'read', path);
  expect(await old.line()).toBe('ready');
  expect(await ask(old)).toBe('[["24",84]]');
  await store(warehouse, 'daily_activity', [{ ...ACTIVITY, id: 'more' }]);
  await Promise.all([warehouse.snapshot(path, 0o600), warehouse.snapshot(path, 0o600)]);
  expect(await ask(old)).toBe('[["24",84]]');
  const young = startChild(childScript, 'read', path);
  expect(await young.line()).toBe('ready');
  expect(await ask(young)).toBe('[["28",120]]');
  for (const child of [old, young]) {
    child.process.stdin!.end();
    expect(await child.ended).toBe(0);
  }
  await warehouse.close();
});

test('what a crash left of the last attempt is in nobody’s way', async () => {
  const warehouse = await filled();
  const path = join(dirname(warehouse.path), 'snapshot.duckdb');
  for (const leftover of [`${path}.new`, `${path}.new.wal`, `${path}.wal`]) writeFileSync(leftover, 'half a file');
  await warehouse.snapshot(path, 0o600);
  expect(await withDuckDB(path, connection => rowsOf(connection, 'SELECT count(*) AS n FROM sleep'))).toEqual([{ n: 1 }]);
  await warehouse.close();
});

test('an attempt that fails leaves the last snapshot, and the next succeeds', async () => {
  let full = false;
  const base = await filled();
  await base.close();
  const warehouse = await openWarehouse(base.path, {
    beforeGroup: () => {
      if (full) throw new Error('no room');
    },
  });
  const path = join(dirname(warehouse.path), 'snapshot.duckdb');
  await warehouse.snapshot(path, 0o600);
  const before = statSync(path).ino;
  full = true;
  await expect(warehouse.snapshot(path, 0o600)).rejects.toThrow('no room');
  expect(statSync(path).ino).toBe(before);
  full = false;
  await warehouse.snapshot(path, 0o600);
  expect(statSync(path).ino).not.toBe(before);
  await warehouse.close();
});

test('the writer goes on while a snapshot is taken, and the snapshot is of one moment', async () => {
  const warehouse = await filled();
  const path = join(dirname(warehouse.path), 'snapshot.duckdb');
  const taken = warehouse.snapshot(path, 0o600);
  for (let i = 0; i < 30; i++) await store(warehouse, 'daily_activity', [{ ...ACTIVITY, id: `x-${i % 4}`, steps: i }]);
  await taken;
  await warehouse.close();
  expect(
    await withDuckDB(path, connection =>
      rowsOf(connection, `SELECT sum(met_count) - (SELECT count(*) FROM daily_activity_met) AS difference FROM daily_activity`),
    ),
  ).toEqual([{ difference: 0 }]);
});

test('the generated script and those of the views make in an empty DuckDB what the program makes', async () => {
  const catalogue = `SELECT schema_name, table_name, comment, NULL AS column_name, NULL AS column_index, NULL AS data_type, NULL AS column_comment FROM duckdb_tables()
    UNION ALL SELECT schema_name, table_name, NULL, column_name, column_index, data_type, comment FROM duckdb_columns() WHERE NOT internal ORDER BY ALL`;
  const path = newPath(folder);
  await (await openWarehouse(path)).close();
  const made = await withDuckDB(path, connection => rowsOf(connection, catalogue));
  const scripted = await withDuckDB(':memory:', async connection => {
    await connection.run(warehouseScript(mapAll(resources)));
    await createViews(connection);
    return rowsOf(connection, catalogue);
  });
  expect(scripted).toEqual(made);
  expect(made.length).toBeGreaterThan(280);
});
