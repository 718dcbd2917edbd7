import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { tellCell, tellCoverage } from '../../src/console/server/coverage-words.ts';
import { openConsoleHere } from '../support/console-harness.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { rowsOf, withDuckDB } from '../support/warehouse.ts';
import { placeCoverage } from './coverage-warehouse.ts';
import { placePeople, sleepOf } from './people-by-hand.ts';

const data = join(tempFolder(), 'data');
beforeAll(() => placeCoverage(data));

const days = 'from=2025-01-01&to=2025-01-04';
const of = (body: { people: Record<string, unknown>[] }, ...names: string[]) => body.people.map(person => names.map(name => person[name]));

test('a letter tells of each day of a person what is known of it, and why', async () => {
  const served = await openConsoleHere(data);
  const reader = await served.enter({ role: 'reader' });
  const { body } = await reader.ask('GET coverage', `?${days}&collection=sleep&sort=name`);
  expect(of(body, 'id', 'letters', 'missing', 'failed')).toEqual([
    ['ada', 'sses', 0, 0],
    ['ben', 'eSfo', 3, 1],
    ['cleo', 'nnnn', 4, 0],
    ['dora', 'pppp', 4, 0],
  ]);
  expect(body.sentence).toBe(
    'All that the service gives was read of 1 of 4 people, from 2025-01-01 to 2025-01-04. 1 cannot be read until somebody signs in or resumes them; ben has days that failed and can be read again; 2 days lack something that comes every day: the service has none.',
  );
  expect(body.reasons).toEqual([
    { state: 'failed', reason: 'the request was refused (400)', cells: 1, people: 1 },
    { state: 'not_authorised', reason: 'the account is parked: sign in again: ringneck account login cleo', cells: 4, people: 1 },
    { state: 'pending', reason: '', cells: 4, people: 1 },
    { state: 'not_asked', reason: '', cells: 1, people: 1 },
    { state: 'empty', reason: '', cells: 2, people: 2 },
    { state: 'stored', reason: '', cells: 3, people: 1 },
    { state: 'stored', reason: 'failed when last read: the request was refused (400)', cells: 1, people: 1 },
  ]);
  // Of the other collections nobody has asked.
  expect(of((await reader.ask('GET coverage', `?${days}&sort=name`)).body, 'id', 'letters')[0]).toEqual(['ada', 'hhoh']);
});

test('of what was never asked for it is not said that the service has none', async () => {
  const served = await openConsoleHere(data);
  const reader = await served.enter({ role: 'reader' });
  const { body } = await reader.ask('GET coverage', `?${days}&sort=name`);
  expect(of(body, 'id', 'letters').slice(0, 2)).toEqual([
    ['ada', 'hhoh'],
    ['ben', 'oHfo'],
  ]);
  expect(body.sentence).toContain('; 2 days lack something that comes every day: the service has none.');
});

test('who misses most comes first, and a reason leaves its people alone', async () => {
  const served = await openConsoleHere(data);
  const reader = await served.enter({ role: 'reader' });
  const ask = async (query: string) => of((await reader.ask('GET coverage', `?${days}&collection=sleep${query}`)).body, 'id').flat();
  expect(await ask('')).toEqual(['ben', 'cleo', 'dora', 'ada']);
  expect(await ask('&state=empty')).toEqual(['ben', 'ada']);
  expect(await ask('&state=stored&reason=')).toEqual(['ada']);
  expect(await ask('&state=suspicious')).toEqual([]);
});

test('nights, wear and valid days are counted', async () => {
  const served = await openConsoleHere(data);
  const reader = await served.enter({ role: 'reader' });
  const ask = async (query: string) =>
    of((await reader.ask('GET coverage', `?${days}&sort=name${query}`)).body, 'id', 'nights', 'worn_share', 'valid_days').slice(0, 2);
  // 23 h and 15 h of 48 h.
  expect(await ask('')).toEqual([
    ['ada', 3, 136_800 / 172_800, 1],
    ['ben', 1, null, null],
  ]);
  expect(await ask('&hours=15')).toEqual([
    ['ada', 3, 136_800 / 172_800, 2],
    ['ben', 1, null, null],
  ]);
});

test('a night of which nobody says how long it was counts as one, as in the raster', async () => {
  const night = (day: string, total_sleep_duration?: number) =>
    sleepOf(day, `${day}T00:00:00Z`, `${day}T07:00:00Z`, { total_sleep_duration });
  const nap = sleepOf('2025-01-03', '2025-01-03T13:00:00Z', '2025-01-03T14:00:00Z', { type: 'late_nap', total_sleep_duration: 3000 });
  const served = await openConsoleHere(await placePeople({ ada: { sleep: [night('2025-01-01', 24_000), night('2025-01-02'), nap] } }));
  const { ask } = await served.enter({ role: 'reader' });
  const { body: raster } = await ask('GET people/ada/raster', `?${days}`);
  const { body: coverage } = await ask('GET coverage', `?${days}`);
  expect(raster.sleeps.is_main.filter(Boolean)).toHaveLength(2);
  expect(of(coverage, 'id', 'nights')).toEqual([['ada', 2]]);
});

test('a cell tells of each collection its state, reason, last reading and run', async () => {
  const served = await openConsoleHere(data);
  const reader = await served.enter({ role: 'reader' });
  const { body } = await reader.ask('GET coverage/cell', '?id=ben&day=2025-01-02');
  const at = body.rows.collection.indexOf('sleep');
  expect(Object.fromEntries(Object.entries<unknown[]>(body.rows).map(([name, values]) => [name, values[at]]))).toEqual({
    collection: 'sleep',
    state: 'stored',
    reason: 'failed when last read: the request was refused (400)',
    documents: 1,
    read_at: Date.UTC(2025, 0, 5, 6, 2) / 1000,
    run: 'r-1',
    run_kind: 'backfill',
    run_state: 'failed',
  });
  expect((await reader.ask('GET coverage/cell', '?id=nobody&day=2025-01-02')).status).toBe(404);
});

test('a person sees their own days alone', async () => {
  const served = await openConsoleHere(data);
  const ben = await served.enter({ role: 'person', person: 'ben' });
  const { body } = await ben.ask('GET coverage', `?${days}&collection=sleep`);
  expect(of(body, 'id', 'letters')).toEqual([['ben', 'eSfo']]);
  expect(body.sentence).toBe('Of your days from 2025-01-01 to 2025-01-04, 3 are not complete.');
  expect((await ben.ask('GET coverage/cell', '?id=ada&day=2025-01-02')).status).toBe(404);
});

test('a range that cannot be answered is refused with what to ask', async () => {
  const served = await openConsoleHere(data);
  const reader = await served.enter({ role: 'reader' });
  const refused = async (query: string) => {
    const { status, body } = await reader.ask('GET coverage', query);
    return [status, body.error.message, body.error.help];
  };
  expect(await refused('?from=2025-02-30')).toEqual([400, '2025-02-30 is no day.', 'A day is written as 2025-11-22.']);
  expect(await refused('?from=2025-01-02&to=2025-01-01')).toEqual([
    400,
    'The first day, 2025-01-02, is after the last one, 2025-01-01.',
    'Change one of them.',
  ]);
  expect(await refused('?from=2021-01-01&to=2025-01-01')).toEqual([
    413,
    '1462 days are more than are answered at once.',
    'Ask for 1100 days at most.',
  ]);
});

test('the sentence says who is complete and what keeps the others from it', () => {
  const person = (id: string, missing: number, failed = 0, lacking = 0, refused = 0) => ({
    id,
    account: 'active',
    reason: null,
    missing,
    failed,
    lacking,
    refused,
  });
  const range = { from: '2025-01-01', to: '2025-01-04', isOwn: false };
  expect(tellCoverage([], range)).toBe('Nobody is here yet.');
  expect(tellCoverage([person('ada', 0), person('ben', 0)], range)).toBe(
    'All that the service gives of all 2 people was read, from 2025-01-01 to 2025-01-04.',
  );
  const failed = ['a', 'b', 'c', 'd'].map(id => person(id, 2, 1));
  expect(tellCoverage(failed, range)).toBe(
    'All that the service gives was read of 0 of 4 people, from 2025-01-01 to 2025-01-04. 4 people have days that failed and can be read again.',
  );
  expect(tellCoverage([person('ada', 0, 0, 1)], range)).toBe(
    'All that the service gives of 1 person was read, from 2025-01-01 to 2025-01-04. 1 day lacks something that comes every day: the service has none.',
  );
  expect(tellCoverage([person('ada', 1)], { ...range, isOwn: true })).toBe(
    'Of your days from 2025-01-01 to 2025-01-04, 1 is not complete.',
  );
  const withdrawn = { ...person('cleo', 4), account: 'paused', reason: 'withdrawn by the person; its rows stay until: x' };
  expect(tellCoverage([person('ada', 0), withdrawn, { ...person('ben', 4), account: 'paused' }], range)).toBe(
    'All that the service gives was read of 1 of 3 people, from 2025-01-01 to 2025-01-04. 1 cannot be read until somebody signs in or resumes them; 1 has withdrawn and is not read.',
  );
  expect(tellCoverage([person('ada', 0, 0, 0, 4), person('ben', 0)], range)).toBe(
    'All that the service gives of all 2 people was read, from 2025-01-01 to 2025-01-04. Of ada some collections are not authorised.',
  );
  expect(tellCoverage([person('ada', 0, 0, 0, 4)], { ...range, isOwn: true })).toBe(
    'Of your days from 2025-01-01 to 2025-01-04 nothing else is missing. Some collections are not authorised.',
  );
  expect(tellCell('ada', ['stored', 'empty', 'stored'])).toBe('Of 3 collections of ada: 2 stored, 1 empty at the service.');
});

/** eve has not authorised her heart rate on the first day, nor her tags on the second. */
const EVE = [
  "INSERT INTO sync.accounts (user_id, state, since) VALUES ('eve', 'active', '2025-01-01')",
  ...['01', '02'].flatMap((day, sk) => [
    ...['daily_sleep', 'daily_readiness', 'daily_activity', 'sleep'].map(
      table =>
        `INSERT INTO ${table} (user_id, id, day, ${table === 'sleep' ? 'type, bedtime_start, bedtime_end, ' : ''}sk)
         VALUES ('eve', '${table}-${day}', '2025-01-${day}', ${table === 'sleep' ? "'long_sleep', '2025-01-01', '2025-01-01', " : ''}${90 + sk})`,
    ),
    `INSERT INTO sync.windows (run_id, user_id, collection, start_at, end_at, requested_at, read_at, committed_at, outcome, reason, rows_by_day)
     SELECT 'r-1', 'eve', collection, '2025-01-${day}', '2025-01-${day}'::DATE + 1, '2025-01-05', '2025-01-05',
       if(collection = '${day === '01' ? 'heart_rate' : 'enhanced_tag'}', TIMESTAMP '2025-01-06', TIMESTAMP '2025-01-05'),
       if(collection = '${day === '01' ? 'heart_rate' : 'enhanced_tag'}', 'not_authorised', 'complete'), NULL,
       if(collection = 'heart_rate' AND '${day}' = '02', '[300]', NULL)
     FROM sync.collections WHERE dated`,
  ]),
];

test('what comes every day and is not authorised makes a day half; another collection does not, and both are said', async () => {
  const place = join(tempFolder(), 'eve');
  await placeCoverage(place, EVE);
  const served = await openConsoleHere(place);
  const eve = await served.enter({ role: 'person', person: 'eve' });
  const two = 'from=2025-01-01&to=2025-01-02';
  const { body } = await eve.ask('GET coverage', `?${two}`);
  expect(of(body, 'id', 'letters', 'missing')).toEqual([['eve', 'hs', 0]]);
  expect(body.sentence).toBe('Of your days from 2025-01-01 to 2025-01-02 nothing else is missing. Some collections are not authorised.');
  expect((await eve.ask('GET coverage/cell', '?id=eve&day=2025-01-02')).body.sentence).toContain('1 not authorised');
  expect(of((await eve.ask('GET coverage', `?${two}&collection=heart_rate`)).body, 'letters')).toEqual([['ns']]);
});

test('a day of which the service offers nothing is not called empty, one of which it has nothing is', async () => {
  const place = join(tempFolder(), 'unoffered');
  const window = (collection: string, outcome: string) =>
    `INSERT INTO sync.windows (run_id, user_id, collection, start_at, end_at, requested_at, read_at, committed_at, outcome, reason)
     VALUES ('r-1', 'fay', '${collection}', '2025-01-01', '2025-01-03', '2025-01-05', '2025-01-05', '2025-01-05', '${outcome}', NULL)`;
  await placeCoverage(place, [
    "INSERT INTO sync.accounts (user_id, state, since) VALUES ('fay', 'active', '2025-01-01')",
    window('vo2_max', 'not_offered'),
    window('workout', 'complete'),
  ]);
  const reader = await (await openConsoleHere(place)).enter({ role: 'person', person: 'fay' });
  const letters = async (collection: string) =>
    of((await reader.ask('GET coverage', `?from=2025-01-01&to=2025-01-02&collection=${collection}`)).body, 'letters', 'missing');
  expect(await letters('vo2_max')).toEqual([['uu', 0]]);
  expect(await letters('workout')).toEqual([['ee', 0]]);
});

test('what is refused for one reason is one line, by whichever paths it was asked for', async () => {
  const refusals = join(tempFolder(), 'refusals');
  const refused = (collection: string) =>
    `('r-1', 'cleo', '${collection}', '2025-01-01', '2025-01-05', '2025-01-05 06:03:00', 'not_authorised', 'GET /v2/usercollection/${collection}: answered 403')`;
  await placeCoverage(refusals, [
    `INSERT INTO sync.windows (run_id, user_id, collection, start_at, end_at, committed_at, outcome, reason) VALUES ${['workout', 'session'].map(refused).join(', ')}`,
    "UPDATE sync.accounts SET state = 'active', reason = NULL WHERE user_id = 'cleo'",
  ]);
  const reader = await (await openConsoleHere(refusals)).enter({ role: 'reader' });
  const { body } = await reader.ask('GET coverage', `?${days}`);
  const line = { state: 'not_authorised', reason: 'answered 403', cells: 8, people: 1 };
  expect(body.reasons.filter(({ state }: { state: string }) => state === line.state)).toEqual([line]);
  expect(of((await reader.ask('GET coverage', `?${days}&state=not_authorised&reason=answered+403`)).body, 'id')).toEqual([['cleo']]);
});

test('the queries of reasons and of compliance give what is shown', async () => {
  const served = await openConsoleHere(data);
  const { body } = await (await served.enter({ role: 'reader' })).ask('GET coverage', `?${days}&collection=sleep&hours=15`);
  const asked = (sql: string) =>
    withDuckDB(join(data, 'snapshot.duckdb'), connection => rowsOf(connection, sql), { access_mode: 'READ_ONLY' });
  const cells = (rows: readonly unknown[]) => rows.reduce<number>((sum, row) => sum + Number((row as { cells: number }).cells), 0);
  expect(cells(await asked(body.sql.reasons))).toBe(cells(body.reasons));
  expect(await asked(body.sql.compliance)).toMatchObject([
    { id: 'ada', nights: 3, valid_days: 2 },
    { id: 'ben', nights: 1, valid_days: 0 },
  ]);
});
