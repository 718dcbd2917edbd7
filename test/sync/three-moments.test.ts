import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createLog } from '../../src/base/log.ts';
import { readCoverage } from '../../src/sync/coverage.ts';
import { openHarness } from '../support/harness.ts';
import { at, collections, knownClock } from '../support/literal-pipeline.ts';
import { startLiteralService } from '../support/literal-service.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { withDuckDB } from '../support/warehouse.ts';
import { STRESS } from '../support/wire.ts';

const folder = tempFolder();
const DAY = 86_400_000;
const NOON = Date.parse('2025-03-10T12:00:00Z');
const ROUTE = '/v2/usercollection/daily_stress';
const march = { from: '2025-03-01', to: '2025-03-20' };

/** A service whose clock stands at this moment, and shows it where `shows`. */
async function serviceAt(clock: { ms: number }, shows = true) {
  const service = await startLiteralService('daily_stress');
  onTestFinished(() => service.close());
  service.documents.set('daily_stress', [{ ...STRESS, id: 'a', day: '2025-03-02' }]);
  const list = () => service.documents.get('daily_stress')!;
  service.on(ROUTE, ({ query }) => ({
    ...(shows ? { headers: { date: new Date(clock.ms).toUTCString() } } : {}),
    json: {
      data: list().filter(({ day }) => String(day) >= query.get('start_date')! && String(day) <= query.get('end_date')!),
      next_token: null,
    },
  }));
  return service;
}

test('a window’s row has three moments: the place in the order, our time, and the Date of its first answer', async () => {
  const service = await startLiteralService('daily_stress');
  onTestFinished(() => service.close());
  const dates = ['Mon, 10 Mar 2025 11:00:00 GMT', 'Mon, 10 Mar 2025 11:00:07 GMT'];
  service.on(ROUTE, ({ query }) => ({
    headers: { date: dates[query.has('next_token') ? 1 : 0]! },
    json: { data: [], next_token: query.has('next_token') ? null : 'more' },
  }));
  const harness = await openHarness(join(folder, 'three'), service.url, { now: () => NOON });
  await harness.add([{ name: 'ada', token: 't-ada' }]);
  await harness.backfill({ ...march, collections: ['daily_stress'] });
  expect(await harness.read('SELECT read_at, service_at, requests, requested_at > read_at FROM sync.windows')).toEqual([
    [at('2025-03-10T12:00:00Z'), at('2025-03-10T11:00:00Z'), 2, true],
  ]);
});

test('a service that shows no date: its moment is null', async () => {
  const service = await serviceAt({ ms: NOON }, false);
  const harness = await openHarness(join(folder, 'no-date'), service.url, { now: () => NOON });
  await harness.add([{ name: 'ada', token: 't-ada' }]);
  await harness.backfill({ ...march, collections: ['daily_stress'] });
  expect(await harness.read('SELECT read_at, service_at FROM sync.windows')).toEqual([[at('2025-03-10T12:00:00Z'), null]]);
});

test.each([
  ['shows its clock', true],
  ['shows none', false],
])('a clock that was 60 days ahead once makes no later day empty or settled, where the service %s', async (_, shows) => {
  const theirs = { ms: NOON };
  const service = await serviceAt(theirs, shows);
  const ours = { ms: NOON + 60 * DAY };
  const harness = await openHarness(join(folder, `ahead-${shows}`), service.url, { now: () => ours.ms });
  await harness.add([{ name: 'ada', token: 't-ada' }]);
  const collection = { collections: ['daily_stress'] };
  await harness.backfill({ from: '2025-03-01', to: '2025-03-01', ...collection });
  // The clock is set right; what is asked from now on is later in the order all the same.
  ours.ms = NOON;
  await harness.backfill({ ...march, ...collection, refresh: true });
  const coverage = await readCoverage(
    { warehouse: harness.app.warehouse, collections, serviceClock: knownClock(() => NOON + 30 * DAY) },
    { users: ['ada'], ...collection, ...march },
  );
  expect(coverage.runs.map(({ from, to, state }) => [from, to, state])).toEqual([
    ['2025-03-01', '2025-03-01', 'empty'],
    ['2025-03-02', '2025-03-02', 'stored'],
    ['2025-03-03', '2025-03-09', 'empty'],
    ['2025-03-10', '2025-03-20', 'not_asked'],
  ]);
  // Ten days later those days are over, and are read.
  ours.ms = theirs.ms = NOON + 11 * DAY;
  service.documents.get('daily_stress')!.push({ ...STRESS, id: 'b', day: '2025-03-15' });
  await harness.backfill({ ...march, ...collection });
  expect(await harness.read('SELECT id FROM daily_stress ORDER BY id')).toEqual([['a'], ['b']]);
  const [ada] = (await harness.commands.status({})).accounts;
  expect(ada!.collections.find(({ name }) => name === 'daily_stress')).toMatchObject({
    state: 'up_to_date',
    last_success: '2025-03-21T12:00:00.000Z',
    lag: 0,
  });
  ours.ms += 3_600_000;
  const [later] = (await harness.commands.status({})).accounts;
  expect(later!.collections.find(({ name }) => name === 'daily_stress')).toMatchObject({ lag: 3_600 });
});

test('readings of earlier versions are dated once: by their run, and those ahead of the clock not at all', async () => {
  const data = join(folder, 'earlier');
  const open = (ms: number) => openHarness(data, 'http://127.0.0.1:9', { now: () => ms });
  await (await open(NOON)).close();
  const path = join(data, 'warehouse.duckdb');
  await withDuckDB(path, connection =>
    connection.run(`
      DELETE FROM sync.meta WHERE key = 'readings_dated_at';
      INSERT INTO sync.runs (run_id, kind, started_at, ended_at, state) VALUES
        ('good', 'backfill', '2025-03-01 12:00:00', '2025-03-01 12:05:00', 'complete'),
        ('after', 'backfill', '2025-03-02 12:00:00', '2025-03-02 12:05:00', 'complete'),
        ('wrong', 'backfill', '2025-05-09 12:00:00', '2025-05-09 12:05:00', 'complete');
      INSERT INTO sync.windows (run_id, user_id, collection, start_at, end_at, requested_at, outcome) VALUES
        ('good', 'ada', 'daily_stress', '2025-02-01', '2025-02-02', '2025-03-01 12:00:01', 'complete'),
        ('after', 'ada', 'daily_stress', '2025-02-03', '2025-02-04', '2025-05-09 12:00:02', 'complete'),
        ('wrong', 'ada', 'daily_stress', '2025-02-05', '2025-02-06', '2025-05-09 12:00:01', 'complete')`),
  );
  const harness = await open(NOON);
  const dated = [
    ['after', at('2025-03-02T12:05:00Z')],
    ['good', at('2025-03-01T12:00:01Z')],
    ['wrong', null],
  ];
  const read = 'SELECT run_id, read_at FROM sync.windows ORDER BY run_id';
  expect(await harness.read(read)).toEqual(dated);
  await harness.close();
  // Once only: the wrong one must not come true when the calendar gets there.
  const later = await open(NOON + 100 * DAY);
  expect(await later.read(read)).toEqual(dated);
});

test('a warehouse whose newest moment is ahead of the clock is warned of at the start, and by doctor', async () => {
  const data = join(folder, 'warned');
  const service = await serviceAt({ ms: NOON });
  const lines: { level: number; msg: string; newest?: string }[] = [];
  const log = createLog({ level: 'info', pretty: false, stream: { write: text => void lines.push(JSON.parse(text)) } });
  const warnings = () => lines.filter(({ level }) => level >= 40).map(({ msg, newest }) => [msg, newest]);
  const ahead = await openHarness(data, service.url, { now: () => NOON + 60 * DAY, log });
  await ahead.add([{ name: 'ada', token: 't-ada' }]);
  await ahead.close();
  expect(warnings()).toEqual([]);
  const harness = await openHarness(data, service.url, { now: () => NOON, log });
  expect(warnings()).toEqual([
    [
      'the newest moment in the warehouse is ahead of this machine’s clock: is the clock right, or was it wrong before?',
      '2025-05-09T12:00:00.000Z',
    ],
  ]);
  const results = await harness.commands.check({});
  expect(results.filter(({ check }) => check === 'clock')).toEqual([
    {
      check: 'clock',
      state: 'warn',
      message: 'the newest moment in the warehouse, 2025-05-09T12:00:00.000Z, is 60 days ahead of this machine’s clock',
      fix: 'set the clock (NTP); where it was wrong before and is right now, nothing is to be done: later answers count as later all the same',
    },
  ]);
});
