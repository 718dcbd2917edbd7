import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { App } from '../../src/app/app.ts';
import { serveMirror } from '../../src/app/mirror.ts';
import { type Answer, type FaultService, type Script, startFaultService } from '../support/fault-service.ts';
import { type Harness, openHarness } from '../support/harness.ts';
import { type Sandbox, startSandbox } from '../support/sandbox.ts';
import { findBroken } from '../support/table-hash.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { COLLECTIONS, findDifference, readEverything } from '../support/wire-reader.ts';

const folder = tempFolder();
const days = { from: '2025-03-04', to: '2025-03-08' };
const range = { from: '2025-03-02', to: '2025-03-09' };
/** What is asked for is long past: without a failure only what has no days is up to date. */
const isRead = ({ name, state }: { name: string; state: string }) => state === (name === 'ring_configuration' ? 'up_to_date' : 'not_asked');
const PATHS = [...Object.values(COLLECTIONS), '/v2/usercollection/heartrate'];

let sandbox: Sandbox;
/** What an undisturbed run of the first person stores. */
let undisturbed: Record<string, string>;
let folders = 0;

beforeAll(async () => {
  sandbox = await startSandbox({ count: 2, ...days, settings: { pageSize: 3, heartRatePageSize: 4000 } });
});

afterAll(() => sandbox.close());

/** A harness whose service is the sandbox behind faults, and the accounts of the first so many people in it. */
async function set(
  scripts: Record<string, Script> = {},
  {
    people = 1,
    service = sandbox,
    client = {},
    now = Date.now,
  }: { people?: number; service?: Sandbox; client?: object; now?: () => number } = {},
): Promise<{ harness: Harness; faults: FaultService; ada: string }> {
  const faults = await startFaultService({}, { upstream: service.url });
  onTestFinished(() => faults.close());
  const harness = await openHarness(join(folder, `f${++folders}`), faults.url, { client, now });
  await harness.add(service.people.slice(0, people));
  for (const [path, script] of Object.entries(scripts)) faults.on(path, script);
  return { harness, faults, ada: service.people[0]!.name };
}

const collectionsOf = (failures: readonly { collection: string }[]) => failures.map(({ collection }) => collection);
const tokensOf = (asked: FaultService['asked']) => [...new Set(asked.map(({ token }) => token))];

test('undisturbed: the measure of all others', async () => {
  const { harness } = await set();
  expect(await harness.backfill(range)).toMatchObject({ state: 'complete', failures: [] });
  undisturbed = await harness.hash();
  for (const name of [...Object.keys(COLLECTIONS), 'heart_rate']) expect(undisturbed[name], name).not.toMatch(/^0 /);
  expect(await findBroken(harness.read)).toEqual([]);
});

describe('faults that pass', () => {
  test('a storm of 429, its Retry-After in seconds, as a date, negative, unreadable or missing', async () => {
    // The date lies far enough ahead that a slow machine is not past it when it is read.
    const values = ['1', new Date(Date.now() + 20_000).toUTCString(), '2', '-7', '0', '1'];
    const { harness } = await set(
      Object.fromEntries(
        PATHS.map((path, i): [string, Script] => {
          const headers: Record<string, string> = i < values.length ? { 'retry-after': values[i]! } : { 'retry-after': '1' };
          return [path, (_, nth) => (nth === 1 ? { status: 429, headers, json: { detail: 'Too many' } } : undefined)];
        }),
      ),
    );
    const report = await harness.backfill(range);
    expect(report).toMatchObject({ state: 'complete', failures: [] });
    expect(report.waits).toBeGreaterThan(0);
    expect(await harness.hash()).toEqual(undisturbed);
  });

  test('a 429 for longer than may be waited in place: the job leaves, and comes back as often as it must', async () => {
    // Four times: more than a window has attempts.
    let refused = 0;
    const storm: Script = ({ query }) =>
      query.has('next_token') && refused++ < 4 ? { status: 429, headers: { 'retry-after': '1' } } : undefined;
    const { harness, faults } = await set({ '/v2/usercollection/sleep': storm }, { client: { maxWaitMs: 100 } });
    const report = await harness.backfill(range);
    expect(report).toMatchObject({ state: 'complete', failures: [] });
    expect(await harness.hash()).toEqual(undisturbed);
    const first = faults.asked.filter(({ path, query }) => path.endsWith('/sleep') && !query.has('next_token'));
    expect(first).toHaveLength(5);
  });

  test('a 500, a reset, cut and malformed answers, pages of HTML: each request meets one of them, and its repetition is good', async () => {
    const faults: Answer[] = [
      { status: 500, json: { detail: 'oh' } },
      { fault: 'reset' },
      { fault: 'truncate', json: { data: [{ id: 'never-stored', day: '2025-03-05' }], next_token: null } },
      { text: '{"data": [{"id": "never-stored"}, ' },
      { text: '<html><body>502 Bad Gateway</body></html>', status: 502 },
      { text: '<html><body>Sign in</body></html>' },
      { json: { items: [] } },
    ];
    const seen = new Set<string>();
    const script: Script = ({ path, rawQuery }) => {
      if (seen.has(path + rawQuery)) return undefined;
      seen.add(path + rawQuery);
      return faults[seen.size % faults.length];
    };
    const { harness } = await set(Object.fromEntries(PATHS.map(path => [path, script])));
    expect(await harness.backfill(range)).toMatchObject({ state: 'complete', failures: [] });
    expect(seen.size).toBeGreaterThan(2 * faults.length);
    expect(await harness.hash()).toEqual(undisturbed);
  });

  test('an empty page with a token is followed', async () => {
    const script: Script = async ({ query, token, path }) => {
      if (query.get('next_token') === 'go-on') query.delete('next_token');
      else if (!query.has('next_token')) return { json: { data: [], next_token: 'go-on' } };
      const answer = await fetch(`${sandbox.url}${path}?${query}`, { headers: { authorization: `Bearer ${token}` } });
      return { json: await answer.json() };
    };
    const { harness } = await set(Object.fromEntries(PATHS.map(path => [path, script])));
    expect(await harness.backfill(range)).toMatchObject({ state: 'complete', failures: [] });
    expect(await harness.hash()).toEqual(undisturbed);
  });
});

describe('faults that stay', () => {
  test('a page that fails after others fails its window, and what came before it is kept; the next run completes', async () => {
    const { harness, faults, ada } = await set({
      '/v2/usercollection/sleep': ({ query }) => (query.has('next_token') ? { status: 500 } : undefined),
    });
    const report = await harness.backfill(range);
    expect(report.state).toBe('failed');
    expect(report.failures).toEqual([
      expect.objectContaining({ user_id: ada, collection: 'sleep', ...range, kind: 'unavailable', message: expect.stringMatching(/500/) }),
    ]);
    expect(await harness.read('SELECT count(*) FROM sleep')).toEqual([[3]]);
    expect(await harness.read(`SELECT outcome, count(*) FROM sync.windows GROUP BY outcome ORDER BY 1`)).toEqual([
      ['complete', expect.any(Number)],
      ['failed', 1],
    ]);
    const rest = await harness.hash();
    for (const [table, hash] of Object.entries(undisturbed)) if (!table.startsWith('sleep')) expect(rest[table], table).toBe(hash);
    faults.on('/v2/usercollection/sleep', () => undefined);
    expect(await harness.backfill(range)).toMatchObject({ state: 'complete', failures: [], windows: { failed: 0 } });
    expect(await harness.hash()).toEqual(undisturbed);
  });

  test('pages that repeat a token end with a failure that says so; what they brought is kept', async () => {
    const page = await (
      await fetch(`${sandbox.url}/v2/usercollection/daily_stress?start_date=2025-03-02&end_date=2025-03-09`, {
        headers: { authorization: `Bearer ${sandbox.people[0]!.token}` },
      })
    ).json();
    const { harness, faults } = await set({ '/v2/usercollection/daily_stress': { json: { ...(page as object), next_token: 'again' } } });
    const report = await harness.backfill(range);
    expect(report.failures).toEqual([
      expect.objectContaining({ collection: 'daily_stress', kind: 'endless', message: expect.stringContaining('next_token') }),
    ]);
    expect(faults.asked.filter(({ path }) => path.endsWith('/daily_stress')).length).toBeLessThan(5);
    expect(await harness.read('SELECT count(*) FROM daily_stress')).toEqual([[3]]);
  });

  test('a 401 for one person parks the account alone: the others complete, and it is not asked again', async () => {
    const service = await startSandbox({ count: 2, ...days });
    onTestFinished(() => service.close());
    const { harness, faults, ada } = await set({}, { service, people: 2 });
    service.setState(service.people[0]!.token, 'expired');
    const report = await harness.backfill(range);
    expect(report.state).toBe('failed');
    expect([...new Set(report.failures.map(({ user_id }) => user_id))]).toEqual([ada]);
    expect(`${report.failures[0]!.message} ${report.failures[0]!.detail}`).toMatch(/expired|parked/);
    const status = await harness.commands.status({});
    expect(status.accounts.map(({ state, reason }) => [state, reason?.slice(0, 12) ?? null])).toEqual([
      ['parked', 'unauthorized'],
      ['active', null],
    ]);
    expect(status.accounts[1]!.collections.every(isRead)).toBe(true);

    const before = faults.asked.length;
    const again = await harness.backfill(range);
    expect(again).toMatchObject({ state: 'complete', failures: [], not_asked: [{ user_id: ada, collection: null, state: 'parked' }] });
    expect(tokensOf(faults.asked.slice(before))).not.toContain(service.people[0]!.token);
    // Nor does a nightly run, whose probe is for those parked by 403.
    await harness.nightly(1);
    expect(tokensOf(faults.asked.slice(before))).not.toContain(service.people[0]!.token);

    // A new token un-parks it.
    service.setState(service.people[0]!.token, 'active');
    await harness.add(service.people.slice(0, 1));
    expect(await harness.backfill(range)).toMatchObject({ state: 'complete', failures: [], not_asked: [] });
  });

  test('a 403 for a person parks it; each night asks with one request, and a 200 un-parks it', async () => {
    const service = await startSandbox({ count: 2, ...days });
    onTestFinished(() => service.close());
    const { harness, faults, ada } = await set({}, { service, people: 2 });
    const token = service.people[0]!.token;
    service.setState(token, 'lapsed');
    expect((await harness.backfill(range)).state).toBe('failed');
    expect((await harness.commands.listAccounts({}))[0]).toMatchObject({
      user_id: ada,
      state: 'parked',
      reason: expect.stringMatching(/^forbidden/),
    });

    let before = faults.asked.length;
    expect(await harness.nightly(2)).toMatchObject({ failures: [], not_asked: [{ user_id: ada }] });
    expect(faults.asked.slice(before).filter(asked => asked.token === token)).toHaveLength(1);

    service.setState(token, 'active');
    before = faults.asked.length;
    expect(await harness.nightly(2)).toMatchObject({ failures: [], not_asked: [] });
    expect(faults.asked.slice(before).filter(asked => asked.token === token).length).toBeGreaterThan(10);
    expect(await harness.backfill(range)).toMatchObject({ state: 'complete', failures: [] });
    expect((await harness.read(`SELECT count(*) FROM sleep WHERE user_id = '${ada}'`))[0]![0]).toBeGreaterThan(0);
  });

  test.each([
    ['daily_readiness', 401],
    ['heart_rate', 403],
  ])('a refusal of %s alone (%i), said twice, parks this collection and nothing else', async (name, status) => {
    const path = name === 'heart_rate' ? '/v2/usercollection/heartrate' : COLLECTIONS[name]!;
    let ahead = 0;
    const { harness, faults, ada } = await set({ [path]: { status, json: { detail: 'no scope' } } }, { now: () => Date.now() + ahead });
    expect([...new Set((await harness.backfill(range)).failures.map(({ collection, kind }) => [collection, kind].join()))]).toEqual([
      `${name},suspicious`,
    ]);
    ahead = 60_000;
    const report = await harness.backfill(range);
    expect([...new Set(collectionsOf(report.failures))]).toEqual([name]);
    const [account] = (await harness.commands.status({})).accounts;
    expect(account!.state).toBe('active');
    expect(account!.collections.filter(collection => !isRead(collection)).map(({ name, state }) => [name, state])).toEqual([
      [name, 'not_authorised'],
    ]);
    const before = faults.asked.length;
    expect(await harness.backfill({ ...range, refresh: true })).toMatchObject({
      state: 'complete',
      not_asked: [{ user_id: ada, collection: name, state: 'not_authorised' }],
    });
    expect(faults.asked.slice(before).map(asked => asked.path)).not.toContain(path);
    faults.on(path, () => undefined);
    await harness.commands.resumeAccounts({ names: [ada] });
    expect(await harness.backfill(range)).toMatchObject({ state: 'complete', failures: [], not_asked: [] });
    expect(await harness.hash()).toEqual(undisturbed);
  });

  test('a refusal of a token that is replaced in the same moment says nothing of the new one', async () => {
    const { harness, faults, ada } = await set();
    const token = sandbox.renew(sandbox.people[0]!.userId);
    faults.on('/v2/usercollection/session', async (_, nth) => {
      if (nth > 1) return undefined;
      await harness.add([{ name: ada, token }]);
      return { status: 401, json: { detail: 'expired' } };
    });
    expect(await harness.backfill(range)).toMatchObject({ state: 'complete', failures: [] });
    expect((await harness.backfill(range)).not_asked).toEqual([]);
  });

  test('a collection that answers 404 is not offered: no failure, a state of its own, and asked again', async () => {
    const { harness, faults } = await set({ '/v2/usercollection/daily_spo2': { status: 404, json: { detail: 'Not Found' } } });
    expect(await harness.backfill(range)).toMatchObject({ state: 'complete', failures: [], windows: { failed: 0 } });
    const [account] = (await harness.commands.status({})).accounts;
    expect(account!.collections.find(({ name }) => name === 'daily_spo2')).toMatchObject({ state: 'not_offered' });
    faults.on('/v2/usercollection/daily_spo2', () => undefined);
    await harness.nightly(1);
    expect(await harness.backfill(range)).toMatchObject({ state: 'complete' });
    expect(await harness.hash()).toEqual(undisturbed);
  });
});

describe('heart rate', () => {
  const plain = '/v2/usercollection/heartrate';
  const generated = '/v2/sandbox/usercollection/heartrate';

  test('a service that never had the plain path is read at the one of 4.3, which the summary and the status name', async () => {
    const { harness } = await set({ [plain]: { status: 404, json: { detail: 'Not Found' } } });
    expect(await harness.backfill(range)).toMatchObject({ state: 'complete', heart_rate_path: generated });
    expect((await harness.commands.status({})).heart_rate_path).toBe(generated);
    expect(await harness.hash()).toEqual(undisturbed);
  });

  test('one that has had it never falls back, in this process or a later one', async () => {
    const { harness, faults } = await set();
    expect(await harness.backfill(range)).toMatchObject({ heart_rate_path: plain });
    faults.on(plain, { status: 404, json: { detail: 'Not Found' } });
    await harness.backfill({ ...range, refresh: true });
    expect(await harness.hash()).toEqual(undisturbed);
    await harness.close();
    const later = await openHarness(harness.app.settings.data, faults.url);
    await later.backfill({ ...range, refresh: true });
    expect(await later.hash()).toEqual(undisturbed);
    expect(faults.asked.map(({ path }) => path)).not.toContain(generated);
  });

  test('an empty answer over stored rows is asked again and then suspicious: the rows stay', async () => {
    const { harness, faults } = await set();
    await harness.backfill(range);
    faults.on(plain, { json: { data: [], next_token: null } });
    const before = faults.asked.length;
    const again = { from: '2025-02-09', to: range.to, refresh: true, collections: ['heart_rate'] };
    const report = await harness.backfill(again);
    expect(report.failures).toEqual([expect.objectContaining({ collection: 'heart_rate', kind: 'suspicious' })]);
    // Of two windows one has rows: that one is asked twice.
    expect(faults.asked.length - before).toBe(3);
    expect(await harness.hash()).toEqual(undisturbed);
    const [account] = (await harness.commands.status({})).accounts;
    expect(account!.collections.find(({ name }) => name === 'heart_rate')).toMatchObject({ state: 'suspicious' });
    // One empty answer alone is forgiven.
    faults.on(plain, [{ json: { data: [] } }]);
    faults.on(plain, (_, nth) => (nth === 1 ? { json: { data: [] } } : undefined));
    expect(await harness.backfill(again)).toMatchObject({ state: 'complete' });
    expect(await harness.hash()).toEqual(undisturbed);
  });
});

test('what is not as promised: one bad document is put aside, its neighbours are kept, the rest comes back out of the mirror', async () => {
  type Doc = Record<string, unknown>;
  const odd: Record<string, (document: Doc) => Doc> = {
    daily_activity: document => (document.day === '2025-03-05' ? { ...document, day: 'Monday' } : document),
    daily_stress: document => ({ ...document, day_summary: 'euphoric', stress_low: 7, trend: { week: [1, null, { up: true }] } }),
    sleep: document => ({
      ...document,
      type: 'siesta',
      heart_rate: { interval: 300, items: [null, 51.5, null], timestamp: document.bedtime_start },
      hrv: null,
      readiness: { contributors: { novelty: 9 }, score: 70 },
    }),
  };
  const service = await startSandbox({
    count: 1,
    ...days,
    settings: { pageSize: 100 },
    wrap: source => ({
      ...source,
      list: async (userId, resource, query) => {
        const documents = await source.list(userId, resource, query);
        return documents.map(odd[resource.name] ?? (document => document));
      },
      heartRate: async (...query) =>
        (await source.heartRate(...query)).map(row =>
          Number(row.timestamp_unix) % 50 ? row : { ...row, source: 'swimming', confidence: 3 },
        ),
    }),
  });
  onTestFinished(() => service.close());
  const { harness, ada } = await set({}, { service });
  const report = await harness.backfill(range);
  expect(report).toMatchObject({ state: 'complete', failures: [], rejected: 1 });
  const there = await readEverything(service.url, service.people[0]!.token, range);
  expect(await harness.read(`SELECT user_id, collection, id, reason, document ->> 'day' FROM sync.rejected`)).toEqual([
    [ada, 'daily_activity', expect.any(String), 'day is missing or not a calendar day', 'Monday'],
  ]);
  const drift = await harness.read(`SELECT collection || ' ' || path || ' ' || kind FROM sync.drift ORDER BY 1`);
  expect(drift.flat()).toEqual([
    'daily_stress day_summary unknown value',
    'daily_stress stress_low unknown field',
    'daily_stress trend unknown field',
    'heart_rate confidence unknown field',
    'heart_rate source unknown value',
    'sleep readiness.contributors.novelty unknown field',
    'sleep type unknown value',
  ]);
  expect(await harness.read(`SELECT DISTINCT extra ->> 'stress_low' FROM daily_stress`)).toEqual([['7']]);
  expect(await harness.read('SELECT count(*), count(value) FROM sleep_heart_rate')).toEqual([
    [there.sleep!.length * 3, there.sleep!.length],
  ]);

  const here = await readMirror(harness.app, ada);
  for (const [name, documents] of Object.entries(there)) {
    // A row of the heart rate has no place for what is unknown.
    const expected = documents.map(({ confidence: _, ...document }) => document);
    expect(findDifference(expected, here[name]!), name).toBeUndefined();
  }
});

async function readMirror(app: App, name: string) {
  const mirror = await serveMirror(app, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => mirror.close());
  return readEverything(mirror.url, app.mirrorTokens.create(name), range);
}
