import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { KnownDocument } from '../../src/warehouse/write-result.ts';
import { type Asked, type FaultService, type Script, startFaultService } from '../support/fault-service.ts';
import { type Harness, openHarness } from '../support/harness.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
let folders = 0;

const STRESS = '/v2/usercollection/daily_stress';
const DAYS = { from: '2025-03-01', to: '2025-03-10', collections: ['daily_stress'] };

const stress = (id: string, day: string, stressHigh: unknown) => ({
  id,
  day,
  stress_high: stressHigh,
  recovery_high: 3600,
  day_summary: 'normal',
});

const a = stress('a', '2025-03-02', 100);
const b = stress('b', '2025-03-03', 200);
const c = stress('c', '2025-03-04', 300);
/** Of the days about the range, which are asked for too. */
const before = stress('z', '2025-02-28', 50);

/** A page for each list of documents, the token at its end. */
const pagesOf =
  (...pages: unknown[][]) =>
  ({ query }: Asked) => {
    const number = Number(query.get('next_token') ?? 0);
    return { json: { data: pages[number], next_token: number + 1 < pages.length ? String(number + 1) : null } };
  };

async function setUp(script: Script = pagesOf([before, a, b], [c])): Promise<{ service: FaultService; harness: Harness }> {
  const service = await startFaultService({ [STRESS]: script });
  onTestFinished(() => service.close());
  const harness = await openHarness(join(folder, `h${++folders}`), service.url, { now: () => Date.parse('2025-06-01T12:00:00Z') });
  await harness.add([{ name: 'ada', token: 'token-of-ada' }]);
  await harness.backfill(DAYS);
  return { service, harness };
}

const refresh = (harness: Harness) => harness.backfill({ ...DAYS, refresh: true });

const stored = (harness: Harness) => harness.read('SELECT id, stress_high FROM daily_stress ORDER BY day');

const ALL = [
  ['z', 50],
  ['a', 100],
  ['b', 200],
  ['c', 300],
];

/** What no comparison of contents can see: where it stays, the document was not stored again. */
const mark = (harness: Harness, id: string) => harness.read(`UPDATE daily_stress SET stress_high = 99 WHERE id = '${id}'`);

test('an answer whose bytes are known, and all of whose documents are stored, is counted as unchanged', async () => {
  const { harness } = await setUp();
  expect(await stored(harness)).toEqual(ALL);
  await mark(harness, 'b');
  expect(await refresh(harness)).toMatchObject({ state: 'complete', requests: 2, documents: 4, unchanged: 4, removed: 0, rejected: 0 });
  expect(await stored(harness)).toEqual([ALL[0], ALL[1], ['b', 99], ALL[3]]);
  const windows = await harness.read(
    'SELECT outcome, requests, documents, removed, rejected, pages IS NOT NULL, count(DISTINCT pages) OVER () FROM sync.windows',
  );
  const window = ['complete', 2, 4, 0, 0, true, 1];
  expect(windows).toEqual([window, window]);
});

test.each([
  ['is not stored any more', 'DELETE FROM daily_stress WHERE id = $$b$$'],
  ['of the days about the range is not stored any more', 'DELETE FROM daily_stress WHERE id = $$z$$'],
  ['is stored with another content', 'UPDATE daily_stress SET stress_high = 1, content_hash = $$other$$ WHERE id = $$b$$'],
  ['lies under another day', 'UPDATE daily_stress SET day = DATE $$2025-04-01$$, content_hash = $$other$$ WHERE id = $$b$$'],
])('a document that %s is stored again, though the answer is known', async (_, statement) => {
  const { harness } = await setUp();
  await harness.read(statement);
  expect(await refresh(harness)).toMatchObject({ state: 'complete', unchanged: 3 });
  expect(await stored(harness)).toEqual(ALL);
});

test('a document that is stored beside those of a known answer leaves as it does by any answer', async () => {
  const { service, harness } = await setUp();
  service.on(`${STRESS}/*`, ({ path }) => (path.endsWith('/b') ? { json: b } : undefined));
  service.on(STRESS, pagesOf([before, a, b, stress('x', '2025-03-05', 1)], [c]));
  await harness.backfill({ ...DAYS, to: '2025-03-09', refresh: true });
  expect(await stored(harness)).toEqual([...ALL, ['x', 1]]);
  service.on(STRESS, pagesOf([before, a, b], [c]));
  expect(await refresh(harness)).toMatchObject({ state: 'complete', removed: 1, unchanged: 4 });
  expect(await stored(harness)).toEqual(ALL);
});

test('what becomes of a document while its known answer is on its way is fixed from that answer', async () => {
  const { service, harness } = await setUp();
  const answer = pagesOf([before, a, b], [c]);
  service.on(STRESS, async asked => {
    // As by a change that was sent before and is committed now.
    await harness.read("UPDATE daily_stress SET stress_high = 1, content_hash = 'other' WHERE id = 'c'");
    return answer(asked);
  });
  await mark(harness, 'b');
  const report = await refresh(harness);
  expect(report).toMatchObject({ state: 'complete', requests: 2, documents: 4, unchanged: 3, failures: [] });
  expect(await stored(harness)).toEqual([ALL[0], ALL[1], ['b', 99], ALL[3]]);
  expect(await harness.read('SELECT outcome, documents, pages IS NOT NULL FROM sync.windows')).toEqual([
    ['complete', 4, true],
    ['complete', 4, true],
  ]);
});

test.each([
  ['changed', { documents: [stress('c', '2025-03-04', 301)] }],
  ['deleted', { documents: [], removed: ['c'] }],
])('a page of a known answer that was sent after its document was %s, and was as before again, is newer than that', async (_, change) => {
  const { service, harness } = await setUp();
  const { warehouse } = harness.app;
  const answer = pagesOf([before, a, b], [c]);
  service.on(STRESS, async asked => {
    if (!asked.query.has('next_token')) {
      // An event between the first page and the second.
      const requestedAt = warehouse.clock.lease();
      const { resource } = warehouse.mapping('daily_stress');
      await warehouse.storeDocuments({ userId: 'ada', resource, requestedAt, ...change }, { lane: 'live' });
      warehouse.clock.release(requestedAt);
    }
    return answer(asked);
  });
  expect(await refresh(harness)).toMatchObject({ state: 'complete', documents: 4 });
  expect(await stored(harness)).toEqual(ALL);
  expect(await harness.read('SELECT id FROM sync.tombstones')).toEqual([]);
});

test('a known document that another answer of the same commit has changed is to be stored from its own answer', async () => {
  const { harness } = await setUp();
  const { warehouse } = harness.app;
  const { resource } = warehouse.mapping('daily_stress');
  const store = (requestedAt: number, page: { documents: unknown[]; known?: KnownDocument[] }) =>
    warehouse.storeDocuments({ userId: 'ada', resource, requestedAt, ...page });
  const [[hash]] = (await harness.read("SELECT content_hash FROM daily_stress WHERE id = 'b'")) as [[string]];
  const [first, other] = [warehouse.clock.lease(), warehouse.clock.lease()];
  const [, known] = await Promise.all([
    store(other, { documents: [stress('b', '2025-03-03', 201)] }),
    store(first, { documents: [], known: [{ id: 'b', hash }] }),
  ]);
  expect(known).toMatchObject({ differing: 1, outdated: 0, unchanged: 0 });
});

test.each([
  ['a later page is another', pagesOf([before, a, b], [stress('c', '2025-03-04', 301)]), [ALL[0], ALL[1], ALL[2], ['c', 301]]],
  ['an earlier page is another', pagesOf([before, a, stress('b', '2025-03-03', 201)], [c]), [ALL[0], ALL[1], ['b', 201], ALL[3]]],
  ['one more page comes', pagesOf([before, a, b], [c], [stress('d', '2025-03-05', 400)]), [...ALL, ['d', 400]]],
])('pages that are known are read all the same where %s', async (_, script, rows) => {
  const { service, harness } = await setUp();
  service.on(STRESS, script);
  expect(await refresh(harness)).toMatchObject({ state: 'complete', failures: [] });
  expect(await stored(harness)).toEqual(rows);
  // Also the way back, over an answer that was known before the last one.
  service.on(STRESS, pagesOf([before, a, b], [c]));
  service.on(`${STRESS}/*`, ({ path }) => (path.endsWith('/a') ? { json: a } : undefined));
  expect(await refresh(harness)).toMatchObject({ state: 'complete', failures: [] });
  expect(await stored(harness)).toEqual(ALL);
});

test('a known answer shows that what another one left out is there', async () => {
  const resilience = (id: string, day: string) => ({ id, day, level: 'solid', contributors: { sleep_recovery: 80 } });
  const all = [resilience('a', '2025-03-02'), resilience('b', '2025-03-03')];
  const { service, harness } = await setUp();
  const path = '/v2/usercollection/daily_resilience';
  const read = () => harness.backfill({ ...DAYS, collections: ['daily_resilience'], refresh: true });
  service.on(path, pagesOf(all));
  await read();
  service.on(path, pagesOf(all.slice(0, 1)));
  expect(await read()).toMatchObject({ state: 'failed' });
  expect(await harness.read('SELECT kind, object_id FROM sync.suspicions')).toEqual([['missing', 'b']]);
  service.on(path, pagesOf(all));
  expect(await read()).toMatchObject({ state: 'complete', unchanged: 2 });
  expect(await harness.read('SELECT kind, object_id FROM sync.suspicions')).toEqual([]);
  expect(await harness.read('SELECT id FROM daily_resilience ORDER BY id')).toEqual([['a'], ['b']]);
});

test('a known page that is the first of an answer which breaks off is kept for nothing', async () => {
  const { service, harness } = await setUp();
  const answer = pagesOf([before, a, b], [c]);
  service.on(STRESS, asked => (asked.query.has('next_token') ? { status: 400, json: { detail: 'no' } } : answer(asked)));
  expect(await refresh(harness)).toMatchObject({ state: 'failed' });
  expect(await stored(harness)).toEqual(ALL);
  service.on(STRESS, answer);
  expect(await refresh(harness)).toMatchObject({ state: 'complete', unchanged: 4 });
});

test.each([
  ['a document could not be stored', pagesOf([a, { id: 'b', day: 'no day' }])],
  ['a document came twice', pagesOf([a], [a])],
  ['a page has no document', pagesOf([a], [])],
  ['the end of a page does not tell the next one', () => ({ text: JSON.stringify({ next_token: null, data: [a] }) })],
])('nothing is kept to know an answer by where %s', async (_, script) => {
  const { harness } = await setUp(script);
  expect(await stored(harness)).toEqual([['a', 100]]);
  expect(await harness.read('SELECT outcome, pages FROM sync.windows')).toEqual([['complete', null]]);
});

test('what an answer is known by tells nothing of it to who has not the key of the folder', async () => {
  const script = pagesOf([a, b]);
  const pages = async () => {
    const { harness } = await setUp(script);
    const [[name]] = (await harness.read('SELECT pages FROM sync.windows')) as [[string]];
    return name;
  };
  const [one, other] = [await pages(), await pages()];
  expect(one).toMatch(/^v1 \S{16} \S{16}$/);
  expect(other).toMatch(/^v1 \S{16} \S{16}$/);
  expect(
    one
      .split(' ')
      .slice(1)
      .filter(part => other.includes(part)),
  ).toEqual([]);
});

test('what was read by another mapping is read anew', async () => {
  const { service, harness } = await setUp();
  const [[pages]] = (await harness.read('SELECT pages FROM sync.windows')) as [[string]];
  expect(pages).toMatch(/^v1 \S{16} \S{16} \S{16}$/);
  await harness.read("UPDATE sync.windows SET pages = replace(pages, 'v1 ', 'v0 ')");
  const asked = service.asked.length;
  expect(await refresh(harness)).toMatchObject({ state: 'complete', unchanged: 4 });
  expect(service.asked.length - asked).toBe(2);
});
