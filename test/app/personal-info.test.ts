import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { warehouseSource } from '../../src/app/mirror.ts';
import type { Settings } from '../../src/base/config.ts';
import { accountEntry } from '../../src/ledger/accounts.ts';
import { type Harness, openHarness } from '../support/harness.ts';
import { type LiteralService, startLiteralService } from '../support/literal-service.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { rows } from '../support/warehouse.ts';

const folder = tempFolder();
let folders = 0;
const PERSON = '/v2/usercollection/personal_info';
const ADA = { id: 'p-1', age: 41, biological_sex: 'female', email: 'ada@example.org', height: 1.7, weight: 70.5 };
const DAYS = { from: '2025-03-01', to: '2025-03-03' };
const KEPT = { personalInfo: '1' } as const;

/** A harness with ada's account, at a service that has a day of stress and says who she is. */
async function setUp(settings: Partial<Settings>): Promise<{ service: LiteralService; harness: Harness }> {
  const service = await startLiteralService('daily_readiness', 'daily_stress');
  onTestFinished(() => service.close());
  service.documents.set('daily_stress', [{ id: 's-1', day: '2025-03-02', day_summary: 'normal' }]);
  service.on(PERSON, { json: { ...ADA, shoe_size: 38 } });
  const now = () => Date.parse('2025-06-01T12:00:00Z');
  const harness = await openHarness(join(folder, `p${++folders}`), service.url, { now, settings });
  await harness.add([{ name: 'ada', token: 'token-of-ada' }]);
  return { service, harness };
}

const PERSONS = 'SELECT * EXCLUDE (fetched_at, content_hash, sk) FROM personal_info';
const collections = ['daily_stress', 'personal_info'];

test('all of personal_info is one row an account where it may be kept, read again with every run', async () => {
  const { service, harness } = await setUp(KEPT);
  expect(await harness.backfill({ ...DAYS, collections })).toMatchObject({ state: 'complete', documents: 2 });
  const row = { user_id: 'ada', ...ADA, extra: { shoe_size: 38 } };
  expect(await rows(harness.app.warehouse, PERSONS)).toEqual([row]);
  expect(await harness.backfill({ ...DAYS, collections, refresh: true })).toMatchObject({ state: 'complete', unchanged: 2 });
  service.on(PERSON, { json: { ...ADA, age: 42 } });
  await harness.backfill({ ...DAYS, collections, refresh: true });
  expect(await rows(harness.app.warehouse, PERSONS)).toEqual([{ ...row, age: 42, extra: null }]);
  const { accounts } = await harness.commands.status({});
  expect(accounts[0]!.collections.find(({ name }) => name === 'personal_info')).toMatchObject({ state: 'up_to_date', newest_day: null });
});

test('the row of another person is not stored, and parks the account; one of the id that it is mapped to replaces the row', async () => {
  const { service, harness } = await setUp(KEPT);
  const told = vi.spyOn(harness.app, 'onFailure').mockImplementation(() => {});
  await harness.backfill({ ...DAYS, collections });
  service.on(PERSON, { json: { id: 'p-2', age: 30 } });
  const run = await harness.backfill({ ...DAYS, collections: ['personal_info'], refresh: true });
  expect(run.failures).toMatchObject([{ collection: 'personal_info', message: 'the token is that of another person' }]);
  expect(await harness.read('SELECT id, age FROM personal_info')).toEqual([['p-1', 41]]);
  expect(await harness.read('SELECT state, reason FROM sync.accounts')).toEqual([['parked', 'the token is that of another person']]);
  expect(told.mock.calls[0]).toMatchObject([{ reason: 'account_parked', user: 'ada' }]);
  await harness.commands.mapAccount({ name: 'ada', serviceUser: 'p-2' });
  await harness.commands.resumeAccounts({ names: ['ada'] });
  expect(await harness.backfill({ ...DAYS, collections, refresh: true })).toMatchObject({ state: 'complete' });
  expect(await harness.read('SELECT id, age FROM personal_info')).toEqual([['p-2', 30]]);
});

test('what cannot be stored of a person leaves what was stored before, and its window says so', async () => {
  const { service, harness } = await setUp(KEPT);
  await harness.backfill({ ...DAYS, collections });
  const { warehouse } = harness.app;
  await warehouse.record([
    accountEntry({ userId: 'ada', serviceUserId: null, state: 'active', reason: null, since: warehouse.clock.next() }),
  ]);
  service.on(PERSON, { json: { id: 'x'.repeat(5_000), age: 3 } });
  const run = await harness.backfill({ ...DAYS, collections: ['personal_info'], refresh: true });
  expect(run.failures).toMatchObject([{ collection: 'personal_info', message: expect.stringContaining('what was stored before stays') }]);
  expect(await harness.read('SELECT id, age FROM personal_info')).toEqual([['p-1', 41]]);
});

test('without the setting only whose token it is is asked for', async () => {
  const { harness } = await setUp({});
  expect(await harness.backfill({ ...DAYS, collections: ['daily_stress'] })).toMatchObject({ state: 'complete' });
  expect(await harness.read('SELECT count(*) FROM personal_info')).toEqual([[0]]);
  expect(await harness.read('SELECT user_id, service_user_id FROM sync.accounts')).toEqual([['ada', 'p-1']]);
  await expect(harness.backfill({ ...DAYS, collections })).rejects.toThrow('personal_info');
  const { accounts } = await harness.commands.status({});
  expect(accounts[0]!.collections.map(({ name }) => name)).not.toContain('personal_info');
  expect((await harness.read('SELECT collection FROM sync.collections')).flat()).not.toContain('personal_info');
});

test('where the permission for it is missing, all else is read', async () => {
  const { service, harness } = await setUp(KEPT);
  service.on(PERSON, { status: 403, json: { detail: 'The scope personal is missing.' } });
  await harness.backfill({ ...DAYS, collections });
  expect(await harness.read('SELECT id FROM daily_stress')).toEqual([['s-1']]);
  expect(await harness.read('SELECT state FROM sync.accounts')).toEqual([['active']]);
  expect(await harness.read('SELECT count(*) FROM personal_info')).toEqual([[0]]);
  const outcomes = await harness.read(`SELECT outcome FROM sync.windows WHERE collection = 'personal_info'`);
  expect(['suspicious', 'not_authorised']).toContain(outcomes[0]![0]);
});

test('the mirror tells what is kept, under the name of the account', async () => {
  const { harness } = await setUp(KEPT);
  const source = warehouseSource(harness.app.warehouse);
  expect(await source.personalInfo('ada')).toEqual({ id: 'ada' });
  await harness.backfill({ ...DAYS, collections });
  expect(await source.personalInfo('ada')).toEqual({ ...ADA, shoe_size: 38, id: 'ada' });
});
