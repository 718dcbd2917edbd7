import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { type Answer, type Script, startFaultService } from '../support/fault-service.ts';
import { type House, openHouse } from '../support/harness.ts';
import { type Sandbox, startSandbox } from '../support/sandbox.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
const range = { from: '2025-03-05', to: '2025-03-06' };
const only = { ...range, refresh: true, collections: ['daily_stress'] };
const STRESS = '/v2/usercollection/daily_stress';
const REFUSED: Answer = { status: 403, json: { detail: 'no scope' } };
const NOT_FOUND: Answer = { status: 404, json: { detail: 'Not Found' } };
const FIREWALL: Answer = { status: 403, text: '<html>Forbidden</html>' };

let sandbox: Sandbox;
let houses = 0;

beforeAll(async () => {
  sandbox = await startSandbox({ count: 1, from: '2025-03-04', to: '2025-03-07', settings: { pageSize: 50, heartRatePageSize: 4000 } });
});
afterAll(() => sandbox.close());

async function set(scripts: Record<string, Script> = {}) {
  const faults = await startFaultService({}, { upstream: sandbox.url });
  for (const [path, script] of Object.entries(scripts)) faults.on(path, script);
  onTestFinished(() => faults.close());
  let ahead = 0;
  const house = await openHouse(join(folder, `h${++houses}`), faults.url, { now: () => Date.now() + ahead });
  await house.add(sandbox.people);
  return {
    house,
    faults,
    name: sandbox.people[0]!.name,
    pass: (seconds: number) => {
      ahead += seconds * 1000;
    },
    answer: (script: Script) => faults.on(STRESS, script),
    /** As without faults. */
    mend: () => faults.on(STRESS, () => undefined),
  };
}

const lastOutcome = async (house: House) =>
  (await house.read(`SELECT arg_max(outcome, committed_at) FROM sync.windows WHERE collection = 'daily_stress'`))[0]![0];
const suspected = (house: House) => house.read('SELECT collection, kind, object_id FROM sync.suspicions');
const stateOf = async (house: House) => (await house.operations.status({})).accounts[0]!;

test('a firewall in front of everything parks nobody: neither account nor collection', async () => {
  const { house, faults, name } = await set();
  faults.on(STRESS, FIREWALL);
  for (const path of ['daily_readiness', 'daily_resilience', 'sleep']) faults.on(`/v2/usercollection/${path}`, FIREWALL);
  const report = await house.backfill({ ...range, collections: ['daily_stress', 'sleep'] });
  expect(report).toMatchObject({ state: 'failed', failures: [{ kind: 'unavailable' }, { kind: 'unavailable' }] });
  expect(await stateOf(house)).toMatchObject({ user_id: name, state: 'active' });
  expect(await house.read('SELECT DISTINCT outcome FROM sync.windows')).toEqual([['failed']]);
  expect(await suspected(house)).toEqual([]);
});

test('the first refusal of a collection leaves it suspicious, its rows stay, and a minute later the second one parks it', async () => {
  const { house, answer, pass } = await set();
  expect(await house.backfill(range)).toMatchObject({ state: 'complete' });
  const before = await house.hash();
  answer(REFUSED);
  const first = await house.backfill(only);
  expect(first).toMatchObject({ state: 'failed', failures: [{ collection: 'daily_stress', kind: 'suspicious', detail: 'no scope' }] });
  expect(await lastOutcome(house)).toBe('suspicious');
  expect(await suspected(house)).toEqual([['daily_stress', 'refused', '']]);
  pass(40);
  expect(await house.backfill(only)).toMatchObject({ failures: [{ kind: 'suspicious' }], not_asked: [] });
  pass(40);
  expect(await house.backfill(only)).toMatchObject({ failures: [{ collection: 'daily_stress', kind: 'forbidden' }] });
  expect(await lastOutcome(house)).toBe('not_authorised');
  expect(await house.backfill(only)).toMatchObject({ windows: { planned: 0 }, not_asked: [{ collection: 'daily_stress' }] });
  expect(await house.hash()).toEqual(before);
});

test('a refusal stays one of its collection where the service offers neither collection that is probed', async () => {
  const { house, answer, pass } = await set({
    '/v2/usercollection/daily_readiness': NOT_FOUND,
    '/v2/usercollection/session': NOT_FOUND,
  });
  answer(REFUSED);
  expect(await house.backfill(only)).toMatchObject({ state: 'failed', failures: [{ collection: 'daily_stress', kind: 'suspicious' }] });
  expect(await lastOutcome(house)).toBe('suspicious');
  expect(await suspected(house)).toEqual([['daily_stress', 'refused', '']]);
  pass(61);
  expect(await house.backfill(only)).toMatchObject({ failures: [{ collection: 'daily_stress', kind: 'forbidden' }] });
  expect(await lastOutcome(house)).toBe('not_authorised');
  expect(await stateOf(house)).toMatchObject({ state: 'active' });
});

test('an answer between two refusals takes the suspicion away', async () => {
  const { house, answer, mend, pass } = await set();
  answer(REFUSED);
  await house.backfill(only);
  mend();
  expect(await house.backfill(only)).toMatchObject({ state: 'complete' });
  expect(await suspected(house)).toEqual([]);
  pass(120);
  answer(REFUSED);
  await house.backfill(only);
  expect(await lastOutcome(house)).toBe('suspicious');
});

test('a refusal of before an account got its token is no first one', async () => {
  const { house, answer, pass } = await set();
  answer(REFUSED);
  await house.backfill(only);
  pass(120);
  await house.add(sandbox.people);
  await house.backfill(only);
  expect(await lastOutcome(house)).toBe('suspicious');
});

test('each night a refused collection is asked with one request, and read again once it answers', async () => {
  const { house, faults, answer, mend, pass } = await set();
  answer(REFUSED);
  await house.backfill(only);
  pass(61);
  await house.backfill(only);
  const asked = () => faults.asked.filter(({ path }) => path === STRESS).length;
  const before = asked();
  expect(await house.nightly(2)).toMatchObject({ state: 'complete', not_asked: [{ collection: 'daily_stress' }] });
  expect(asked()).toBe(before + 1);
  mend();
  expect(await house.nightly(2)).toMatchObject({ state: 'complete', not_asked: [] });
  expect(await suspected(house)).toEqual([]);
  const missing = await house.operations.coverage({ ...range, collections: ['daily_stress'] });
  expect(missing.runs).toEqual([expect.objectContaining({ state: 'not_asked', reason: 'was refused, and may be asked again' })]);
  expect(await house.backfill({ ...range, collections: ['daily_stress'] })).toMatchObject({ state: 'complete', failures: [] });
});

test('what was asked and refused counts among the requests of a run', async () => {
  const { house, answer } = await set();
  answer({ status: 422, json: { detail: [{ loc: ['query', 'start_date'], msg: 'no', type: 'value_error' }] } });
  expect(await house.backfill(only)).toMatchObject({ state: 'failed', requests: 1 });
});
