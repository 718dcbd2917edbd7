import { expect, test } from 'vitest';
import { findSuspicion, noSuspicionEntry, noteSuspicion, readSuspicions } from '../../src/ledger/suspicions.ts';
import { at, warehouseWith } from '../support/literal-pipeline.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();

test('a suspicion keeps the time of its first proof until it is taken away, and each document has its own', async () => {
  const warehouse = await warehouseWith(folder, []);
  const refused = { userId: 'ada', collection: 'sleep', kind: 'refused' } as const;
  const missing = { ...refused, kind: 'missing', objectId: "o'1" } as const;
  expect(await findSuspicion(warehouse, refused)).toBeUndefined();
  expect(await noteSuspicion(warehouse, refused, at('2025-03-05T10:00:00Z'))).toBe(at('2025-03-05T10:00:00Z'));
  expect(await noteSuspicion(warehouse, refused, at('2025-03-05T10:02:00Z'))).toBe(at('2025-03-05T10:00:00Z'));
  expect(await noteSuspicion(warehouse, missing, at('2025-03-05T10:03:00Z'))).toBe(at('2025-03-05T10:03:00Z'));
  // A clock that was ahead and was set back since.
  expect(await noteSuspicion(warehouse, missing, at('2025-03-05T09:00:00Z'))).toBe(at('2025-03-05T09:00:00Z'));
  expect([...(await readSuspicions(warehouse, missing))]).toEqual([["o'1", at('2025-03-05T09:00:00Z')]]);
  await warehouse.record([noSuspicionEntry(missing)]);
  expect([...(await readSuspicions(warehouse, missing))]).toEqual([]);
  expect(await findSuspicion(warehouse, refused)).toBe(at('2025-03-05T10:00:00Z'));
  expect(await findSuspicion(warehouse, { ...refused, userId: 'ben' })).toBeUndefined();
});
