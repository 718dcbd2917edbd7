import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { coverageLines } from '../../src/cli/terminal/calendar.ts';
import type { CoverageRun, CoverageState } from '../../src/ledger/coverage.ts';
import type { CoverageReport } from '../../src/sync/coverage.ts';
import { type Answer, type Asked, type FaultService, startFaultService } from '../support/fault-service.ts';
import { type Harness, openHarness } from '../support/harness.ts';
import { MAIN } from '../support/ringneck.ts';
import { runHere } from '../support/run-here.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { STRESS } from '../support/wire.ts';
import { COLLECTIONS, HEART_RATE, shift } from '../support/wire-reader.ts';

const folder = tempFolder();

function run(place: string, days: [from: string, to: string] | null, state: CoverageState, reason: string | null = null): CoverageRun {
  const [user_id, collection] = place.split(' ') as [string, string];
  return { user_id, collection, from: days?.[0] ?? null, to: days?.[1] ?? null, state, reason };
}

const LONG = 'GET /v2/usercollection/heartrate: answered 502, for a reason that is longer than what a line of eighty columns holds';
const REPORT: CoverageReport = {
  from: '2025-01-20',
  to: '2025-04-02',
  over: '2025-04-01',
  runs: [
    run('ada daily_stress', ['2025-01-20', '2025-02-10'], 'stored'),
    run('ada daily_stress', ['2025-02-11', '2025-02-12'], 'empty'),
    run('ada daily_stress', ['2025-02-13', '2025-03-31'], 'stored'),
    run('ada daily_stress', ['2025-04-01', '2025-04-02'], 'not_asked'),
    run('ada ring_configuration', null, 'stored'),
    run('ada heart_rate', ['2025-01-20', '2025-01-26'], 'stored'),
    run('ada heart_rate', ['2025-01-27', '2025-02-02'], 'failed', LONG),
    run('ada heart_rate', ['2025-02-03', '2025-03-31'], 'stored', 'suspicious when last read'),
    run('ada heart_rate', ['2025-04-01', '2025-04-01'], 'pending'),
    run('ada heart_rate', ['2025-04-02', '2025-04-02'], 'suspicious', 'two empty answers'),
    run('ben daily_stress', ['2025-01-20', '2025-04-02'], 'not_authorised', 'no scope'),
    run('ben ring_configuration', null, 'not_offered', 'answered 404'),
    run('ben sleep', ['2025-01-20', '2025-04-02'], 'not_authorised', 'no scope'),
  ],
};

test('the calendar: blocks of sixty days, a character for each, a legend, a summary, and the reasons of what is not well', () => {
  expect(coverageLines(REPORT, false).join('\n')).toBe(
    `
ada
                   2025-01-20  2025-02                     2025-03
daily_stress       ######################..####################################
ring_configuration #
heart_rate         #######FFFFFFF##############################################

                   2025-03-21 2025-04
daily_stress       ###########__
heart_rate         ###########~?

ben
                   2025-01-20  2025-02                     2025-03
daily_stress       xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
ring_configuration -
sleep              xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx

                   2025-03-21 2025-04
daily_stress       xxxxxxxxxxxxx
sleep              xxxxxxxxxxxxx

# stored  . empty at the service  - not offered  x not authorised
F failed  ? suspicious  ~ pending  _ not asked

2025-01-20 to 2025-04-02: 134 stored, 2 empty at the service, 1 not offered, 146
  not authorised, 7 failed, 1 suspicious, 1 pending, 2 not asked
What is missing is read by: ringneck coverage --repair

not asked
  ada 2025-04-01 to 2025-04-02: daily_stress

pending
  ada 2025-04-01: heart_rate

suspicious: two empty answers
  ada 2025-04-02: heart_rate

failed: GET /v2/usercollection/heartrate: answered 502, for a reason that is
  longer than what a line of eighty columns holds
  ada 2025-01-27 to 2025-02-02: heart_rate

not authorised: no scope
  ben 2025-01-20 to 2025-04-02: daily_stress, sleep

stored: suspicious when last read
  ada 2025-02-03 to 2025-03-31: heart_rate`.slice(1),
  );
});

test('colours add nothing but colours, and no line is wider than 80 columns whatever the names', () => {
  const coloured = coverageLines(REPORT, true).join('\n');
  const escapes = new RegExp(`${String.fromCharCode(27)}\\[\\d+m`, 'g');
  expect(coloured).toMatch(escapes);
  expect(coloured.replace(escapes, '')).toBe(coverageLines(REPORT, false).join('\n'));
  const long = {
    ...REPORT,
    runs: [run(`${'n'.repeat(64)} daily_cardiovascular_age`, ['2025-01-20', '2025-04-02'], 'failed', 'x'.repeat(200))],
  };
  const lines = coverageLines(long, false);
  expect(Math.max(...lines.map(line => line.length))).toBeLessThanOrEqual(80);
  expect(lines.join('').replaceAll(/\s/g, '')).toContain('x'.repeat(200));
});

const DAYS = ['2025-03-01', '2025-03-02', '2025-03-03', '2025-03-04', '2025-03-05', '2025-03-06', '2025-03-07', '2025-03-08'];
const DATED = Object.entries(COLLECTIONS).filter(([name]) => name !== 'ring_configuration');

/** A stress document a day, a heart-rate row an hour, a ring, and nothing else; `broken` answers instead where it says so. */
async function startService(broken: (asked: Asked, collection: string) => Answer | undefined): Promise<FaultService> {
  const service = await startFaultService();
  onTestFinished(() => service.close());
  const page = (data: unknown[]) => ({ json: { data, next_token: null } });
  for (const [name, path] of DATED) {
    service.on(path, asked => {
      const inRange = (day: string) => day >= asked.query.get('start_date')! && day <= asked.query.get('end_date')!;
      const days = name === 'daily_stress' ? DAYS.filter(inRange) : [];
      return broken(asked, name) ?? page(days.map(day => ({ ...STRESS, id: `t-${day}`, day })));
    });
  }
  service.on(
    COLLECTIONS.ring_configuration!,
    asked => broken(asked, 'ring_configuration') ?? page([{ id: 'ring', hardware_type: 'gen4' }]),
  );
  service.on(HEART_RATE[0]!, asked => {
    const [from, to] = ['start', 'end'].map(end => Date.parse(asked.query.get(`${end}_datetime`)!));
    const data: unknown[] = [];
    for (let ms = from!; ms < to!; ms += 3_600_000) {
      data.push({ timestamp: new Date(ms).toISOString().replace('Z', '+00:00'), timestamp_unix: ms, bpm: 60, source: 'awake' });
    }
    return broken(asked, 'heart_rate') ?? page(data);
  });
  return service;
}

const rangesAsked = (service: FaultService, since: number, path: string) =>
  service.asked
    .slice(since)
    .filter(asked => asked.path === path)
    .map(({ query }) => [query.get('start_date') ?? query.get('start_datetime'), query.get('end_date') ?? query.get('end_datetime')])
    .sort();

const repair = (harness: Harness, selection = {}) =>
  harness.commands.repair(selection, { emit: () => {}, signal: new AbortController().signal });

test('--repair asks for exactly what is missing, and then nothing is', async () => {
  let failing = true;
  const now = Date.parse('2025-03-20T12:00:00Z');
  const service = await startService(({ query }, collection) => {
    const from = query.get('start_date') ?? query.get('start_datetime')!;
    if (!failing) return undefined;
    if (collection === 'heart_rate') return from.startsWith('2025-03-05') ? { status: 500 } : undefined;
    return ['daily_stress', 'ring_configuration'].includes(collection) ? { status: 500 } : undefined;
  });
  const harness = await openHarness(join(folder, 'repair'), service.url, { now: () => now });
  await harness.add([{ name: 'ada', token: 'token' }]);
  const collections = ['daily_stress', 'ring_configuration', 'session', 'heart_rate'];
  await harness.backfill({ from: '2025-02-05', to: '2025-03-08', collections });
  await harness.backfill({ from: '2025-03-12', to: '2025-03-13', collections: ['session'] });
  const selection = { collections, to: '2025-03-13' };
  const told = async () =>
    (await harness.commands.coverage(selection)).runs.map(({ collection, from, to, state }) => [collection, from, to, state]);
  expect(await told()).toEqual([
    ['ring_configuration', null, null, 'failed'],
    ['daily_stress', '2025-02-05', '2025-03-08', 'failed'],
    ['daily_stress', '2025-03-09', '2025-03-13', 'not_asked'],
    ['session', '2025-02-05', '2025-03-08', 'empty'],
    ['session', '2025-03-09', '2025-03-11', 'not_asked'],
    ['session', '2025-03-12', '2025-03-13', 'empty'],
    ['heart_rate', '2025-02-05', '2025-03-04', 'stored'],
    ['heart_rate', '2025-03-05', '2025-03-08', 'failed'],
    ['heart_rate', '2025-03-09', '2025-03-13', 'not_asked'],
  ]);

  // As it was: the windows fail again, and say so.
  expect((await repair(harness, { ...selection, collections: ['daily_stress'] }))?.failures).toMatchObject([
    { collection: 'daily_stress', from: '2025-02-05', to: '2025-03-13' },
  ]);
  failing = false;
  const before = service.asked.length;
  const report = await repair(harness, selection);
  expect(report).toMatchObject({ state: 'complete', windows: { planned: 4, done: 4 } });
  // Documents are asked for with two days more on both sides, heart rate is not.
  expect(rangesAsked(service, before, COLLECTIONS.daily_stress!)).toEqual([['2025-02-03', '2025-03-15']]);
  expect(rangesAsked(service, before, COLLECTIONS.session!)).toEqual([['2025-03-07', '2025-03-13']]);
  expect(rangesAsked(service, before, COLLECTIONS.ring_configuration!)).toHaveLength(1);
  expect(rangesAsked(service, before, HEART_RATE[0]!)).toEqual([['2025-03-05T00:00:00.000Z', '2025-03-14T00:00:00.000Z']]);
  expect(service.asked.length - before).toBe(4);
  expect(await told()).toEqual([
    ['ring_configuration', null, null, 'stored'],
    ['daily_stress', '2025-02-05', '2025-02-28', 'empty'],
    ['daily_stress', '2025-03-01', '2025-03-08', 'stored'],
    ['daily_stress', '2025-03-09', '2025-03-13', 'empty'],
    ['session', '2025-02-05', '2025-03-13', 'empty'],
    ['heart_rate', '2025-02-05', '2025-03-13', 'stored'],
  ]);
  expect(await repair(harness, selection)).toBeNull();
  expect(service.asked.length - before).toBe(4);
});

test('what a run under way is about to read is pending; a repair waits for it and does not ask twice', async () => {
  let answer: (() => void) | undefined;
  let hold = true;
  const held = new Promise<void>(resolve => {
    answer = resolve;
  });
  const now = Date.parse('2025-03-20T12:00:00Z');
  const service = await startService((_, collection) => (hold && collection === 'daily_stress' ? { after: held, status: 500 } : undefined));
  const data = join(folder, 'pending');
  const first = await openHarness(data, service.url, { now: () => now });
  await first.add([{ name: 'ada', token: 'token' }]);
  const range = { from: '2025-03-01', to: '2025-03-08' };
  const ended = first.backfill({ ...range, collections: ['daily_stress', 'session'] }).catch(error => error);
  await expect.poll(() => service.asked.some(({ path }) => path === COLLECTIONS.daily_stress)).toBe(true);
  await expect.poll(async () => (await first.read(`SELECT count(*) FROM sync.windows WHERE outcome = 'complete'`))[0]![0]).toBe(1);
  await first.close();
  answer?.();
  expect(await ended).toBeInstanceOf(Error);
  hold = false;

  const second = await openHarness(data, service.url, { now: () => now });
  const selection = { collections: ['daily_stress', 'session'], to: '2025-03-10' };
  const states = async () => (await second.commands.coverage(selection)).runs.map(({ from, to, state }) => [from, to, state]);
  expect(await states()).toEqual([
    ['2025-03-01', '2025-03-08', 'pending'],
    ['2025-03-09', '2025-03-10', 'not_asked'],
    ['2025-03-01', '2025-03-08', 'empty'],
    ['2025-03-09', '2025-03-10', 'not_asked'],
  ]);
  const before = service.asked.length;
  expect(await repair(second, selection)).toMatchObject({ state: 'complete' });
  expect(rangesAsked(service, before, COLLECTIONS.daily_stress!)).toEqual([
    ['2025-02-27', '2025-03-10'],
    ['2025-03-07', '2025-03-12'],
  ]);
  expect(rangesAsked(service, before, COLLECTIONS.session!)).toEqual([['2025-03-07', '2025-03-12']]);
  expect(await states()).toEqual([
    ['2025-03-01', '2025-03-08', 'stored'],
    ['2025-03-09', '2025-03-10', 'empty'],
    ['2025-03-01', '2025-03-10', 'empty'],
  ]);
});

test('nobody is asked who may not be: refused and paused accounts are left out of a repair', async () => {
  let now = Date.parse('2025-03-20T12:00:00Z');
  const service = await startService(({ token }, collection) =>
    token === 'bens' && collection === 'session' ? { status: 403, json: { detail: 'no scope' } } : undefined,
  );
  const harness = await openHarness(join(folder, 'refused'), service.url, { now: () => now });
  await harness.add([
    { name: 'ada', token: 'adas' },
    { name: 'ben', token: 'bens' },
  ]);
  await harness.commands.pauseAccount({ name: 'ada' });
  const collections = ['daily_stress', 'session'];
  await harness.backfill({ from: '2025-03-05', to: '2025-03-06', collections });
  now += 60_000;
  await harness.backfill({ from: '2025-03-05', to: '2025-03-06', collections });
  const before = service.asked.length;
  // The days beside those that were asked for came with them.
  const report = await repair(harness, { collections, from: '2025-03-05', to: '2025-03-10' });
  expect(report?.not_asked.map(({ user_id, collection, state }) => [user_id, collection, state])).toEqual([
    ['ada', null, 'paused'],
    ['ben', 'session', 'not_authorised'],
  ]);
  expect(service.asked.slice(before).map(({ path, token, query }) => [path, token, query.get('start_date')])).toEqual([
    [COLLECTIONS.daily_stress, 'bens', shift('2025-03-09', -2)],
  ]);
});

test('the command: exit 1 while something is missing, 0 once it is repaired; its JSON; plain where nothing is a terminal', async () => {
  let failing = true;
  const service = await startService((_, collection) => (failing && collection === 'daily_stress' ? { status: 403 } : undefined));
  const data = join(folder, 'command');
  const env = { RINGNECK_DATA: data, RINGNECK_SERVICE_URL: service.url };
  const inHarness = async (work: (harness: Harness) => Promise<unknown>) => {
    const harness = await openHarness(data, service.url);
    await work(harness);
    await harness.close();
  };
  await inHarness(async () => undefined);
  const none = await runHere(['coverage', '--json'], { env });
  expect([none.code, none.stdout]).toEqual([0, '[]\n']);
  await inHarness(async harness => {
    await harness.add([{ name: 'ada', token: 'token' }]);
    await harness.backfill({ from: '2025-03-06', to: '2025-03-08', collections: ['daily_stress', 'session'] });
  });
  const only = ['--resource', 'daily_stress', '--resource', 'session', '--from', '2025-03-06', '--to', '2025-03-09'];
  const refused = await runHere(['coverage', ...only, '--json'], { env });
  expect(refused.code).toBe(1);
  const reason = 'GET /v2/usercollection/daily_stress: answered 403';
  expect(JSON.parse(refused.stdout)).toEqual([
    { ...run('ada daily_stress', ['2025-03-06', '2025-03-08'], 'suspicious'), reason: expect.stringContaining(reason) },
    run('ada daily_stress', ['2025-03-09', '2025-03-09'], 'not_asked'),
    run('ada session', ['2025-03-06', '2025-03-08'], 'empty'),
    run('ada session', ['2025-03-09', '2025-03-09'], 'not_asked'),
  ]);
  failing = false;
  await inHarness(harness => harness.commands.resumeAccounts({ names: ['ada'] }));
  const repaired = await runHere(['coverage', ...only, '--repair'], { env });
  expect(repaired.stderr).toContain('read 2 of 2 windows that were missing');
  expect(repaired.stdout).toBe(
    `
ada
                   2025-03-06
daily_stress       ###.
session            ....

# stored  . empty at the service  - not offered  x not authorised
F failed  ? suspicious  ~ pending  _ not asked

2025-03-06 to 2025-03-09: 3 stored, 5 empty at the service
`.slice(1),
  );
  expect(repaired.code).toBe(0);
  const wrong = await runHere(['coverage', '--user', 'adda'], { env });
  expect([wrong.code, wrong.stdout, wrong.stderr]).toEqual([2, '', 'ringneck: no account "adda": there is ada\n']);
});

test('a day that was last read before it was over ends the command with 1 once it is, and is read by --repair', async () => {
  const service = await startService(() => undefined);
  const data = join(folder, 'early');
  const env = { RINGNECK_DATA: data, RINGNECK_SERVICE_URL: service.url };
  const harness = await openHarness(data, service.url, { now: () => Date.parse('2025-03-08T20:00:00Z') });
  await harness.add([{ name: 'ada', token: 'token' }]);
  await harness.backfill({ from: '2025-03-06', to: '2025-03-08', collections: ['daily_stress'] });
  await harness.close();
  const only = ['--resource', 'daily_stress', '--from', '2025-03-06', '--to', '2025-03-08'];
  const early = await runHere(['coverage', ...only], { env });
  expect(early.stdout).toContain(
    `
2025-03-06 to 2025-03-08: 3 stored (1 last read before the day was over)
What is missing is read by: ringneck coverage --repair

stored: last read before the day was over
  ada 2025-03-08: daily_stress
`,
  );
  expect(early.code).toBe(1);
  const before = service.asked.length;
  const repaired = await runHere(['coverage', ...only, '--repair'], { env });
  expect(rangesAsked(service, before, COLLECTIONS.daily_stress!)).toEqual([['2025-03-06', '2025-03-10']]);
  expect([repaired.code, repaired.stdout.endsWith('2025-03-06 to 2025-03-08: 3 stored\n')]).toEqual([0, true]);
});

// `script` of util-linux gives a command a terminal; other systems have another one, or none.
const able = process.platform === 'linux' && spawnSync('script', ['--version']).status === 0;

test.runIf(able)('colours are for terminals, and NO_COLOR is respected', async () => {
  const data = join(folder, 'colours');
  const harness = await openHarness(data, 'http://127.0.0.1:9');
  await harness.add([{ name: 'ada', token: 'token' }]);
  await harness.close();
  const atTerminal = (env: Record<string, string>) =>
    spawnSync('script', ['-qefc', `'${process.execPath}' '${MAIN}' coverage --from 2025-03-06 --to 2025-03-09`, '/dev/null'], {
      env: { PATH: process.env.PATH, SHELL: '/bin/bash', TERM: 'xterm-256color', RINGNECK_DATA: data, ...env },
      encoding: 'utf8',
    });
  const yellow = `session            ${String.fromCharCode(27)}[33m____`;
  const coloured = atTerminal({});
  expect([coloured.status, coloured.stdout.includes(yellow)]).toEqual([1, true]);
  const plain = atTerminal({ NO_COLOR: '1' });
  expect([plain.status, plain.stdout.includes('session            ____\r\n')]).toEqual([1, true]);
});
