import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { WireDocument } from '../../../schema/resource.ts';
import type { BackfillInput } from '../../../src/app/run-commands.ts';
import { createLog } from '../../../src/base/log.ts';
import type { Answer } from '../../support/fault-service.ts';
import { type Harness, openHarness } from '../../support/harness.ts';
import { type LiteralService, NOT_FOUND, startLiteralService } from '../../support/literal-service.ts';
import { findBroken } from '../../support/table-hash.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { until } from '../../support/until.ts';
import { resourceNamed } from '../../support/warehouse.ts';

const folder = tempFolder();
let folders = 0;

/** A harness with one account at a service that has these collections and nothing else. */
async function setUp(...paths: string[]): Promise<{
  service: LiteralService;
  harness: Harness;
  clock: { ms: number };
  /** How often the client has waited; where it is held, until it is stopped. */
  sleep: { held: boolean; count: number };
}> {
  const service = await startLiteralService(...paths);
  onTestFinished(() => service.close());
  const clock = { ms: Date.parse('2025-06-01T12:00:00Z') };
  const sleep = { held: false, count: 0 };
  const client = {
    sleep: async (_: number, signal: AbortSignal) => {
      sleep.count++;
      if (sleep.held) await new Promise(resolve => signal.addEventListener('abort', resolve));
    },
  };
  const harness = await openHarness(join(folder, `r${++folders}`), service.url, { now: () => clock.ms, client });
  await harness.add([{ name: 'ada', token: 'token-of-ada' }]);
  return { service, harness, clock, sleep };
}

const march = (number: number) => `2025-03-${String(number).padStart(2, '0')}`;

const stress = (number: number, day = march(number)): WireDocument => ({ id: `stress-${number}`, day, day_summary: 'normal' });

const session = (number: number): WireDocument => ({
  id: `session-${number}`,
  day: march(number),
  start_datetime: `${march(number)}T08:00:00+01:00`,
  end_datetime: `${march(number)}T08:10:00+01:00`,
  type: 'rest',
  motion_count: { interval: 300, items: [1, 2], timestamp: `${march(number)}T08:00:00+01:00` },
});

const numbers = (count: number) => Array.from({ length: count }, (_, i) => i + 1);

const read = (harness: Harness, collection: string, input: Partial<BackfillInput> = {}) =>
  harness.backfill({ from: '2025-03-01', to: '2025-04-30', collections: [collection], refresh: true, ...input });

const count = async (harness: Harness, sql: string) => (await harness.read(`SELECT count(*) FROM ${sql}`))[0]![0];

/** What came of the last window. */
const lastWindow = async (harness: Harness) =>
  (await harness.read('SELECT outcome, reason FROM sync.windows ORDER BY committed_at DESC LIMIT 1'))[0];

test('a document that its own route confirms as gone is removed with its samples, and leaves a tombstone', async () => {
  const { service, harness } = await setUp('session', 'daily_stress');
  service.withDocumentRoute('session', 'daily_stress');
  service.documents.set('session', [session(1), session(2)]);
  await read(harness, 'session');
  // A session's document route is not in section 4.1: it must have answered 200 before its 404 counts.
  const client = await harness.app.client();
  await client.document(resourceNamed('session'), 'session-1', { token: 'token-of-ada' }, () => undefined);
  service.documents.set('session', [session(2)]);
  expect(await read(harness, 'session')).toMatchObject({ state: 'complete', removed: 1, documents: 1, unchanged: 1, requests: 2 });
  expect(service.listAskedDocuments()).toEqual(['session/session-1', 'session/session-1']);
  expect((await harness.read('SELECT id FROM session')).flat()).toEqual(['session-2']);
  expect((await harness.read('SELECT DISTINCT day::VARCHAR FROM session_motion_count')).flat()).toEqual(['2025-03-02']);
  expect(await harness.read('SELECT user_id, collection, id FROM sync.tombstones')).toEqual([['ada', 'session', 'session-1']]);
  expect(await findBroken(harness.read)).toEqual([]);
  // Removed and noted at once.
  expect(
    await harness.read(`SELECT w.outcome, w.requests, w.documents, w.requested_at = t.removed_at FROM sync.windows w, sync.tombstones t
                      ORDER BY w.committed_at DESC LIMIT 1`),
  ).toEqual([['complete', 2, 1, true]]);
  expect(await read(harness, 'session')).toMatchObject({ state: 'complete', removed: 0, requests: 1 });
});

test('what its own route still has was left out by mistake: it stays, what comes is stored, and the answer is none of its days; minutes later it is', async () => {
  const { service, harness, clock } = await setUp('daily_stress');
  service.documents.set('daily_stress', [stress(1), stress(2)]);
  await read(harness, 'daily_stress');
  service.documents.set('daily_stress', [stress(2), stress(3)]);
  service.on('/v2/usercollection/daily_stress/*', { json: { ...stress(1), day_summary: 'stressful' } });
  const lost = {
    state: 'failed',
    removed: 0,
    failures: [
      { kind: 'malformed', message: expect.stringContaining('left out documents that the service has: a reading at least 5 min') },
    ],
  };
  expect(await read(harness, 'daily_stress')).toMatchObject(lost);
  expect(await harness.read('SELECT id, day_summary FROM daily_stress ORDER BY id')).toEqual([
    ['stress-1', 'stressful'],
    ['stress-2', 'normal'],
    ['stress-3', 'normal'],
  ]);
  clock.ms += 299_000;
  expect(await read(harness, 'daily_stress')).toMatchObject(lost);
  clock.ms += 1_000;
  expect(await read(harness, 'daily_stress')).toMatchObject({ state: 'complete', removed: 0 });
  expect(await harness.read('SELECT count(*) FROM daily_stress')).toEqual([[3]]);
});

test('what was listed again after it was left out once is left out for the first time when it is again', async () => {
  const { service, harness, clock } = await setUp('daily_stress');
  const all = [stress(1), stress(2)];
  service.documents.set('daily_stress', all);
  await read(harness, 'daily_stress');
  service.on('/v2/usercollection/daily_stress/*', { json: stress(1) });
  const noted = async () => (await harness.read('SELECT kind, object_id FROM sync.suspicions')).flat();
  service.documents.set('daily_stress', [stress(2)]);
  expect(await read(harness, 'daily_stress')).toMatchObject({ state: 'failed' });
  expect(await noted()).toEqual(['unlisted', 'stress-1']);
  service.documents.set('daily_stress', all);
  expect(await read(harness, 'daily_stress')).toMatchObject({ state: 'complete' });
  expect(await noted()).toEqual([]);
  clock.ms += 60 * 86_400_000;
  service.documents.set('daily_stress', [stress(2)]);
  expect(await read(harness, 'daily_stress')).toMatchObject({ state: 'failed' });
});

test('while it is unclear whether a document is gone, what came beside it is stored', async () => {
  const { service, harness } = await setUp('daily_stress');
  service.documents.set('daily_stress', [stress(1), stress(2)]);
  await read(harness, 'daily_stress');
  service.documents.set('daily_stress', [stress(2), stress(3)]);
  service.on('/v2/usercollection/daily_stress/*', { status: 500, json: {} });
  expect(await read(harness, 'daily_stress')).toMatchObject({ state: 'failed', removed: 0 });
  expect((await harness.read('SELECT id FROM daily_stress ORDER BY id')).flat()).toEqual(['stress-1', 'stress-2', 'stress-3']);
});

const MISSING =
  'stored documents are missing from the answer; nothing was removed: a reading at least 5 minutes later removes them if it does not bring them either';

test('where there is no document route only a reading minutes later confirms', async () => {
  const { service, harness, clock } = await setUp('session');
  service.documents.set('session', [session(1), session(2), session(3)]);
  await read(harness, 'session');
  service.documents.set('session', [session(2), session(3)]);
  expect(await read(harness, 'session')).toMatchObject({
    state: 'failed',
    removed: 0,
    requests: 2,
    failures: [{ kind: 'suspicious', message: MISSING }],
  });
  const firstProof = [['ada', 'session', 'missing', 'session-1', Date.parse('2025-06-01T12:00:00Z') * 1000]];
  const suspicions = 'SELECT user_id, collection, kind, object_id, first_seen_at FROM sync.suspicions';
  expect(await harness.read(suspicions)).toEqual(firstProof);
  clock.ms += 299_999;
  expect(await read(harness, 'session')).toMatchObject({ state: 'failed', removed: 0, requests: 2 });
  expect(await harness.read(suspicions)).toEqual(firstProof);
  clock.ms += 1;
  expect(await read(harness, 'session')).toMatchObject({ state: 'complete', removed: 1, documents: 2, requests: 3 });
  expect((await harness.read('SELECT id FROM session ORDER BY id')).flat()).toEqual(['session-2', 'session-3']);
  expect(await count(harness, 'session_motion_count')).toBe(4);
  expect(await harness.read(suspicions)).toEqual([]);
  expect(await harness.read('SELECT user_id, collection, id FROM sync.tombstones')).toEqual([['ada', 'session', 'session-1']]);
  // Each time whether the route is there, never a document whose 404 would say nothing.
  expect(service.listAskedDocuments()).toEqual(['session/session-2', 'session/session-2', 'session/session-2']);
});

test('documents of other days than were asked for, as a cache sends them that ignores the query, remove nothing and empty no day', async () => {
  const { service, harness, clock } = await setUp('session');
  service.documents.set('session', [session(1), session(2)]);
  await read(harness, 'session');
  const elsewhere = { ...session(3), day: '2025-05-04' };
  service.on('/v2/usercollection/session', { json: { data: [elsewhere], next_token: null } });
  const message = 'GET /v2/usercollection/session: answered another range than the one that was asked for';
  for (let reading = 0; reading < 2; reading++) {
    clock.ms += 600_000;
    expect(await read(harness, 'session')).toMatchObject({ state: 'failed', removed: 0, failures: [{ kind: 'malformed', message }] });
  }
  expect(await harness.read('SELECT id, day::VARCHAR FROM session ORDER BY id')).toEqual([
    ['session-1', '2025-03-01'],
    ['session-2', '2025-03-02'],
  ]);
  // Two days are asked for beside the range, and a document may lie one day beside these.
  service.on('/v2/usercollection/session', {
    json: { data: [{ ...elsewhere, day: '2025-05-03' }, session(1), session(2)], next_token: null },
  });
  expect(await read(harness, 'session')).toMatchObject({ state: 'complete', removed: 0, documents: 3 });
});

test('documents whose day has another name are found gone, and known to be of other days, by it', async () => {
  const { service, harness, clock } = await setUp('enhanced_tag');
  const tag = (number: number, start_day = march(number)) => ({
    id: `tag-${number}`,
    start_day,
    start_time: `${start_day}T20:00:00+01:00`,
  });
  const inMarch = { from: '2025-03-01', to: '2025-03-20' };
  service.documents.set('enhanced_tag', [tag(1), tag(2), tag(25)]);
  await read(harness, 'enhanced_tag');
  expect(
    await harness.read(`SELECT day, state FROM sync.coverage_between('2025-03-01', '2025-03-03') WHERE collection = 'enhanced_tag'`),
  ).toEqual([
    ['2025-03-01', 'stored'],
    ['2025-03-02', 'stored'],
    ['2025-03-03', 'empty'],
  ]);
  service.documents.set('enhanced_tag', [tag(2), tag(25)]);
  expect(await read(harness, 'enhanced_tag', inMarch)).toMatchObject({ state: 'failed', failures: [{ message: MISSING }] });
  clock.ms += 300_000;
  expect(await read(harness, 'enhanced_tag', inMarch)).toMatchObject({ state: 'complete', removed: 1 });
  expect(await harness.read('SELECT id, start_day::VARCHAR FROM enhanced_tag ORDER BY id')).toEqual([
    ['tag-2', '2025-03-02'],
    ['tag-25', '2025-03-25'],
  ]);
  service.on('/v2/usercollection/enhanced_tag', { json: { data: [tag(1, '2025-06-01')], next_token: null } });
  expect(await read(harness, 'enhanced_tag', inMarch)).toMatchObject({ state: 'failed', failures: [{ kind: 'malformed' }] });
});

test('what a person wrote in a tag is neither in the log nor in what the ledger says of it', async () => {
  const service = await startLiteralService('enhanced_tag');
  onTestFinished(() => service.close());
  const written: string[] = [];
  const log = createLog({ level: 'trace', pretty: false, stream: { write: line => void written.push(line) } });
  const harness = await openHarness(join(folder, `r${++folders}`), service.url, { log, now: () => Date.parse('2025-06-01T12:00:00Z') });
  await harness.add([{ name: 'ada', token: 'token-of-ada' }]);
  const secret = 'my heart is broken';
  service.documents.set('enhanced_tag', [
    { id: 't-1', start_day: '2025-03-01', start_time: 'at night', comment: secret, tag_type_code: 7, custom_name: [secret] },
    { id: 't-2', comment: secret },
  ]);
  expect(await read(harness, 'enhanced_tag')).toMatchObject({ state: 'complete', documents: 2, rejected: 1 });
  expect(written.join('')).not.toContain('broken');
  expect(JSON.stringify(await harness.read('FROM sync.drift'))).not.toContain('broken');
  expect(JSON.stringify(await harness.read('SELECT * EXCLUDE (document) FROM sync.rejected'))).not.toContain('broken');
});

test.each(['.', '..'])(
  'a document called %s, which no route can tell of, is gone after a second reading, and those beside it by their route',
  async id => {
    const { service, harness, clock } = await setUp('daily_stress');
    service.withDocumentRoute('daily_stress');
    service.documents.set('daily_stress', [{ ...stress(1), id }, stress(2), stress(3)]);
    await read(harness, 'daily_stress');
    service.documents.set('daily_stress', [{ ...stress(4), id: id === '.' ? '..' : '.' }, stress(3)]);
    const inMarch = { from: '2025-03-01', to: '2025-03-20' };
    expect(await read(harness, 'daily_stress', inMarch)).toMatchObject({
      state: 'failed',
      removed: 0,
      failures: [{ kind: 'suspicious', message: MISSING }],
    });
    expect(await harness.read('SELECT kind, object_id FROM sync.suspicions')).toEqual([['missing', id]]);
    clock.ms += 300_000;
    expect(await read(harness, 'daily_stress', inMarch)).toMatchObject({ state: 'complete', removed: 2 });
    expect((await harness.read('SELECT id FROM daily_stress ORDER BY day')).flat()).toEqual(['stress-3', id === '.' ? '..' : '.']);
    expect(service.listAskedDocuments()).toEqual(['daily_stress/stress-2']);
  },
);

test.each([
  ['before', '2025-03-31', '2025-02-15'],
  ['behind', '2025-03-01', '2025-04-14'],
])('a document without a route that has moved %s the days that are read is stored where it is now, and not removed', async (_, was, is) => {
  const { service, harness, clock } = await setUp('session');
  const inMarch = { from: '2025-03-01', to: '2025-03-31' };
  service.documents.set('session', [{ ...session(1), day: was }, session(10)]);
  await read(harness, 'session', inMarch);
  service.documents.set('session', [{ ...session(1), day: is }, session(10)]);
  expect(await read(harness, 'session', inMarch)).toMatchObject({ state: 'failed', removed: 0 });
  clock.ms += 300_000;
  expect(await read(harness, 'session', inMarch)).toMatchObject({ state: 'complete', removed: 0, documents: 2, unchanged: 1, requests: 3 });
  expect(await harness.read('SELECT id, day::VARCHAR FROM session ORDER BY id')).toEqual([
    ['session-1', is],
    ['session-10', '2025-03-10'],
  ]);
  expect(await count(harness, 'sync.tombstones')).toBe(0);
  expect(await count(harness, 'sync.suspicions')).toBe(0);
  expect(await read(harness, 'session', inMarch)).toMatchObject({ state: 'complete', removed: 0 });
});

test('one that turned up between two readings is missing for the first time again', async () => {
  const { service, harness, clock } = await setUp('session');
  const all = [session(1), session(2)];
  service.documents.set('session', all);
  await read(harness, 'session');
  service.documents.set('session', [session(2)]);
  await read(harness, 'session');
  expect(await count(harness, 'sync.suspicions')).toBe(1);
  // By an event, its content as it was.
  const requestedAt = harness.app.warehouse.clock.lease();
  const { warehouse } = harness.app;
  await warehouse.storeDocuments({ userId: 'ada', resource: resourceNamed('session'), requestedAt, documents: [session(1)] });
  warehouse.clock.release(requestedAt);
  expect(await count(harness, 'sync.suspicions')).toBe(0);
  clock.ms += 600_000;
  expect(await read(harness, 'session')).toMatchObject({ state: 'failed', removed: 0 });
  expect(await count(harness, 'session')).toBe(2);
  // By its range.
  service.documents.set('session', all);
  expect(await read(harness, 'session')).toMatchObject({ state: 'complete', removed: 0 });
  expect(await count(harness, 'sync.suspicions')).toBe(0);
});

test('a service that shortens ranges of more than ninety days keeps what has moved, for no longer one is asked', async () => {
  const { service, harness, clock } = await setUp('session');
  const all = [session(10), { ...session(1), day: '2025-03-01' }, { ...session(2), day: '2025-03-31' }];
  const isIn = (from: string, to: string) => (document: WireDocument) => String(document.day) >= from && String(document.day) <= to;
  let held: WireDocument[] = all;
  service.on('/v2/usercollection/session', ({ query }) => {
    const [from = '', to = ''] = [query.get('start_date') ?? '', query.get('end_date') ?? ''];
    const latest = new Date(Date.parse(from) + 89 * 86_400_000).toISOString().slice(0, 10);
    return { json: { data: held.filter(isIn(from, to < latest ? to : latest)), next_token: null } };
  });
  const inMarch = { from: '2025-03-01', to: '2025-03-31' };
  await read(harness, 'session', inMarch);
  held = [session(10), { ...session(2), day: '2025-05-10' }];
  expect(await read(harness, 'session', inMarch)).toMatchObject({ state: 'failed', removed: 0 });
  clock.ms += 300_000;
  const before = service.asked.length;
  expect(await read(harness, 'session', inMarch)).toMatchObject({ state: 'complete', removed: 1 });
  expect(
    service.asked
      .slice(before)
      .filter(({ query }) => query.has('start_date'))
      .map(({ query }) => [query.get('start_date'), query.get('end_date')]),
  ).toEqual([
    ['2025-02-27', '2025-04-02'],
    ['2025-02-14', '2025-05-14'],
    ['2025-01-16', '2025-02-15'],
  ]);
  expect(await harness.read('SELECT id, day::VARCHAR FROM session ORDER BY id')).toEqual([
    ['session-10', '2025-03-10'],
    ['session-2', '2025-05-10'],
  ]);
});

test('who says that they are gone waits for no later reading: a second one in the same run confirms', async () => {
  const { service, harness } = await setUp('session');
  service.documents.set('session', [session(1), session(2), session(3)]);
  await read(harness, 'session');
  // What the second reading has was not gone.
  const answers = [[session(3)], [session(2), session(3)]];
  service.on(
    '/v2/usercollection/session',
    answers.map(data => ({ json: { data } })),
  );
  expect(await read(harness, 'session', { acceptDeletions: true })).toMatchObject({ state: 'complete', removed: 1, requests: 3 });
  expect((await harness.read('SELECT id FROM session ORDER BY id')).flat()).toEqual(['session-2', 'session-3']);
});

test('a document route that nobody has asked yet is tried with a document that is there, and then confirms at once', async () => {
  const { service, harness } = await setUp('session');
  service.withDocumentRoute('session');
  service.documents.set('session', [session(1), session(2)]);
  await read(harness, 'session');
  service.documents.set('session', [session(2)]);
  expect(await read(harness, 'session')).toMatchObject({ state: 'complete', removed: 1, requests: 3 });
  expect(service.listAskedDocuments()).toEqual(['session/session-2', 'session/session-1']);
});

test('the brake counts all windows of a run: of a collection that is missing a little everywhere little leaves', async () => {
  const { service, harness } = await setUp('daily_stress');
  service.withDocumentRoute('daily_stress');
  // Ten documents in each of seven quarters.
  const all = Array.from({ length: 7 }, (_, window) =>
    numbers(10).map(number => {
      const day = new Date(Date.UTC(2023, 0, 1 + window * 90 + number)).toISOString().slice(0, 10);
      return stress(window * 10 + number, day);
    }),
  ).flat();
  service.documents.set('daily_stress', all);
  const days = { from: '2023-01-01', to: '2024-09-21' };
  await read(harness, 'daily_stress', days);
  expect(await count(harness, 'daily_stress')).toBe(70);
  // 62 of the 70.
  service.documents.set(
    'daily_stress',
    all.filter((_, i) => i % 9 === 8 || i === 69),
  );
  const report = await read(harness, 'daily_stress', days);
  const reason =
    'with these more than 10 and more than a fifth of what is stored would leave in one run; nothing was removed: if they are gone, backfill --refresh --accept-deletions removes them';
  expect(report).toMatchObject({ state: 'failed', failures: [{ kind: 'suspicious', message: reason }] });
  expect(report.failures).toHaveLength(1);
  expect(report.removed).toBeLessThanOrEqual(14);
  expect(await count(harness, 'daily_stress')).toBe(70 - report.removed);
  expect(await count(harness, 'sync.tombstones')).toBe(report.removed);
  expect(await harness.read(`SELECT sum(removed) FROM sync.windows WHERE run_id = '${report.run}'`)).toEqual([[report.removed]]);
  expect(await read(harness, 'daily_stress', { ...days, acceptDeletions: true })).toMatchObject({ state: 'complete' });
  expect(await count(harness, 'daily_stress')).toBe(8);
});

test('a document that another window’s earlier request brings under a new day outlasts its removal from the old one', async () => {
  const { service, harness, clock } = await setUp('session');
  service.documents.set('session', [session(1), session(2)]);
  await read(harness, 'session');
  service.documents.set('session', [session(2)]);
  await read(harness, 'session');
  clock.ms += 300_000;
  const { warehouse } = harness.app;
  // Sent before the request that does not find it, answered after it.
  const earlier = warehouse.clock.lease();
  expect(await read(harness, 'session')).toMatchObject({ state: 'complete', removed: 1 });
  expect(await count(harness, 'session')).toBe(1);
  const moved = { ...session(1), day: '2025-05-20' };
  await warehouse.storeDocuments({ userId: 'ada', resource: resourceNamed('session'), requestedAt: earlier, documents: [moved] });
  warehouse.clock.release(earlier);
  expect(await harness.read('SELECT id, day::VARCHAR FROM session ORDER BY id')).toEqual([
    ['session-1', '2025-05-20'],
    ['session-2', '2025-03-02'],
  ]);
  expect(await count(harness, 'sync.tombstones')).toBe(0);
});

test('a read of another account that waits between two answers keeps nothing that is gone', async () => {
  const { service, harness, clock, sleep } = await setUp('session');
  await harness.add([{ name: 'ben', token: 'token-of-ben' }]);
  let list = [session(1), session(2)];
  service.on('/v2/usercollection/session', ({ token, query }) => {
    if (token === 'token-of-ada') return { json: { data: list, next_token: null } };
    if (!query.has('next_token')) return { json: { data: [session(3)], next_token: 'second' } };
    return { status: 429, headers: { 'retry-after': '50' }, json: { detail: 'Too Many Requests' } };
  });
  const stop = new AbortController();
  sleep.held = true;
  const all = { from: '2025-03-01', to: '2025-03-31', collections: ['session'], users: ['ben'] };
  const waiting = harness.backfill(all, stop.signal).catch(() => undefined);
  await until('ben waits for his second page', () => sleep.count > 0);
  await read(harness, 'session', { users: ['ada'] });
  list = [session(2)];
  await read(harness, 'session', { users: ['ada'] });
  clock.ms += 300_000;
  expect(await read(harness, 'session', { users: ['ada'] })).toMatchObject({ state: 'complete', removed: 1 });
  expect((await harness.read("SELECT id FROM session WHERE user_id = 'ada'")).flat()).toEqual(['session-2']);
  stop.abort();
  await waiting;
});

test('what only its absence removes goes while an older answer is under way, which brings it back under no day of the window', async () => {
  const { service, harness, clock } = await setUp('session');
  const { warehouse } = harness.app;
  const earlier = warehouse.clock.lease();
  service.documents.set('session', [session(1), session(2)]);
  await read(harness, 'session');
  service.documents.set('session', [session(2)]);
  await read(harness, 'session');
  clock.ms += 300_000;
  expect(await read(harness, 'session')).toMatchObject({ state: 'complete', removed: 1 });
  const noted = 'SELECT outcome, removed, reason FROM sync.windows ORDER BY committed_at DESC LIMIT 1';
  expect(await harness.read(noted)).toEqual([['complete', 1, null]]);
  const page = { userId: 'ada', resource: resourceNamed('session') };
  const late = await warehouse.storeDocuments({ ...page, requestedAt: earlier, documents: [session(1), session(2)] });
  warehouse.clock.release(earlier);
  expect(late).toMatchObject({ stored: 0, outdated: 2 });
  expect((await harness.read('SELECT id FROM session')).flat()).toEqual(['session-2']);
  expect((await harness.read('SELECT id FROM sync.tombstones')).flat()).toEqual(['session-1']);
});

test('a document that lies under another day by the time of its removal stays', async () => {
  const { harness } = await setUp('session');
  const { warehouse } = harness.app;
  const page = { userId: 'ada', resource: resourceNamed('session') };
  const [first, absent] = [warehouse.clock.lease(), warehouse.clock.lease()];
  await warehouse.storeDocuments({ ...page, requestedAt: first, documents: [{ ...session(1), day: '2025-05-20' }, session(2)] });
  const absentFrom = { from: '2025-03-01', to: '2025-04-30' };
  await warehouse.storeDocuments({ ...page, requestedAt: absent, documents: [], removed: ['session-1', 'session-2'], absentFrom });
  warehouse.clock.release(first);
  warehouse.clock.release(absent);
  expect((await harness.read('SELECT id FROM session')).flat()).toEqual(['session-1']);
  expect((await harness.read('SELECT id FROM sync.tombstones')).flat()).toEqual(['session-2']);
});

test('more than ten and more than a fifth at once are not removed, unless somebody says that they are gone', async () => {
  const { service, harness } = await setUp('daily_stress');
  service.withDocumentRoute('daily_stress');
  const cases = [
    // Neither; more than a fifth only; more than ten only; both, twice.
    { stored: 55, gone: 10, removed: 10 },
    { stored: 15, gone: 10, removed: 10 },
    { stored: 55, gone: 11, removed: 11 },
    { stored: 54, gone: 11, removed: 0 },
    { stored: 15, gone: 11, removed: 0 },
  ];
  for (const [i, { stored, gone, removed }] of cases.entries()) {
    const name = `u${i}`;
    await harness.add([{ name, token: `token-of-${name}` }]);
    const all = numbers(stored).map(number => stress(number, march(Math.ceil(number / 2))));
    service.documents.set('daily_stress', all);
    await read(harness, 'daily_stress', { users: [name] });
    service.documents.set('daily_stress', all.slice(gone));
    const asked = service.listAskedDocuments().length;
    const report = await read(harness, 'daily_stress', { users: [name] });
    expect(report.removed, name).toBe(removed);
    expect(await count(harness, `daily_stress WHERE user_id = '${name}'`)).toBe(stored - removed);
    expect(await count(harness, `sync.tombstones WHERE user_id = '${name}'`)).toBe(removed);
    if (removed) {
      expect([report.state, await lastWindow(harness)]).toEqual(['complete', ['complete', null]]);
      continue;
    }
    const reason = `11 of ${stored} stored documents are missing from the answer; nothing was removed: if they are gone, backfill --refresh --accept-deletions removes them`;
    expect([report.state, await lastWindow(harness)]).toEqual(['failed', ['suspicious', reason]]);
    expect(report.failures).toMatchObject([{ user_id: name, collection: 'daily_stress', kind: 'suspicious', message: reason }]);
    expect(service.listAskedDocuments().length).toBe(asked);
    // Somebody has looked, and says that they are gone.
    expect(await read(harness, 'daily_stress', { users: [name], acceptDeletions: true })).toMatchObject({ state: 'complete', removed: 11 });
    expect(await count(harness, `daily_stress WHERE user_id = '${name}'`)).toBe(stored - 11);
  }
});

test('an empty answer over stored rows removes nothing where only a second one could confirm it, but with --accept-deletions', async () => {
  const { service, harness } = await setUp('session');
  service.documents.set('session', [session(1), session(2)]);
  await read(harness, 'session');
  service.documents.set('session', []);
  expect(await read(harness, 'session')).toMatchObject({ state: 'failed', removed: 0, requests: 1, failures: [{ kind: 'suspicious' }] });
  expect(await count(harness, 'session')).toBe(2);
  expect(await count(harness, 'sync.suspicions')).toBe(0);
  expect(await read(harness, 'session', { acceptDeletions: true })).toMatchObject({ state: 'complete', removed: 2 });
  expect(await count(harness, 'session')).toBe(0);
});

test('when something else than a confirmation comes, the window fails and nothing is removed', async () => {
  const { service, harness } = await setUp('daily_stress');
  service.documents.set('daily_stress', [stress(1), stress(2)]);
  await read(harness, 'daily_stress');
  service.documents.set('daily_stress', [stress(2)]);
  const answers: Answer[] = [
    { status: 500, json: { detail: 'broken' } },
    // Of something on the way, not of the service.
    { status: 404, text: '<html>not here</html>' },
    { json: { data: [] } },
    { json: [] },
    { json: stress(2) },
  ];
  for (const answer of answers) {
    service.on('/v2/usercollection/daily_stress/*', answer);
    expect(await read(harness, 'daily_stress')).toMatchObject({ state: 'failed', removed: 0 });
    expect((await lastWindow(harness))![0]).toBe('failed');
  }
  expect(await count(harness, 'daily_stress')).toBe(2);
  expect(await count(harness, 'sync.tombstones')).toBe(0);
  expect(await count(harness, 'sync.rejected')).toBe(0);
  service.on('/v2/usercollection/daily_stress/*', NOT_FOUND);
  expect(await read(harness, 'daily_stress')).toMatchObject({ state: 'complete', removed: 1 });
});

test('when the second reading fails the window does, and nothing is removed', async () => {
  const { service, harness } = await setUp('session');
  service.documents.set('session', [session(1), session(2)]);
  await read(harness, 'session');
  const good = { json: { data: [session(2)] } };
  // The client asks four times before a 500 counts, and once for a 404: so many requests make one attempt, the first of them good.
  for (const { status, requests } of [
    { status: 500, requests: 5 },
    { status: 404, requests: 2 },
  ]) {
    service.on('/v2/usercollection/session', (_, nth) => (nth % requests === 1 ? good : { status, json: { detail: 'no' } }));
    expect(await read(harness, 'session', { acceptDeletions: true })).toMatchObject({ state: 'failed', removed: 0 });
    expect((await lastWindow(harness))![0]).toBe('failed');
    expect(await count(harness, 'session')).toBe(2);
  }
});

test('days that a window only reads along remove nothing', async () => {
  const { service, harness } = await setUp('daily_stress');
  service.withDocumentRoute('daily_stress');
  service.documents.set('daily_stress', [stress(9), stress(10), stress(12), stress(13)]);
  await read(harness, 'daily_stress');
  service.documents.set('daily_stress', []);
  const days = { from: '2025-03-10', to: '2025-03-12' };
  expect(await read(harness, 'daily_stress', days)).toMatchObject({ state: 'complete', removed: 2 });
  expect((await harness.read('SELECT id FROM daily_stress ORDER BY id')).flat()).toEqual(['stress-13', 'stress-9']);
});

test('a document that an event wrote, or confirmed, while the range was read stays', async () => {
  const { service, harness } = await setUp('daily_stress');
  service.documents.set('daily_stress', [stress(1), stress(2), stress(3)]);
  await read(harness, 'daily_stress');
  const { warehouse } = harness.app;
  const store = async (document: WireDocument) => {
    const requestedAt = warehouse.clock.lease();
    await warehouse.storeDocuments({ userId: 'ada', resource: resourceNamed('daily_stress'), requestedAt, documents: [document] });
    warehouse.clock.release(requestedAt);
  };
  // The answer was made before the events came. By now the documents are gone again, as far as their route knows.
  service.on('/v2/usercollection/daily_stress/*', NOT_FOUND);
  service.on('/v2/usercollection/daily_stress', async () => {
    await store(stress(4));
    await store(stress(1));
    await store({ ...stress(2), day_summary: 'stressful' });
    return { json: { data: [], next_token: null } };
  });
  expect(await read(harness, 'daily_stress')).toMatchObject({ state: 'complete', removed: 1 });
  expect(await harness.read('SELECT id, day_summary FROM daily_stress ORDER BY id')).toEqual([
    ['stress-1', 'normal'],
    ['stress-2', 'stressful'],
    ['stress-4', 'normal'],
  ]);
  expect((await harness.read('SELECT id FROM sync.tombstones')).flat()).toEqual(['stress-3']);
});

test('a ring is gone when its collection was read without it and its own route says so, and only then', async () => {
  const { service, harness } = await setUp('ring_configuration');
  const ring = (id: string) => ({ id, color: 'silver' });
  service.documents.set('ring_configuration', [ring('a'), ring('b')]);
  await read(harness, 'ring_configuration');
  service.documents.set('ring_configuration', [ring('b')]);
  service.on('/v2/usercollection/ring_configuration/*', { json: ring('a') });
  expect(await read(harness, 'ring_configuration')).toMatchObject({ state: 'complete', removed: 0 });
  // Where the collection is not offered, nothing was read completely.
  service.on('/v2/usercollection/ring_configuration/*', NOT_FOUND);
  service.on('/v2/usercollection/ring_configuration', { status: 404, json: { detail: 'Not Found' } });
  expect(await read(harness, 'ring_configuration')).toMatchObject({ removed: 0 });
  expect(await count(harness, 'ring_configuration')).toBe(2);
  service.on('/v2/usercollection/ring_configuration', { json: { data: [ring('b')], next_token: null } });
  expect(await read(harness, 'ring_configuration')).toMatchObject({ state: 'complete', removed: 1 });
  expect((await harness.read('SELECT id FROM ring_configuration')).flat()).toEqual(['b']);
});

test.each([
  ['comes back under other days', '2025-05-20', 'stored'],
  ['does not come back under the days that it is absent from', '2025-03-01', 'outdated'],
])('what a removal took away by its absence %s by an answer that was under way then', async (_, day, expected) => {
  const { harness } = await setUp('session');
  const { warehouse } = harness.app;
  const { clock } = warehouse;
  const page = { userId: 'ada', resource: resourceNamed('session') };
  await warehouse.storeDocuments({ ...page, requestedAt: clock.next(), documents: [session(1)] });
  const late = clock.lease();
  const removal = { documents: [], removed: ['session-1'], absentFrom: { from: '2025-03-01', to: '2025-04-30' } };
  expect(await warehouse.storeDocuments({ ...page, requestedAt: clock.next(), ...removal })).toMatchObject({ removed: 1, outdated: 0 });
  const counts = await warehouse.storeDocuments({ ...page, requestedAt: late, documents: [{ ...session(1), day }] });
  expect(counts).toMatchObject({ stored: 0, outdated: 0, [expected]: 1 });
  clock.release(late);
  const isStored = expected === 'stored';
  expect(await harness.read('SELECT id, day::VARCHAR FROM session')).toEqual(isStored ? [['session-1', day]] : []);
  expect((await harness.read('SELECT id FROM sync.tombstones')).flat()).toEqual(isStored ? [] : ['session-1']);
});
