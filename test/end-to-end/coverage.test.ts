import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { keepSchedules } from '../../jobs/schedules.ts';
import { serveMirror } from '../../src/app/mirror.ts';
import { nightlySchedule } from '../../src/sync/sweeps/nightly.ts';
import { type FaultService, startFaultService } from '../support/fault-service.ts';
import { openHarness } from '../support/harness.ts';
import { type Sandbox, startSandbox } from '../support/sandbox.ts';
import { findBroken } from '../support/table-hash.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';
import { ask, COLLECTIONS, HEART_RATE, readCollection, shift } from '../support/wire-reader.ts';

const folder = tempFolder();
const days = { from: '2025-03-01', to: '2025-03-31' };
/** Noon of the last day. */
const NOON = Date.parse('2025-03-31T12:00:00Z');
const DAY = 86_400_000;

let sandbox: Sandbox;

beforeAll(async () => {
  sandbox = await startSandbox({ count: 2, ...days, now: () => NOON + 60 * DAY, settings: { pageSize: 200, heartRatePageSize: 20_000 } });
});

afterAll(() => sandbox.close());

async function proxied(): Promise<FaultService> {
  const faults = await startFaultService({}, { upstream: sandbox.url });
  onTestFinished(() => faults.close());
  return faults;
}

/** The ranges that were asked of a path since some request, as they were sent. */
const rangesOf = (asked: FaultService['asked'], path: string) =>
  asked
    .filter(request => request.path === path)
    .map(({ query }) => [
      query.get('start_date') ?? query.get('start_datetime')!.slice(0, 10),
      query.get('end_date') ?? query.get('end_datetime'),
    ])
    .sort();

test('settled days are left out one by one, recent ones are read again, --refresh reads all; what is unchanged is not rewritten', async () => {
  const faults = await proxied();
  const start = NOON;
  let now = start;
  const harness = await openHarness(join(folder, 'settled'), faults.url, { now: () => now, settings: { settledDays: 10 } });
  await harness.add(sandbox.people.slice(0, 1));
  const collections = ['daily_stress', 'heart_rate'];
  const first = await harness.backfill({ from: '2025-03-11', to: '2025-03-31', collections });
  expect(first).toMatchObject({ state: 'complete', windows: { planned: 2, skipped: 0 } });
  const stored = await harness.read(`SELECT id, sk FROM daily_stress WHERE day >= '2025-03-11' ORDER BY id`);
  const hash = await harness.hash();

  // On that day those up to the 20th are settled.
  let before = faults.asked.length;
  now += 60_000;
  const second = await harness.backfill({ from: '2025-03-09', to: '2025-03-31', collections });
  // Around the settled days lie those never read and those too young; each widened by two.
  expect(rangesOf(faults.asked.slice(before), COLLECTIONS.daily_stress!)).toEqual([
    ['2025-03-07', '2025-03-12'],
    ['2025-03-19', '2025-04-02'],
  ]);
  expect(rangesOf(faults.asked.slice(before), HEART_RATE[0]!).map(([from]) => from)).toEqual(['2025-03-09', '2025-03-21']);
  expect(second).toMatchObject({ state: 'complete' });
  expect(await harness.read(`SELECT id, sk FROM daily_stress WHERE day >= '2025-03-11' ORDER BY id`)).toEqual(stored);

  // Ten days after the last one nothing is left to read.
  now = start + 11 * DAY;
  await harness.backfill({ from: '2025-03-09', to: '2025-03-31', collections });
  before = faults.asked.length;
  now += DAY;
  expect(await harness.backfill({ from: '2025-03-09', to: '2025-03-31', collections })).toMatchObject({
    state: 'complete',
    windows: { planned: 0 },
    requests: 0,
  });
  expect(await harness.backfill({ from: '2025-03-09', to: '2025-03-31', collections, plan: true })).toMatchObject({
    windows: { planned: 0 },
  });
  expect(faults.asked.length).toBe(before);

  const refreshed = await harness.backfill({ from: '2025-03-11', to: '2025-03-31', collections, refresh: true });
  expect(refreshed.unchanged).toBeGreaterThan(stored.length);
  expect(faults.asked.length).toBeGreaterThan(before);
  expect(await harness.read(`SELECT id, sk FROM daily_stress WHERE day >= '2025-03-11' ORDER BY id`)).toEqual(stored);
  const [rewritten] = await harness.read(
    `SELECT count(*) FROM heart_rate WHERE ts >= '2025-03-11' AND fetched_at > make_timestamp(${(start + DAY) * 1000})`,
  );
  // Only the hours of the last day that had not come when it was first read.
  const [late] = await harness.read(`SELECT count(*) FROM heart_rate WHERE ts >= '2025-03-31 12:00:00'`);
  expect(rewritten).toEqual(late);
  expect(hash.daily_stress).not.toMatch(/^0 /);
});

test('a clock that is set back an hour, between two runs and within one: nothing is lost, and what was said last counts', async () => {
  const faults = await proxied();
  let now = NOON;
  const data = join(folder, 'clock');
  const range = { from: '2025-03-29', to: '2025-03-31' };
  const first = await openHarness(data, faults.url, { now: () => now });
  await first.add(sandbox.people.slice(0, 1));
  faults.on('/v2/usercollection/session', { status: 403, json: { detail: 'no scope' } });
  // Within a run: an hour back in the middle of its requests.
  faults.on('/v2/usercollection/daily_activity', () => {
    now = NOON - 3_600_000;
    return undefined;
  });
  expect((await first.backfill(range)).failures.map(({ collection }) => collection)).toEqual(['session']);
  await first.close();

  // Between two runs: the account is resumed an hour before it was refused.
  faults.on('/v2/usercollection/session', () => undefined);
  now = NOON - 2 * 3_600_000;
  const second = await openHarness(data, faults.url, { now: () => now });
  const name = sandbox.people[0]!.name;
  await second.commands.resumeAccounts({ names: [name] });
  expect(await second.backfill({ ...range, refresh: true })).toMatchObject({ state: 'complete', failures: [], not_asked: [] });
  const [account] = (await second.commands.status({})).accounts;
  expect(account!.collections.filter(({ state }) => state !== 'up_to_date')).toEqual([]);
  expect(
    await second.read(`SELECT count(*) FROM sync.windows WHERE outcome = 'complete' AND requested_at < make_timestamp(${NOON - 1000}000)`),
  ).toEqual([[0]]);
  expect(await findBroken(second.read)).toEqual([]);

  // Through one that shows no clock either: the service's own is months ahead, by which the last day would be over.
  const straight = await openHarness(join(folder, 'clock-straight'), (await proxied()).url, { now: () => NOON });
  await straight.add(sandbox.people.slice(0, 1));
  await straight.backfill(range);
  const expected = await straight.hash();
  const found = await second.hash();
  // Of the last hours of the heart rate there is what the clock of the first run let through.
  expect({ ...found, heart_rate: '' }).toEqual({ ...expected, heart_rate: '' });
  expect(Number(found.heart_rate!.split(' ')[0])).toBeGreaterThanOrEqual(Number(expected.heart_rate!.split(' ')[0]) - 500);
});

test('where rings have no collection, those that nights name are read one by one', async () => {
  const faults = await proxied();
  faults.on(COLLECTIONS.ring_configuration!, { status: 404, json: { detail: 'Not Found' } });
  const harness = await openHarness(join(folder, 'rings'), faults.url);
  await harness.add(sandbox.people.slice(0, 1));
  const report = await harness.backfill({ ...days, collections: ['sleep', 'ring_configuration'] });
  expect(report).toMatchObject({ state: 'complete', failures: [] });
  const named = (await harness.read('SELECT DISTINCT ring_id FROM sleep WHERE ring_id IS NOT NULL ORDER BY 1')).flat();
  expect(named.length).toBeGreaterThan(0);
  expect((await harness.read('SELECT id FROM ring_configuration ORDER BY id')).flat()).toEqual(named);
  const asked = faults.asked
    .filter(({ path }) => path.startsWith(`${COLLECTIONS.ring_configuration}/`))
    .map(({ path }) => path.split('/').at(-1));
  expect(asked.sort()).toEqual(named);
});

test.each([
  ['none', () => ({ status: 502 })],
  ['a part', (_: unknown, nth: number) => (nth === 1 ? undefined : { status: 502 })],
])(
  'rings that are named by nights of which %s could be read are missing until a repair has read the nights, and them',
  async (_, nights) => {
    const faults = await proxied();
    faults.on(COLLECTIONS.ring_configuration!, { status: 404, json: { detail: 'Not Found' } });
    faults.on(COLLECTIONS.sleep!, nights);
    const harness = await openHarness(join(folder, `unread-${_.replaceAll(' ', '-')}`), faults.url);
    await harness.add(sandbox.people.slice(0, 1));
    const chosen = { from: '2025-01-01', to: '2025-04-30', collections: ['sleep', 'ring_configuration'] };
    const report = await harness.backfill(chosen);
    const failure = { collection: 'ring_configuration', message: 'not all of sleep could be read, which names them' };
    expect(report.failures).toEqual(expect.arrayContaining([expect.objectContaining(failure)]));
    expect(await harness.commands.coverage({ collections: ['ring_configuration'] })).toMatchObject({ runs: [{ state: 'failed' }] });
    faults.on(COLLECTIONS.sleep!, () => undefined);
    expect(await harness.commands.repair({}, { emit: () => {}, signal: new AbortController().signal })).toMatchObject({
      state: 'complete',
      failures: [],
    });
    const named = (await harness.read('SELECT DISTINCT ring_id FROM sleep WHERE ring_id IS NOT NULL ORDER BY 1')).flat();
    expect(named.length).toBeGreaterThan(0);
    expect((await harness.read('SELECT id FROM ring_configuration ORDER BY id')).flat()).toEqual(named);
  },
);

test('a night reads the last days of everything again, in the zone and by the pattern of its settings', async () => {
  const faults = await proxied();
  let now = NOON;
  const data = join(folder, 'nightly');
  const harness = await openHarness(data, faults.url, { queue: 'embedded', now: () => now });
  await harness.add(sandbox.people);
  await harness.backfill({ ...days, collections: ['daily_stress'] });
  let before = faults.asked.length;
  // The days that a backfill of one collection left open are read too.
  const report = await harness.nightly(3);
  expect(report).toMatchObject({ state: 'complete', from: '2025-03-30', to: '2025-04-01', windows: { failed: 0, skipped: 0 } });
  for (const path of Object.values(COLLECTIONS))
    expect(faults.asked.slice(before).filter(asked => asked.path === path).length, path).toBe(2);

  // Midnight has passed since: a start finds that a night was missed, and makes up for it at once; the next start does not.
  now += DAY;
  const settings = { pattern: '30 3 * * *', timeZone: 'Europe/Berlin', days: 3 };
  before = faults.asked.length;
  const pipeline = await harness.app.pipeline();
  await keepSchedules(pipeline, [nightlySchedule(pipeline, settings)]);
  const nightlies = async () => (await harness.read(`SELECT count(*) FROM sync.runs WHERE kind = 'nightly' AND state = 'complete'`))[0]![0];
  await until('the missed night is over', async () => (await nightlies()) === 2);
  expect(faults.asked.length).toBeGreaterThan(before + 20);
  await harness.close();

  const later = await openHarness(data, faults.url, { queue: 'embedded', now: () => now + 3_600_000 });
  const again = await later.app.pipeline();
  before = faults.asked.length;
  await keepSchedules(again, [nightlySchedule(again, settings)]);
  const [queue] = (await later.read(`SELECT 'schedule-' || value FROM sync.meta WHERE key = 'id'`))[0] as [string];
  const schedulers = await again.queues.queue(queue).getJobSchedulers();
  expect(schedulers.map(({ key, pattern, tz }) => [key, pattern, tz])).toEqual([['nightly', '30 3 * * *', 'Europe/Berlin']]);
  await later.commands.status({});
  expect(faults.asked.length).toBe(before);
  expect((await later.read(`SELECT count(*) FROM sync.runs WHERE kind = 'nightly'`))[0]![0]).toBe(2);
});

test('two accounts of one person keep their documents apart, and a mirror token reads its own account only', async () => {
  const harness = await openHarness(join(folder, 'apart'), sandbox.url);
  const [ada, ben] = sandbox.people;
  const range = { from: '2025-03-20', to: '2025-03-22' };
  await harness.add([ada!, ben!]);
  await harness.keep([{ name: 'ada.again', token: ada!.token, serviceUserId: ada!.userId }]);
  expect(await harness.backfill(range)).toMatchObject({ state: 'complete', failures: [] });
  expect(await harness.hash('ada.again')).toEqual(await harness.hash(ada!.name));
  expect(await harness.hash(ben!.name)).not.toEqual(await harness.hash(ada!.name));
  expect(await findBroken(harness.read)).toEqual([]);

  const mirror = await serveMirror(harness.app, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => mirror.close());
  const tokenOf = async (name: string) => (await harness.commands.mirrorToken({ name })).token;
  const former = await tokenOf(ben!.name);
  const token = await tokenOf(ben!.name);
  const adas = await tokenOf(ada!.name);
  const readings = await readCollection(mirror.url, COLLECTIONS.daily_activity!, adas, {
    start_date: range.from,
    end_date: shift(range.to, 1),
  });
  expect(readings!.length).toBe(3);
  for (const { id } of readings!) {
    expect((await ask(mirror.url, `${COLLECTIONS.daily_activity}/${id}`, adas)).status).toBe(200);
    expect((await ask(mirror.url, `${COLLECTIONS.daily_activity}/${id}`, token)).status).toBe(404);
  }
  // A next_token of hers is worth nothing to him.
  const page = await ask(mirror.url, `${HEART_RATE[0]}?start_datetime=2025-03-20T00:00:00Z&end_datetime=2025-03-22T00:00:00Z`, adas);
  expect(page.body.next_token).toEqual(expect.any(String));
  expect((await ask(mirror.url, `${HEART_RATE[0]}?next_token=${page.body.next_token}`, token)).status).toBe(400);
  for (const stranger of [undefined, 'nobody', ada!.token, former]) {
    for (const path of [...Object.values(COLLECTIONS), ...HEART_RATE])
      expect((await ask(mirror.url, path, stranger)).status, path).toBe(401);
  }
  await harness.commands.removeAccount({ name: ben!.name });
  expect((await ask(mirror.url, COLLECTIONS.sleep!, token)).status).toBe(401);
  expect((await harness.read(`SELECT count(*) FROM daily_activity WHERE user_id = '${ben!.name}'`))[0]![0]).toBeGreaterThanOrEqual(3);
});

test('documents that cannot be stored and tell no day leave no day empty, until they come again well', async () => {
  const faults = await proxied();
  const page = (data: object[], token: string | null) => ({ json: { data, next_token: token } });
  const good = { id: 'a', day: '2025-03-04', day_summary: 'normal' };
  faults.on(COLLECTIONS.daily_stress!, ({ query }) =>
    query.has('next_token')
      ? page([{ id: 'b', day: '5.3.2025', day_summary: 'normal' }], null)
      : page([good, { day_summary: 'stressful' }], 'more'),
  );
  const harness = await openHarness(join(folder, 'spoilt'), faults.url, { now: () => NOON });
  await harness.add(sandbox.people.slice(0, 1));
  const some = { from: '2025-03-03', to: '2025-03-06', collections: ['daily_stress'] };
  const known = async () => (await harness.commands.coverage(some)).runs.map(({ from, to, state, reason }) => [from, to, state, reason]);
  expect(await harness.backfill(some)).toMatchObject({ state: 'complete', documents: 3, rejected: 2 });
  expect(await harness.read('SELECT documents, rejected, rejected_undated, outcome FROM sync.windows')).toEqual([[3, 2, 2, 'complete']]);
  const unknown = 'what came could not be stored, and its day is unknown (sync.rejected)';
  expect(await known()).toEqual([
    ['2025-03-03', '2025-03-03', 'failed', unknown],
    ['2025-03-04', '2025-03-04', 'stored', null],
    ['2025-03-05', '2025-03-06', 'failed', unknown],
  ]);

  faults.on(COLLECTIONS.daily_stress!, page([good, { ...good, id: 'b', day: '2025-03-05' }], null));
  await harness.commands.repair(some, { emit: () => {}, signal: new AbortController().signal });
  expect(await known()).toEqual([
    ['2025-03-03', '2025-03-03', 'empty', null],
    ['2025-03-04', '2025-03-05', 'stored', null],
    ['2025-03-06', '2025-03-06', 'empty', null],
  ]);
  // What has neither id nor day leaves when all of the range that brought it is read again.
  expect(await harness.read('SELECT document::VARCHAR FROM sync.rejected')).toEqual([['{"day_summary":"stressful"}']]);
  await harness.backfill({ ...some, refresh: true });
  expect(await harness.read('SELECT count(*) FROM sync.rejected')).toEqual([[0]]);
});
