import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { App } from '../../src/app/app.ts';
import { commandsOf } from '../../src/app/commands.ts';
import { checkSnapshot } from '../../src/app/doctor/snapshot.ts';
import { keepUpToDate } from '../../src/app/snapshot/schedule.ts';
import { Snapshots } from '../../src/app/snapshot/snapshots.ts';
import type { Settings } from '../../src/base/config.ts';
import { Interrupted } from '../../src/base/interrupt.ts';
import { silentLog } from '../../src/base/log.ts';
import { childScript, startChild } from '../support/child.ts';
import { startFaultService } from '../support/fault-service.ts';
import { openHarness } from '../support/harness.ts';
import { runHere } from '../support/run-here.ts';
import { startSandbox } from '../support/sandbox.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';
import { newPath, openWarehouse, rowsOf, store, withDuckDB } from '../support/warehouse.ts';
import { SLEEP, STRESS } from '../support/wire.ts';

const folder = tempFolder();

async function openSnapshots(snapshotMode = 0o640) {
  let now = Date.parse('2026-11-21T22:30:59.999Z');
  const warehouse = await openWarehouse(newPath(folder), { now: () => now });
  const snapshot = join(dirname(warehouse.path), 'published', 'snapshot.duckdb');
  const snapshots = new Snapshots({ settings: { snapshot, snapshotMode }, warehouse, log: silentLog });
  onTestFinished(() => warehouse.close());
  const pass = (ms: number) => {
    now += ms;
  };
  return { warehouse, snapshots, snapshot, pass };
}

test('since when none could be published, and why, is known until one is', async () => {
  const { warehouse, snapshots, snapshot, pass } = await openSnapshots();
  const copy = vi.spyOn(warehouse, 'snapshot').mockRejectedValue(new Error('no memory'));
  expect(snapshots.failure).toBeUndefined();
  await expect(snapshots.refresh()).rejects.toThrow('no memory');
  pass(30_000);
  copy.mockRejectedValue(new Error('no room'));
  await expect(snapshots.publish()).rejects.toThrow('no room');
  const failure = { since: '2026-11-21T22:30:59.999Z', reason: 'no room' };
  expect(snapshots.failure).toEqual(failure);
  const settings = { snapshot, snapshotMode: 0o640 } as Settings;
  expect(await checkSnapshot({ settings, warehouse, snapshots })).toEqual([
    {
      check: 'snapshot',
      state: 'fail',
      message: 'it could not be made since 2026-11-21T22:30:59.999Z: no room',
      fix: 'see to what it says; ringneck up tries again each half minute, ringneck snapshot at once',
    },
  ]);
  copy.mockRestore();
  // What is stopped has not failed.
  await expect(snapshots.publish(AbortSignal.abort(new Interrupted()))).rejects.toThrow();
  expect(snapshots.failure).toEqual(failure);
  await snapshots.refresh();
  expect(snapshots.failure).toBeUndefined();
});

test('a place that cannot be written is named, with what to do', async () => {
  const { warehouse, snapshots, snapshot } = await openSnapshots();
  // A root of tests may write anywhere: what DuckDB says where it may not.
  const said = `IO Error: Cannot open file "${snapshot}.new": Permission denied`;
  vi.spyOn(warehouse, 'snapshot').mockRejectedValue(new Error(said));
  await expect(snapshots.publish()).rejects.toThrow(
    `${snapshot} cannot be written (${said}): make its folder writable for the user who runs ringneck, or name another place by RINGNECK_SNAPSHOT.`,
  );
});

test('a dated one is kept under its minute with a manifest, is written by nobody any more, and is never replaced', async () => {
  const { warehouse, snapshots, snapshot, pass } = await openSnapshots();
  await store(warehouse, 'sleep', [SLEEP]);
  await store(warehouse, 'daily_stress', [{ ...STRESS, day: '2025-02-01' }]);
  const kept = await snapshots.keepDated();
  const path = join(dirname(snapshot), 'snapshots/ringneck-2026-11-21T2230Z.duckdb');
  expect(kept).toMatchObject({ path, manifest: join(dirname(snapshot), 'snapshots/ringneck-2026-11-21T2230Z.json') });
  expect([statSync(path).mode & 0o777, statSync(kept.manifest).mode & 0o777]).toEqual([0o440, 0o440]);
  const manifest = JSON.parse(readFileSync(kept.manifest, 'utf8'));
  expect(manifest).toMatchObject({
    file: 'ringneck-2026-11-21T2230Z.duckdb',
    bytes: statSync(path).size,
    sha256: createHash('sha256').update(readFileSync(path)).digest('hex'),
    taken_at: expect.stringMatching(/^2026-11-21T22:3[01]:/),
    first_day: '2025-01-15',
    last_day: '2025-02-01',
    people: 1,
    program: '0.1.0',
    duckdb: 'v1.5.5',
    format: 4,
  });
  expect(manifest.tables.sleep_heart_rate.rows).toBe(3);
  expect(manifest.tables.daily_activity).toEqual({ rows: 0, content_hash: '0' });
  // What it says of itself can be done again by whoever has the file.
  expect(manifest.content_hash).toBe(
    'sum(hash(columns)::HUGEINT), by DuckDB v1.5.5, over all columns in their order but sk, fetched_at, content_hash',
  );
  expect(
    await withDuckDB(':memory:', async connection => {
      await connection.run(`ATTACH '${path}' AS dated (READ_ONLY)`);
      return rowsOf(
        connection,
        `SELECT sum(hash(user_id, day, ts, utc_offset, value)::HUGEINT)::VARCHAR AS hash FROM dated.sleep_heart_rate`,
      );
    }),
  ).toEqual([{ hash: manifest.tables.sleep_heart_rate.content_hash }]);

  await expect(snapshots.keepDated()).rejects.toMatchObject({
    exitCode: 75,
    message: `${path} is there already and stays as it is: take the next one in a minute`,
  });
  pass(1);
  // Read again by a later request, the same documents have other numbers and the same hash.
  await store(warehouse, 'sleep', [{ ...SLEEP, score: 1 }]);
  await store(warehouse, 'sleep', [SLEEP]);
  pass(60_000);
  const later = await snapshots.keepDated();
  expect(later.path).toBe(join(dirname(snapshot), 'snapshots/ringneck-2026-11-21T2232Z.duckdb'));
  const { sleep, sleep_heart_rate } = JSON.parse(readFileSync(later.manifest, 'utf8')).tables;
  expect([sleep, sleep_heart_rate]).toEqual([manifest.tables.sleep, manifest.tables.sleep_heart_rate]);
  expect(createHash('sha256').update(readFileSync(path)).digest('hex')).toBe(kept.sha256);
  // The published one is another matter.
  expect(readdirSync(dirname(snapshot))).toEqual(['snapshots']);
});

test('a folder that others can write by now takes no snapshot any more, nor does one for the dated ones', async () => {
  const { warehouse, snapshots, snapshot } = await openSnapshots();
  await store(warehouse, 'sleep', [SLEEP]);
  await snapshots.refresh();
  const dated = join(dirname(snapshot), 'snapshots');
  mkdirSync(dated);
  chmodSync(dated, 0o777);
  await expect(snapshots.keepDated()).rejects.toThrow(`snapshots leads into ${dated}, which is writable by others (0777)`);
  expect(readdirSync(dated)).toEqual([]);
  await store(warehouse, 'sleep', [{ ...SLEEP, score: 1 }]);
  chmodSync(dirname(snapshot), 0o777);
  for (const work of [() => snapshots.refresh(), () => snapshots.publish()]) {
    await expect(work()).rejects.toThrow(`RINGNECK_SNAPSHOT leads into ${dirname(snapshot)}, which is writable by others (0777)`);
  }
  chmodSync(dirname(snapshot), 0o700);
  await snapshots.refresh();
});

test('of two dated ones that are asked for at once one is kept, and what a killed process has left goes', async () => {
  const { warehouse, snapshots, snapshot } = await openSnapshots();
  await store(warehouse, 'sleep', [SLEEP]);
  const dated = join(dirname(snapshot), 'snapshots');
  mkdirSync(dated, { recursive: true });
  for (const half of ['ringneck-2026-11-20T2230Z.duckdb.new', 'ringneck-2026-11-20T2231Z.duckdb.new.new.wal']) {
    writeFileSync(join(dated, half), '');
  }
  const [first, second] = await Promise.allSettled([snapshots.keepDated(), snapshots.keepDated()]);
  expect(first.status).toBe('fulfilled');
  expect(second).toMatchObject({ status: 'rejected', reason: { exitCode: 75 } });
  expect(readdirSync(dated).toSorted()).toEqual(['ringneck-2026-11-21T2230Z.duckdb', 'ringneck-2026-11-21T2230Z.json']);
});

test('a snapshot that its user stops is not there, and the last one stays', async () => {
  const { warehouse, snapshots, snapshot } = await openSnapshots();
  await store(warehouse, 'sleep', [SLEEP]);
  const commands = commandsOf(() => ({ snapshots }) as App);
  await commands.snapshot({});
  const before = readFileSync(snapshot);
  await store(warehouse, 'sleep', [{ ...SLEEP, score: 1 }]);
  const signal = AbortSignal.abort(new Interrupted());
  await expect(commands.snapshot({}, { signal })).rejects.toMatchObject({ exitCode: 130 });
  await expect(commands.datedSnapshot({}, { signal })).rejects.toMatchObject({ exitCode: 130 });
  expect(readFileSync(snapshot).equals(before)).toBe(true);
  expect(readdirSync(dirname(snapshot), { recursive: true }).toSorted()).toEqual(['snapshot.duckdb', 'snapshots']);
});

test.each([
  ['the warehouse', (data: string) => join(data, 'warehouse.duckdb'), 'the warehouse itself', 'name another file'],
  ['the warehouse by way of a link', (data: string) => join(data, '../way/warehouse.duckdb'), 'the warehouse itself', 'name another file'],
  ['a folder', (data: string) => data, 'a folder', 'name a file in it'],
  [
    'a text',
    (data: string) => {
      writeFileSync(join(data, 'notes.txt'), 'a text of more than a few words');
      return join(data, 'notes.txt');
    },
    'a file that is no snapshot',
    'move it away or name another file',
  ],
])('a snapshot that would replace %s is refused by whatever opens the data folder', async (_, place, what, advice) => {
  const { warehouse } = await openSnapshots();
  await store(warehouse, 'sleep', [SLEEP]);
  await warehouse.close();
  const data = dirname(warehouse.path);
  rmSync(join(data, '../way'), { force: true });
  symlinkSync(data, join(data, '../way'));
  const snapshot = place(data);
  for (const args of [['snapshot'], ['account', 'list']]) {
    const env = { RINGNECK_DATA: data, RINGNECK_SNAPSHOT: snapshot };
    expect(await runHere(args, { env })).toMatchObject({
      code: 2,
      stderr: `ringneck: RINGNECK_SNAPSHOT is ${what}, ${snapshot}: ${advice}\n`,
    });
  }
  expect(await withDuckDB(warehouse.path, connection => rowsOf(connection, 'SELECT count(*) AS n FROM sleep'))).toEqual([{ n: 1 }]);
});

test('a snapshot does not replace a database of somebody else', async () => {
  const { warehouse, snapshots, snapshot } = await openSnapshots();
  mkdirSync(dirname(snapshot));
  await withDuckDB(snapshot, connection => connection.run('CREATE TABLE theirs AS SELECT 42 AS n'));
  const message = `RINGNECK_SNAPSHOT is a file that is no snapshot, ${snapshot}: move it away or name another file`;
  await expect(snapshots.refresh()).rejects.toMatchObject({ exitCode: 2, message });
  await warehouse.close();
  const env = { RINGNECK_DATA: dirname(warehouse.path), RINGNECK_SNAPSHOT: snapshot };
  expect(await runHere(['snapshot'], { env })).toEqual({ code: 2, stdout: '', stderr: `ringneck: ${message}\n` });
  expect(await withDuckDB(snapshot, connection => rowsOf(connection, 'FROM theirs'))).toEqual([{ n: 42 }]);
});

test('a database that cannot be opened, and may be anybody’s, is not replaced outside the data folder', async () => {
  const { snapshots, snapshot } = await openSnapshots();
  mkdirSync(dirname(snapshot));
  await withDuckDB(snapshot, connection => connection.run('CREATE TABLE theirs AS SELECT 42 AS n'));
  const damaged = readFileSync(snapshot).subarray(0, 5_000);
  writeFileSync(snapshot, damaged);
  await expect(snapshots.refresh()).rejects.toMatchObject({
    exitCode: 2,
    message: `RINGNECK_SNAPSHOT is a file that cannot be opened, ${snapshot}: move it away or name another file`,
  });
  rmSync(snapshot);
  const holder = startChild(childScript, 'own', snapshot);
  expect(await holder.line()).toBe('ready');
  await expect(snapshots.publish()).rejects.toMatchObject({
    exitCode: 75,
    message: `${snapshot} is held by another process (PID ${holder.pid}); stop it, or try again later`,
  });
  holder.process.stdin!.end();
  await holder.ended;
});

test('a snapshot replaces an empty file, a damaged one and one of another version', async () => {
  const { warehouse } = await openSnapshots();
  await store(warehouse, 'daily_stress', [STRESS]);
  const snapshot = join(dirname(warehouse.path), 'snapshot.duckdb');
  const anew = () => new Snapshots({ settings: { snapshot, snapshotMode: 0o600 }, warehouse, log: silentLog });
  const count = () => withDuckDB(snapshot, connection => rowsOf(connection, 'SELECT count(*) AS n FROM daily_stress'));
  writeFileSync(snapshot, '');
  await anew().publish();
  expect(await count()).toEqual([{ n: 1 }]);
  writeFileSync(snapshot, readFileSync(snapshot).subarray(0, 5_000));
  await anew().refresh();
  expect(await count()).toEqual([{ n: 1 }]);
  rmSync(snapshot);
  await withDuckDB(snapshot, connection => connection.run('CREATE SCHEMA sync; CREATE TABLE sync.snapshot (taken_at TIMESTAMP)'));
  await anew().refresh();
  expect(await count()).toEqual([{ n: 1 }]);
});

test('whoever asks for a fresh one gets what is committed, and nothing is written when nothing was', async () => {
  const { warehouse, snapshots, snapshot } = await openSnapshots();
  await store(warehouse, 'daily_stress', [STRESS]);
  const first = await snapshots.fresh();
  expect(first).toEqual({ path: snapshot, at: expect.any(Number), stale: false });
  const { ino } = statSync(snapshot);
  expect(await snapshots.fresh()).toEqual(first);
  expect(statSync(snapshot).ino).toBe(ino);
  await store(warehouse, 'daily_stress', [{ ...STRESS, id: 'more', day: '2025-03-01' }]);
  expect(snapshots.isFresh).toBe(false);
  expect((await snapshots.fresh()).stale).toBe(false);
  expect(await withDuckDB(snapshot, connection => rowsOf(connection, 'SELECT count(*) AS n FROM daily_stress'))).toEqual([{ n: 2 }]);
  const closing = snapshots.publish();
  snapshots.close();
  await expect(closing).rejects.toThrow('the snapshot was stopped before it was whole; the last one stays');
});

test('without room for it none is begun, the error says what is missing, and the last one stays', async () => {
  const { warehouse, snapshots, snapshot } = await openSnapshots();
  const disk = dirname(snapshot);
  mkdirSync(disk);
  // A small disk of our own takes the right to mount.
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=600m,mode=0700', 'tmpfs', disk]).status !== 0) return;
  onTestFinished(() => void execFileSync('umount', ['--lazy', disk]));
  await snapshots.publish();
  execFileSync('fallocate', ['-l', '90m', join(disk, 'fill')]);
  await store(warehouse, 'daily_stress', [STRESS]);
  const refusal = new RegExp(`^The disk of ${disk} is almost full: 5\\d\\d MB free, and 51\\d MB are kept in reserve\\.`);
  await until('the disk is looked at anew', async () =>
    snapshots.publish().then(
      () => false,
      () => true,
    ),
  );
  const { ino } = statSync(snapshot);
  await expect(snapshots.refresh()).rejects.toThrow(refusal);
  await expect(snapshots.publish()).rejects.toThrow(refusal);
  await expect(snapshots.keepDated()).rejects.toThrow(`The disk of ${join(disk, 'snapshots')} is almost full`);
  expect(statSync(snapshot).ino).toBe(ino);
  expect(readdirSync(disk).sort()).toEqual(['fill', 'snapshot.duckdb', 'snapshots']);
});

test('while up runs the snapshot follows by itself, also while a backfill goes on, and is sorted after it', async () => {
  const days = { from: '2025-03-05', to: '2025-03-06' };
  const sandbox = await startSandbox({ count: 1, ...days });
  onTestFinished(() => sandbox.close());
  // So that it goes on until it is stopped.
  const service = await startFaultService({ '/v2/usercollection/sleep': { fault: 'hang' } }, { upstream: sandbox.url });
  onTestFinished(() => service.close());
  const harness = await openHarness(tempFolder(), service.url);
  await harness.add([{ name: 'ada', token: sandbox.people[0]!.token }]);
  const { data, snapshot } = harness.app.settings;
  const interruption = new AbortController();
  const backfill = harness.backfill({ ...days, collections: ['daily_activity', 'sleep'] }, interruption.signal);
  const isRead = async () => (await harness.read(`SELECT count(*) FROM sync.windows WHERE outcome = 'complete'`))[0]![0] === 1;
  await until('one of two windows is read', isRead);

  const kept = await keepUpToDate(harness.app);
  await until('it was published during the backfill', () => existsSync(snapshot));
  const ask = (sql: string) =>
    withDuckDB(':memory:', async connection => {
      await connection.run(`ATTACH '${snapshot}' AS snapshot (READ_ONLY)`);
      await connection.run('USE snapshot');
      return (await rowsOf(connection, sql))[0];
    });
  expect(await ask(`SELECT state, (SELECT count(*) FROM daily_activity) AS documents FROM sync.runs`)).toEqual({
    state: 'running',
    documents: 2,
  });
  interruption.abort(new Interrupted());
  expect(await backfill).toMatchObject({ state: 'stopped' });
  const isSorted = `SELECT count(*) AS n FROM sync.runs, sync.snapshot WHERE state = 'stopped' AND sorted_at = taken_at`;
  await until('it was sorted after the backfill', async () => ((await ask(isSorted)) as { n: number }).n === 1);
  await kept.close();
  await harness.close();
  expect(readdirSync(data).filter(name => name.startsWith('snapshot'))).toEqual(['snapshot.duckdb']);
  const dated = await runHere(['snapshot', '--dated', '--json'], { env: { RINGNECK_DATA: data } });
  expect([dated.code, Object.keys(JSON.parse(dated.stdout))]).toEqual([0, ['path', 'at', 'manifest', 'sha256']]);
});

test('a run brings the snapshot that is there up to date at its end, and makes none for somebody who has none', async () => {
  const days = { from: '2025-03-05', to: '2025-03-06' };
  const service = await startSandbox({ count: 1, ...days });
  onTestFinished(() => service.close());
  const harness = await openHarness(tempFolder(), service.url);
  await harness.add([{ name: 'ada', token: service.people[0]!.token }]);
  const { snapshot } = harness.app.settings;
  const resources = ['daily_activity'];
  await harness.backfill({ from: days.from, to: days.from, collections: resources });
  expect(existsSync(snapshot)).toBe(false);
  await harness.commands.snapshot({});
  await harness.backfill({ ...days, collections: resources });
  expect(await withDuckDB(snapshot, connection => rowsOf(connection, 'SELECT day FROM daily_activity ORDER BY day'))).toEqual([
    { day: '2025-03-05' },
    { day: '2025-03-06' },
  ]);
});
