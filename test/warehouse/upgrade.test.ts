import { cpSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { DuckDBConnection } from '@duckdb/node-api';
import { afterEach, expect, test, vi } from 'vitest';
import { FORMAT } from '../../src/warehouse/format.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse, rowsOf, store, withDuckDB } from '../support/warehouse.ts';
import { someOf } from '../support/whole.ts';
import { STRESS } from '../support/wire.ts';

const folder = tempFolder();

afterEach(() => {
  vi.restoreAllMocks();
});

/** What the version of format 2 left: a document, a window without the columns of today, and a table and a view of somebody else. */
async function olderFile(): Promise<string> {
  const path = newPath(folder);
  const warehouse = await openWarehouse(path);
  await store(warehouse, 'daily_stress', [STRESS]);
  await warehouse.close();
  await withDuckDB(path, connection =>
    connection.run(
      `INSERT INTO sync.windows (run_id, user_id, collection, outcome) VALUES ('r', 'ann', 'daily_stress', 'complete');
       ALTER TABLE sync.windows DROP COLUMN pages;
       CREATE TABLE mine AS SELECT 1 AS one;
       CREATE VIEW my_days AS SELECT day FROM daily_stress;
       UPDATE sync.meta SET value = '2' WHERE key = 'format'`,
    ),
  );
  return path;
}

const copiesBeside = (path: string) => readdirSync(dirname(path)).filter(name => name.startsWith(`${basename(path)}.before-upgrade-`));

/** Format and columns of the windows, and what is stored. */
const look = (path: string) =>
  withDuckDB(path, async connection => ({
    format: await rowsOf(connection, `SELECT value FROM sync.meta WHERE key = 'format'`),
    pages: await rowsOf(
      connection,
      `SELECT count(*) AS n FROM duckdb_columns() WHERE schema_name = 'sync' AND table_name = 'windows' AND column_name = 'pages'`,
    ),
    rows: await rowsOf(connection, 'SELECT w.run_id, d.id, m.one FROM sync.windows w, daily_stress d, mine m, my_days'),
  }));

const ROWS = [{ run_id: 'r', id: 't-1', one: 1 }];
const OLD = { format: [{ value: '2' }], pages: [{ n: 0 }], rows: ROWS };
const NEW = { format: [{ value: String(FORMAT) }], pages: [{ n: 1 }], rows: ROWS };

test('a file of an earlier format is upgraded, and lies as it was beside itself', async () => {
  const path = await olderFile();
  const said: string[] = [];
  await (await openWarehouse(path, { onUpgrade: message => said.push(message) })).close();
  expect(await look(path)).toEqual(NEW);
  const [copy, ...others] = copiesBeside(path);
  expect(others).toEqual([]);
  const kept = join(dirname(path), copy!);
  expect(copy).toMatch(/^warehouse\.duckdb\.before-upgrade-\d{8}T\d{6}Z-[0-9a-f]{8}$/);
  expect(statSync(kept).mode & 0o777).toBe(0o600);
  expect(await look(kept)).toEqual(OLD);
  expect(said).toEqual([
    `${path} was made by an earlier version (format 2, now ${FORMAT}) and is upgraded; first it is copied as it is to ${kept}: remove that when all is well`,
  ]);
  await (await openWarehouse(path, { onUpgrade: message => said.push(message) })).close();
  expect([copiesBeside(path).length, said.length]).toEqual([1, 1]);
});

test('a table that gains a column is such a change too, whatever the format; one that is new, or gains words, is none', async () => {
  const path = await olderFile();
  await (await openWarehouse(path)).close();
  await withDuckDB(path, connection => connection.run('DROP TABLE sync.drift; COMMENT ON TABLE sleep IS NULL'));
  await (await openWarehouse(path)).close();
  expect(copiesBeside(path)).toHaveLength(1);
  await withDuckDB(path, connection => connection.run('ALTER TABLE sleep DROP COLUMN period'));
  await (await openWarehouse(path)).close();
  expect(copiesBeside(path)).toHaveLength(2);
});

test('where the copy cannot be made the file stays as it is, and the next time it is upgraded', async () => {
  const path = await olderFile();
  let left = 3;
  const beforeGroup = () => {
    if (left-- === 0) throw new Error('the disk is almost full');
  };
  await expect(openWarehouse(path, { beforeGroup })).rejects.toThrow(
    `${path} was made by an earlier version (format 2, now ${FORMAT}); it is upgraded only when there is a copy of it beside it: the disk is almost full`,
  );
  expect(readdirSync(dirname(path))).toEqual(['warehouse.duckdb']);
  expect(await look(path)).toEqual(OLD);
  await (await openWarehouse(path)).close();
  expect(await look(path)).toEqual(NEW);
  expect(copiesBeside(path)).toHaveLength(1);
});

test('killed at any step of the upgrade it is upgraded by the next opening, and a whole copy of before is there', async () => {
  const path = await olderFile();
  const steps: string[] = [];
  const { run } = DuckDBConnection.prototype;
  vi.spyOn(DuckDBConnection.prototype, 'run').mockImplementation(function (this: DuckDBConnection, ...given) {
    const copy = `${dirname(path)}-${steps.length}`;
    cpSync(dirname(path), copy, { recursive: true });
    steps.push(join(copy, basename(path)));
    return run.apply(this, given);
  });
  await (await openWarehouse(path)).close();
  vi.restoreAllMocks();
  expect(steps.length).toBeGreaterThan(40);
  const last = steps.length - 1;
  for (const at of someOf([...steps.keys()], { always: [0, 3, last - 1, last], more: 2 })) {
    const own = steps[at]!;
    await (await openWarehouse(own)).close();
    expect(await look(own), `killed at ${at}`).toEqual(NEW);
    const copies = await Promise.all(copiesBeside(own).map(name => look(join(dirname(own), name))));
    expect(copies.slice(0, 1), `killed at ${at}`).toEqual([OLD]);
    expect(readdirSync(dirname(own)).filter(name => name.includes('.new'))).toEqual([]);
  }
});
