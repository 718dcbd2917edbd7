import { expect, test } from 'vitest';
import { resources } from '../../schema/index.ts';
import { windowEntry } from '../../src/ledger/windows.ts';
import { spo2 } from '../service/documents.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse, resourceNamed, rows } from '../support/warehouse.ts';

const folder = tempFolder();

test('an entry of the ledger may tell what storing did, and is committed with it or not at all', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  const store = async (value: string, note: (stored: number) => string) => {
    const requestedAt = warehouse.clock.next();
    const page = { userId: 'ann', resource: resourceNamed('daily_spo2'), requestedAt, documents: [spo2('2025-03-09', 'x')] };
    await warehouse.storeDocuments(page, {
      ledger: ({ stored }) => [{ table: 'sync.meta', key: { key: value }, row: { value: note(stored) } }],
    });
  };
  const failing = store('first', () => {
    throw new Error('no note');
  });
  await expect(failing).rejects.toThrow('not stored: no note');
  expect(await rows(warehouse, 'SELECT id FROM daily_spo2')).toEqual([]);
  await store('second', stored => `${stored} stored`);
  await store('third', stored => `${stored} stored`);
  expect(await rows(warehouse, `SELECT key, value FROM sync.meta WHERE value LIKE '%stored' ORDER BY key`)).toEqual([
    { key: 'second', value: '1 stored' },
    { key: 'third', value: '0 stored' },
  ]);
  await warehouse.close();
});

test('a run of a year of many people is stopped within the memory that storing has', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  const months = Array.from({ length: 12 }, (_, i) => ({ startAt: Date.UTC(2025, i) * 1000, endAt: Date.UTC(2025, i + 1) * 1000 }));
  const users = Array.from({ length: 50 }, (_, i) => `user-${i}`);
  const windows = [...months, { startAt: null, endAt: null }].flatMap(range =>
    users.flatMap(userId => resources.map(({ name }) => ({ runId: 'run', userId, collection: name, ...range }))),
  );
  const note = (outcome: 'stopped' | null) => warehouse.record(windows.map(window => windowEntry(window, { outcome })));
  await note(null);
  await note('stopped');
  expect(await warehouse.read('SELECT outcome, count(*) FROM sync.windows GROUP BY ALL')).toEqual([['stopped', windows.length]]);
  await warehouse.close();
});

test('an entry replaces the one of its key, whatever of the key is null, and no neighbour', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  const window = (userId: string, collection: string, startAt: number | null) => ({
    runId: 'run',

    userId,
    collection,
    startAt,
    endAt: null,
  });
  const [first, second] = [Date.UTC(2025, 0) * 1000, Date.UTC(2025, 1) * 1000];
  const planned = [
    window('ann', 'sleep', first),
    window('ann', 'sleep', second),
    window('ann', 'personal_info', null),
    window('ann', 'vO2_max', first),
    window('ben', 'sleep', first),
    window('ben', 'personal_info', null),
  ];
  await warehouse.record(planned.map(one => windowEntry(one, { outcome: null })));
  await warehouse.record([
    windowEntry(planned[0]!, { outcome: 'complete' }),
    windowEntry(planned[2]!, { outcome: 'failed' }),
    windowEntry(planned[4]!, { outcome: 'failed' }),
    // Of two with one key the later one is meant.
    windowEntry(planned[4]!, { outcome: 'stopped' }),
    { table: 'sync.windows', key: { user_id: 'ann', collection: 'vO2_max' } },
  ]);
  expect(
    await rows(warehouse, 'SELECT user_id, collection, start_at::DATE::VARCHAR AS day, outcome FROM sync.windows ORDER BY ALL'),
  ).toEqual([
    { user_id: 'ann', collection: 'personal_info', day: null, outcome: 'failed' },
    { user_id: 'ann', collection: 'sleep', day: '2025-01-01', outcome: 'complete' },
    { user_id: 'ann', collection: 'sleep', day: '2025-02-01', outcome: null },
    { user_id: 'ben', collection: 'personal_info', day: null, outcome: null },
    { user_id: 'ben', collection: 'sleep', day: '2025-01-01', outcome: 'stopped' },
  ]);
  await warehouse.close();
});
