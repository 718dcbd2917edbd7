import { expect, test } from 'vitest';
import { UsageError } from '../../src/base/errors.ts';
import {
  findAccount,
  getAccount,
  listAccounts,
  listParkedCollections,
  parseAccountName,
  setAccountState,
} from '../../src/ledger/accounts.ts';
import type { Outcome } from '../../src/ledger/windows.ts';
import { windowEntry } from '../../src/ledger/windows.ts';
import type { Warehouse } from '../../src/warehouse/warehouse.ts';
import { account, at, warehouseWith } from '../support/literal-pipeline.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { rows } from '../support/warehouse.ts';

const folder = tempFolder();

test.each(['a', 'ada', 'Ada.Lovelace-1_x', '0', 'a'.repeat(64), '..', '-'])('%j can name an account', name => {
  expect(parseAccountName(name)).toBe(name);
});

test.each(['', ' ', 'a b', 'a/b', 'ä', 'a\n', "a'", 'a:b', 'a'.repeat(65), 'a\u0000'])('%j cannot', name => {
  expect(() => parseAccountName(name)).toThrow(UsageError);
  expect(() => parseAccountName(name)).toThrow(/ cannot name an account: 1 to 64 letters, digits, "\.", "_" or "-"$/);
});

test('accounts come by name, without those removed', async () => {
  const warehouse = await warehouseWith(folder, [
    account('ben', { serviceUserId: 's-2', state: 'parked', reason: 'unauthorized: no', since: at('2025-02-01T00:00:00Z') }),
    account('dee', { state: 'removed' }),
    account('ada'),
  ]);
  expect(await listAccounts(warehouse)).toEqual([
    { userId: 'ada', serviceUserId: null, state: 'active', reason: null, since: 1_735_689_600_000_000 },
    { userId: 'ben', serviceUserId: 's-2', state: 'parked', reason: 'unauthorized: no', since: 1_738_368_000_000_000 },
  ]);
  expect(await findAccount(warehouse, 'dee')).toBeUndefined();
  expect((await getAccount(warehouse, 'ben')).serviceUserId).toBe('s-2');
  await expect(getAccount(warehouse, 'zoe')).rejects.toThrow('no account "zoe": there are ada, ben');
});

test('where there is no account, the way to one is told', async () => {
  const warehouse = await warehouseWith(folder, []);
  await expect(getAccount(warehouse, 'zoe')).rejects.toThrow(
    'no account "zoe": there is none yet: ringneck account login NAME, or with a token ringneck account add NAME',
  );
});

test('another state is one row, with the moment of the change', async () => {
  const warehouse = await warehouseWith(folder, [account('ada', { serviceUserId: 's-1' })]);
  await setAccountState(warehouse, account('ada', { serviceUserId: 's-1' }), 'parked', 'forbidden: lapsed');
  expect(await rows(warehouse, 'SELECT * FROM sync.accounts')).toEqual([
    {
      user_id: 'ada',
      service_user_id: 's-1',
      state: 'parked',
      reason: 'forbidden: lapsed',
      since: expect.stringMatching(/^2025-06-01 00:00:00/),
    },
  ]);
});

let runs = 0;
async function settled(warehouse: Warehouse, collection: string, outcome: Outcome, committed: string, reason?: string) {
  const window = { runId: `r${++runs}`, userId: 'ada', collection, startAt: 0, endAt: 1 };
  await warehouse.record([windowEntry(window, { outcome, ...(reason ? { reason } : {}), committedAt: at(committed) })]);
}

test('a collection is parked while the last that the service said of it was no', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  await settled(warehouse, 'sleep', 'complete', '2025-02-01T00:00:00Z');
  await settled(warehouse, 'session', 'not_authorised', '2025-02-01T00:00:00Z', 'no scope');
  await settled(warehouse, 'heart_rate', 'not_authorised', '2025-02-01T00:00:00Z', 'old');
  await settled(warehouse, 'heart_rate', 'not_authorised', '2025-02-02T00:00:00Z', 'new');
  await settled(warehouse, 'daily_sleep', 'not_authorised', '2025-02-01T00:00:00Z');
  await settled(warehouse, 'daily_sleep', 'complete', '2025-02-02T00:00:00Z');
  expect(await listParkedCollections(warehouse)).toEqual([
    { userId: 'ada', collection: 'heart_rate', reason: 'new' },
    { userId: 'ada', collection: 'session', reason: 'no scope' },
  ]);
});

test('a new token or a resume asks everything again', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  await settled(warehouse, 'session', 'not_authorised', '2025-02-01T00:00:00Z', 'no scope');
  await setAccountState(warehouse, account('ada'), 'active', null);
  expect(await listParkedCollections(warehouse)).toEqual([]);
});

test('the collections of an account that is parked whole are not listed one by one', async () => {
  const warehouse = await warehouseWith(folder, [account('ada', { state: 'parked' })]);
  await settled(warehouse, 'session', 'not_authorised', '2025-02-01T00:00:00Z', 'dead token');
  expect(await listParkedCollections(warehouse)).toEqual([]);
});

test('a window that was stopped says nothing about it', async () => {
  const warehouse = await warehouseWith(folder, [account('ada')]);
  await settled(warehouse, 'session', 'not_authorised', '2025-02-01T00:00:00Z', 'no scope');
  await settled(warehouse, 'session', 'stopped', '2025-02-02T00:00:00Z');
  expect(await listParkedCollections(warehouse)).toEqual([{ userId: 'ada', collection: 'session', reason: 'no scope' }]);
});
