import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { AppCommands } from '../../src/app/commands.ts';
import { createLog, recentLines } from '../../src/base/log.ts';
import { tellBehind, tellOperations } from '../../src/console/server/behind.ts';
import { Answered } from '../../src/console/server/columns.ts';
import { bytesText, lagOf } from '../../src/console/server/operations.ts';
import type { Brief } from '../../src/console/server/people-judged.ts';
import { tellNeed, tellState } from '../../src/console/server/people-words.ts';
import { hasRedis, startRedis } from '../queue/redis-server.ts';
import { openConsoleHere } from '../support/console-harness.ts';
import { openHarness } from '../support/harness.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { rowsOf, withDuckDB } from '../support/warehouse.ts';
import { placeCoverage } from './coverage-warehouse.ts';

const folder = tempFolder();

function account(state: string, reason: string | null, unread = 0, collection: string | null = null) {
  const sleep = {
    name: 'sleep',
    state: unread ? 'failed' : 'up_to_date',
    reason: collection,
    newest_day: null,
    last_success: null,
    lag: null,
    failures: 0,
    unread_days: unread,
  };
  return {
    user_id: 'ada',
    service_user_id: null,
    state,
    reason,
    since: '2025-06-01T00:00:00.000000Z',
    collections: [sleep],
    sign_in: null,
  };
}

test('of who is behind it is said what happened, what helps, and the one thing to press', () => {
  const told = (state: string, reason: string | null, canInvite = true) =>
    tellBehind([account(state, reason)], canInvite).map(({ cause, helps, action }) => [cause, helps, action?.name ?? null]);
  expect(told('active', null)).toEqual([]);
  expect(told('paused', 'paused by command')).toEqual([['Paused by hand.', 'Resume it to read on.', 'resume']]);
  expect(told('paused', 'withdrawn by the person; its rows stay until: x')).toEqual([
    ['The person has withdrawn.', 'Nothing: they are read again only after another sign-in of theirs.', null],
  ]);
  const refused = 'unauthorized: GET /v2/usercollection/session: answered 401';
  expect(told('parked', refused)).toEqual([
    ['The service refuses the token (401).', 'What is missing is read by itself after a new sign-in by the person.', 'invite'],
  ]);
  const read = 'What is missing is read by itself after a new';
  expect(told('parked', refused, false)[0]?.slice(1)).toEqual([`${read} sign-in by the person: ringneck account login ada`, null]);
  // Where no client is set nobody can sign in.
  const [first] = tellBehind([account('parked', refused)], false, { signIn: null });
  expect(first?.helps).toBe(`${read} token of the person: ringneck account add ada`);
  expect(told('parked', 'forbidden: GET /v2/usercollection/session: answered 403')).toEqual([
    [
      'The service refuses: the membership has ended, or a permission is missing (403).',
      'Once the person has renewed it there, try again.',
      'resume',
    ],
  ]);
  expect(told('parked', 'sign in again: ringneck account login ada', false)).toEqual([
    ['The service has ended the sign-in.', 'A new sign-in by the person: ringneck account login ada', null],
  ]);
  const failing = account('active', null, 4, 'the request was refused (400)');
  // Since when it is active says nothing of that.
  expect(tellBehind([failing], true)[0]?.since).toBe(null);
  const collections = failing.collections.map(one => ({ ...one, failures: 2, last_success: '2025-06-03T00:00:00.000000Z' }));
  expect(tellBehind([{ ...failing, collections }], true)).toEqual([
    {
      id: 'ada',
      since: Date.UTC(2025, 5, 3) / 1000,
      state: 'failed',
      cause: 'Up to 4 days of sleep are unread: the request was refused (400)',
      helps: 'Read what is missing.',
      action: { name: 'repair', label: 'Repair…', users: ['ada'], collections: ['sleep'] },
    },
  ]);
});

test.each([
  ['parked', 'unauthorized: GET /v2/usercollection/session: answered 401', 'The service refuses the token (401).'],
  ['parked', 'sign in again: ringneck account login ada', 'The service has ended the sign-in.'],
  ['parked', 'the token is that of another person', 'The new token is that of another person.'],
  ['parked', 'the token is of the same person as the account ben', 'The person is read already, as ben.'],
  [
    'parked',
    'unchecked: nobody knows yet whether the new token is of the same person',
    'It is not known whether the new token is of the same person.',
  ],
  ['parked', 'the moon is full', 'the moon is full.'],
] as const)('Overview says why somebody is not read in the words of Operations: %s, %s', (state, reason, cause) => {
  const brief: Brief = { ...{ id: 'ada', state, reason, night: null }, isLastNight: false, today: '2025-06-02', unusual: [] };
  expect(tellNeed(brief)).toBe(`${cause} Nothing new comes.`);
  const [first] = tellBehind([account(state, reason)], true);
  expect(first?.cause.replace(/\.?$/, '.')).toBe(cause);
  // As status tells it, with what is to be done.
  expect(tellBehind([account(state, `${reason}: ringneck account add ada`)], true)[0]?.cause).toContain(cause.slice(0, -1));
  expect(tellState(brief, { hasUsual: true })).toBe(`parked: ${cause.charAt(0).toLowerCase()}${cause.slice(1, -1)}`);
});

test('who has withdrawn is called so', () => {
  const brief: Brief = {
    ...{ id: 'ada', state: 'paused', night: null },
    isLastNight: false,
    today: '2025-06-02',
    unusual: [],
    reason: null,
  };
  expect(tellState(brief, { hasUsual: true })).toBe('paused');
  expect(tellState({ ...brief, reason: 'withdrawn by the person; its rows stay until: x' }, { hasUsual: true })).toBe('withdrawn');
});

test('the sentence says first how many need a hand, then what keeps everybody', () => {
  const well = { queueProblem: null, silence: null, hasOwner: true };
  const behind = tellBehind([account('paused', null)], true);
  expect(tellOperations([], well)).toBe('Nobody needs a hand.');
  const withdrawn = tellBehind([account('paused', 'withdrawn by the person; its rows stay until: x')], true);
  expect(tellOperations(withdrawn, well)).toBe('Nobody needs a hand.');
  expect(tellOperations([...behind, ...withdrawn], well)).toBe('1 person needs a hand.');
  expect(tellOperations([...behind, ...behind], { ...well, silence: 'ECONNREFUSED', queueProblem: 'Redis is away' })).toBe(
    '2 people need a hand. The service cannot be reached: ECONNREFUSED. The queue cannot be used: Redis is away.',
  );
  expect(tellOperations([], { ...well, silence: 'nobody listens: is it running?' })).toBe(
    'Nobody needs a hand. The service cannot be reached: nobody listens: is it running?',
  );
});

test('a histogram is linear up to the 99th of 100, and leaves nothing else out', () => {
  const lags = [...Array.from({ length: 99 }, (_, at) => (at + 1) / 100), 50];
  const lag = lagOf(new Answered({ lag: lags, received: lags.map(() => 7) }));
  expect(lag).toMatchObject({ count: 100, since: 7, p50: 0.5, p95: 0.95, p99: 0.99 });
  expect([lag?.bars.length, lag?.bars.reduce((sum, bar) => sum + bar, 0)]).toEqual([24, 99]);
  expect(lagOf(new Answered({ lag: [0, 0], received: [7, 8] }))?.bars[0]).toBe(2);
  expect(lagOf(new Answered({ lag: [], received: [] }))).toBe(null);
});

test('sizes are told with two digits at least', () => {
  expect([0, 999, 1_500, 28_000_000, 68_400_000_000].map(bytesText)).toEqual(['0 B', '999 B', '1.5 kB', '28 MB', '68 GB']);
});

test('runs and events are shown as the ledger has them, and filtered', async () => {
  const data = join(folder, 'ledger');
  await placeCoverage(data);
  await withDuckDB(join(data, 'snapshot.duckdb'), connection =>
    connection.run(`INSERT INTO sync.events (received_at, event_type, data_type, user_id, outcome, committed_at, settled_at) VALUES
      ('2025-01-05 07:00:00', 'create', 'sleep', 'ada', 'stored', '2025-01-05 07:00:01', '2025-01-05 07:00:00.25'),
      ('2025-01-05 08:00:00', 'delete', 'sleep', 'ben', 'removed', '2025-01-05 08:00:01', '2025-01-05 08:00:01')`),
  );
  const served = await openConsoleHere(data);
  const reader = await served.enter({ role: 'reader' });
  expect((await reader.ask('GET runs')).body.runs).toEqual([
    {
      ...{ id: 'r-2', kind: 'nightly', state: 'running', started: Date.UTC(2025, 0, 6, 3, 30) / 1000, ended: null, from: null, to: null },
      ...{ planned: 1, done: 0, failed: 0, requests: 0, documents: 0, is_active: false, waits_for: null },
    },
    {
      ...{
        id: 'r-1',
        kind: 'backfill',
        state: 'failed',
        started: Date.UTC(2025, 0, 5, 6) / 1000,
        ended: Date.UTC(2025, 0, 5, 6, 10) / 1000,
      },
      ...{ from: null, to: null, planned: 3, done: 2, failed: 1, requests: 0, documents: 0, is_active: false, waits_for: null },
    },
  ]);
  const events = async (query: string) =>
    (await reader.ask('GET events', query)).body.events.map((event: Record<string, unknown>) => [event.id, event.outcome, event.lag]);
  expect(await events('')).toEqual([
    ['ben', 'removed', 1],
    ['ada', 'stored', 0.25],
  ]);
  expect(await events('?user=ada')).toEqual([['ada', 'stored', 0.25]]);
  expect(await events('?outcome=removed')).toEqual([['ben', 'removed', 1]]);
  expect(await events(`?before=${Date.UTC(2025, 0, 5, 8) / 1000}`)).toEqual([['ada', 'stored', 0.25]]);
  const { lag } = (await reader.ask('GET operations')).body;
  expect(lag).toMatchObject({ count: 2, p50: 0.25, p95: 1 });
  const asked = await withDuckDB(join(data, 'snapshot.duckdb'), connection => rowsOf(connection, lag.sql), { access_mode: 'READ_ONLY' });
  expect(asked.map(row => (row as { lag: number }).lag)).toEqual([0.25, 1]);
  const ada = await served.enter({ role: 'person', person: 'ada' });
  for (const name of ['GET operations', 'GET runs', 'GET events', 'GET log']) expect((await ada.ask(name)).status).toBe(403);
});

test('a run is not pushed out of the list by sweeps that went well', async () => {
  const data = join(folder, 'sweeps');
  await placeCoverage(data);
  await withDuckDB(join(data, 'snapshot.duckdb'), connection =>
    connection.run(`INSERT INTO sync.runs (run_id, kind, started_at, ended_at, state, request)
      SELECT 's-' || n, 'sweep', TIMESTAMP '2025-01-07' + INTERVAL (n) MINUTE, NULL, if(n = 20, 'failed', 'complete'), '{}' FROM range(100) t(n)`),
  );
  const { runs } = (await (await (await openConsoleHere(data)).enter()).ask('GET runs')).body;
  expect(runs.map(({ id }: { id: string }) => id)).toEqual(['s-99', 's-98', 's-97', 's-20', 'r-2', 'r-1']);
});

test('who works on a run now finds it first, however many have begun and failed since', async () => {
  const data = join(folder, 'long');
  await placeCoverage(data);
  await withDuckDB(join(data, 'snapshot.duckdb'), connection =>
    connection.run(`INSERT INTO sync.runs (run_id, kind, started_at, ended_at, state, request)
      SELECT 's-' || n, 'sweep', TIMESTAMP '2025-01-07' + INTERVAL (n) MINUTE, NULL, 'failed', '{}' FROM range(20) t(n)`),
  );
  const progress = { windows: { planned: 3, done: 1, failed: 0 }, requests: 1, documents: 0 };
  const long = { id: 'r-1', kind: 'backfill', from: '2025-01-01', to: '2025-01-04', started: 0, progress };
  const commands = { activeRuns: async () => [long], isSnapshotOfAnother: async () => false } as unknown as AppCommands;
  const { runs } = (await (await (await openConsoleHere(data, { commands })).enter()).ask('GET runs')).body;
  expect(runs.slice(0, 2)).toMatchObject([
    { id: 'r-1', is_active: true, done: 1, planned: 3 },
    { id: 's-19', is_active: false },
  ]);
});

test('that the disk is full is said before all else, and in the bar', async () => {
  const data = join(folder, 'full');
  const { commands } = await openHarness(data, 'http://127.0.0.1:9');
  const said = 'The disk of /data is almost full: 277 MB free, and 512 MB are kept in reserve. Make room.';
  let full: string | null = null;
  const filling: AppCommands = { ...commands, readHindrances: async () => ({ ...(await commands.readHindrances({})), disk_full: full }) };
  const reader = await (await openConsoleHere(data, { commands: filling })).enter({ role: 'reader' });
  const look = async () => [(await reader.ask('GET session')).body.freshness, (await reader.ask('GET operations')).body.sentence];
  expect(await look()).toEqual(['followed', 'Nobody needs a hand.']);
  full = said;
  expect(await look()).toEqual(['full', `${said} Nobody needs a hand.`]);
});

test.skipIf(!hasRedis)('while the queue gives no answer it is told who is behind all the same', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.remove());
  const data = join(folder, 'queue-away');
  const harness = await openHarness(data, 'http://127.0.0.1:9', { settings: { queueUrl: redis.url } });
  await harness.app.pipeline();
  await harness.keep([{ name: 'ada', token: 'a' }]);
  await harness.commands.pauseAccount({ name: 'ada' });
  const served = await openConsoleHere(data, { commands: harness.commands });
  const reader = await served.enter({ role: 'reader' });
  expect((await reader.ask('GET operations')).body).toMatchObject({ sentence: '1 person needs a hand.', queue_problem: null });
  await redis.kill();
  expect(await reader.ask('GET operations')).toMatchObject({
    status: 200,
    body: {
      sentence: '1 person needs a hand. The queue cannot be used: the queue gives no answer; try again.',
      behind: [{ id: 'ada', cause: 'Paused by hand.' }],
      queue: null,
      queue_problem: 'the queue gives no answer; try again',
    },
  });
  await redis.start();
  await expect.poll(async () => (await reader.ask('GET operations')).body.queue_problem).toBe(null);
});

test('the log’s last lines are shown without secrets', async () => {
  const log = createLog({ level: 'info', pretty: false, stream: { write: () => undefined } });
  log.warn({ account: 'ada', token: 'very-secret' }, 'a line of this test');
  const served = await openConsoleHere(join(folder, 'log'));
  const reader = await served.enter({ role: 'reader' });
  const [line] = (await reader.ask('GET log')).body.lines;
  expect(line).toEqual({ at: expect.any(Number), level: 'warn', message: 'a line of this test', rest: 'account: ada, token: [redacted]' });
  for (let count = 0; count < 600; count++) log.info('another');
  expect(recentLines()).toHaveLength(500);
});

test('sessions are listed, and ended one by one', async () => {
  const served = await openConsoleHere(join(folder, 'sessions'));
  const [operator, reader] = [await served.enter(), await served.enter({ role: 'reader' })];
  const { sessions } = (await operator.ask('GET sessions')).body;
  expect(sessions.map((one: Record<string, unknown>) => [one.role, one.is_this])).toEqual([
    ['operator', true],
    ['reader', false],
  ]);
  expect((await operator.ask(`DELETE sessions/${sessions[1].id}`)).status).toBe(200);
  expect((await reader.ask('GET session')).status).toBe(401);
  expect((await operator.ask(`DELETE sessions/${sessions[1].id}`)).status).toBe(404);
});
