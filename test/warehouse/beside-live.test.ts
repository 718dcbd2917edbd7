import { setImmediate } from 'node:timers/promises';
import { DuckDBConnection } from '@duckdb/node-api';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { HeartRateChanges } from '../../src/warehouse/heart-rate/heart-rate-changes.ts';
import { mapResource } from '../../src/warehouse/mapping.ts';
import { RequestClock } from '../../src/warehouse/request-clock.ts';
import { KeptReadings } from '../../src/warehouse/write/kept-readings.ts';
import { type Lane, Writer } from '../../src/warehouse/write/writer.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { NOW, newPath, openWarehouse, resourceNamed, storeOfNothing } from '../support/warehouse.ts';
import { ACTIVITY, STRESS } from '../support/wire.ts';

const folder = tempFolder();

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
});

afterEach(() => {
  vi.useRealTimers();
});

async function turns(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await setImmediate();
}

/** A writer whose every commit takes so long, by the test's own clock. */
function openWriter(commitMs: number) {
  const done: string[] = [];
  const connection = {
    async run(statement: string) {
      if (statement === 'COMMIT') vi.advanceTimersByTime(commitMs);
    },
  } as unknown as DuckDBConnection;
  const clock = new RequestClock(0, () => NOW);
  const writer = new Writer({
    connection,
    clock,
    columnsOf: () => [],
    kept: new KeptReadings(),
    heartRateChanges: new HeartRateChanges(),
    store: storeOfNothing(),
  });
  const mapping = mapResource(resourceNamed('daily_stress'));
  const write = (name: string, lane: Lane) => {
    const page = { userId: 'ann', mapping, requestedAt: clock.next(), documents: [], rejected: [], removed: [] };
    return writer.write({ page, samples: 0 }, lane).then(() => done.push(name));
  };
  return { writer, write, done };
}

test('beside a stream of live work bulk work has a tenth of the time', async () => {
  const { write, done } = openWriter(100);
  await write('live 1', 'live');
  await write('bulk 1', 'bulk');
  // It took 100 ms: the next one may begin 900 ms after its end.
  void write('bulk 2', 'bulk');
  await turns();
  vi.advanceTimersByTime(750);
  await turns();
  expect(done).toEqual(['live 1', 'bulk 1']);
  // A live one waits for nothing, and takes 100 of these 900 ms.
  await write('live 2', 'live');
  expect(done).toEqual(['live 1', 'bulk 1', 'live 2']);
  vi.advanceTimersByTime(49);
  await turns();
  expect(done).toEqual(['live 1', 'bulk 1', 'live 2']);
  vi.advanceTimersByTime(1);
  await turns();
  expect(done).toEqual(['live 1', 'bulk 1', 'live 2', 'bulk 2']);
});

test('a second after the last live work bulk work waits no more', async () => {
  const { write, done } = openWriter(800);
  await write('live', 'live');
  await write('bulk 1', 'bulk');
  await write('bulk 2', 'bulk');
  expect(done).toEqual(['live', 'bulk 1', 'bulk 2']);
});

test('closing waits for no share: what was given is committed at once', async () => {
  const { writer, write, done } = openWriter(100);
  await write('live', 'live');
  await write('bulk 1', 'bulk');
  void write('bulk 2', 'bulk');
  await turns();
  await writer.close();
  expect(done).toEqual(['live', 'bulk 1', 'bulk 2']);
});

test('beside live work pages of documents without samples make no large group either', async () => {
  let groups = 0;
  const warehouse = await openWarehouse(newPath(folder), { beforeGroup: () => void groups++ });
  const page = (lane: Lane, name: string) =>
    warehouse.storeDocuments(
      {
        userId: 'ann',
        resource: resourceNamed('daily_stress'),
        requestedAt: warehouse.clock.lease(),
        documents: Array.from({ length: 50 }, (_, i) => ({ ...STRESS, id: `${name}-${i}` })),
      },
      { lane },
    );
  await page('live', 'live');
  groups = 0;
  await Promise.all(Array.from({ length: 10 }, (_, i) => page('bulk', `bulk-${i}`)));
  // Of 200, 200 and 100 documents.
  expect(groups).toBe(3);
  await warehouse.close();
});

test('live work is taken while bulk work has to wait for room', async () => {
  // Each group takes 100 ms.
  const warehouse = await openWarehouse(newPath(folder), { beforeGroup: () => void vi.advanceTimersByTime(100) });
  const store = (lane: Lane, documents: readonly unknown[], name = 'daily_activity') =>
    warehouse.storeDocuments({ userId: 'ann', resource: resourceNamed(name), requestedAt: warehouse.clock.lease(), documents }, { lane });
  const items = Array.from({ length: 100_000 }, () => 1);
  await store('live', [STRESS], 'daily_stress');
  await store('bulk', [{ ...ACTIVITY, id: 'first' }]);
  // More than two groups, in a writer that lets bulk work wait: nothing more of it is taken.
  const large = Array.from({ length: 2 }, (_, i) => store('bulk', [{ ...ACTIVITY, id: `large-${i}`, met: { ...ACTIVITY.met, items } }]));
  await turns();
  let wasParsed = false;
  const third = warehouse.storeDocuments({
    userId: 'ann',
    resource: resourceNamed('daily_stress'),
    requestedAt: warehouse.clock.lease(),
    get documents() {
      wasParsed = true;
      return [];
    },
  });
  await store('live', [{ ...STRESS, id: 'urgent' }], 'daily_stress');
  expect(await warehouse.read(`SELECT count(*) FROM daily_stress WHERE id = 'urgent'`)).toEqual([[1]]);
  expect(await warehouse.read(`SELECT count(*) FROM daily_activity WHERE id LIKE 'large-%'`)).toEqual([[0]]);
  expect(wasParsed).toBe(false);
  vi.advanceTimersByTime(60_000);
  await Promise.all([...large, third]);
  expect(await warehouse.read(`SELECT count(*) FROM daily_activity WHERE id LIKE 'large-%'`)).toEqual([[2]]);
  await warehouse.close();
});

test('DuckDB has more memory while live work comes, also when a snapshot begins before and ends in between', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  const memory = async () => (await warehouse.read(`SELECT current_setting('memory_limit')`))[0]![0];
  const store = (lane: Lane, id: string) => {
    const requestedAt = warehouse.clock.lease();
    return warehouse.storeDocuments(
      { userId: 'ann', resource: resourceNamed('daily_stress'), requestedAt, documents: [{ ...STRESS, id }] },
      { lane },
    );
  };
  // 80 and 256 MB, as DuckDB shows them.
  expect(await memory()).toBe('76.2 MiB');
  const snapshot = warehouse.snapshot(`${newPath(folder)}.copy`, 0o600);
  await store('live', 'a');
  await snapshot;
  await store('live', 'b');
  expect(await memory()).toBe('244.1 MiB');
  vi.advanceTimersByTime(10_000);
  await store('bulk', 'c');
  // Between two groups.
  await store('bulk', 'd');
  expect(await memory()).toBe('76.2 MiB');
  await warehouse.close();
});

test('what live work has left in the log is in the file before DuckDB has less memory', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  const store = (lane: Lane, id: string) =>
    warehouse.storeDocuments(
      { userId: 'ann', resource: resourceNamed('daily_stress'), requestedAt: warehouse.clock.lease(), documents: [{ ...STRESS, id }] },
      { lane },
    );
  const limits: unknown[] = [];
  const run = DuckDBConnection.prototype.run;
  vi.spyOn(DuckDBConnection.prototype, 'run').mockImplementation(async function (this: DuckDBConnection, ...parameters) {
    if (parameters[0] === 'CHECKPOINT') limits.push((await warehouse.read(`SELECT current_setting('memory_limit')`))[0]![0]);
    return run.apply(this, parameters);
  });
  await store('live', 'a');
  vi.advanceTimersByTime(10_000);
  await store('bulk', 'b');
  await store('bulk', 'c');
  vi.restoreAllMocks();
  // Not the 80 MB of bulk work.
  expect(limits.map(limit => limit !== '76.2 MiB')).toEqual([true]);
  await warehouse.close();
});
