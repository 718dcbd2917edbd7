import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { type FaultService, type Script, startFaultService } from '../support/fault-service.ts';
import { type Harness, openHarness } from '../support/harness.ts';
import { type Sandbox, startSandbox } from '../support/sandbox.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
const range = { from: '2025-03-05', to: '2025-03-06' };
const STRESS = '/v2/usercollection/daily_stress';
const RINGS = '/v2/usercollection/ring_configuration';
const NOT_FOUND = { status: 404, json: { detail: 'Not Found' } };
const HTML = { status: 404, text: '<html>Not Found</html>' };

let sandbox: Sandbox;
let harnesses = 0;

beforeAll(async () => {
  sandbox = await startSandbox({ count: 1, from: '2025-03-04', to: '2025-03-07', settings: { pageSize: 2, heartRatePageSize: 4000 } });
});
afterAll(() => sandbox.close());

async function set(scripts: Record<string, Script> = {}, { base = '', client = {}, secondLookMs = 1 } = {}) {
  const faults = await startFaultService({}, { upstream: sandbox.url });
  onTestFinished(() => faults.close());
  const harness = await openHarness(join(folder, `h${++harnesses}`), faults.url + base, { client, secondLookMs });
  await harness.add(sandbox.people);
  for (const [path, script] of Object.entries(scripts)) faults.on(path, script);
  return { harness, faults };
}

const outcomes = (harness: Harness, collection: string) =>
  harness.read(`SELECT outcome, reason FROM sync.windows WHERE collection = '${collection}' ORDER BY committed_at`);
const stateOf = async (harness: Harness, collection: string) =>
  new Set((await harness.commands.coverage({ ...range, collections: [collection] })).runs.map(({ state }) => state));
const askedFor = (faults: FaultService, path: string) => faults.asked.filter(asked => asked.path === path).length;

test('a 404 in the middle of a refresh, of whatever form, is no verdict on a collection that has answered', async () => {
  const { harness, faults } = await set();
  expect(await harness.backfill(range)).toMatchObject({ state: 'complete' });
  const before = await harness.hash();
  for (const answer of [HTML, NOT_FOUND]) {
    faults.on(STRESS, answer);
    const report = await harness.backfill({ ...range, refresh: true, collections: ['daily_stress'] });
    expect(report).toMatchObject({ state: 'failed', failures: [{ collection: 'daily_stress', kind: 'unavailable' }] });
    faults.on(STRESS, () => undefined);
    expect((await harness.read(`SELECT DISTINCT outcome FROM sync.windows WHERE outcome = 'not_offered'`)).length).toBe(0);
  }
  expect(await harness.hash()).toEqual(before);
});

test('a 404 to the second page ends as failed, and a repair reads it', async () => {
  const { harness, faults } = await set({ [STRESS]: ({ query }) => (query.has('next_token') ? NOT_FOUND : undefined) });
  const report = await harness.backfill({ ...range, collections: ['daily_stress'] });
  expect(report).toMatchObject({ state: 'failed', failures: [{ kind: 'unavailable', message: expect.stringContaining('404') }] });
  faults.on(STRESS, () => undefined);
  expect(await harness.backfill({ ...range, collections: ['daily_stress'] })).toMatchObject({ state: 'complete' });
  expect(await stateOf(harness, 'daily_stress')).toEqual(new Set(['stored']));
});

test('one 404 of a collection that never answered is asked again, and a 200 then counts', async () => {
  const { harness, faults } = await set({ [STRESS]: (_, nth) => (nth === 1 ? NOT_FOUND : undefined) });
  expect(await harness.backfill({ ...range, collections: ['daily_stress'] })).toMatchObject({ state: 'complete', failures: [] });
  expect(await outcomes(harness, 'daily_stress')).toEqual([['complete', null]]);
  expect(askedFor(faults, STRESS)).toBeGreaterThan(1);
});

test('a collection that says 404 twice, some time apart, is not offered, whatever else is read meanwhile', async () => {
  const { harness, faults } = await set({ [STRESS]: NOT_FOUND }, { secondLookMs: 1_000 });
  const began = performance.now();
  const report = await harness.backfill({ ...range, collections: ['daily_stress', 'daily_sleep'] });
  expect(performance.now() - began).toBeGreaterThanOrEqual(1_000);
  expect(performance.now() - began).toBeLessThan(5_000);
  expect(report).toMatchObject({ state: 'complete', failures: [] });
  expect(await outcomes(harness, 'daily_stress')).toEqual([['not_offered', `GET ${STRESS}: answered 404`]]);
  expect(askedFor(faults, STRESS)).toBe(2);
});

test('what was not offered and is now is read by a repair, though other days alone have been asked for since', async () => {
  const { harness, faults } = await set({ [STRESS]: NOT_FOUND });
  expect(await harness.backfill(range)).toMatchObject({ state: 'complete' });
  expect(await stateOf(harness, 'daily_stress')).toEqual(new Set(['not_offered']));
  faults.on(STRESS, () => undefined);
  await harness.backfill({ from: '2025-03-20', to: '2025-03-20', collections: ['daily_stress'] });
  expect(await stateOf(harness, 'daily_stress')).toEqual(new Set(['not_asked']));
  const signal = new AbortController().signal;
  expect(await harness.commands.repair(range, { emit: () => {}, signal })).toMatchObject({ state: 'complete', failures: [] });
  expect(await stateOf(harness, 'daily_stress')).toEqual(new Set(['stored']));
});

test('where a collection is not offered, the documents that others name are read by their own trusted route only', async () => {
  const { harness, faults } = await set({ [RINGS]: NOT_FOUND });
  faults.on(`${RINGS}/*`, HTML);
  const report = await harness.backfill(range);
  expect(report).toMatchObject({ state: 'failed', failures: [{ collection: 'ring_configuration', kind: 'unavailable' }] });
  faults.on(`${RINGS}/*`, () => undefined);
  expect(await harness.backfill(range)).toMatchObject({ state: 'complete' });
  expect(await outcomes(harness, 'ring_configuration')).toContainEqual(['complete', null]);
  expect(await harness.read('SELECT count(*) > 0 FROM ring_configuration')).toEqual([[true]]);
});

test('where nothing of an account is offered the address is wrong: the run fails with that question, and what is missing stays so', async () => {
  const { harness, faults } = await set({}, { base: '/v2' });
  const report = await harness.backfill(range);
  expect(report).toMatchObject({
    state: 'failed',
    failures: [
      {
        kind: 'wrong_address',
        message: `${faults.url}/v2 offers nothing of ${sandbox.people[0]!.name}, all of it is 404: is RINGNECK_SERVICE_URL right? Ringneck adds /v2 itself`,
      },
    ],
  });
  expect(report.failures).toHaveLength(1);
  expect(await harness.read('SELECT DISTINCT outcome FROM sync.windows')).toEqual([['failed']]);
  expect(await stateOf(harness, 'daily_stress')).toEqual(new Set(['failed']));
});

test('a service that offers one collection alone has the right address', async () => {
  const scripts: Record<string, Script> = {};
  for (const path of ['daily_readiness', 'daily_activity', 'sleep', 'daily_spo2', 'daily_sleep', 'daily_resilience', 'daily_stress'])
    scripts[`/v2/usercollection/${path}`] = NOT_FOUND;
  for (const path of ['session', 'sleep_time', 'vO2_max', 'ring_configuration', 'heartrate', 'personal_info'])
    scripts[`/v2/usercollection/${path}`] = NOT_FOUND;
  scripts['/v2/sandbox/usercollection/heartrate'] = NOT_FOUND;
  scripts['/v2/usercollection/sleep_time'] = { json: { data: [], next_token: null } };
  const faults = await startFaultService(scripts);
  onTestFinished(() => faults.close());
  const harness = await openHarness(join(folder, `h${++harnesses}`), faults.url, { secondLookMs: 1 });
  await harness.add(sandbox.people);
  expect(await harness.backfill({ ...range, collections: ['daily_stress'] })).toMatchObject({ state: 'complete', failures: [] });
  expect(await outcomes(harness, 'daily_stress')).toEqual([['not_offered', `GET ${STRESS}: answered 404`]]);
});
