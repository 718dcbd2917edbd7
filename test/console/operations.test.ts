import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createLog, recentLines } from '../../src/base/log.ts';
import { tellBehind, tellOperations } from '../../src/console/server/behind.ts';
import { Answered } from '../../src/console/server/columns.ts';
import { bytesText, lagOf } from '../../src/console/server/operations.ts';
import { openConsoleHere } from '../support/console-harness.ts';
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
    ['The service refuses the token (401).', 'A new sign-in by the person. What is missing is then read by itself.', 'invite'],
  ]);
  expect(told('parked', refused, false)[0]?.[2]).toBe(null);
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
