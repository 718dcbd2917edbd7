import { statSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { DuckDBAppender, DuckDBConnection } from '@duckdb/node-api';
import { afterEach, expect, test, vi } from 'vitest';
import { RingneckError } from '../../src/base/errors.ts';
import { HeartRateChanges } from '../../src/warehouse/heart-rate/heart-rate-changes.ts';
import { RequestClock } from '../../src/warehouse/request-clock.ts';
import type { Warehouse } from '../../src/warehouse/warehouse.ts';
import { KeptReadings } from '../../src/warehouse/write/kept-readings.ts';
import { Writer } from '../../src/warehouse/write/writer.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { NOW, newPath, openWarehouse, resourceNamed, store, storeOfNothing } from '../support/warehouse.ts';
import { ACTIVITY, STRESS } from '../support/wire.ts';

const folder = tempFolder();

afterEach(() => {
  vi.restoreAllMocks();
});

const write = (warehouse: Warehouse, id: string, lane: 'live' | 'bulk' = 'bulk') =>
  warehouse.storeDocuments(
    {
      userId: 'ann',
      resource: resourceNamed('daily_activity'),
      requestedAt: warehouse.clock.lease(),
      documents: [{ ...ACTIVITY, id }],
    },
    { lane },
  );

const ids = async (warehouse: Warehouse) => (await warehouse.read('SELECT id FROM daily_activity ORDER BY sk')).map(([id]) => id);

/** Lets every transaction begin only when `release` is called. */
function holdTransactions(): { begun: Promise<void>; release: () => void } {
  const original = DuckDBConnection.prototype.run;
  let release = () => {};
  let tell = () => {};
  const released = new Promise<void>(resolve => {
    release = resolve;
  });
  const begun = new Promise<void>(resolve => {
    tell = resolve;
  });
  vi.spyOn(DuckDBConnection.prototype, 'run').mockImplementation(async function (this: DuckDBConnection, ...parameters) {
    if (parameters[0] === 'BEGIN TRANSACTION') {
      tell();
      await released;
    }
    return original.apply(this, parameters);
  });
  return { begun, release };
}

test('live work goes before bulk work that waited longer', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  const gate = holdTransactions();
  const done: string[] = [];
  const track = (id: string, lane: 'live' | 'bulk') => write(warehouse, id, lane).then(() => done.push(id));
  const running = track('running', 'bulk');
  await gate.begun;
  const others = [track('bulk', 'bulk'), track('live', 'live')];
  await setImmediate();
  gate.release();
  await Promise.all([running, ...others]);
  expect(done).toEqual(['running', 'live', 'bulk']);
  expect(await ids(warehouse)).toEqual(['running', 'live', 'bulk']);
  await warehouse.close();
});

test('a stream of live work does not stop bulk work for ever', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  let bulk = false;
  let before = 0;
  const waiting = { bulk: Promise.resolve() as Promise<unknown> };
  for (let i = 0; i < 30; i++) {
    const live = write(warehouse, `live-${i}`, 'live');
    if (i === 0) {
      waiting.bulk = write(warehouse, 'bulk').then(() => {
        bulk = true;
      });
    }
    // Always one more live change waits before the last is done.
    const next = write(warehouse, `more-${i}`, 'live');
    await live;
    if (!bulk) before++;
    await next;
  }
  await waiting.bulk;
  expect(before).toBeLessThan(30);
  expect(await ids(warehouse)).toHaveLength(61);
  await warehouse.close();
});

test('what arrives while a group is written is the next group', async () => {
  const groups: number[] = [];
  let size = 0;
  const warehouse = await openWarehouse(newPath(folder), { beforeGroup: () => groups.push(size) });
  groups.length = 0;
  const gate = holdTransactions();
  const first = write(warehouse, 'first');
  await gate.begun;
  const rest = Array.from({ length: 20 }, (_, i) => write(warehouse, `next-${i}`));
  await setImmediate();
  size = 20;
  gate.release();
  await Promise.all([first, ...rest]);
  expect(groups).toEqual([0, 20]);
  await warehouse.close();
});

test('a change that is given in the very moment the writer runs dry is written', async () => {
  // After every number of microtasks since a commit: one of them is when the writer has just found nothing more to do.
  for (let turns = 0; turns < 40; turns++) {
    let second: Promise<unknown> | undefined;
    const connection = {
      async run(statement: string) {
        if (statement !== 'COMMIT' || second) return;
        const give = (left: number): void => {
          if (left) void Promise.resolve().then(() => give(left - 1));
          else second = writer.write({ samples: 0 }, 'live');
        };
        give(turns);
      },
    } as unknown as DuckDBConnection;
    const writer = new Writer({
      connection,
      clock: new RequestClock(0, () => NOW),
      columnsOf: () => [],
      kept: new KeptReadings(),
      heartRateChanges: new HeartRateChanges(),
      store: storeOfNothing(),
    });
    await writer.write({ samples: 0 }, 'live');
    let written = false;
    for (let turn = 0; turn < 10; turn++) await setImmediate();
    void second!.then(() => {
      written = true;
    });
    for (let turn = 0; turn < 10; turn++) await setImmediate();
    expect({ turns, written }).toEqual({ turns, written: true });
  }
});

test('one change that fails takes no neighbour with it', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  const bad = warehouse.storeDocuments(
    {
      userId: 'ann',
      resource: resourceNamed('daily_activity'),
      requestedAt: warehouse.clock.lease(),
      documents: [{ ...ACTIVITY, id: 'bad' }],
    },
    { ledger: [{ table: 'sync.meta', key: { key: 'x' }, row: { no_such_column: 1 } }] },
  );
  const results = await Promise.allSettled([write(warehouse, 'one'), write(warehouse, 'two'), bad, write(warehouse, 'three')]);
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
  await expect(bad).rejects.toThrow('not stored: sync.meta has no column no_such_column');
  expect(await ids(warehouse)).toEqual(['one', 'two', 'three']);
  await warehouse.close();
});

test('a group for which there is no memory is written in smaller groups', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  const append = DuckDBAppender.prototype.appendDataChunk;
  const run = DuckDBConnection.prototype.run;
  let chunks = 0;
  let failures = 0;
  vi.spyOn(DuckDBConnection.prototype, 'run').mockImplementation(function (this: DuckDBConnection, ...parameters) {
    if (parameters[0] === 'BEGIN TRANSACTION') chunks = 0;
    return run.apply(this, parameters);
  });
  vi.spyOn(DuckDBAppender.prototype, 'appendDataChunk').mockImplementation(function (this: DuckDBAppender, chunk) {
    if (++chunks > 3) {
      failures++;
      throw new Error('Out of Memory Error: could not allocate block of size 256.0 KiB (255.9 MiB/256.0 MiB used)');
    }
    return append.call(this, chunk);
  });
  const counts = await Promise.all(Array.from({ length: 8 }, (_, i) => write(warehouse, `a-${i}`)));
  expect(counts.map(({ stored }) => stored)).toEqual([1, 1, 1, 1, 1, 1, 1, 1]);
  expect(failures).toBe(3);
  expect(await warehouse.read('SELECT count(*), count(DISTINCT id) FROM daily_activity')).toEqual([[8, 8]]);
  expect(await warehouse.read('SELECT count(*), count(DISTINCT sk) FROM daily_activity_met')).toEqual([[32, 8]]);
  await warehouse.close();
});

test('in a process of little memory a group that is too large arrives all the same', async () => {
  const warehouse = await openWarehouse(newPath(folder), { memoryBytes: 48_000_000, threads: 1 });
  const items = Array.from({ length: 60_000 }, (_, i) => Math.sin(i));
  const results = await Promise.all(
    Array.from({ length: 12 }, (_, i) =>
      warehouse.storeDocuments({
        userId: 'ann',
        resource: resourceNamed('daily_activity'),
        requestedAt: warehouse.clock.lease(),
        documents: [{ ...ACTIVITY, id: `a-${i}`, met: { ...ACTIVITY.met, items } }],
      }),
    ),
  );
  expect(results.map(({ samples }) => samples)).toEqual(Array(12).fill(60_000));
  expect(await warehouse.read('SELECT count(*) FROM daily_activity_met')).toEqual([[720_000]]);
  await warehouse.close();
});

test('around a commit DuckDB is told its limit twice: what it freed it gives back as its memory is lowered', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  await write(warehouse, 'a-1');
  const told: string[] = [];
  const run = DuckDBConnection.prototype.run;
  vi.spyOn(DuckDBConnection.prototype, 'run').mockImplementation(async function (this: DuckDBConnection, ...parameters) {
    const [statement] = parameters.map(String);
    const limit = /^SET memory_limit = '(\d+)B'/.exec(statement!)?.[1];
    if (limit) told.push(Number(limit) > 80_000_000 ? 'more' : 'as before');
    if (statement === 'COMMIT') told.push('commit');
    return run.apply(this, parameters);
  });
  await write(warehouse, 'a-2');
  await write(warehouse, 'a-3');
  expect(told).toEqual(['more', 'commit', 'as before', 'more', 'commit', 'as before']);
  await warehouse.close();
});

test('a reading that lacks memory while the writer has it is done again with more', async () => {
  const warehouse = await openWarehouse(newPath(folder), { memoryBytes: 24_000_000, threads: 1 });
  expect(await warehouse.read('SELECT len(list(i)) FROM range(5_000_000) t(i)')).toEqual([[5_000_000]]);
  vi.spyOn(process, 'constrainedMemory').mockReturnValue(100_000_000);
  await expect(warehouse.read('SELECT len(list(i)) FROM range(500_000_000) t(i)')).rejects.toThrow(
    'a question to the warehouse needs more memory than the 0.3 GB it may take here: this machine, or its container, has 0.1 GB; give it more',
  );
  expect(await warehouse.read(`SELECT current_setting('memory_limit')`)).toEqual([['22.8 MiB']]);
  await warehouse.close();
});

test('while two groups wait a third is not even parsed', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  const gate = holdTransactions();
  const running = write(warehouse, 'running');
  await gate.begun;
  const items = Array.from({ length: 100_000 }, () => 1);
  const large = warehouse.storeDocuments({
    userId: 'ann',
    resource: resourceNamed('daily_activity'),
    requestedAt: warehouse.clock.lease(),
    documents: Array.from({ length: 15 }, (_, i) => ({ ...ACTIVITY, id: `large-${i}`, met: { ...ACTIVITY.met, items } })),
  });
  for (let turn = 0; turn < 5; turn++) await setImmediate();
  let parsed = false;
  const third = warehouse.storeDocuments({
    userId: 'ann',
    resource: resourceNamed('daily_stress'),
    requestedAt: warehouse.clock.lease(),
    get documents() {
      parsed = true;
      return [STRESS];
    },
  });
  for (let turn = 0; turn < 20; turn++) await setImmediate();
  expect(parsed).toBe(false);
  gate.release();
  await Promise.all([running, large, third]);
  expect(parsed).toBe(true);
  expect(await warehouse.read('SELECT count(*) FROM daily_activity_met')).toEqual([[1_500_004]]);
  await warehouse.close();
});

test('after a fatal error of DuckDB everything waiting is refused, once told', async () => {
  const told: Error[] = [];
  const warehouse = await openWarehouse(newPath(folder), { onFatal: error => told.push(error) });
  const run = DuckDBConnection.prototype.run;
  vi.spyOn(DuckDBConnection.prototype, 'run').mockImplementation(function (this: DuckDBConnection, ...parameters) {
    if (parameters[0] === 'COMMIT')
      throw new Error('FATAL Error: Failed: database has been invalidated because of a previous fatal error.\nmore');
    return run.apply(this, parameters);
  });
  const message = 'DuckDB cannot go on: FATAL Error: Failed: database has been invalidated because of a previous fatal error.; start again';
  const results = await Promise.allSettled([write(warehouse, 'a'), write(warehouse, 'b', 'live'), write(warehouse, 'c')]);
  expect(results.map(result => (result as PromiseRejectedResult).reason.message)).toEqual([message, message, message]);
  await expect(write(warehouse, 'd')).rejects.toThrow(message);
  await expect(warehouse.record([{ table: 'sync.meta', key: { key: 'x' }, row: { value: 'y' } }])).rejects.toThrow(message);
  expect(told.map(error => error.message)).toEqual([message]);
  await warehouse.close();
});

test('everything waiting is refused after a fatal error, also where whoever is told of it throws', async () => {
  const warehouse = await openWarehouse(newPath(folder), {
    onFatal: () => {
      throw new Error('the log cannot be written');
    },
  });
  const run = DuckDBConnection.prototype.run;
  vi.spyOn(DuckDBConnection.prototype, 'run').mockImplementation(function (this: DuckDBConnection, ...parameters) {
    if (parameters[0] === 'COMMIT') throw new Error('FATAL Error: Failed');
    return run.apply(this, parameters);
  });
  const results = await Promise.allSettled([write(warehouse, 'a'), write(warehouse, 'b', 'live')]);
  const message = 'DuckDB cannot go on: FATAL Error: Failed; start again';
  expect(results.map(result => (result as PromiseRejectedResult).reason.message)).toEqual([message, message]);
  await warehouse.close();
});

test('without room on the disk nothing is written but what may use the reserve, and with room again all goes on', async () => {
  let full = false;
  const warehouse = await openWarehouse(newPath(folder), {
    beforeGroup: () => {
      if (full) throw new RingneckError('the disk is almost full');
    },
  });
  full = true;
  const results = await Promise.allSettled([write(warehouse, 'a'), write(warehouse, 'b')]);
  expect(results.map(result => (result as PromiseRejectedResult).reason.message)).toEqual([
    'the disk is almost full',
    'the disk is almost full',
  ]);
  await expect(warehouse.snapshot(`${warehouse.path}.copy`, 0o600)).rejects.toThrow('the disk is almost full');
  const window = (run: string) => [{ table: 'sync.windows', row: { run_id: run } }];
  const inOneGroup = [
    warehouse.record(window('waits')),
    warehouse.record(window('small'), { usesReserve: true }),
    write(warehouse, 'd', 'live'),
  ];
  expect((await Promise.allSettled(inOneGroup)).map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected']);
  expect(await warehouse.read('SELECT run_id FROM sync.windows')).toEqual([['small']]);
  full = false;
  await write(warehouse, 'c');
  await warehouse.snapshot(`${warehouse.path}.copy`, 0o600);
  expect(await ids(warehouse)).toEqual(['c']);
  await warehouse.close();
});

test('the ledger is committed with the data it speaks of, keys replaced', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  const key = { run_id: 'r', user_id: 'ann', collection: 'daily_activity', start_at: null };
  const window = (documents: number) => ({ table: 'sync.windows', key, row: { documents, reason: `it's ${documents}` } });
  await warehouse.record([window(1), { ...window(2), key: { ...key, start_at: 1_736_899_200_000_000 } }]);
  await warehouse.record([window(3)]);
  await warehouse.record([{ table: 'sync.windows', row: { run_id: 'added', documents: 4 } }]);
  expect(await warehouse.read('SELECT run_id, start_at, documents, reason FROM sync.windows ORDER BY documents')).toEqual([
    ['r', 1_736_899_200_000_000, 2, `it's 2`],
    ['r', null, 3, `it's 3`],
    ['added', null, 4, null],
  ]);
  await warehouse.record([{ table: 'sync.windows', key: { run_id: 'r' } }, window(5), window(6)]);
  expect(await warehouse.read('SELECT run_id, documents FROM sync.windows ORDER BY documents')).toEqual([
    ['added', 4],
    ['r', 6],
  ]);
  await warehouse.close();
});

test('text of the ledger that no statement can hold is kept without its NUL', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  await warehouse.record([{ table: 'sync.meta', key: { key: 'odd\u0000key' }, row: { value: 'lone \ud800 and \u0000' } }]);
  expect(await warehouse.read(`SELECT key, value FROM sync.meta WHERE key LIKE 'odd%'`)).toEqual([
    ['odd\ufffdkey', 'lone \ufffd and \ufffd'],
  ]);
  await warehouse.close();
});

test('commits are counted; a closed warehouse takes nothing more, and may be closed twice', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  const before = warehouse.commits;
  await store(warehouse, 'daily_stress', [STRESS]);
  await warehouse.record([]);
  expect(warehouse.commits - before).toBe(1);
  const last = write(warehouse, 'last');
  await setImmediate();
  await warehouse.close();
  expect(await last).toMatchObject({ stored: 1 });
  await expect(write(warehouse, 'after')).rejects.toThrow('the warehouse is closed');
  await warehouse.close();
});

test('while live work comes a bulk group is small, so that a live change waits for little', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  const items = Array.from({ length: 1_440 }, (_, i) => 1 + (i % 7) / 10);
  const page = (prefix: string, count: number) =>
    Array.from({ length: count }, (_, i) => ({ ...ACTIVITY, id: `${prefix}-${i}`, met: { ...ACTIVITY.met, items } }));
  const stored = (documents: unknown[], lane: 'live' | 'bulk') =>
    warehouse.storeDocuments(
      { userId: 'ann', resource: resourceNamed('daily_activity'), requestedAt: warehouse.clock.lease(), documents },
      { lane },
    );
  const order: string[] = [];
  await stored(page('first', 1), 'live');
  const bulk = ['b1', 'b2', 'b3', 'b4', 'b5', 'b6'].map(name => stored(page(name, 20), 'bulk').then(() => order.push(name)));
  await bulk[0];
  await stored(page('second', 1), 'live').then(() => order.push('live'));
  await Promise.all(bulk);
  // Two pages of 28,800 samples are more than a group holds then: with the usual one all six would have come first.
  expect(order.indexOf('live')).toBeLessThan(5);
  expect(await warehouse.read('SELECT count(*), (SELECT count(*) FROM daily_activity_met) FROM daily_activity')).toEqual([
    [122, 122 * 1_440],
  ]);
  await warehouse.close();
});

test('a stream of live changes does not let the log grow without end', async () => {
  const path = newPath(folder);
  const warehouse = await openWarehouse(path);
  const items = Array.from({ length: 1_440 }, (_, i) => Math.sin(i));
  let largest = 0;
  for (let n = 0; n < 24; n++) {
    const documents = Array.from({ length: 100 }, (_, i) => ({ ...ACTIVITY, id: `a-${i}`, steps: n, met: { ...ACTIVITY.met, items } }));
    const requestedAt = warehouse.clock.lease();
    await warehouse.storeDocuments({ userId: 'ann', resource: resourceNamed('daily_activity'), requestedAt, documents }, { lane: 'live' });
    warehouse.clock.release(requestedAt);
    largest = Math.max(largest, statSync(`${path}.wal`, { throwIfNoEntry: false })?.size ?? 0);
  }
  // 24 times 4 MB of samples were written.
  expect(largest).toBeGreaterThan(20 * 1024 * 1024);
  expect(largest).toBeLessThan(45 * 1024 * 1024);
  await warehouse.close();
});
