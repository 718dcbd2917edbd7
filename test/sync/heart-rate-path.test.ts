import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createLog } from '../../src/base/log.ts';
import { forgetSweeps } from '../../src/ledger/forget-sweeps.ts';
import type { Asked, FaultService } from '../support/fault-service.ts';
import { startFaultService } from '../support/fault-service.ts';

import { type Harness, openHarness } from '../support/harness.ts';
import { NOT_FOUND } from '../support/literal-service.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { withDuckDB } from '../support/warehouse.ts';

const folder = tempFolder();
let folders = 0;

const PLAIN = '/v2/usercollection/heartrate';
const SANDBOX = '/v2/sandbox/usercollection/heartrate';

/** One row at the beginning of each hour that was asked for. */
const hourly =
  (bpm: number) =>
  ({ query }: Asked) => {
    const [from, to] = ['start_datetime', 'end_datetime'].map(name => Date.parse(query.get(name)!));
    const data: unknown[] = [];
    for (let ms = Math.ceil(from! / 3_600_000) * 3_600_000; ms < to!; ms += 3_600_000) {
      data.push({ timestamp: new Date(ms).toISOString().replace('.000Z', '+00:00'), timestamp_unix: ms, bpm, source: 'awake' });
    }
    return { json: { data, next_token: null } };
  };

const real = hourly(61);
const generated = hourly(99);

async function setUp(): Promise<{ service: FaultService; harness: Harness }> {
  const service = await startFaultService({ [SANDBOX]: generated, [PLAIN]: NOT_FOUND });
  onTestFinished(() => service.close());
  const harness = await openHarness(join(folder, `h${++folders}`), service.url, { now: () => Date.parse('2025-06-01T12:00:00Z') });
  await harness.add([
    { name: 'ada', token: 'token-of-ada' },
    { name: 'ben', token: 'token-of-ben' },
  ]);
  return { service, harness };
}

const weeks = { from: '2025-02-01', to: '2025-03-14', collections: ['heart_rate'] };

const rates = (harness: Harness, user = 'ada') =>
  harness.read(`SELECT bpm, count(*) FROM heart_rate WHERE user_id = '${user}' GROUP BY bpm ORDER BY bpm`);

const windows = (harness: Harness, run: string) =>
  harness.read(`SELECT DISTINCT user_id, route, outcome FROM sync.windows WHERE run_id = '${run}' ORDER BY ALL`);

test('each window tells which path it was read from', async () => {
  const { service, harness } = await setUp();
  const first = await harness.backfill(weeks);
  expect(first).toMatchObject({ state: 'complete', heart_rate_path: SANDBOX });
  expect(await windows(harness, first.run)).toEqual([
    ['ada', SANDBOX, 'complete'],
    ['ben', SANDBOX, 'complete'],
  ]);
  service.on(PLAIN, real);
  const [later] = [await harness.backfill({ ...weeks, from: '2025-04-01', to: '2025-04-03', users: ['ada'] })];
  // Within the hour the plain path is not asked again.
  expect(await windows(harness, later.run)).toEqual([['ada', SANDBOX, 'complete']]);
});

test('one 404 of the plain path, and one of something on the way, are no reason to read elsewhere', async () => {
  const { service, harness } = await setUp();
  service.on(PLAIN, (asked, nth) => (nth === 1 ? NOT_FOUND : real(asked)));
  const report = await harness.backfill({ ...weeks, users: ['ada'] });
  expect(report).toMatchObject({ state: 'complete', heart_rate_path: PLAIN });
  expect(await rates(harness)).toEqual([[61, 1008]]);
  expect(service.asked.map(({ path }) => path)).not.toContain(SANDBOX);
});

test('a proxy’s 404 never leads to the generated rows', async () => {
  const { service, harness } = await setUp();
  service.on(PLAIN, { status: 404, text: '<html>not here</html>' });
  expect(await harness.backfill({ ...weeks, users: ['ada'] })).not.toMatchObject({ heart_rate_path: SANDBOX });
  expect(await rates(harness)).toEqual([]);
  expect(service.asked.map(({ path }) => path)).not.toContain(SANDBOX);
});

test('when the plain path first answers, what the sandbox path brought is removed, is called unread, and is read again', async () => {
  const { service, harness } = await setUp();
  const before = await harness.backfill(weeks);
  expect(await rates(harness, 'ben')).toEqual([[99, 1008]]);
  // Of an account that nobody asks any more, too.
  await harness.commands.pauseAccount({ name: 'ben' });
  const stranger = { user_id: 'ada', ts: 1, utc_offset: 0, bpm: 50, source: 'awake', fetched_at: 1 };
  await harness.app.warehouse.record([{ table: 'heart_rate', row: stranger }]);
  service.on(PLAIN, real);
  await harness.close();

  const later = await openHarness(harness.app.settings.data, service.url, { now: () => Date.parse('2025-06-01T12:00:00Z') });
  const day = await later.backfill({ ...weeks, from: '2025-05-01', to: '2025-05-01', users: ['ada'] });
  expect(day).toMatchObject({ state: 'complete', heart_rate_path: PLAIN });
  const reason = `read from ${SANDBOX}, whose rows were removed when ${PLAIN} answered: they were generated`;
  expect(
    await later.read(`SELECT DISTINCT user_id, route, outcome, reason FROM sync.windows WHERE run_id = '${before.run}' ORDER BY 1`),
  ).toEqual([
    ['ada', SANDBOX, 'failed', reason],
    ['ben', SANDBOX, 'failed', reason],
  ]);
  expect(await rates(later, 'ben')).toEqual([]);
  const coverage = await later.commands.coverage({ users: ['ben'], collections: ['heart_rate'], from: weeks.from, to: weeks.to });
  expect(coverage.runs).toMatchObject([{ from: '2025-02-01', to: '2025-03-14', state: 'failed', reason }]);
  // Of those who may be asked it is read again, and the command has waited for it.
  expect(day).toMatchObject({ removed: 2016, windows: { planned: 3, done: 3 } });
  expect(await rates(later)).toEqual([
    [50, 1],
    [61, 1032],
  ]);
  expect(await windows(later, before.run)).toHaveLength(2);
  const again = await later.backfill({ ...weeks, users: ['ada'] });
  expect(again.windows).toMatchObject({ planned: 0, skipped: 2 });
});

/** Makes the file one of an earlier version, which did not note the path of a window. */
const forgetRoutes = (harness: Harness) =>
  withDuckDB(join(harness.app.settings.data, 'warehouse.duckdb'), connection =>
    connection.run(`UPDATE sync.windows SET route = NULL; DELETE FROM sync.meta WHERE key = 'routes_named_at'`),
  );

test('what an earlier version read, when only the sandbox path had answered, is removed too when the plain path answers', async () => {
  const { service, harness } = await setUp();
  await harness.backfill({ ...weeks, users: ['ada'] });
  await harness.close();
  await forgetRoutes(harness);
  service.on(PLAIN, real);
  const lines: string[] = [];
  const log = createLog({ level: 'warn', pretty: false, stream: { write: text => void lines.push(JSON.parse(text).msg) } });
  const later = await openHarness(harness.app.settings.data, service.url, { now: () => Date.parse('2025-06-01T12:00:00Z'), log });
  expect(await later.read('SELECT DISTINCT route FROM sync.windows')).toEqual([[SANDBOX]]);
  expect(lines).toEqual([]);
  expect(await later.backfill(may)).toMatchObject({ state: 'complete', removed: 1008, heart_rate_path: PLAIN });
  expect(await rates(later)).toEqual([[61, 1032]]);
});

test('where both paths had answered an earlier version, nobody knows what it read from which: that is said once, and nothing is removed', async () => {
  const { service, harness } = await setUp();
  await harness.backfill({ ...weeks, users: ['ada'] });
  service.on(PLAIN, real);
  await harness.close();
  const now = () => Date.parse('2025-06-01T12:00:00Z');
  const both = await openHarness(harness.app.settings.data, service.url, { now });
  await both.backfill(may);
  await both.close();
  await forgetRoutes(both);
  const lines: string[] = [];
  const log = createLog({ level: 'warn', pretty: false, stream: { write: text => void lines.push(JSON.parse(text).msg) } });
  for (let start = 0; start < 2; start++) {
    const later = await openHarness(harness.app.settings.data, service.url, { now, log });
    expect(await rates(later)).toEqual([[61, 1032]]);
    await later.close();
  }
  expect(lines).toEqual([
    'heart rate that an earlier version read may have been generated by /v2/sandbox/usercollection/heartrate: ringneck backfill --refresh --accept-deletions --resource heart_rate, over its days, stores what is real',
  ]);
});

test('what was removed and cannot be read again is a failure of the run that removed it', async () => {
  const { service, harness } = await setUp();
  await harness.backfill(weeks);
  service.on(PLAIN, asked => (asked.token === 'token-of-ben' ? { status: 501, json: { detail: 'not now' } } : real(asked)));
  await harness.close();
  const later = await openHarness(harness.app.settings.data, service.url, { now: () => Date.parse('2025-06-01T12:00:00Z') });
  const day = await later.backfill({ ...weeks, from: '2025-05-01', to: '2025-05-01', users: ['ada'] });
  expect(day).toMatchObject({ state: 'failed', removed: 2016, failures: [{ user_id: 'ben', from: '2025-02-01', to: '2025-03-14' }] });
  expect(await rates(later)).toEqual([[61, 1032]]);
});

const EMPTY = { json: { data: [], next_token: null } };
const may = { ...weeks, from: '2025-05-01', to: '2025-05-01', users: ['ada'] };

test('one empty answer of the plain path removes nothing, and the sandbox path is read on', async () => {
  const { service, harness } = await setUp();
  await harness.backfill(weeks);
  await harness.close();
  service.on(PLAIN, (_, nth) => (nth === 1 ? EMPTY : NOT_FOUND));
  const later = await openHarness(harness.app.settings.data, service.url, { now: () => Date.parse('2025-06-01T12:00:00Z') });
  expect(await later.backfill(may)).toMatchObject({ state: 'complete', removed: 0, heart_rate_path: SANDBOX });
  expect(await rates(later)).toEqual([[99, 1032]]);
  expect(await rates(later, 'ben')).toEqual([[99, 1008]]);
  expect(await later.backfill({ ...may, users: ['ben'] })).toMatchObject({ state: 'complete', removed: 0, heart_rate_path: SANDBOX });
  expect(await rates(later, 'ben')).toEqual([[99, 1032]]);
});

test('empty answers of the plain path count when there are two, 5 minutes apart, and no 404 between them', async () => {
  const { service, harness } = await setUp();
  await harness.backfill(weeks);
  await harness.close();
  const at = async (time: string, plain: Parameters<typeof service.on>[1]) => {
    service.on(PLAIN, plain);
    const later = await openHarness(harness.app.settings.data, service.url, { now: () => Date.parse(`2025-06-01T${time}Z`) });
    const { removed, heart_rate_path } = await later.backfill({ ...may, refresh: true });
    await later.close();
    return [removed, heart_rate_path];
  };
  expect(await at('12:00:00', EMPTY)).toEqual([0, SANDBOX]);
  expect(await at('12:04:59', EMPTY)).toEqual([0, SANDBOX]);
  expect(await at('12:10:00', NOT_FOUND)).toEqual([0, SANDBOX]);
  expect(await at('12:11:00', EMPTY)).toEqual([0, SANDBOX]);
  expect(await at('12:15:59', EMPTY)).toEqual([0, SANDBOX]);
  expect(await at('12:16:00', EMPTY)).toEqual([2040, PLAIN]);
});

test('a sweep that read from the sandbox path stays in the ledger for as long as its rows', async () => {
  const { harness } = await setUp();
  await harness.backfill(weeks);
  const { warehouse } = harness.app;
  await warehouse.record([
    ...(await harness.read('SELECT run_id, started_at FROM sync.runs')).map(([run_id, started_at]) => ({
      table: 'sync.runs',
      key: { run_id: run_id! },
      row: { kind: 'sweep', state: 'complete', started_at: started_at!, ended_at: started_at!, request: '{}' },
    })),
  ]);
  const now = () => Date.parse('2025-08-01T12:00:00Z');
  // One that settled nothing.
  await forgetSweeps({ warehouse, now, settledDays: 365 });
  expect(await harness.read('SELECT count(*) FROM sync.windows')).toEqual([[4]]);
});
