import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { DuckDBAppender, DuckDBConnection } from '@duckdb/node-api';
import { afterEach, expect, test, vi } from 'vitest';
import { resources } from '../../schema/index.ts';
import type { Warehouse } from '../../src/warehouse/warehouse.ts';
import type { RowAppender } from '../../src/warehouse/write/append.ts';
import { appendTo } from '../../src/warehouse/write/append.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse, resourceNamed } from '../support/warehouse.ts';
import { isWhole, seed, stepsOf } from '../support/whole.ts';
import { ACTIVITY } from '../support/wire.ts';

const folder = tempFolder();
const T = 1_736_899_200;

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc') as () => void;

/** What is collected is finalised in a later turn. */
async function collectGarbage(): Promise<void> {
  gc();
  for (let turn = 0; turn < 2; turn++) await setImmediate();
}

afterEach(() => {
  vi.restoreAllMocks();
});

type Faults = { when: 'before' | 'after'; nth: number };

/** What may fail without harm to what it follows: a rollback, and giving back memory. */
const HARMLESS = ['ROLLBACK', `SET memory_limit = '80000000B'`];

/** Makes the nth call of DuckDB fail, before it does anything or after it has; those that are harmless are not counted. */
function inject({ when, nth }: Faults): { reached: () => boolean; calls: () => number; failed: () => string } {
  let calls = 0;
  let failed = '';
  const fails = (name: string) => {
    if (HARMLESS.includes(name)) return false;
    calls++;
    if (calls === nth) failed = name;
    return calls === nth;
  };
  const error = () => new Error('IO Error: simulated');
  for (const method of ['run', 'runAndReadAll', 'createAppender'] as const) {
    const original = DuckDBConnection.prototype[method] as (...parameters: unknown[]) => Promise<unknown>;
    vi.spyOn(DuckDBConnection.prototype, method).mockImplementation(async function (this: DuckDBConnection, ...parameters: unknown[]) {
      const failing = fails(String(parameters[0]));
      if (failing && when === 'before') throw error();
      const result = await original.apply(this, parameters);
      if (failing) throw error();
      return result as never;
    });
  }
  for (const method of ['appendDataChunk', 'closeSync'] as const) {
    const original = DuckDBAppender.prototype[method] as (...parameters: unknown[]) => void;
    vi.spyOn(DuckDBAppender.prototype, method).mockImplementation(function (this: DuckDBAppender, ...parameters: unknown[]) {
      const failing = fails(method);
      if (failing && when === 'before') throw error();
      original.apply(this, parameters);
      if (failing) throw error();
    });
  }
  return { reached: () => calls >= nth, calls: () => calls, failed: () => failed };
}

const activity = (id: string, steps: number, items: number) => ({
  ...ACTIVITY,
  id,
  steps,
  met: { ...ACTIVITY.met, items: Array(items).fill(1) },
});

async function begin<T>(warehouse: Warehouse, work: (requestedAt: number) => Promise<T>): Promise<T> {
  const requestedAt = warehouse.clock.lease();
  try {
    return await work(requestedAt);
  } finally {
    warehouse.clock.release(requestedAt);
  }
}

const documents = (warehouse: Warehouse, userId: string, list: readonly unknown[], removed: string[], value: string) =>
  begin(warehouse, requestedAt =>
    warehouse.storeDocuments(
      { userId, resource: resourceNamed('daily_activity'), requestedAt, documents: list, removed },
      { ledger: [{ table: 'sync.meta', key: { key: userId }, row: { value } }] },
    ),
  );

const pulses = (warehouse: Warehouse, userId: string, bpms: readonly number[]) =>
  begin(warehouse, requestedAt =>
    warehouse.storeHeartRate({
      userId,
      from: T * 1_000_000,
      to: (T + 60) * 1_000_000,
      requestedAt,
      rows: bpms.map((bpm, i) => ({
        timestamp: new Date((T + i) * 1000).toISOString(),
        timestamp_unix: (T + i) * 1000,
        bpm,
        source: 'rest',
      })),
    }),
  );

const setUp = async (warehouse: Warehouse, userId: string) => {
  await documents(warehouse, userId, [activity('kept', 1, 1), activity('replaced', 1, 2), activity('gone', 1, 3)], [], 'old');
  await documents(warehouse, userId, [{ ...activity('bad', 1, 1), day: 'never' }], [], 'old');
};

const change = (warehouse: Warehouse, userId: string) =>
  documents(
    warehouse,
    userId,
    [
      activity('kept', 1, 1),
      activity('replaced', 2, 4),
      activity('added', 2, 2500),
      activity('bad', 3, 5),
      { ...activity('worse', 1, 1), day: 'never', [`drift-${userId}`]: 1 },
    ],
    ['gone'],
    'new',
  );

const BEFORE = {
  documents: [
    ['gone', 1, 3, 3],
    ['kept', 1, 1, 1],
    ['replaced', 1, 2, 2],
  ],
  samples: [[6]],
  rejected: [['bad']],
  tombstones: [],
  meta: [['old']],
};

const AFTER = {
  documents: [
    ['added', 2, 2500, 2500],
    ['bad', 3, 5, 5],
    ['kept', 1, 1, 1],
    ['replaced', 2, 4, 4],
  ],
  samples: [[2510]],
  rejected: [['worse']],
  tombstones: [['gone']],
  meta: [['new']],
};

const state = async (warehouse: Warehouse, userId: string) => ({
  documents: await warehouse.read(
    `SELECT id, steps, met_count, (SELECT count(*) FROM daily_activity_met s WHERE s.sk = d.sk) FROM daily_activity d WHERE user_id = '${userId}' ORDER BY id`,
  ),
  samples: await warehouse.read(`SELECT count(*) FROM daily_activity_met WHERE user_id = '${userId}'`),
  rejected: await warehouse.read(`SELECT id FROM sync.rejected WHERE user_id = '${userId}' ORDER BY id`),
  tombstones: await warehouse.read(`SELECT id FROM sync.tombstones WHERE user_id = '${userId}'`),
  meta: await warehouse.read(`SELECT value FROM sync.meta WHERE key = '${userId}'`),
});

/** How many calls a change takes where nothing fails. */
async function countCalls(warehouse: Warehouse): Promise<number> {
  await setUp(warehouse, 'u0');
  const { calls } = inject({ when: 'before', nth: Number.POSITIVE_INFINITY });
  await change(warehouse, 'u0');
  vi.restoreAllMocks();
  return calls();
}

test.each(['before', 'after'] as const)(
  'the nth call of DuckDB fails %s it is done, for every n: all or nothing is stored, and the next try is good',
  async when => {
    const warehouse = await openWarehouse(newPath(folder));
    const outcomes = new Set<string>();
    const count = await countCalls(warehouse);
    let users = 1;
    for (const nth of [...stepsOf(count, 12), count + 1]) {
      const userId = `u${nth}`;
      users++;
      await setUp(warehouse, userId);
      const { reached, failed } = inject({ when, nth });
      const outcome = await change(warehouse, userId).then(
        () => 'stored',
        (error: Error) => error.message,
      );
      vi.restoreAllMocks();
      expect(reached()).toBe(nth <= count);
      if (!reached()) {
        expect(outcome).toBe('stored');
        expect(await state(warehouse, userId)).toEqual(AFTER);
        continue;
      }
      outcomes.add(outcome);
      // A commit that was done, and then said that it failed, is the one case in which an error leaves the new state.
      const found = await state(warehouse, userId);
      expect(found, `call ${nth} of ${count}, seed ${seed}: ${failed()}`).toEqual(
        found.meta[0]?.[0] === 'new' && when === 'after' ? AFTER : BEFORE,
      );
      await collectGarbage();
      await change(warehouse, userId);
      expect(await state(warehouse, userId)).toEqual(AFTER);
    }
    expect([...outcomes]).toEqual(['not stored: IO Error: simulated']);
    expect(count).toBeGreaterThan(15);
    // What an appender left behind would have come up in some later transaction.
    await collectGarbage();
    await documents(warehouse, 'last', [activity('x', 1, 1)], [], 'old');
    expect(await warehouse.read('SELECT count(*), count(DISTINCT (user_id, id)) FROM daily_activity')).toEqual([
      [users * 4 + 1, users * 4 + 1],
    ]);
    expect(await warehouse.read('SELECT count(*) FROM daily_activity_met')).toEqual([[users * 2510 + 1]]);
    expect(await warehouse.read('SELECT count(*) FROM daily_activity_met WHERE sk NOT IN (SELECT sk FROM daily_activity)')).toEqual([[0]]);
    await warehouse.close();
  },
);

test('the nth call fails while a group of several changes is written, for every fifth n: each is stored once all the same', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  for (let nth = 1; ; nth += 5) {
    const users = [`a${nth}`, `b${nth}`, `c${nth}`];
    for (const userId of users) {
      await setUp(warehouse, userId);
      await pulses(warehouse, userId, [60, 61, 62]);
    }
    const { reached } = inject({ when: 'before', nth });
    await Promise.all(users.flatMap(userId => [change(warehouse, userId), pulses(warehouse, userId, [60, 71])]));
    vi.restoreAllMocks();
    for (const userId of users) {
      expect(await state(warehouse, userId)).toEqual(AFTER);
      expect(await warehouse.read(`SELECT bpm FROM heart_rate WHERE user_id = '${userId}' ORDER BY ts`)).toEqual([[60], [71]]);
    }
    if (!reached()) break;
  }
  await warehouse.close();
});

test('a range of heart rate of which the nth call fails, for every n, is there as before or as after', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  const stored = (userId: string) => warehouse.read(`SELECT bpm FROM heart_rate WHERE user_id = '${userId}' ORDER BY ts`);
  for (let nth = 1; ; nth++) {
    const userId = `u${nth}`;
    await pulses(warehouse, userId, [60, 61, 62]);
    const { reached } = inject({ when: 'before', nth });
    const failed = await pulses(warehouse, userId, [60, 71]).then(
      () => false,
      () => true,
    );
    vi.restoreAllMocks();
    expect(await stored(userId)).toEqual(failed ? [[60], [61], [62]] : [[60], [71]]);
    await pulses(warehouse, userId, [60, 71]);
    expect(await stored(userId)).toEqual([[60], [71]]);
    if (!reached()) break;
  }
  await warehouse.close();
});

test('the nth call fails while a file is opened for the first time, for every seventh n: the next start makes it whole', async () => {
  const TABLES = `SELECT count(*) FROM duckdb_tables() WHERE NOT internal`;
  const undisturbed = await openWarehouse(newPath(folder), { resources });
  const tables = await undisturbed.read(TABLES);
  await undisturbed.close();
  for (let nth = 1; ; nth += isWhole ? 7 : 61) {
    const path = newPath(folder);
    const { reached } = inject({ when: 'before', nth });
    // Told the document types, it is no copy of one that is there already.
    const opened = await openWarehouse(path, { resources }).catch((error: Error) => error.message);
    vi.restoreAllMocks();
    if (typeof opened !== 'string') await opened.close();
    const warehouse = await openWarehouse(path, { resources });
    expect(await warehouse.read(TABLES)).toEqual(tables);
    expect(await warehouse.read(`SELECT key FROM sync.meta ORDER BY key`)).toEqual([
      ['declarations'],
      ['format'],
      ['readings_dated_at'],
      ['routes_named_at'],
      ['views'],
    ]);
    expect(await warehouse.read(`SELECT count(*) FROM duckdb_views() WHERE NOT internal AND view_name = 'daily'`)).toEqual([[1]]);
    await documents(warehouse, 'ann', [activity('x', 1, 1)], [], 'new');
    await warehouse.close();
    if (!reached()) break;
  }
});

// Measured: an appender that is not closed flushes when it is collected, into whatever transaction is open then, and after a rollback too.
test('an appender whose flush failed is emptied, and then closed', async () => {
  const calls: string[] = [];
  const Failing = class {
    clear() {
      calls.push('clear');
    }
    close() {
      if (calls.push('close') === 1) throw new Error('IO Error: simulated');
    }
  } as unknown as typeof RowAppender;
  const transaction = { openAppender: async () => ({ appender: {} as DuckDBAppender }), columnsOf: () => [] };
  await expect(appendTo(transaction, { table: 'sleep', count: 1 }, Failing, async () => undefined)).rejects.toThrow('IO Error: simulated');
  expect(calls).toEqual(['close', 'clear', 'close']);
});

test('a withdrawal of heart rate of which the nth call fails, for every n, has taken rows and windows or neither, and nobody else’s', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  const at = (second: number) => (T + second) * 1_000_000;
  const window = (userId: string, route: string, from: number, to: number, outcome = 'complete') => ({
    table: 'sync.windows',
    key: { run_id: `${userId}-${route}`, user_id: userId, collection: 'heart_rate', start_at: at(from) },
    row: { end_at: at(to), route, outcome },
  });
  const stored = async (userId: string) => [
    (await warehouse.read(`SELECT bpm FROM heart_rate WHERE user_id = '${userId}' ORDER BY ts`)).flat(),
    await warehouse.read(`SELECT route, outcome FROM sync.windows WHERE user_id = '${userId}' ORDER BY start_at, route`),
  ];
  await pulses(warehouse, 'ben', [80, 81]);
  await warehouse.record([window('ben', '/plain', 0, 60)]);
  const before = [
    [60, 61, 62],
    [
      ['/generated', 'complete'],
      ['/plain', 'complete'],
      ['/plain', 'complete'],
    ],
  ];
  // The row at the end of the range belongs to the next window; what lies across the range has lost a row with it.
  const after = [
    [62],
    [
      ['/generated', 'failed'],
      ['/plain', 'failed'],
      ['/plain', 'complete'],
    ],
  ];
  for (let nth = 1; ; nth++) {
    const userId = `u${nth}`;
    await pulses(warehouse, userId, [60, 61, 62]);
    await warehouse.record([window(userId, '/generated', 0, 2), window(userId, '/plain', 1, 3), window(userId, '/plain', 3, 9)]);
    expect(await stored(userId)).toEqual(before);
    const spans = await warehouse.readHeartRateSpans('/generated');
    expect(spans).toEqual([{ userId, from: at(0), to: at(2) }]);
    const { reached } = inject({ when: 'before', nth });
    const withdraw = () => warehouse.withdrawHeartRate({ route: '/generated', reason: 'generated', spans });
    const failed = await withdraw().then(
      () => false,
      () => true,
    );
    vi.restoreAllMocks();
    expect(await stored(userId)).toEqual(failed ? before : after);
    await withdraw();
    expect(await stored(userId)).toEqual(after);
    expect(await stored('ben')).toEqual([[80, 81], [['/plain', 'complete']]]);
    if (!reached()) break;
    expect(failed).toBe(true);
  }
  await warehouse.close();
});
