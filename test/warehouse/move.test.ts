import { readdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, test, vi } from 'vitest';
import { searchDatabase } from '../../src/warehouse/readers/search.ts';
import { rewriteWithout } from '../../src/warehouse/store/file/erase.ts';
import { requestRenamed, rewriteRenamed } from '../../src/warehouse/store/file/move.ts';
import { Memory } from '../../src/warehouse/store/memory.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse, rowsOf, withDuckDB } from '../support/warehouse.ts';

const folder = tempFolder();
const MOVE = { from: 'ada', to: 'anna' };
const AGAIN = 'sign in again: ringneck account login';

/** Whatever has a column `user_id`. */
const NAMING = `SELECT '"' || schema_name || '"."' || table_name || '"' AS name FROM duckdb_tables() JOIN duckdb_columns() USING (table_oid, database_oid, schema_name, table_name)
  WHERE duckdb_tables.database_name = current_database() AND column_name = 'user_id' ORDER BY ALL`;

const namesIn = (path: string) =>
  withDuckDB(path, async connection => {
    const tables = (await rowsOf(connection, NAMING)) as { name: string }[];
    const names: Record<string, unknown> = {};
    for (const { name } of tables) {
      names[name] = (await rowsOf(connection, `SELECT user_id FROM ${name} ORDER BY ALL`)).map(row => Object.values(row as object)[0]);
    }
    return names;
  });

/** A file in which each table that names accounts has a row of ada, one of adam and one of nobody. */
async function filled(more: string[] = []): Promise<string> {
  const path = newPath(folder);
  await (await openWarehouse(path)).close();
  await withDuckDB(path, async connection => {
    for (const sql of more) await connection.run(sql);
    for (const { name } of (await rowsOf(connection, NAMING)) as { name: string }[]) {
      await connection.run(`INSERT INTO ${name} (user_id) VALUES ('ada'), ('adam'), (NULL)`);
    }
  });
  return path;
}

test('in every table, of ours or not, the account has the other name, and whoever else stays', async () => {
  const path = await filled([
    'CREATE TABLE notes (user_id VARCHAR, note VARCHAR)',
    'CREATE SCHEMA own',
    'CREATE TABLE own.seen (user_id VARCHAR)',
  ]);
  const before = await namesIn(path);
  const old = statSync(path).ino;
  const moved = await rewriteRenamed(path, MOVE, () => {});
  expect(Object.keys(moved).length).toBe(Object.keys(before).length);
  expect(new Set(Object.values(moved))).toEqual(new Set([1]));
  for (const [name, names] of Object.entries(await namesIn(path))) expect(names, name).toEqual(['adam', 'anna', null]);
  expect(await searchDatabase(path, [{ what: 'name', text: 'ada' }])).toEqual([]);
  expect([statSync(path).ino === old, statSync(path).mode & 0o777, readdirSync(dirname(path)).sort()]).toEqual([
    false,
    0o600,
    ['warehouse.duckdb', 'warehouse.duckdb.handover'],
  ]);
});

test('whoever has the name in other capitals stays, also in a table that compares them as one', async () => {
  const path = await filled([
    'CREATE TABLE alike (user_id VARCHAR COLLATE NOCASE)',
    `INSERT INTO alike VALUES ('ADA'), ('Anna'), ('Adam')`,
  ]);
  const names = async () => (await namesIn(path))['"main"."alike"'];
  expect(await rewriteRenamed(path, MOVE, () => {})).toMatchObject({ alike: 1 });
  expect(new Set((await names()) as string[])).toEqual(new Set(['ADA', 'Adam', 'Anna', 'adam', 'anna', null]));
  expect(await rewriteWithout(path, { userId: 'anna', serviceUserIds: [] }, () => {})).toMatchObject({ alike: 1 });
  expect(new Set((await names()) as string[])).toEqual(new Set(['ADA', 'Adam', 'Anna', 'adam', null]));
});

test('reasons and requests name the account by the other name', async () => {
  const path = await filled();
  const twin = 'the token is of the same person as the account';
  await withDuckDB(path, async connection => {
    await connection.run(`UPDATE sync.accounts SET reason = '${AGAIN} ' || user_id`);
    await connection.run(
      `INSERT INTO sync.accounts (user_id, reason) VALUES ('cleo', '${twin} ada'), ('dora', '${twin} ada.b; ringneck account remove ada')`,
    );
    await connection.run(
      `INSERT INTO sync.runs (run_id, request) VALUES ('1', '{"users":["ada","adam"],"collections":["ada"]}'), ('2', '{"users":["adam"]}')`,
    );
  });
  await rewriteRenamed(path, MOVE, () => {});
  await withDuckDB(path, async connection => {
    expect(await rowsOf(connection, 'SELECT user_id, reason FROM sync.accounts WHERE user_id IS NOT NULL ORDER BY ALL')).toEqual([
      { user_id: 'adam', reason: `${AGAIN} adam` },
      { user_id: 'anna', reason: `${AGAIN} anna` },
      { user_id: 'cleo', reason: `${twin} anna` },
      { user_id: 'dora', reason: `${twin} ada.b; ringneck account remove anna` },
    ]);
    expect(await rowsOf(connection, 'SELECT request::VARCHAR AS request FROM sync.runs ORDER BY run_id')).toEqual([
      { request: '{"users":["anna","adam"],"collections":["ada"]}' },
      { request: '{"users":["adam"]}' },
    ]);
  });
  expect(requestRenamed({ users: ['ada'], spans: [{ userId: 'ada', from: 'ada' }, { user_id: 'adam' }] }, MOVE)).toEqual({
    users: ['anna'],
    spans: [{ userId: 'anna', from: 'ada' }, { user_id: 'adam' }],
  });
});

test('where the disk fills up, or a table of somebody else cannot have the name, nothing has changed', async () => {
  const path = await filled(["CREATE TABLE kinds (user_id ENUM ('ada', 'adam'))"]);
  const before = await namesIn(path);
  const full = () => {
    throw new Error('the disk is full');
  };
  await expect(rewriteRenamed(path, MOVE, full)).rejects.toThrow('the disk is full');
  await expect(rewriteRenamed(path, MOVE, () => {})).rejects.toThrow(
    'the table kinds cannot be copied (Conversion Error): nothing was moved; drop that table, or what it refers to, and try again',
  );
  await withDuckDB(path, connection => connection.run('DROP TABLE kinds'));
  const { '"main"."kinds"': _, ...left } = before;
  vi.spyOn(Memory.prototype, 'runWithMost').mockImplementation(async function (this: Memory, connection, statement) {
    if (statement === 'CHECKPOINT new') throw new Error('IO Error: Could not write file: No space left on device');
    await connection.run(statement);
  });
  await expect(rewriteRenamed(path, MOVE, () => {})).rejects.toThrow(
    /^nothing was moved, for the new file could not be written whole: .*No space left on device/,
  );
  vi.restoreAllMocks();
  expect([await namesIn(path), readdirSync(dirname(path)).sort()]).toEqual([left, ['warehouse.duckdb', 'warehouse.duckdb.handover']]);
});
