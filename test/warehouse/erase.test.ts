import { copyFileSync, existsSync, lstatSync, mkdirSync, readdirSync, statSync, symlinkSync } from 'node:fs';
import { dirname } from 'node:path';
import { DuckDBConnection } from '@duckdb/node-api';
import { afterEach, expect, test, vi } from 'vitest';
import { RingneckError } from '../../src/base/errors.ts';
import { type Needle, searchDatabase } from '../../src/warehouse/readers/search.ts';
import { requestWithout, rewriteWithout } from '../../src/warehouse/store/file/erase.ts';
import type { Warehouse } from '../../src/warehouse/warehouse.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse, resourceNamed, rowsOf, withDuckDB } from '../support/warehouse.ts';
import { isWhole } from '../support/whole.ts';
import { ACTIVITY, SLEEP, STRESS } from '../support/wire.ts';

const folder = tempFolder();

afterEach(() => {
  vi.restoreAllMocks();
});
const MICROS = 1_736_899_200_000_000;
const ADA = { userId: 'ada', serviceUserIds: ['service-id-of-ada'] };
const WORDS: Needle[] = [
  { what: 'name', text: 'ada' },
  { what: 'service id', text: 'service-id-of-ada' },
];

let made: Promise<string> | undefined;

/** A file in which ada and adam have the same documents; so has what the ledger says of them. */
async function filled(): Promise<string> {
  made ??= make();
  const path = newPath(folder);
  mkdirSync(dirname(path));
  copyFileSync(await made, path);
  return path;
}

async function make(): Promise<string> {
  const path = newPath(folder);
  const warehouse = await openWarehouse(path);
  for (const userId of ['ada', 'adam']) await fill(warehouse, userId);
  const request = (users: string[]) => JSON.stringify({ kind: 'backfill', from: '2025-03-01', to: '2025-03-02', users, refresh: false });
  await warehouse.record([
    { table: 'sync.runs', key: { run_id: 'hers' }, row: { kind: 'backfill', state: 'complete', request: request(['ada']) } },
    { table: 'sync.runs', key: { run_id: 'both' }, row: { kind: 'backfill', state: 'complete', request: request(['ada', 'adam']) } },
    { table: 'sync.runs', key: { run_id: 'his' }, row: { kind: 'backfill', state: 'complete', request: request(['adam']) } },
    { table: 'sync.runs', key: { run_id: 'bare' }, row: { kind: 'backfill', state: 'complete' } },
    // Before anybody knew whose id it is.
    { table: 'sync.events', key: { received_at: 1 }, row: { event_type: 'create', service_user_id: 'service-id-of-ada' } },
    { table: 'sync.events', key: { received_at: 2 }, row: { event_type: 'create', service_user_id: 'somebody' } },
  ]);
  await warehouse.close();
  return path;
}

async function fill(warehouse: Warehouse, userId: string): Promise<void> {
  const documents = [
    ['sleep', SLEEP],
    ['daily_activity', ACTIVITY],
    ['sleep', { ...SLEEP, id: 'bad', day: 'never' }],
  ] as const;
  for (const [name, document] of documents) {
    const requestedAt = warehouse.clock.lease();
    await warehouse.storeDocuments({ userId, resource: resourceNamed(name), requestedAt, documents: [document] });
  }
  const requestedAt = warehouse.clock.lease();
  await warehouse.storeDocuments({ userId, resource: resourceNamed('daily_stress'), requestedAt, documents: [STRESS], removed: ['gone'] });
  await warehouse.storeHeartRate({
    userId,
    from: MICROS,
    to: MICROS + 9_000_000,
    requestedAt: warehouse.clock.lease(),
    rows: [{ timestamp: '2025-01-15T00:00:01Z', timestamp_unix: 1_736_899_201_000, bpm: 61, source: 'rest' }],
  });
  await warehouse.record([
    { table: 'sync.windows', row: { run_id: 'both', user_id: userId, collection: 'sleep', outcome: 'complete' } },
    { table: 'sync.accounts', key: { user_id: userId }, row: { state: 'active', service_user_id: `service-id-of-${userId}` } },
    { table: 'sync.events', row: { received_at: 3, event_type: 'update', user_id: userId, service_user_id: `service-id-of-${userId}` } },
    {
      table: 'sync.suspicions',
      key: { user_id: userId, collection: 'session', kind: 'missing', object_id: 'n-1' },
      row: { first_seen_at: 5 },
    },
    { table: 'sync.missed_events', row: { found_at: 4, user_id: userId, collection: 'sleep', id: SLEEP.id, event_type: 'update' } },
  ]);
}

/** Every row of every table, but for those of one person and the requests of runs. */
function content(path: string, userId?: string): Promise<Record<string, unknown[]>> {
  return withDuckDB(path, async connection => {
    const rows: Record<string, unknown[]> = {};
    const columns = (await rowsOf(
      connection,
      `SELECT schema_name || '.' || table_name AS name, bool_or(column_name = 'user_id') AS has_user FROM duckdb_columns()
       WHERE NOT internal AND database_name = current_database() AND (schema_name, table_name) IN
         (SELECT (schema_name, table_name) FROM duckdb_tables()) GROUP BY ALL ORDER BY ALL`,
    )) as { name: string; has_user: boolean }[];
    for (const { name, has_user } of columns) {
      if (name === 'sync.runs') continue;
      const where = has_user && userId ? `WHERE user_id IS DISTINCT FROM '${userId}'` : '';
      const read = await rowsOf(connection, `FROM ${name} ${where}`);
      rows[name] = read.map(row => JSON.stringify(row)).toSorted();
    }
    return rows;
  });
}

/** Columns, comments, views and macros. */
function catalogue(path: string): Promise<unknown[]> {
  return withDuckDB(path, async connection => [
    ...(await rowsOf(
      connection,
      'SELECT table_name, column_name, data_type, comment FROM duckdb_columns() WHERE NOT internal ORDER BY ALL',
    )),
    ...(await rowsOf(connection, 'SELECT table_name, comment FROM duckdb_tables() ORDER BY ALL')),
    ...(await rowsOf(connection, 'SELECT view_name, comment, sql FROM duckdb_views() WHERE NOT internal ORDER BY ALL')),
    ...(await rowsOf(
      connection,
      'SELECT function_name, comment, macro_definition FROM duckdb_functions() WHERE NOT internal ORDER BY ALL',
    )),
  ]);
}

test('a person leaves the file; what is of others, of the same days and of like names, stays as it was', async () => {
  const path = await filled();
  const before = { catalogue: await catalogue(path), content: await content(path, 'ada') };
  before.content['sync.events'] = before.content['sync.events']!.filter(row => !/service-id-of-ada"/.test(String(row)));
  const old = statSync(path).ino;

  expect(await rewriteWithout(path, ADA, () => {})).toEqual({
    daily_activity: 1,
    daily_activity_met: 4,
    daily_stress: 1,
    heart_rate: 1,
    sleep: 1,
    sleep_heart_rate: 3,
    'sync.runs': 1,
    'sync.windows': 1,
    'sync.events': 2,
    'sync.missed_events': 1,
    'sync.rejected': 1,
    'sync.tombstones': 1,
    'sync.suspicions': 1,
    'sync.accounts': 1,
  });

  expect(statSync(path).ino).not.toBe(old);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readdirSync(dirname(path))).toEqual(['warehouse.duckdb']);
  expect(await catalogue(path)).toEqual(before.catalogue);
  expect(await content(path)).toEqual(before.content);
  const runs = await withDuckDB(path, connection => rowsOf(connection, 'SELECT run_id, request FROM sync.runs ORDER BY run_id'));
  expect(runs).toMatchObject([
    { run_id: 'bare', request: null },
    { run_id: 'both', request: { users: ['adam'], from: '2025-03-01' } },
    { run_id: 'his', request: { users: ['adam'] } },
  ]);
  const warehouse = await openWarehouse(path);
  expect(await warehouse.read('SELECT user_id FROM sleep')).toEqual([['adam']]);
  await warehouse.close();
});

test('the search finds a person in every table of the old file and nowhere in the new one', async () => {
  const path = await filled();
  const names = (await searchDatabase(path, WORDS)).filter(({ what }) => what === 'name').map(({ where }) => where);
  expect(names.toSorted()).toEqual([
    'daily_activity.user_id',
    'daily_activity_met.user_id',
    'daily_stress.user_id',
    'heart_rate.user_id',
    'sleep.user_id',
    'sleep_heart_rate.user_id',
    'sync.accounts.user_id',
    'sync.events.user_id',
    'sync.missed_events.user_id',
    'sync.rejected.user_id',
    'sync.runs.request',
    'sync.suspicions.user_id',
    'sync.tombstones.user_id',
    'sync.windows.user_id',
  ]);
  await rewriteWithout(path, ADA, () => {});
  expect(await searchDatabase(path, WORDS)).toEqual([]);
});

test('tables, views and macros of others are kept, their rows of the person are not, and a view made of the person is found', async () => {
  const path = await filled();
  await withDuckDB(path, async connection => {
    await connection.run(`CREATE TABLE notes (user_id VARCHAR, note VARCHAR DEFAULT 'none', PRIMARY KEY (user_id))`);
    await connection.run(`INSERT INTO notes VALUES ('ada', 'x'), ('adam', 'y')`);
    await connection.run(`CREATE TABLE "notes.of ada's" AS FROM notes`);
    await connection.run('CREATE MACRO twice(x) AS x * 2');
    await connection.run(`CREATE VIEW hers AS SELECT id FROM sleep WHERE user_id = 'ada'`);
  });
  expect(await rewriteWithout(path, ADA, () => {})).toMatchObject({ notes: 1, "notes.of ada's": 1 });
  await withDuckDB(path, async connection => {
    expect(await rowsOf(connection, `FROM "notes.of ada's"`)).toEqual([{ user_id: 'adam', note: 'y' }]);
    expect(await rowsOf(connection, 'SELECT user_id, note, twice(4) AS eight FROM notes')).toEqual([
      { user_id: 'adam', note: 'y', eight: 8 },
    ]);
    expect(await rowsOf(connection, 'FROM hers')).toEqual([]);
  });
  expect(await searchDatabase(path, WORDS)).toEqual([
    { what: 'name', where: 'the view hers' },
    { what: 'name', where: "the name of a table: notes.of ada's" },
  ]);
});

test('a generated column comes again by itself, a column in capitals counts, and the catalogue is searched', async () => {
  const path = await filled();
  await withDuckDB(path, async connection => {
    await connection.run(`CREATE TABLE notes ("USER_ID" VARCHAR, n INTEGER DEFAULT 7, twice INTEGER GENERATED ALWAYS AS (n * 2))`);
    await connection.run(`INSERT INTO notes (USER_ID) VALUES ('ada'), ('adam'); INSERT INTO notes (USER_ID, n) VALUES ('adam', 8)`);
    await connection.run(`CREATE TABLE diary (line VARCHAR); INSERT INTO diary VALUES ('met ada, at noon'), ('met adam')`);
    await connection.run(`CREATE TABLE notes_ada (i INTEGER); CREATE TYPE friend AS ENUM ('ada', 'adam')`);
    await connection.run(`COMMENT ON TABLE diary IS 'by ada'; COMMENT ON COLUMN sleep.day IS 'the nights of ada'`);
  });
  expect(await rewriteWithout(path, ADA, () => {})).toMatchObject({ notes: 1 });
  await withDuckDB(path, async connection => {
    expect(await rowsOf(connection, 'FROM notes ORDER BY n')).toEqual([
      { USER_ID: 'adam', n: 7, twice: 14 },
      { USER_ID: 'adam', n: 8, twice: 16 },
    ]);
  });
  expect((await searchDatabase(path, WORDS)).map(({ where }) => where).toSorted()).toEqual([
    'a comment on sleep.day',
    'a comment on the table diary',
    'diary.line',
    'the name of a table: notes_ada',
    'the type friend',
  ]);
});

test('where the path is a link the file that it leads to is replaced, and its log is read', async () => {
  const there = await filled();
  await withDuckDB(there, async connection => {
    await connection.run('PRAGMA disable_checkpoint_on_shutdown');
    await connection.run(`UPDATE sync.accounts SET reason = 'in the log'`);
  });
  expect(existsSync(`${there}.wal`)).toBe(true);
  const link = newPath(folder);
  mkdirSync(dirname(link));
  symlinkSync(there, link);
  expect(await rewriteWithout(link, ADA, () => {})).toMatchObject({ sleep: 1, 'sync.accounts': 1 });
  expect(lstatSync(link).isSymbolicLink()).toBe(true);
  expect(readdirSync(dirname(there))).toEqual(['warehouse.duckdb']);
  expect(await searchDatabase(there, WORDS)).toEqual([]);
  const accounts = await withDuckDB(link, connection => rowsOf(connection, 'SELECT user_id, reason FROM sync.accounts'));
  expect(accounts).toEqual([{ user_id: 'adam', reason: 'in the log' }]);
});

test('an account that is called like a word of the ledger or of a comment is told from it', async () => {
  const path = await filled();
  const words = ['complete', '1', 'format', 'accounts', 'backfill', 'users', 'kind', 'paused', 'user_id', 'id'];
  expect(
    await searchDatabase(
      path,
      words.map(text => ({ what: 'name', text })),
    ),
  ).toEqual([]);
});

test('an account that is called like a word of the data is told from it', async () => {
  const path = newPath(folder);
  const warehouse = await openWarehouse(path);
  for (const userId of ['rest', 'sleep', 'adam']) await fill(warehouse, userId);
  await warehouse.close();
  for (const userId of ['rest', 'sleep']) {
    expect(await rewriteWithout(path, { userId, serviceUserIds: [] }, () => {})).toMatchObject({ sleep: 1, heart_rate: 1 });
    expect(await searchDatabase(path, [{ what: 'name', text: userId }])).toEqual([]);
  }
  expect((await content(path))['main.heart_rate']).toHaveLength(1);
});

/** Four findings of two people, each after another one, and what two of them say of a second one; and a pair that names a pair. */
const REFERRING = `
  CREATE TABLE diagnoses (user_id VARCHAR, code VARCHAR PRIMARY KEY, follows VARCHAR REFERENCES Diagnoses (code),
    "beside it" VARCHAR REFERENCES diagnoses (code));
  INSERT INTO diagnoses VALUES ('eve', 'a', NULL, NULL); INSERT INTO diagnoses VALUES ('adam', 'b', 'a', NULL);
  INSERT INTO diagnoses VALUES ('adam', 'c', 'b', 'a'); INSERT INTO diagnoses VALUES ('adam', 'd', 'a', 'c');
  CREATE TABLE pairs (x INTEGER, y INTEGER, of_x INTEGER, of_y INTEGER, UNIQUE (x, y), FOREIGN KEY (of_x, of_y) REFERENCES pairs (x, y));
  INSERT INTO pairs VALUES (1, 1, NULL, 7), (1, NULL, NULL, NULL), (1, NULL, NULL, NULL); INSERT INTO pairs VALUES (2, 1, 1, 1)`;

test('a table of others whose rows refer to one another is kept whole, and it still refuses what refers to nothing', async () => {
  const path = await filled();
  await withDuckDB(path, async connection => {
    await connection.run(REFERRING);
    await connection.run(`INSERT INTO diagnoses VALUES ('ada', 'e', 'd', NULL)`);
  });
  expect(await rewriteWithout(path, ADA, () => {})).toMatchObject({ diagnoses: 1 });
  await withDuckDB(path, async connection => {
    expect(await rowsOf(connection, 'SELECT code, follows, "beside it" AS b FROM diagnoses ORDER BY code')).toEqual([
      { code: 'a', follows: null, b: null },
      { code: 'b', follows: 'a', b: null },
      { code: 'c', follows: 'b', b: 'a' },
      { code: 'd', follows: 'a', b: 'c' },
    ]);
    expect(await rowsOf(connection, 'FROM pairs ORDER BY ALL')).toEqual([
      { x: 1, y: 1, of_x: null, of_y: 7 },
      { x: 1, y: null, of_x: null, of_y: null },
      { x: 1, y: null, of_x: null, of_y: null },
      { x: 2, y: 1, of_x: 1, of_y: 1 },
    ]);
    await expect(connection.run(`INSERT INTO diagnoses VALUES ('adam', 'f', 'g', NULL)`)).rejects.toThrow(/foreign key/);
  });
});

/** How many rows a chain has. */
const CHAIN = isWhole ? 10_000 : 1_000;

test('a long chain of rows, each of which names the one before, does not stand in the way of erasing', async () => {
  const path = await filled();
  await withDuckDB(path, async connection => {
    await connection.run('CREATE TABLE notes (user_id VARCHAR, code VARCHAR PRIMARY KEY, follows VARCHAR REFERENCES notes (code)); BEGIN');
    const inserts = Array.from({ length: CHAIN }, (_, i) => {
      const follows = i ? `'${CHAIN + 1 - i}'` : 'NULL';
      return `INSERT INTO notes VALUES ('adam', '${CHAIN - i}', ${follows})`;
    });
    while (inserts.length) await connection.run(inserts.splice(0, 500).join(';'));
    await connection.run(`COMMIT; INSERT INTO notes VALUES ('ada', 'last', '1')`);
  });
  expect(await rewriteWithout(path, ADA, () => {})).toMatchObject({ notes: 1 });
  await withDuckDB(path, async connection => {
    expect(
      await rowsOf(
        connection,
        'SELECT count(*)::INTEGER AS n, count(follows)::INTEGER AS named, bool_and(follows::INTEGER = code::INTEGER + 1) AS kept FROM notes',
      ),
    ).toEqual([{ n: CHAIN, named: CHAIN - 1, kept: true }]);
  });
});

test('a table whose rows refer to keys that differ only in what their collation does not see is no obstacle to erasing', async () => {
  const path = await filled();
  await withDuckDB(path, async connection => {
    await connection.run(
      'CREATE TABLE notes (user_id VARCHAR, code VARCHAR COLLATE NOCASE PRIMARY KEY, follows VARCHAR REFERENCES notes (code))',
    );
    for (const row of [`('adam', 'A', NULL)`, `('adam', 'a', 'A')`, `('ada', 'b', 'a')`]) {
      await connection.run(`INSERT INTO notes VALUES ${row}`);
    }
  });
  expect(await rewriteWithout(path, ADA, () => {})).toMatchObject({ notes: 1 });
  expect(await withDuckDB(path, connection => rowsOf(connection, 'SELECT code, follows FROM notes ORDER BY rowid'))).toEqual([
    { code: 'A', follows: null },
    { code: 'a', follows: 'A' },
  ]);
});

test('a table of others that compares ids without capitals loses the rows of the person alone', async () => {
  const path = await filled();
  await withDuckDB(path, async connection => {
    await connection.run('CREATE TABLE mine (service_user_id VARCHAR COLLATE NOCASE, n INTEGER)');
    await connection.run(`INSERT INTO mine VALUES ('sid-a', 1), ('SID-A', 2), ('sid-b', 3), (NULL, 4)`);
  });
  expect(await rewriteWithout(path, { userId: 'ada', serviceUserIds: ['sid-a'] }, () => {})).toMatchObject({ mine: 1 });
  expect(await withDuckDB(path, connection => rowsOf(connection, 'SELECT n FROM mine ORDER BY n'))).toEqual([{ n: 2 }, { n: 3 }, { n: 4 }]);
});

test('a table whose rows refer to one another may have columns that are called rowid and row_number', async () => {
  const path = await filled();
  await withDuckDB(path, async connection => {
    await connection.run(
      'CREATE TABLE notes (user_id VARCHAR, rowid INTEGER, ROW_NUMBER VARCHAR, code VARCHAR PRIMARY KEY, follows VARCHAR REFERENCES notes (CODE))',
    );
    await connection.run(`INSERT INTO notes VALUES ('eve', NULL, 'x', 'a', NULL); INSERT INTO notes VALUES ('adam', NULL, 'y', 'b', 'a')`);
    await connection.run(`INSERT INTO notes VALUES ('adam', 7, NULL, 'c', 'b'); INSERT INTO notes VALUES ('ada', 7, NULL, 'd', 'c')`);
  });
  expect(await rewriteWithout(path, ADA, () => {})).toMatchObject({ notes: 1 });
  const notes = await withDuckDB(path, connection => rowsOf(connection, 'FROM notes ORDER BY code'));
  expect(notes).toEqual([
    { user_id: 'eve', rowid: null, ROW_NUMBER: 'x', code: 'a', follows: null },
    { user_id: 'adam', rowid: null, ROW_NUMBER: 'y', code: 'b', follows: 'a' },
    { user_id: 'adam', rowid: 7, ROW_NUMBER: null, code: 'c', follows: 'b' },
  ]);
});

test('why a table cannot be copied is told without what is in it', async () => {
  const path = await filled();
  await withDuckDB(path, async connection => {
    await connection.run(REFERRING);
    await connection.run(
      `INSERT INTO diagnoses VALUES ('ada', 'a secret', NULL, NULL); INSERT INTO diagnoses VALUES ('adam', 'f', 'a secret', NULL)`,
    );
  });
  const before = await content(path);
  const error = await rewriteWithout(path, ADA, () => {}).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({
    message:
      'the table diagnoses cannot be copied (Constraint Error): nothing was erased; drop that table, or what it refers to, and try again',
  });
  expect(await content(path)).toEqual(before);
});

test('nobody is told to drop a table of ours', async () => {
  const path = await filled();
  const run = DuckDBConnection.prototype.run;
  vi.spyOn(DuckDBConnection.prototype, 'run').mockImplementation(function (this: DuckDBConnection, ...parameters) {
    if (String(parameters[0]).startsWith('INSERT INTO "new"."main"."daily_stress"')) throw new Error('IO Error: simulated');
    return run.apply(this, parameters);
  });
  await expect(rewriteWithout(path, ADA, () => {})).rejects.toThrow(
    new RingneckError('the table daily_stress cannot be copied (IO Error): nothing was erased; try again'),
  );
});

test('when it cannot be done the old file is left as it was', async () => {
  const path = await filled();
  const before = await content(path);
  let tables = 0;
  const full = () => {
    if (++tables === 9) throw new Error('the disk is full');
  };
  await expect(rewriteWithout(path, ADA, full)).rejects.toThrow('the disk is full');
  expect(readdirSync(dirname(path))).toEqual(['warehouse.duckdb']);
  expect(await content(path)).toEqual(before);
});

test('a log that the old file was left with is read before, and does not come back', async () => {
  const path = await filled();
  await withDuckDB(path, async connection => {
    await connection.run(`SET wal_autocheckpoint = '1GB'; SET checkpoint_threshold = '1GB'`);
    await connection.run('PRAGMA disable_checkpoint_on_shutdown');
    await connection.run(`UPDATE sync.accounts SET reason = 'in the log' WHERE user_id IN ('ada', 'adam')`);
  });
  expect(existsSync(`${path}.wal`)).toBe(true);
  await rewriteWithout(path, ADA, () => {});
  expect(readdirSync(dirname(path))).toEqual(['warehouse.duckdb']);
  const accounts = await withDuckDB(path, connection => rowsOf(connection, 'SELECT user_id, reason FROM sync.accounts'));
  expect(accounts).toEqual([{ user_id: 'adam', reason: 'in the log' }]);
});

test('a request names a person in lists of users and of what belongs to one', () => {
  expect(requestWithout({ users: ['ada'], collections: ['ada'] }, 'ada')).toBeUndefined();
  expect(
    requestWithout({ users: ['ada', 'adam'], collections: ['ada'], spans: [{ userId: 'ada', from: 'x' }, { user_id: 'adam' }] }, 'ada'),
  ).toEqual({ users: ['adam'], collections: ['ada'], spans: [{ user_id: 'adam' }] });
  expect(requestWithout({ users: [], from: 'x' }, 'ada')).toEqual({ users: [], from: 'x' });
});
