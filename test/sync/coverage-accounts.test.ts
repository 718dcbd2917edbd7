import { expect, test } from 'vitest';
import { accountEntry } from '../../src/ledger/accounts.ts';
import { account, at, warehouseWith } from '../support/literal-pipeline.ts';
import { days, march, note, told } from '../support/literal-readings.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();

test.each<[name: string, state: Parameters<typeof account>[1], expected: string[]]>([
  [
    'paused',
    { state: 'paused', reason: 'paused by command' },
    ['03-05 empty', '03-06 to 03-07 not_asked: the account is paused: paused by command'],
  ],
  [
    'parked',
    { state: 'parked', reason: 'forbidden: lapsed' },
    ['03-05 empty', '03-06 to 03-07 not_authorised: the account is parked: forbidden: lapsed'],
  ],
])('the days that nobody asked for of an account that is %s', async (_, state, expected) => {
  const warehouse = await warehouseWith(folder, [account('ada', state)]);
  await note(warehouse, { days: ['2025-03-05', '2025-03-05'], outcome: 'complete', when: '2025-03-09T00:00:00Z' });
  expect(await told(warehouse, days)).toEqual(expected);
});

test('a refusal holds until the account has a new token or was resumed', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  await note(warehouse, { days: march, outcome: 'not_authorised', when: '2025-03-09T00:00:00Z', reason: 'no scope' });
  expect(await told(warehouse, days)).toEqual(['03-05 to 03-07 not_authorised: no scope']);
  await warehouse.record([accountEntry(account('ada', { since: at('2025-03-09T00:00:01Z') }))]);
  expect(await told(warehouse, days)).toEqual(['03-05 to 03-07 not_asked: was refused, and may be asked again']);
});
