import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startSchedules } from '../../../jobs/schedules.ts';
import type { ServiceSettings } from '../../../src/service/settings.ts';
import { scheduleQueue } from '../../../src/sync/runs/runs.ts';
import { startSweep } from '../../../src/sync/sweeps/sweep.ts';
import { COLLECTIONS as DECLARED } from '../../support/declared.ts';
import { editedSource } from '../../support/edited-source.ts';
import { type Answer, startFaultService } from '../../support/fault-service.ts';
import { type Harness, type HarnessOptions, openHarness } from '../../support/harness.ts';
import { startSandbox } from '../../support/sandbox.ts';
import { findBroken } from '../../support/table-hash.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { until } from '../../support/until.ts';
import { resourceNamed } from '../../support/warehouse.ts';
import { COLLECTIONS, readCollection } from '../../support/wire-reader.ts';

const folder = tempFolder();
let folders = 0;
const days = { from: '2025-03-05', to: '2025-03-08' };
const NOON = Date.parse('2025-03-08T12:00:00Z');
const HOUR = 3_600_000;
const now = () => NOON;

async function setUp(settings: Partial<ServiceSettings> = {}) {
  const edits = editedSource();
  const sandbox = await startSandbox({ count: 1, ...days, now, wrap: edits.wrap, settings: { heartRatePageSize: 5_000, ...settings } });
  onTestFinished(() => sandbox.close());
  const faults = await startFaultService({}, { upstream: sandbox.url });
  onTestFinished(() => faults.close());
  const open = async (options: HarnessOptions = {}) => {
    const harness = await openHarness(join(folder, `s${++folders}`), faults.url, { now, ...options });
    await harness.add(sandbox.people);
    return harness;
  };
  return { edits, faults, open, ada: sandbox.people[0]!, url: sandbox.url };
}

const sweep = async (harness: Harness, range: Partial<Parameters<typeof startSweep>[1]> = {}) =>
  (await startSweep(await harness.app.pipeline(), { kind: 'sweep', days: 3, ...range })).run.done;

test('a service that answers 200 and nothing to everything for an hour: nothing is lost', async () => {
  const { faults, open } = await setUp();
  const harness = await open();
  expect(await harness.backfill(days)).toMatchObject({ state: 'complete', failures: [] });
  const before = await harness.hash();
  for (const table of [...Object.keys(COLLECTIONS), 'heart_rate']) expect(before[table], table).not.toMatch(/^0 /);

  const paths = [...Object.values(COLLECTIONS), '/v2/usercollection/heartrate'].flatMap(path => [path, `${path}/*`]);
  const answers: Answer[] = [{ json: { data: [], next_token: null } }, { json: [] }];
  for (const answer of answers) {
    for (const path of paths) faults.on(path, answer);
    expect(await sweep(harness)).toMatchObject({ state: 'failed', removed: 0 });
    expect(await sweep(harness, { collections: ['heart_rate'] })).toMatchObject({ state: 'failed', removed: 0 });
    expect(await harness.nightly(6)).toMatchObject({ state: 'failed', removed: 0 });
    expect(await harness.backfill({ ...days, refresh: true })).toMatchObject({ state: 'failed', removed: 0 });
    expect(await harness.hash()).toEqual(before);
    expect(await harness.read('SELECT count(*) FROM sync.tombstones')).toEqual([[0]]);
  }

  for (const path of paths) faults.on(path, () => undefined);
  expect(await sweep(harness)).toMatchObject({ state: 'complete', failures: [] });
  expect(await harness.hash()).toEqual(before);
});

test.each([
  ['that has every route', {}],
  ['with the routes of the specification only', { specificationOnly: true }],
] satisfies [string, Partial<ServiceSettings>][])(
  'events lost, shuffled and repeated by a service %s: once swept all is as after a plain backfill',
  async (_, settings) => {
    let clock = NOON;
    const { edits, open, ada, url } = await setUp(settings);
    const harness = await open({ now: () => clock });
    const { warehouse } = harness.app;
    const idsOf = async (table: string) => (await harness.read(`SELECT id FROM "${table}" ORDER BY day, id`)).flat() as string[];
    const ids = new Map<string, string[]>();
    for (const table of ['sleep', 'daily_activity', 'daily_readiness', 'daily_stress']) {
      const documents = await readCollection(url, COLLECTIONS[table]!, ada.token, { start_date: days.from, end_date: '2025-03-10' });
      ids.set(
        table,
        documents!.map(({ id }) => String(id)),
      );
      expect(ids.get(table)!.length, table).toBeGreaterThan(3);
    }
    // These two appear later.
    const fresh = [ids.get('sleep')!.at(-1)!, ids.get('daily_stress')!.at(-1)!];
    for (const id of fresh) edits.hidden.add(id);
    await harness.backfill(days);
    const before = await harness.hash();

    for (const id of fresh) edits.hidden.delete(id);
    const [lostSleep, toldSleep, changedSleep] = ids.get('sleep')!;
    const [goneActivity, walk, run] = ids.get('daily_activity')!;
    const [lostReadiness, toldReadiness] = ids.get('daily_readiness')!;
    for (const id of [lostSleep!, toldSleep!, goneActivity!]) edits.hidden.add(id);
    edits.changed.set(changedSleep!, { type: 'rest', time_in_bed: 4711 });
    edits.changed.set(walk!, { steps: 12_345, met: { interval: 60, items: [1, 2, 3], timestamp: '2025-03-06T04:00:00+01:00' } });
    edits.changed.set(run!, { steps: 23_456 });
    edits.changed.set(lostReadiness!, { score: 12 });
    edits.changed.set(toldReadiness!, { score: 34 });
    edits.fasterFrom = Date.parse('2025-03-08T06:00:00Z');

    // Of eight changes three are announced, one of them three times, in another order than they happened.
    const client = await harness.app.client();
    const told: [string, string][] = [
      ['daily_readiness', toldReadiness!],
      ['daily_activity', walk!],
      ['daily_readiness', toldReadiness!],
      ['daily_stress', fresh[1]!],
      ['daily_readiness', toldReadiness!],
    ];
    for (const [name, id] of told) {
      const resource = resourceNamed(name);
      await client.document(resource, id, { token: ada.token }, ({ requestedAt, document }) =>
        warehouse.storeDocuments({ userId: ada.name, resource, requestedAt, documents: [document] }),
      );
    }
    expect((await idsOf('daily_stress')).at(-1)).toBe(fresh[1]);
    expect(await harness.hash()).not.toEqual(before);

    if ('specificationOnly' in settings) {
      // Nights have no route of their own there: that they are gone takes a second sweep, minutes later.
      expect(await sweep(harness, { days: 5 })).toMatchObject({
        state: 'failed',
        removed: 1,
        failures: [{ kind: 'suspicious', collection: 'sleep' }],
      });
      clock += 300_000;
      expect(await sweep(harness, { days: 5 })).toMatchObject({ state: 'complete', removed: 2, failures: [] });
    } else expect(await sweep(harness, { days: 5 })).toMatchObject({ state: 'complete', removed: 3, failures: [] });
    const straight = await open({ now: () => clock });
    expect(await straight.backfill(days)).toMatchObject({ state: 'complete', failures: [] });
    expect(await harness.hash()).toEqual(await straight.hash());
    expect(await findBroken(harness.read)).toEqual([]);
    expect(await harness.read('SELECT collection, count(*) FROM sync.tombstones GROUP BY ALL ORDER BY ALL')).toEqual([
      ['daily_activity', 1],
      ['sleep', 2],
    ]);
  },
);

test('a change that a sweep finds is noted as without an event, one that a backfill finds is not', async () => {
  const { edits, open } = await setUp();
  const harness = await open();
  await harness.backfill(days);
  const since = Date.parse('2025-03-01T00:00:00Z') * 1000;
  await harness.app.warehouse.record(
    ['update', 'delete'].map(command => ({
      table: 'sync.subscriptions',
      key: { event_type: command, data_type: 'sleep' },
      row: { id: 'x', state: 'active', since },
    })),
  );
  const [gone, changed, later] = (await harness.read('SELECT id FROM sleep ORDER BY day, id')).flat() as string[];
  edits.hidden.add(gone!);
  edits.changed.set(changed!, { time_in_bed: 4711 });
  expect(await sweep(harness, { days: 5 })).toMatchObject({ state: 'complete', removed: 1 });
  const noted = () => harness.read('SELECT id, event_type FROM sync.missed_events WHERE missed_at IS NULL ORDER BY event_type');
  expect(await noted()).toEqual([
    [gone, 'delete'],
    [changed, 'update'],
  ]);
  edits.changed.set(later!, { time_in_bed: 815 });
  expect(await harness.backfill({ ...days, refresh: true })).toMatchObject({ state: 'complete' });
  expect((await noted()).length).toBe(2);
});

test('what recurs is in the queue; at a start heart rate is read at once, and a sweep when its time has gone by', async () => {
  const { open } = await setUp();
  let clock = NOON;
  const harness = await open({ queue: 'embedded', now: () => clock });
  const pipeline = await harness.app.pipeline();
  const settings = {
    nightly: { pattern: '30 3 * * *', timeZone: 'UTC', days: 4 },
    sweep: { hours: 6, days: 3 },
    heartRateMinutes: 15,
    webhooks: false,
  };
  const runs = () => harness.read(`SELECT kind, request->>'$.from', state FROM sync.runs ORDER BY started_at, request->>'$.from'`);
  const start = async () => {
    const schedules = await startSchedules(pipeline, settings);
    onTestFinished(() => schedules.close());
  };
  const [queue] = (await harness.read(`SELECT 'schedule-' || value FROM sync.meta WHERE key = 'id'`))[0] as [string];
  await start();
  // Its account is new: nothing has gone by.
  await until('heart rate was read', async () => (await runs()).some(([, , state]) => state === 'complete'));
  expect(await runs()).toEqual([['sweep', '2025-03-07', 'complete']]);
  expect((await harness.read('SELECT count(*) > 100 FROM heart_rate'))[0]).toEqual([true]);
  const schedulers = await pipeline.queues.queue(queue).getJobSchedulers();
  const sorted = schedulers.sort((a, b) => (a.key < b.key ? -1 : 1));
  expect(sorted.map(({ key, pattern, every }) => [key, pattern ?? every])).toEqual([
    ['heart-rate', 900_000],
    ['nightly', '30 3 * * *'],
    ['sweep', 21_600_000],
  ]);
  // With fewer the queue would count as lost.
  expect(await pipeline.queues.queue(queue).getJobSchedulersCount()).toBe(3);
  const inHours = (sorted[2]!.next! - Date.now()) / HOUR;
  expect([inHours > 5.9, inHours <= 6]).toEqual([true, true]);

  clock += 7 * HOUR;
  await start();
  await until('the sweep is over', async () => (await runs()).filter(([, , state]) => state === 'complete').length === 3);
  expect(await runs()).toEqual([
    ['sweep', '2025-03-07', 'complete'],
    ['sweep', '2025-03-07', 'complete'],
    ['sweep', '2025-03-07', 'complete'],
  ]);
  const [swept] = await harness.read(
    `SELECT count(DISTINCT collection) FROM sync.windows WHERE committed_at > make_timestamp(${clock}000)`,
  );
  expect(swept).toEqual([DECLARED.length]);
});

test('what was missed is told with the reading of heart rate, at a start only when nothing that was accepted before waits', async () => {
  const { open } = await setUp();
  let clock = NOON;
  const harness = await open({ queue: 'embedded', now: () => clock });
  const pipeline = await harness.app.pipeline();
  const { warehouse } = harness.app;
  const since = Date.parse('2025-03-01T00:00:00Z') * 1000;
  const candidate = (id: string) => ({
    table: 'sync.missed_events',
    key: { user_id: 'ada', collection: 'sleep', id, event_type: 'update', found_at: NOON * 1000 },
    row: { read_before_at: since + 1, missed_at: null },
  });
  const active = { id: 'x', state: 'active', since };
  await warehouse.record([
    { table: 'sync.subscriptions', key: { event_type: 'update', data_type: 'sleep' }, row: active },
    candidate('night'),
    candidate('nap'),
  ]);
  clock += 2 * HOUR;
  await pipeline.inbox.append('1', '{}');
  const told: unknown[] = [];
  const start = async () => {
    const schedules = await startSchedules(pipeline, {
      nightly: { pattern: '30 3 * * *', timeZone: 'UTC', days: 4 },
      sweep: { hours: 6, days: 3 },
      heartRateMinutes: 15,
      webhooks: true,
      onMissed: missed => void told.push(missed),
    });
    onTestFinished(() => schedules.close());
  };
  const isIdle = async (readings: number) => {
    const [[ended]] = (await harness.read(`SELECT count(*) FROM sync.runs WHERE state = 'complete'`)) as [[number]];
    const { active: running } = await pipeline.queues.counts(await scheduleQueue(warehouse));
    return ended === readings && running === 0;
  };
  await start();
  await until('heart rate was read', () => isIdle(1));
  expect(told).toEqual([]);
  pipeline.inbox.finish('1');
  await start();
  await until('what was missed is told', () => told.length > 0);
  expect(told).toEqual([{ user: 'ada', collection: 'sleep', count: 2 }]);
  await until('heart rate was read again', () => isIdle(2));
});
