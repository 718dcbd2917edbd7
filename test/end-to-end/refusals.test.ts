import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { type Answer, type Script, startFaultService } from '../support/fault-service.ts';
import { type Harness, openHarness } from '../support/harness.ts';
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
let harnesses = 0;

beforeAll(async () => {
  sandbox = await startSandbox({ count: 1, from: '2025-03-04', to: '2025-03-07', settings: { pageSize: 50, heartRatePageSize: 4000 } });
});
afterAll(() => sandbox.close());

async function set(scripts: Record<string, Script> = {}) {
  const faults = await startFaultService({}, { upstream: sandbox.url });
  for (const [path, script] of Object.entries(scripts)) faults.on(path, script);
  onTestFinished(() => faults.close());
  let ahead = 0;
  const harness = await openHarness(join(folder, `h${++harnesses}`), faults.url, { now: () => Date.now() + ahead });
  await harness.add(sandbox.people);
  return {
    harness,
    faults,
    name: sandbox.people[0]!.name,
    pass: (seconds: number) => {
      ahead += seconds * 1000;
    },
    answer: (script: Script) => faults.on(STRESS, script),
    /** As without faults. */
    fix: () => faults.on(STRESS, () => undefined),
  };
}

const lastOutcome = async (harness: Harness) =>
  (await harness.read(`SELECT arg_max(outcome, committed_at) FROM sync.windows WHERE collection = 'daily_stress'`))[0]![0];
const suspected = (harness: Harness) => harness.read('SELECT collection, kind, object_id FROM sync.suspicions');
const stateOf = async (harness: Harness) => (await harness.commands.status({})).accounts[0]!;

test('a firewall in front of everything parks nobody: neither account nor collection', async () => {
  const { harness, faults, name } = await set();
  faults.on(STRESS, FIREWALL);
  for (const path of ['daily_readiness', 'daily_resilience', 'sleep']) faults.on(`/v2/usercollection/${path}`, FIREWALL);
  const report = await harness.backfill({ ...range, collections: ['daily_stress', 'sleep'] });
  expect(report).toMatchObject({ state: 'failed', failures: [{ kind: 'unavailable' }, { kind: 'unavailable' }] });
  expect(await stateOf(harness)).toMatchObject({ user_id: name, state: 'active' });
  expect(await harness.read('SELECT DISTINCT outcome FROM sync.windows')).toEqual([['failed']]);
  expect(await suspected(harness)).toEqual([]);
});

test('the first refusal of a collection leaves it suspicious, its rows stay, and a minute later the second one parks it', async () => {
  const { harness, answer, pass } = await set();
  expect(await harness.backfill(range)).toMatchObject({ state: 'complete' });
  const before = await harness.hash();
  answer(REFUSED);
  const first = await harness.backfill(only);
  expect(first).toMatchObject({ state: 'failed', failures: [{ collection: 'daily_stress', kind: 'suspicious', detail: 'no scope' }] });
  expect(await lastOutcome(harness)).toBe('suspicious');
  expect(await suspected(harness)).toEqual([['daily_stress', 'refused', '']]);
  pass(40);
  expect(await harness.backfill(only)).toMatchObject({ failures: [{ kind: 'suspicious' }], not_asked: [] });
  pass(40);
  expect(await harness.backfill(only)).toMatchObject({ failures: [{ collection: 'daily_stress', kind: 'forbidden' }] });
  expect(await lastOutcome(harness)).toBe('not_authorised');
  expect(await harness.backfill(only)).toMatchObject({ windows: { planned: 0 }, not_asked: [{ collection: 'daily_stress' }] });
  expect(await harness.hash()).toEqual(before);
});

test('a refusal stays one of its collection where the service offers neither collection that is probed', async () => {
  const { harness, answer, pass } = await set({
    '/v2/usercollection/daily_readiness': NOT_FOUND,
    '/v2/usercollection/session': NOT_FOUND,
  });
  answer(REFUSED);
  expect(await harness.backfill(only)).toMatchObject({ state: 'failed', failures: [{ collection: 'daily_stress', kind: 'suspicious' }] });
  expect(await lastOutcome(harness)).toBe('suspicious');
  expect(await suspected(harness)).toEqual([['daily_stress', 'refused', '']]);
  pass(61);
  expect(await harness.backfill(only)).toMatchObject({ failures: [{ collection: 'daily_stress', kind: 'forbidden' }] });
  expect(await lastOutcome(harness)).toBe('not_authorised');
  expect(await stateOf(harness)).toMatchObject({ state: 'active' });
});

test('an answer between two refusals takes the suspicion away', async () => {
  const { harness, answer, fix, pass } = await set();
  answer(REFUSED);
  await harness.backfill(only);
  fix();
  expect(await harness.backfill(only)).toMatchObject({ state: 'complete' });
  expect(await suspected(harness)).toEqual([]);
  pass(120);
  answer(REFUSED);
  await harness.backfill(only);
  expect(await lastOutcome(harness)).toBe('suspicious');
});

test('a refusal of before an account got its token is no first one', async () => {
  const { harness, answer, pass } = await set();
  answer(REFUSED);
  await harness.backfill(only);
  pass(120);
  await harness.add(sandbox.people);
  await harness.backfill(only);
  expect(await lastOutcome(harness)).toBe('suspicious');
});

test('each night a refused collection is asked with one request, and read again once it answers', async () => {
  const { harness, faults, answer, fix, pass } = await set();
  answer(REFUSED);
  await harness.backfill(only);
  pass(61);
  await harness.backfill(only);
  const asked = () => faults.asked.filter(({ path }) => path === STRESS).length;
  const before = asked();
  expect(await harness.nightly(2)).toMatchObject({ state: 'complete', not_asked: [{ collection: 'daily_stress' }] });
  expect(asked()).toBe(before + 1);
  fix();
  expect(await harness.nightly(2)).toMatchObject({ state: 'complete', not_asked: [] });
  expect(await suspected(harness)).toEqual([]);
  const missing = await harness.commands.coverage({ ...range, collections: ['daily_stress'] });
  expect(missing.runs).toEqual([expect.objectContaining({ state: 'not_asked', reason: 'was refused, and may be asked again' })]);
  expect(await harness.backfill({ ...range, collections: ['daily_stress'] })).toMatchObject({ state: 'complete', failures: [] });
});

test('what was asked and refused counts among the requests of a run', async () => {
  const { harness, answer } = await set();
  answer({ status: 422, json: { detail: [{ loc: ['query', 'start_date'], msg: 'no', type: 'value_error' }] } });
  expect(await harness.backfill(only)).toMatchObject({ state: 'failed', requests: 1 });
});
