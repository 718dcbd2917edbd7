import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { afterEach, expect, test, vi } from 'vitest';
import { initLake } from '../../src/warehouse/lake.ts';
import { LakeStore } from '../../src/warehouse/store/lake/lake-store.ts';
import { attachLake, withCatalogue } from '../../src/warehouse/store/lake/open-lake.ts';
import { Warehouse } from '../../src/warehouse/warehouse.ts';
import { hasBucket, hasLake, lakePlace, newCatalogue, newLake, startBucket, testPostgres } from '../support/lake.ts';
import { failStatements } from '../support/statement-faults.ts';
import { findBroken } from '../support/table-hash.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse, resourceNamed, rows, store } from '../support/warehouse.ts';
import { openWay } from '../support/way.ts';
import { ACTIVITY, SLEEP } from '../support/wire.ts';

const folder = tempFolder();
const onLake = test.skipIf(!hasLake);
type Lake = Awaited<ReturnType<typeof newLake>>;

afterEach(() => {
  vi.restoreAllMocks();
});

const openLake = async () => {
  const [path, lake] = [newPath(folder), await newLake(folder)];
  return { path, lake, warehouse: await openWarehouse(path, { lake }) };
};

/** As somebody else opens a lake, with plain DuckDB. */
async function asOther<T>(lake: Lake, work: (connection: DuckDBConnection) => Promise<T>, isReader = false): Promise<T> {
  const instance = await DuckDBInstance.create(':memory:');
  try {
    await attachLake(instance, lake, { isReader });
    const connection = await instance.connect();
    await connection.run('USE lake');
    return await work(connection).finally(() => connection.closeSync());
  } finally {
    instance.closeSync();
  }
}

const fact = (key: string, value: string) => ({ table: 'sync.meta', key: { key }, row: { value } });

onLake('a document and its samples are rows of a lake, and there again at the second start', async () => {
  const { path, lake, warehouse } = await openLake();
  expect(await store(warehouse, 'daily_activity', [ACTIVITY])).toMatchObject({ stored: 1, unchanged: 0, samples: 4 });
  await warehouse.close();
  const again = await openWarehouse(path, { lake });
  expect(await rows(again, 'SELECT user_id, id, day, score, average_met_minutes, met_count FROM daily_activity')).toEqual([
    { user_id: 'ann', id: 'a-1', day: '2025-03-30', score: 82, average_met_minutes: 1.53125, met_count: 4 },
  ]);
  expect(await rows(again, 'SELECT user_id, day, ts, utc_offset, value FROM daily_activity_met ORDER BY ts')).toEqual([
    { user_id: 'ann', day: '2025-03-30', ts: '2025-03-30 02:00:00', utc_offset: 7200, value: 0.9 },
    { user_id: 'ann', day: '2025-03-30', ts: '2025-03-30 02:01:00', utc_offset: 7200, value: null },
    { user_id: 'ann', day: '2025-03-30', ts: '2025-03-30 02:02:00', utc_offset: 7200, value: 1.25 },
    { user_id: 'ann', day: '2025-03-30', ts: '2025-03-30 02:03:00', utc_offset: 7200, value: 1.5 },
  ]);
  expect(await rows(again, 'SELECT DISTINCT state FROM sync.coverage WHERE false')).toEqual([]);
  expect(await store(again, 'daily_activity', [ACTIVITY])).toMatchObject({ stored: 0, unchanged: 1 });
  await again.close();
});

onLake('a live document’s rows lie in the catalogue, those of a backfill in files, whatever was stored before', async () => {
  const { lake, warehouse } = await openLake();
  const filesOf = () => readdirSync(lake.address.data, { recursive: true }).filter(name => String(name).endsWith('.parquet')).length;
  const storeNext = (lane: 'live' | 'bulk', id: string, day: string) => {
    const activity = { ...ACTIVITY, id, day, met: { ...ACTIVITY.met, items: Array.from({ length: 100 }, () => 1.5) } };
    const requestedAt = warehouse.clock.lease();
    const page = { userId: 'ann', resource: resourceNamed('daily_activity'), requestedAt, documents: [activity], removed: [] };
    return warehouse.storeDocuments(page, { lane }).finally(() => warehouse.clock.release(requestedAt));
  };
  const made = filesOf();
  await storeNext('live', 'a-1', '2025-03-28');
  expect(filesOf()).toBe(made);
  await storeNext('bulk', 'a-2', '2025-03-29');
  expect(filesOf()).toBe(made + 1);
  await storeNext('live', 'a-3', '2025-03-30');
  expect(filesOf()).toBe(made + 1);
  expect(await rows(warehouse, 'SELECT day, count(*)::INTEGER AS n FROM daily_activity_met GROUP BY day ORDER BY day')).toEqual([
    { day: '2025-03-28', n: 100 },
    { day: '2025-03-29', n: 100 },
    { day: '2025-03-30', n: 100 },
  ]);
  await warehouse.close();
});

/** The statements that read what is stored of documents, from now on. */
function countReadings(): { readonly count: number } {
  const readings = { count: 0 };
  const read = DuckDBConnection.prototype.runAndReadAll;
  vi.spyOn(DuckDBConnection.prototype, 'runAndReadAll').mockImplementation(function (this: DuckDBConnection, ...parameters) {
    if (/fetched_at, content_hash\s+FROM/.test(parameters[0])) readings.count++;
    return read.apply(this, parameters);
  });
  return readings;
}

/** Stores new documents until nothing is read for them. */
async function untilKeysAreKnown(warehouse: Warehouse, readings: { readonly count: number }): Promise<void> {
  for (let n = 0, before = -1; readings.count !== before; n++) {
    before = readings.count;
    await store(warehouse, 'daily_activity', [{ ...ACTIVITY, id: `first-${n}` }]);
  }
}

onLake('what is stored is not read again for a new document, a changed one or the same one, and each is stored once', async () => {
  const { path, lake, warehouse } = await openLake();
  const readings = countReadings();
  await untilKeysAreKnown(warehouse, readings);
  const before = readings.count;
  expect(await store(warehouse, 'sleep', [SLEEP])).toMatchObject({ stored: 1, unchanged: 0 });
  expect(await store(warehouse, 'sleep', [SLEEP])).toMatchObject({ stored: 0, unchanged: 1 });
  expect(await store(warehouse, 'sleep', [{ ...SLEEP, efficiency: 77 }])).toMatchObject({ stored: 1, unchanged: 0 });
  expect(readings.count).toBe(before);
  expect(await rows(warehouse, 'SELECT id, efficiency FROM sleep')).toEqual([{ id: 's-1', efficiency: 77 }]);
  // Of what was removed it is not known that it is.
  expect(await store(warehouse, 'sleep', [], ['s-1'])).toMatchObject({ removed: 1 });
  expect(await store(warehouse, 'sleep', [SLEEP])).toMatchObject({ stored: 1 });
  expect(readings.count).toBe(before + 1);
  await warehouse.close();
  const again = await openWarehouse(path, { lake });
  expect(await store(again, 'sleep', [SLEEP])).toMatchObject({ stored: 0, unchanged: 1 });
  expect(await rows(again, 'SELECT id, count(*)::INTEGER AS n FROM sleep GROUP BY id')).toEqual([{ id: 's-1', n: 1 }]);
  await again.close();
});

onLake('what comes into the lake past the one that writes is found, though it knew all that was there', async () => {
  const { lake, warehouse } = await openLake();
  const readings = countReadings();
  await untilKeysAreKnown(warehouse, readings);
  await asOther(lake, other =>
    other.run(
      `INSERT INTO sleep (user_id, id, day, sk, fetched_at, content_hash) VALUES ('ann', 's-1', '2025-03-30', 999999, '2025-05-01', 'theirs')`,
    ),
  );
  expect(await store(warehouse, 'sleep', [SLEEP])).toMatchObject({ stored: 1 });
  expect(await rows(warehouse, 'SELECT id, efficiency FROM sleep')).toEqual([{ id: 's-1', efficiency: SLEEP.efficiency }]);
  await warehouse.close();
});

onLake('upkeep, and a commit of which no answer came, leave no document twice', async () => {
  const { warehouse } = await openLake();
  const readings = countReadings();
  await untilKeysAreKnown(warehouse, readings);
  await store(warehouse, 'sleep', [SLEEP]);
  await warehouse.compact();
  expect(await store(warehouse, 'sleep', [{ ...SLEEP, efficiency: 77 }])).toMatchObject({ stored: 1 });
  const run = DuckDBConnection.prototype.run;
  const lost = vi.spyOn(DuckDBConnection.prototype, 'run').mockImplementation(async function (this: DuckDBConnection, ...parameters) {
    const result = await run.apply(this, parameters);
    if (parameters[0] !== 'COMMIT') return result;
    lost.mockRestore();
    throw new Error('server closed the connection unexpectedly');
  });
  expect(await store(warehouse, 'sleep', [{ ...SLEEP, id: 's-2' }])).toMatchObject({ stored: 1 });
  expect(await store(warehouse, 'sleep', [{ ...SLEEP, id: 's-2', efficiency: 78 }])).toMatchObject({ stored: 1 });
  expect(await rows(warehouse, 'SELECT id, efficiency FROM sleep ORDER BY id')).toEqual([
    { id: 's-1', efficiency: 77 },
    { id: 's-2', efficiency: 78 },
  ]);
  await warehouse.close();
});

onLake('what another commit overtakes is done again as a whole, and stored once', async () => {
  const [path, lake] = [newPath(folder), await newLake(folder)];
  const mine = await LakeStore.open({ path, lake }, []);
  const connection = await mine.connect();
  let times = 0;
  const before = await mine.transaction(connection, async () => {
    const reader = await connection.runAndReadAll('SELECT count(*)::INTEGER FROM sync.drift');
    if (++times === 1) await asOther(lake, other => other.run(`INSERT INTO sync.drift (path) VALUES ('theirs')`));
    await connection.run(`INSERT INTO sync.drift (path) VALUES ('mine')`);
    return reader.getRows()[0]![0];
  });
  expect([times, before]).toEqual([2, 1]);
  const all = await connection.runAndReadAll('SELECT path FROM sync.drift ORDER BY path');
  expect(all.getRows()).toEqual([['mine'], ['theirs']]);
  await mine.close();
});

onLake('who has lost the lake stores nothing in it any more, and ends', async () => {
  const [path, lake] = [newPath(folder), await newLake(folder)];
  const told: string[] = [];
  const warehouse = await openWarehouse(path, { lake, onFatal: error => void told.push(error.message) });
  await store(warehouse, 'sleep', [SLEEP]);
  const theirs = await openWarehouse(newPath(folder), { lake: { ...lake, owner: 'another folder' } });
  await expect(store(warehouse, 'daily_activity', [ACTIVITY])).rejects.toThrow('another process has taken the lake');
  await expect(warehouse.record([fact('late', '1')])).rejects.toMatchObject({ exitCode: 75 });
  expect(told).toEqual([expect.stringContaining('another process has taken the lake')]);
  await warehouse.close();
  expect(await rows(theirs, 'SELECT (SELECT count(*) FROM sleep) AS sleeps, (SELECT count(*) FROM daily_activity) AS activities')).toEqual([
    { sleeps: 1, activities: 0 },
  ]);
  await theirs.close();
});

onLake('who takes the lake in the moment of a commit keeps the former owner from the next one', async () => {
  const { lake, warehouse } = await openLake();
  let theirs: Warehouse | undefined;
  const run = DuckDBConnection.prototype.run;
  vi.spyOn(DuckDBConnection.prototype, 'run').mockImplementation(async function (this: DuckDBConnection, ...parameters) {
    const result = await run.apply(this, parameters);
    if (parameters[0] !== 'COMMIT' || theirs) return result;
    vi.restoreAllMocks();
    theirs = await openWarehouse(newPath(folder), { lake: { ...lake, owner: 'another folder' } });
    return result;
  });
  expect(await store(warehouse, 'sleep', [SLEEP])).toMatchObject({ stored: 1 });
  await expect(store(warehouse, 'daily_activity', [ACTIVITY])).rejects.toThrow('another process has taken the lake');
  await warehouse.close();
  expect(await rows(theirs!, 'SELECT id FROM sleep UNION ALL SELECT id FROM daily_activity')).toEqual([{ id: 's-1' }]);
  await theirs!.close();
});

onLake('who has lost the lake does no upkeep in it, and stores nothing after that', async () => {
  const { lake, warehouse } = await openLake();
  await store(warehouse, 'sleep', [SLEEP]);
  const theirs = await openWarehouse(newPath(folder), { lake: { ...lake, owner: 'another folder' } });
  await expect(warehouse.compact()).rejects.toThrow('another process has taken the lake');
  await expect(store(warehouse, 'daily_activity', [ACTIVITY])).rejects.toThrow('another process has taken the lake');
  expect(await rows(theirs, 'SELECT id FROM daily_activity')).toEqual([]);
  await warehouse.close();
  await theirs.close();
});

onLake('the lake is taken from a process that is frozen in the middle of a commit', async () => {
  const { lake, warehouse } = await openLake();
  await warehouse.close();
  await withCatalogue(lake, async frozen => {
    await frozen.run('BEGIN');
    await frozen.run(
      `INSERT INTO catalogue.ducklake_snapshot
       SELECT max(snapshot_id) + 1, now(), max(schema_version), max(next_catalog_id), max(next_file_id) FROM catalogue.ducklake_snapshot`,
    );
    const theirs = await openWarehouse(newPath(folder), { lake: { ...lake, owner: 'another folder' } });
    expect(await store(theirs, 'sleep', [SLEEP])).toMatchObject({ stored: 1 });
    await theirs.close();
    await expect(frozen.run('COMMIT')).rejects.toThrow(/terminating connection|server closed the connection/);
  });
});

onLake('a copy of a catalogue does not get the files of the lake, which it would remove, until it has taken its place', async () => {
  newCatalogue();
  const data = join(folder, 'files of one lake');
  const placeOf = (catalogue: string) => ({ ...lakePlace(catalogue, data), owner: 'the folder of this test' });
  await initLake(placeOf('copied_one'), 'postgres');
  const warehouse = await openWarehouse(newPath(folder), { lake: placeOf('copied_one') });
  await store(warehouse, 'daily_activity', [ACTIVITY]);
  await warehouse.close();
  testPostgres().psql('postgres', 'CREATE DATABASE the_copy TEMPLATE copied_one OWNER ring');

  await expect(openWarehouse(newPath(folder), { lake: placeOf('the_copy') })).rejects.toThrow(
    /the lake copied_one at .* the catalogue the_copy at .* is a copy of its catalogue/,
  );
  const reader = await openWarehouse(newPath(folder), { lake: placeOf('the_copy'), refusal: () => new Error('read alone') });
  expect(await rows(reader, 'SELECT id FROM daily_activity')).toEqual([{ id: 'a-1' }]);
  await reader.close();
  await (await openWarehouse(newPath(folder), { lake: placeOf('copied_one') })).close();

  await initLake(placeOf('the_copy'), 'postgres');
  await (await openWarehouse(newPath(folder), { lake: placeOf('the_copy') })).close();
  await expect(openWarehouse(newPath(folder), { lake: placeOf('copied_one') })).rejects.toThrow('those of the lake the_copy at');
});

onLake('a file of the lake that is gone is named to who asks for what was in it', async () => {
  const { lake, warehouse } = await openLake();
  await store(warehouse, 'daily_activity', [{ ...ACTIVITY, met: { ...ACTIVITY.met, items: Array.from({ length: 1_440 }, (_, n) => n) } }]);
  const files = readdirSync(lake.address.data, { recursive: true }).map(name => join(lake.address.data, String(name)));
  const gone = files.filter(name => name.endsWith('.parquet'));
  for (const file of gone) rmSync(file);
  const lacks = {
    exitCode: 1,
    message: expect.stringMatching(/^the lake lacks the file \/\S+\.parquet, which its catalogue names: [^\n]+$/),
  };
  await expect(warehouse.read('SELECT sum(value) FROM daily_activity_met')).rejects.toMatchObject(lacks);
  await expect(warehouse.snapshot(join(folder, 'of what is gone.duckdb'), 0o600)).rejects.toMatchObject(lacks);
  await warehouse.close();
});

onLake('who asks a lake whose Postgres does not answer is told so in one line, to try again', async () => {
  const { warehouse } = await openLake();
  testPostgres().stop();
  try {
    const later = { exitCode: 75, message: expect.stringMatching(/^the lake’s catalogue does not answer: [^\n]+$/) };
    await expect(warehouse.read('SELECT count(*) FROM daily_activity')).rejects.toMatchObject(later);
  } finally {
    testPostgres().start();
  }
  expect(await warehouse.read('SELECT count(*) FROM daily_activity')).toEqual([[0]]);
  await warehouse.close();
});

onLake('a lake is not written to where its folder is not mounted, nor where it is not known whose the files are', async () => {
  newCatalogue();
  const data = join(folder, 'mounted');
  const lake = { ...lakePlace('of_a_folder', data), owner: 'the folder of this test' };
  const open = () => openWarehouse(newPath(folder), { lake });
  await initLake(lake, 'postgres');
  const warehouse = await open();
  await store(warehouse, 'daily_activity', [{ ...ACTIVITY, met: { ...ACTIVITY.met, items: Array.from({ length: 2_000 }, () => 1.5) } }]);
  await warehouse.close();
  const mark = join(data, 'ringneck-lake.csv');
  const whole = readFileSync(mark, 'utf8');

  renameSync(data, `${data} elsewhere`);
  mkdirSync(data);
  await expect(open()).rejects.toThrow(
    /^the files of the lake of_a_folder at .* are not in .*mounted\/, for there is no ringneck-lake.csv/,
  );
  rmSync(data, { recursive: true });
  renameSync(`${data} elsewhere`, data);
  await (await open()).close();

  for (const damaged of ['', 'lake,identity\n', whole.slice(0, 30)]) {
    writeFileSync(mark, damaged);
    await expect(open()).rejects.toThrow(/ringneck-lake.csv, which says whose the files beside it are, is damaged: .*ringneck lake init/);
  }
  await initLake(lake, undefined);
  expect(readFileSync(mark, 'utf8')).toBe(whole);

  const named = whole.split('\n')[1]!.split(',')[0];
  writeFileSync(mark, `lake\n${named}\n`);
  await (await open()).close();
  expect(readFileSync(mark, 'utf8')).toBe(whole);
});

test.skipIf(!hasBucket)('while a file goes to a bucket, however slow, the process does what else there is', async () => {
  const s3 = await startBucket(join(folder, 'slow'));
  // Every byte passes this process: were it waiting for the bucket, none would.
  const host = '127.0.0.1';
  const way = await openWay({ port: Number(new URL(s3.endpoint!).port), host }, { port: 0, host });
  const endpoint = `http://${host}:${way.port}`;
  newCatalogue();
  const place = lakePlace('slow_bucket', 's3://ring/lake', { ...s3, endpoint });
  await initLake(place, 'postgres');
  const warehouse = await openWarehouse(newPath(folder), { lake: { ...place, owner: 'the folder of this test' } });
  const items = Array.from({ length: 1_440 }, (_, n) => n / 8);
  expect(await store(warehouse, 'daily_activity', [{ ...ACTIVITY, met: { ...ACTIVITY.met, items } }])).toMatchObject({
    stored: 1,
    samples: 1_440,
  });
  expect(await rows(warehouse, 'SELECT count(*)::INTEGER AS n, sum(value) AS sum, max(ts) AS last FROM daily_activity_met')).toEqual([
    { n: 1440, sum: 129510, last: '2025-03-31 01:59:00' },
  ]);
  await warehouse.close();
});

onLake('a start ends no commit to another lake of the same Postgres', async () => {
  const [one, other] = [await newLake(folder), await newLake(folder)];
  await withCatalogue(one, async committing => {
    await committing.run('BEGIN');
    await committing.run(
      `INSERT INTO catalogue.ducklake_snapshot
       SELECT max(snapshot_id) + 1, now(), max(schema_version), max(next_catalog_id), max(next_file_id) FROM catalogue.ducklake_snapshot`,
    );
    await (await openWarehouse(newPath(folder), { lake: other })).close();
    await committing.run('COMMIT');
  });
});

/** Keeps what Postgres holds now, as a copy of it that lags behind does, and gives what has that take its place. */
function lagBehind(): () => void {
  const { folder: postgres, stop, start } = testPostgres();
  const [data, copy] = [join(postgres, 'data'), join(postgres, 'copy')];
  const swap = (from: string, to: string) => {
    stop();
    rmSync(to, { recursive: true, force: true });
    execFileSync('cp', ['-a', from, to]);
    start();
  };
  swap(data, copy);
  return () => swap(copy, data);
}

const outcomeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'stored',
    (error: Error) => error.message,
  );

/** Through what a restart of Postgres breaks. */
async function storeOnceBack(warehouse: Warehouse, id: string): Promise<string> {
  for (;;) {
    const outcome = await outcomeOf(store(warehouse, 'daily_activity', [{ ...ACTIVITY, id }]));
    if (!outcome.includes('does not answer')) return outcome;
  }
}

onLake('who has stored what Postgres has lost stores nothing after that', async () => {
  const { lake, warehouse } = await openLake();
  const failOver = lagBehind();
  expect(await storeOnceBack(warehouse, 'a-1')).toBe('stored');
  failOver();
  expect(await storeOnceBack(warehouse, 'a-2')).toContain('the lake’s catalogue has lost commits');
  await warehouse.close();
  const theirs = await openWarehouse(newPath(folder), { lake });
  expect(await rows(theirs, 'SELECT id FROM daily_activity')).toEqual([]);
  await theirs.close();
});

onLake('a commit of the next owner that has the number of a lost one is not taken for one’s own', async () => {
  const { lake, warehouse } = await openLake();
  const failOver = lagBehind();
  expect(await storeOnceBack(warehouse, 'a-1')).toBe('stored');
  failOver();
  const theirs = await openWarehouse(newPath(folder), { lake: { ...lake, owner: 'another folder' } });
  const later = performance.now() + 15_000;
  vi.spyOn(performance, 'now').mockImplementation(() => later);
  expect(await storeOnceBack(warehouse, 'a-2')).toContain('another process has taken the lake');
  expect(await rows(theirs, 'SELECT id FROM daily_activity')).toEqual([]);
  await warehouse.close();
  await theirs.close();
});

onLake('numbers that Postgres has lost with a commit are given to nobody twice', async () => {
  const { lake, warehouse } = await openLake();
  const failOver = lagBehind();
  await vi.waitFor(() => warehouse.read('SELECT 1 FROM sync.meta'), { timeout: 20_000, interval: 100 });
  const run = DuckDBConnection.prototype.run;
  vi.spyOn(DuckDBConnection.prototype, 'run').mockImplementation(async function (this: DuckDBConnection, ...parameters) {
    if (parameters[0] !== 'COMMIT') return run.apply(this, parameters);
    vi.restoreAllMocks();
    failOver();
    return run.apply(this, parameters);
  });
  expect(await outcomeOf(store(warehouse, 'daily_activity', [{ ...ACTIVITY, id: 'a-1' }]))).not.toBe('stored');
  expect(await storeOnceBack(warehouse, 'a-1')).toBe('stored');
  await warehouse.close();
  const theirs = await openWarehouse(newPath(folder), { lake: { ...lake, owner: 'another folder' } });
  for (const id of ['a-2', 'a-3']) await store(theirs, 'daily_activity', [{ ...ACTIVITY, id }]);
  expect(await findBroken(sql => theirs.read(sql))).toEqual([]);
  expect(await rows(theirs, 'SELECT count(*)::INTEGER AS n FROM daily_activity')).toEqual([{ n: 3 }]);
  await theirs.close();
});

onLake('a commit that did not come in is not called stored, whoever else has committed meanwhile', async () => {
  const { lake, warehouse } = await openLake();
  const run = DuckDBConnection.prototype.run;
  vi.spyOn(DuckDBConnection.prototype, 'run').mockImplementation(async function (this: DuckDBConnection, ...parameters) {
    if (parameters[0] !== 'COMMIT') return run.apply(this, parameters);
    vi.restoreAllMocks();
    await asOther(lake, other => other.run(`INSERT INTO sync.drift (path) VALUES ('theirs')`));
    await this.run('ROLLBACK');
    throw new Error('IO Error: server closed the connection unexpectedly');
  });
  await expect(store(warehouse, 'sleep', [SLEEP])).rejects.toThrow('catalogue does not answer');
  expect(await rows(warehouse, 'SELECT id FROM sleep')).toEqual([]);
  expect(await store(warehouse, 'sleep', [SLEEP])).toMatchObject({ stored: 1 });
  await warehouse.close();
});

onLake('a commit whose answer is lost is not done twice', async () => {
  const { warehouse } = await openLake();
  const run = DuckDBConnection.prototype.run;
  let lost = 0;
  vi.spyOn(DuckDBConnection.prototype, 'run').mockImplementation(async function (this: DuckDBConnection, ...parameters) {
    const result = await run.apply(this, parameters);
    if (parameters[0] === 'COMMIT' && lost++ === 0) throw new Error('IO Error: server closed the connection unexpectedly');
    return result;
  });
  await warehouse.record([{ table: 'sync.drift', row: { path: 'once' } }]);
  expect([lost, await rows(warehouse, 'SELECT path FROM sync.drift')]).toEqual([1, [{ path: 'once' }]]);
  await warehouse.close();
});

onLake('whichever statement fails, a document is there as it was or as it came, and whole', async () => {
  const { warehouse } = await openLake();
  let score = 1;
  await store(warehouse, 'daily_activity', [{ ...ACTIVITY, score }]);
  for (let nth = 1; ; nth++) {
    const calls = failStatements(n => n === nth);
    const items = [nth, null, nth + 0.5];
    const stored = await store(warehouse, 'daily_activity', [{ ...ACTIVITY, score: score + 1, met: { ...ACTIVITY.met, items } }]).catch(
      () => undefined,
    );
    vi.restoreAllMocks();
    const [row] = await warehouse.read('SELECT score FROM daily_activity');
    expect(row, `statement ${nth}`).toEqual([stored ? score + 1 : score]);
    score = Number(row![0]);
    if (calls() < nth) break;
    expect(nth).toBeLessThan(60);
  }
  expect(await findBroken(sql => warehouse.read(sql))).toEqual([]);
  await warehouse.close();
});

onLake('after a restart of Postgres the same process stores on', async () => {
  const { warehouse } = await openLake();
  await store(warehouse, 'sleep', [SLEEP]);
  testPostgres().stop();
  await expect(store(warehouse, 'daily_activity', [ACTIVITY])).rejects.toThrow(/catalogue does not answer/);
  testPostgres().start();
  await vi.waitFor(() => store(warehouse, 'daily_activity', [ACTIVITY]), { timeout: 20_000, interval: 100 });
  expect(await rows(warehouse, 'SELECT id FROM sleep UNION ALL SELECT id FROM daily_activity')).toEqual([{ id: 's-1' }, { id: 'a-1' }]);
  await warehouse.close();
});

onLake('upkeep brings what many commits have left into one file a table, and changes no row', async () => {
  const { lake, warehouse } = await openLake();
  const many = (n: number) => ({
    ...ACTIVITY,
    id: `a-${n}`,
    met: { ...ACTIVITY.met, items: Array.from({ length: 1_440 }, (_, i) => i + n) },
  });
  for (let n = 0; n < 4; n++) await store(warehouse, 'daily_activity', [many(n)]);
  const asked = 'SELECT count(*) AS rows, sum(hash(sk, ts, value)::HUGEINT)::VARCHAR AS hash FROM daily_activity_met';
  const before = await rows(warehouse, asked);
  const files = () => readdirSync(join(lake.address.data, 'main', 'daily_activity_met')).length;
  expect(files()).toBe(4);
  await warehouse.compact();
  expect(await rows(warehouse, asked)).toEqual(before);
  const current = `SELECT file_count FROM ducklake_table_info('lake') WHERE table_name = 'daily_activity_met'`;
  expect(await rows(warehouse, current)).toEqual([{ file_count: 1 }]);
  // Whoever has begun to read the others may go on for a day.
  expect(files()).toBe(5);
  expect(await store(warehouse, 'daily_activity', [many(3)])).toMatchObject({ unchanged: 1 });
  await warehouse.close();
});

onLake('a column that a lake lacks is added at the next start, and what was stored stays', async () => {
  const { path, lake, warehouse } = await openLake();
  await store(warehouse, 'sleep', [SLEEP]);
  await warehouse.close();
  await asOther(lake, async connection => {
    await connection.run('ALTER TABLE sleep DROP COLUMN average_hrv');
    await connection.run(`COMMENT ON TABLE sleep IS 'stale'`);
  });
  const again = await openWarehouse(path, { lake });
  expect(await rows(again, 'SELECT id, average_hrv FROM sleep')).toEqual([{ id: 's-1', average_hrv: null }]);
  expect(await store(again, 'sleep', [{ ...SLEEP, average_hrv: 62 }])).toMatchObject({ stored: 1 });
  expect(await rows(again, 'SELECT average_hrv FROM sleep')).toEqual([{ average_hrv: 62 }]);
  await again.close();
});

onLake('a reader’s role sees what is stored, in the catalogue and in files, and can change nothing', async () => {
  const { lake, warehouse } = await openLake();
  await store(warehouse, 'sleep', [SLEEP]);
  const reader = { ...lake, address: { ...lake.address, user: 'ring_reader' } };
  await asOther(reader, async connection => {
    const found = await connection.runAndReadAll('SELECT id FROM sleep');
    expect(found.getRows()).toEqual([['s-1']]);
    await expect(connection.run('DELETE FROM sleep')).rejects.toThrow(/permission denied/);
    const drop = `CALL postgres_execute('__ducklake_metadata_lake', 'DROP TABLE ducklake_table')`;
    await expect(connection.run(drop)).rejects.toThrow(/must be owner/);
  });
  await warehouse.close();
});

onLake('what upkeep fails with quotes no row', async () => {
  const { lake, warehouse } = await openLake();
  await warehouse.record([{ table: 'sync.accounts', key: { user_id: 'ada-the-person' }, row: { state: 'active' } }]);
  testPostgres().psql(lake.address.catalogue, 'ALTER TABLE ducklake_snapshot ADD CHECK (snapshot_id < 0) NOT VALID');
  const error = await warehouse.compact().catch((thrown: Error) => thrown);
  expect(error).toMatchObject({ name: 'RingneckError', message: expect.stringMatching(/^the lake: .*Failed to commit[^\n]*$/) });
  expect(String(error)).not.toContain('ada');
  await warehouse.close();
});

onLake('an erasing tells who keeps the catalogue from being written anew', async () => {
  const { path, lake, warehouse } = await openLake();
  await warehouse.close();
  const person = { userId: 'ann', serviceUserIds: [] };
  const reader = { ...lake, address: { ...lake.address, user: 'ring_reader' } };
  await asOther(reader, async connection => {
    await connection.run('BEGIN');
    await connection.run('SELECT count(*) FROM sleep');
    await expect(Warehouse.erase({ path, lake }, person, () => {})).rejects.toMatchObject({
      exitCode: 75,
      message: expect.stringMatching(/while somebody reads it: ring_reader from this machine \(PID \d+\); end that/),
    });
  });
  expect(await Warehouse.erase({ path, lake }, person, () => {})).toEqual({});
});

onLake('an account that is erased is in no byte of the files or the catalogue', async () => {
  const { path, lake, warehouse } = await openLake();
  const name = 'ada-who-goes';
  for (const [userId, text] of [
    [name, 'a secret of hers'],
    ['ben', 'a word of his'],
  ] as const) {
    const requestedAt = warehouse.clock.lease();
    for (let n = 0; n < 2; n++) {
      const document = {
        ...ACTIVITY,
        id: `${userId}-${n}`,
        note: text,
        met: { ...ACTIVITY.met, items: Array.from({ length: 1_440 }, () => n) },
      };
      const { resource } = warehouse.mapping('daily_activity');
      await warehouse.storeDocuments({ userId, resource, requestedAt, documents: [document] });
    }
    warehouse.clock.release(requestedAt);
    await warehouse.record([
      { table: 'sync.accounts', key: { user_id: userId }, row: { state: 'active', service_user_id: `service-${userId}` } },
    ]);
  }
  await warehouse.compact();
  await warehouse.close();
  const { psql, folder: postgres } = testPostgres();
  const oid = psql('postgres', `SELECT oid FROM pg_database WHERE datname = '${lake.address.catalogue}'`).trim();
  const words = [name, 'a secret of hers'];
  const places = () => {
    psql('postgres', 'CHECKPOINT');
    const found = [join(postgres, 'data', 'base', oid), lake.address.data].flatMap(root =>
      readdirSync(root, { recursive: true, withFileTypes: true })
        .filter(entry => entry.isFile())
        .map(entry => join(entry.parentPath, entry.name)),
    );
    return found.filter(file => words.some(word => readFileSync(file).includes(word)));
  };
  expect(places()).not.toEqual([]);
  const person = { userId: name, serviceUserIds: [`service-${name}`] };
  expect(await Warehouse.erase({ path, lake }, person, () => {})).toEqual({
    daily_activity: 2,
    daily_activity_met: 2_880,
    'sync.accounts': 1,
  });
  expect(places()).toEqual([]);
  // The files' texts are compressed.
  const texts = await asOther(lake, async connection => {
    const files = `${lake.address.data}**/*.parquet`;
    const reader = await connection.runAndReadAll(`SELECT DISTINCT user_id FROM read_parquet('${files}', union_by_name = true)`);
    return reader.getRows().flat();
  });
  expect(texts.filter(text => text !== null)).toEqual(['ben']);
  const again = await openWarehouse(path, { lake });
  expect(await rows(again, `SELECT id FROM daily_activity WHERE user_id >= 'a' ORDER BY id`)).toEqual([{ id: 'ben-0' }, { id: 'ben-1' }]);
  expect(await findBroken(sql => again.read(sql))).toEqual([]);
  await again.close();
});

onLake('an erasing that was frozen takes no file away that the next owner is about to commit', async () => {
  const { path, lake, warehouse } = await openLake();
  await store(warehouse, 'daily_activity', [ACTIVITY]);
  await warehouse.close();
  const orphan = join(lake.address.data, 'main', 'left-by-a-killed-one.parquet');
  mkdirSync(dirname(orphan), { recursive: true });
  writeFileSync(orphan, 'of somebody');
  utimesSync(orphan, 1_000_000_000, 1_000_000_000);
  const run = DuckDBConnection.prototype.run;
  let read: Promise<unknown> | undefined;
  vi.spyOn(DuckDBConnection.prototype, 'run').mockImplementation(async function (this: DuckDBConnection, ...parameters) {
    if (!/orphaned_files(?!.*dry_run)/.test(String(parameters[0]))) return run.apply(this, parameters);
    vi.restoreAllMocks();
    const theirs = await LakeStore.open({ path: newPath(folder), lake: { ...lake, owner: 'another folder' } }, []);
    const connection = await theirs.connect();
    let result: Awaited<ReturnType<typeof run>> | undefined;
    await theirs.transaction(connection, async () => {
      await connection.run(`INSERT INTO sync.drift (path) SELECT 'p' || i FROM range(5000) r(i)`);
      result = await this.run(...parameters);
    });
    const reader = await connection.runAndReadAll('SELECT count(DISTINCT path)::INTEGER FROM sync.drift');
    read = Promise.resolve(reader.getRows());
    await theirs.close();
    return result!;
  });
  await Warehouse.erase({ path, lake }, { userId: 'ann', serviceUserIds: [] }, () => {});
  expect([existsSync(orphan), await read]).toEqual([false, [[5_000]]]);
});

onLake('what cannot be reached ends the start with one sentence', async () => {
  const lake = await newLake(folder);
  const refused = (change: Partial<Lake>) => expect(openWarehouse(newPath(folder), { lake: { ...lake, ...change } })).rejects;
  const at = (change: Partial<Lake['address']>) => ({ address: { ...lake.address, ...change } });
  await refused(at({ host: '/nowhere' })).toThrow(
    /^the lake’s catalogue lake\d+ at \/nowhere cannot be reached: connection to server on socket/,
  );
  await refused(at({ catalogue: 'postgres' })).toThrow('there is no lake in the catalogue postgres at');
  await refused(at({ data: '/nowhere/' })).toThrow('the lake’s folder cannot be read: ENOENT');
  await refused({ extensions: folder }).toThrow(/^DuckDB’s extension ducklake cannot be loaded: IO Error: Extension ".*" not found/);
  const s3 = { key: 'k', secret: 'never to be seen', endpoint: 'http://127.0.0.1:9', region: 'us-east-1' };
  const bucket = lakePlace(lake.address.catalogue, 's3://ring/x', s3);
  await refused(bucket).toThrow(/^the lake’s bucket s3:\/\/ring cannot be reached: (?!.*never to be seen)/);
});
