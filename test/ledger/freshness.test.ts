import { expect, test } from 'vitest';
import { Freshness } from '../../src/ledger/status.ts';
import { account, at, warehouseWith } from '../support/literal-pipeline.ts';
import { note } from '../support/literal-readings.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
const names = ['daily_stress', 'sleep'];
const days = (n: number): [string, string] => [`2025-03-0${n}`, `2025-03-0${n}`];

test('an account is as fresh as the collection that was read longest ago, whatever came since the last look', async () => {
  const warehouse = await warehouseWith(folder, [account('ada'), account('ben')]);
  const freshness = new Freshness();
  const look = async () => Object.fromEntries(await freshness.read(warehouse, names));
  expect(await look()).toEqual({});
  await note(warehouse, { run: 'first', days: days(1), outcome: 'complete', when: '2025-03-02T03:00:00Z' });
  await note(warehouse, { collection: 'sleep', days: days(1), outcome: 'failed', when: '2025-03-02T03:01:00Z' });
  await note(warehouse, { user: 'ben', days: days(1), outcome: 'complete', when: '2025-03-02T03:02:00Z' });
  expect(await look()).toEqual({ ada: null, ben: at('2025-03-02T03:02:00Z') });
  // Committed a little before what was seen already.
  await note(warehouse, { collection: 'sleep', days: days(1), outcome: 'complete', when: '2025-03-02T03:01:30Z' });
  await note(warehouse, { collection: 'heart_rate', days: days(1), outcome: 'failed', when: '2025-03-03T03:00:00Z' });
  expect(await look()).toEqual({ ada: at('2025-03-02T03:00:00Z'), ben: at('2025-03-02T03:02:00Z') });
  await note(warehouse, { days: days(2), outcome: 'failed', when: '2025-03-03T03:00:00Z' });
  await note(warehouse, { user: 'ben', days: days(2), outcome: 'not_authorised', when: '2025-03-03T03:00:00Z' });
  expect(await look()).toEqual({ ada: at('2025-03-02T03:00:00Z') });
  await note(warehouse, { days: days(2), outcome: 'complete', when: '2025-03-04T03:00:00Z' });
  // What was seen is not read again: the ledger of years is not gone through for each look.
  await warehouse.record([{ table: 'sync.windows', key: { run_id: 'first' } }]);
  expect(await look()).toEqual({ ada: at('2025-03-02T03:01:30Z') });
  expect(await new Freshness().read(warehouse, names)).toEqual(new Map([['ada', at('2025-03-02T03:01:30Z')]]));
});
