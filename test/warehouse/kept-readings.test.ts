import { expect, test } from 'vitest';
import { HeartRateChanges } from '../../src/warehouse/heart-rate/heart-rate-changes.ts';
import { HeartRateAnswer } from '../../src/warehouse/heart-rate-answer.ts';
import type { Value } from '../../src/warehouse/sql.ts';
import { KeptReadings } from '../../src/warehouse/write/kept-readings.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse } from '../support/warehouse.ts';

const folder = tempFolder();

const ANN = { table: 'sync.tombstones', key: { user_id: 'ann', collection: 'sleep', id: 'night' }, row: { removed_at: 1_000_000 } };
const IDS = 'SELECT id FROM sync.tombstones';

test('what is kept of a table is read again after a commit of it, by whoever waits for that commit', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  expect(await warehouse.readKept('sync.tombstones', IDS)).toEqual([]);
  await warehouse.record([ANN]);
  const first = await warehouse.readKept('sync.tombstones', IDS);
  expect(first).toEqual([['night']]);
  await warehouse.record([{ table: 'sync.meta', key: { key: 'other' }, row: { value: 'x' } }]);
  expect(await warehouse.readKept('sync.tombstones', IDS)).toBe(first);
  await warehouse.record([{ table: ANN.table, key: ANN.key }]);
  expect(await warehouse.readKept('sync.tombstones', IDS)).toEqual([]);
  await warehouse.close();
});

test('a reading that a commit overtakes is given to who asked and not kept', async () => {
  const kept = new KeptReadings();
  let answer!: (rows: Value[][]) => void;
  const early = kept.read('t', 'SELECT 1', () => new Promise(resolve => (answer = resolve)));
  kept.touch(['t']);
  answer([['old']]);
  expect(await early).toEqual([['old']]);
  expect(await kept.read('t', 'SELECT 1', async () => [['new']])).toEqual([['new']]);
});

test('a reading that fails is made again', async () => {
  const kept = new KeptReadings();
  await expect(kept.read('t', 'SELECT 1', () => Promise.reject(new Error('IO Error')))).rejects.toThrow('IO Error');
  expect(await kept.read('t', 'SELECT 1', async () => [['there']])).toEqual([['there']]);
});

const [FROM, TO] = [Date.UTC(2025, 0, 1) * 1000, Date.UTC(2025, 0, 2) * 1000];
const row = (second: number) => {
  const timestamp = new Date(FROM / 1000 + second * 1000).toISOString();
  return { timestamp, timestamp_unix: Date.parse(timestamp), bpm: 60, source: 'awake' };
};

function answerOf(rows: unknown[]): HeartRateAnswer {
  const answer = new HeartRateAnswer();
  answer.add(rows);
  return answer;
}

test('rows that came after an answer was compared are neither doubled nor lost when it is stored', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  const rows = answerOf([row(0), row(300)]);
  const range = { userId: 'ann', from: FROM, to: TO, rows };
  const { compared } = await warehouse.countMissingHeartRate({ ...range, requestedAt: warehouse.clock.next() });
  expect(compared.found).toBe('none');
  await warehouse.storeHeartRate({ ...range, requestedAt: warehouse.clock.next() });
  const counts = await warehouse.storeHeartRate({ ...range, requestedAt: warehouse.clock.next(), compared });
  expect(counts).toMatchObject({ stored: 0, unchanged: 2, removed: 0 });
  expect(await warehouse.read('SELECT epoch_us(ts) FROM heart_rate ORDER BY ts')).toEqual([[FROM], [FROM + 300_000_000]]);
  await warehouse.close();
});

test('two answers over one range that were compared with nothing and are committed together leave each moment once', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  const range = { userId: 'ann', from: FROM, to: TO, rows: answerOf([row(0), row(300)]) };
  const { compared } = await warehouse.countMissingHeartRate({ ...range, requestedAt: warehouse.clock.next() });
  const [first, second] = await Promise.all([
    warehouse.storeHeartRate({ ...range, requestedAt: warehouse.clock.next(), compared }),
    warehouse.storeHeartRate({ ...range, requestedAt: warehouse.clock.next(), compared }),
  ]);
  expect([first.stored, second.stored, second.unchanged]).toEqual([2, 0, 2]);
  expect(await warehouse.read('SELECT count(*) FROM heart_rate')).toEqual([[2]]);
  await warehouse.close();
});

test('a change of other days or of another account leaves a comparison as it is', () => {
  const changes = new HeartRateChanges();
  const { version } = changes;
  changes.note([
    { userId: 'ann', from: TO, to: TO + 1 },
    { userId: 'bob', from: FROM, to: TO },
  ]);
  expect(changes.isUnchanged(version, { userId: 'ann', from: FROM, to: TO })).toBe(true);
  changes.note([{ userId: 'ann', from: TO - 1, to: TO }]);
  expect(changes.isUnchanged(version, { userId: 'ann', from: FROM, to: TO })).toBe(false);
});

test('of a comparison that is older than what is remembered nothing is known', () => {
  const changes = new HeartRateChanges();
  const { version } = changes;
  changes.note(Array.from({ length: 1_001 }, () => ({ userId: 'bob', from: FROM, to: TO })));
  expect(changes.isUnchanged(version, { userId: 'ann', from: FROM, to: TO })).toBe(false);
});
