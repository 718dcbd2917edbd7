import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest';
import type { AppCommands } from '../../src/app/commands.ts';
import { connectControl } from '../../src/app/control/connect-control.ts';
import { noteLake, placeOf } from '../../src/app/lake/place.ts';
import { Standby } from '../../src/app/lake/standby.ts';
import { readSettings } from '../../src/base/config.ts';
import { silentLog } from '../../src/base/log.ts';
import type { Catalogue } from '../../src/machines/catalogue.ts';
import { hasRedis, shareRedis } from '../queue/redis-server.ts';
import { SECRET, signed } from '../receiver/signed.ts';
import { openConsoleHere } from '../support/console-harness.ts';
import { openHarness } from '../support/harness.ts';
import { hasLake, lakeSettings, newLake, testPostgres } from '../support/lake.ts';
import { type Running, startRingneck } from '../support/ringneck.ts';
import { runHere } from '../support/run-here.ts';
import { type Sandbox, startSandbox } from '../support/sandbox.ts';
import { hashTables } from '../support/table-hash.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';
import { withDuckDB } from '../support/warehouse.ts';
import { openWay, openWayToPostgres } from '../support/way.ts';
import { isWhole } from '../support/whole.ts';

const folder = tempFolder();
const newQueue = shareRedis();
const script = fileURLToPath(new URL('standby-up.mjs', import.meta.url));
/** Loading a module may hold a process up for a second where others work too. */
const LASTS_MS = 5_000;
let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startSandbox({ count: 2, from: '2025-01-01', to: '2025-01-10' });
});
afterAll(() => sandbox.close());

/** Machines that have a lake, a Redis, and each a data folder of its own. */
async function openMachines() {
  const { address } = await newLake(folder);
  const queue = newQueue();
  return (name: string, host = testPostgres().folder) => {
    const data = join(folder, `${address.catalogue}-${name}`);
    mkdirSync(data);
    const lake = lakeSettings(address.catalogue, address.data);
    const place = lake.RINGNECK_WAREHOUSE.replace(testPostgres().folder, host);
    const env = {
      ...{ RINGNECK_DATA: data, RINGNECK_SERVICE_URL: sandbox.url, RINGNECK_PORT: '0', ...queue },
      ...{ RINGNECK_SECRET_KEY: 'the key of all machines', ...lake, RINGNECK_WAREHOUSE: place },
      ...{ RINGNECK_CALLBACK_URL: 'http://127.0.0.1:9/webhook', RINGNECK_VERIFICATION_TOKEN: 'a-word-of-ours' },
      ...{ RINGNECK_CLIENT_ID: 'client-7', RINGNECK_CLIENT_SECRET: SECRET },
    };
    const cli = (args: string[], input = '') => runHere(args, { env, input });
    const up = () => startRingneck([inject('compiled'), String(LASTS_MS)], { env, main: script });
    return { data, env, cli, up };
  };
}

type Machine = ReturnType<Awaited<ReturnType<typeof openMachines>>>;

const backfill = async ({ cli }: Machine, from: string, to = from) =>
  JSON.parse((await cli(['backfill', '--from', from, '--to', to, '--json'])).stdout);

/** Resolves once the machine has begun to read. */
async function begin({ data }: Machine, from: string, to: string): Promise<void> {
  const control = await connectControl<AppCommands>(data);
  await new Promise<void>(resolve => {
    const input = { from, to, refresh: false, plan: false };
    control!.call('backfill', input, { onEvent: () => resolve() }).catch(() => undefined);
  });
}

const hashOf = (path: string) =>
  withDuckDB(path, connection => hashTables(async sql => (await connection.runAndReadAll(sql)).getRows() as unknown[][]));

const OPEN_RUNS = 'SELECT count(*) AS runs FROM sync.runs WHERE ended_at IS NULL';

const WORKS = '"msg":"up"';

/** The address in the line of a log that has this text. */
const urlOf = (up: Running, text: string) => /"url":"([^"]+)"/.exec(up.stderr.split('\n').find(line => line.includes(text)) ?? '')?.[1];

test.skipIf(!hasLake)(
  'one machine works, another waits and answers, and takes over when that one is frozen, or ends',
  async () => {
    const machine = await openMachines();
    const [first, second] = [machine('first'), machine('second')];
    const a = first.up();
    await a.said(WORKS);
    expect((await first.cli(['account', 'add', 'ada'], sandbox.people[0]!.token)).stdout).toBe('ada active\n');
    const b = second.up();
    await b.said('standby: ');
    expect(await (await fetch(`${urlOf(b, 'standby: ')}/ready`)).json()).toEqual({ status: 'standby' });
    expect(await (await fetch(`${urlOf(a, WORKS)}/ready`)).json()).toEqual({ status: 'ready' });
    expect(JSON.parse((await second.cli(['status', '--json'])).stdout)).toMatchObject({
      accounts: [{ user_id: 'ada', state: 'active', reason: null }],
      works_elsewhere: { host: hostname() },
    });
    expect(await second.cli(['account', 'pause', 'ada'])).toEqual({
      code: 75,
      stdout: '',
      stderr: expect.stringMatching(/works on the lake since .* UTC \(PID \d+ there\), and this machine waits: say it there/),
    });
    expect((await second.cli(['sql', 'SELECT user_id FROM sync.accounts', '--format', 'csv'])).stdout).toBe('user_id\nada\n');
    expect(JSON.parse((await second.cli(['coverage', '--json'])).stdout)).toBeTypeOf('object');
    expect((await second.cli(['doctor'])).stdout).toContain('works on the lake since');
    expect(JSON.parse((await second.cli(['machines', '--json'])).stdout)).toMatchObject([
      { host: hostname(), folder: first.data, state: 'works' },
      { host: hostname(), folder: second.data, state: 'waits' },
    ]);

    await begin(first, '2025-01-01', '2025-01-10');
    a.kill('SIGSTOP');
    await b.said(WORKS);
    const underWay = async () => (await second.cli(['sql', OPEN_RUNS, '--format', 'csv'])).stdout;
    await until('what the first had begun is read', async () => (await underWay()) === 'runs\n0\n');
    expect(await backfill(second, '2025-01-01', '2025-01-10')).toMatchObject({ state: 'complete', failures: [] });
    a.kill('SIGCONT');
    // It learns it from Postgres, from its clock, or from Redis.
    expect(await a.end()).toMatchObject({ code: 75, stderr: expect.stringMatching(/"level":60.*another (machine|ringneck)/) });

    expect((await second.cli(['account', 'add', 'ben'], sandbox.people[1]!.token)).stdout).toBe('ben active\n');
    const again = first.up();
    await again.said('standby: ');
    b.kill('SIGTERM');
    expect((await b.end()).code).toBe(0);
    await again.said(WORKS);
    expect(await backfill(first, '2025-01-01', '2025-01-10')).toMatchObject({ state: 'complete', failures: [] });
    const out = join(folder, 'out.duckdb');
    expect((await first.cli(['lake', 'export', out])).code).toBe(0);
    const plain = await openHarness(join(folder, 'plain'), sandbox.url);
    await plain.add(sandbox.people.map(({ token }, i) => ({ name: i ? 'ben' : 'ada', token })));
    expect(await plain.backfill({ from: '2025-01-01', to: '2025-01-10' })).toMatchObject({ state: 'complete' });
    expect(await hashOf(out)).toEqual(await plain.hash());
    again.kill('SIGTERM');
    await again.end();
  },
  600_000,
);

test.skipIf(!hasLake)(
  'who waits tells what is stored now, and has nothing of who is erased meanwhile',
  async () => {
    const machine = await openMachines();
    const [first, second] = [machine('first'), machine('second')];
    const a = first.up();
    await a.said(WORKS);
    const b = second.up();
    await b.said('standby: ');
    const ask = async ({ cli }: Machine, sql: string) => {
      const { stdout } = await cli(['sql', sql, '--format', 'csv']);
      return stdout.trim().split(/\r?\n/).slice(1);
    };
    const ACCOUNTS = `SELECT user_id || ' ' || state FROM sync.accounts ORDER BY 1`;
    const told = async () => {
      const { accounts } = JSON.parse((await second.cli(['status', '--json'])).stdout);
      return accounts.map(({ user_id, state }: { user_id: string; state: string }) => `${user_id} ${state}`);
    };
    /** One that takes its time is made while the last one is still an answer. */
    const untilAsked = (sql: string, answer: string[]) =>
      until(`${sql} is answered by ${answer}`, async () => String(await ask(second, sql)) === String(answer));
    expect([await told(), await ask(second, ACCOUNTS)]).toEqual([[], []]);
    for (const [i, name] of ['ada', 'ben'].entries()) await first.cli(['account', 'add', name], sandbox.people[i]!.token);
    expect(await told()).toEqual(['ada active', 'ben active']);
    await untilAsked(ACCOUNTS, ['ada active', 'ben active']);
    expect(await backfill(first, '2025-01-02')).toMatchObject({ state: 'complete' });
    await first.cli(['account', 'pause', 'ben']);
    const NIGHTS = 'SELECT DISTINCT user_id FROM sleep ORDER BY 1';
    expect(await told()).toEqual(['ada active', 'ben paused']);
    await untilAsked(ACCOUNTS, ['ada active', 'ben paused']);
    await untilAsked(NIGHTS, ['ada', 'ben']);

    const snapshot = join(second.data, 'snapshot.duckdb');
    const sessions = join(second.data, 'console-sessions');
    mkdirSync(sessions, { mode: 0o700 });
    writeFileSync(join(sessions, 'of-ada'), JSON.stringify({ role: 'person', person: 'ada' }));
    writeFileSync(join(second.data, 'sql_history'), 'FROM sleep\n');
    expect(existsSync(snapshot)).toBe(true);
    expect((await first.cli(['account', 'remove', 'ada', '--erase', '--yes'])).stdout).toContain('ada');
    await b.said('somebody was erased or moved on another machine');
    expect([existsSync(snapshot), existsSync(join(second.data, 'sql_history')), readdirSync(sessions)]).toEqual([false, false, []]);
    expect(readFileSync(join(second.data, 'accounts.secret'), 'utf8')).not.toContain('"ada"');
    expect([await told(), await ask(second, NIGHTS)]).toEqual([['ben paused'], ['ben']]);
    b.kill('SIGTERM');
    await b.end();
    // Who has erased itself has nothing to be removed.
    a.kill('SIGTERM');
    await a.end();
    const again = first.up();
    await again.said(WORKS);
    expect(again.stderr).not.toContain('on another machine');
    again.kill('SIGTERM');
    await again.end();
  },
  600_000,
);

test('tokens that were asked for before a machine takes over do not take the place of newer ones', async () => {
  const data = join(folder, 'late');
  const settings = readSettings({ RINGNECK_DATA: data, RINGNECK_WAREHOUSE: `ducklake:postgres://ring@/late?host=/nowhere&data=${folder}` });
  noteLake(data, placeOf(settings)!, { joined: true });
  writeFileSync(join(data, 'accounts.secret'), 'newer');
  const answering: ((rows: object[]) => void)[] = [];
  const query = async (sql: string) => (sql.includes('name, content') ? new Promise<object[]>(resolve => answering.push(resolve)) : []);
  const standby = new Standby({ settings, log: silentLog }, { query } as unknown as Catalogue, { host: 'another', pid: 1, since: '' });
  const told = expect(standby.commands.status()).rejects.toThrow('takes over the lake');
  await until('they are asked for', () => answering.length > 0);
  await standby.close();
  answering[0]!([{ name: 'accounts.secret', content: 'older' }]);
  await told;
  expect(readFileSync(join(data, 'accounts.secret'), 'utf8')).toBe('newer');
});

test.skipIf(!hasLake)(
  'who looks at their own data is out once their name is given again at another machine',
  async () => {
    // It does not say whose a token is.
    const other = await startSandbox({ count: 3, from: '2025-01-01', to: '2025-01-02', settings: { specificationOnly: true } });
    onTestFinished(() => other.close());
    const [adas, next, cleos] = other.people.map(({ token }) => token);
    const machine = await openMachines();
    const [first, second] = [machine('first'), machine('second')];
    for (const { env } of [first, second]) env.RINGNECK_SERVICE_URL = other.url;
    await second.cli(['account', 'add', 'ada'], adas);
    const console = await openConsoleHere(second.data, { settings: readSettings(second.env) });
    const ada = await console.enter({ role: 'person', person: 'ada' });
    expect((await ada.ask('GET session')).status).toBe(200);
    await first.cli(['account', 'add', 'cleo'], cleos);
    await first.cli(['account', 'remove', 'ada']);
    expect((await first.cli(['account', 'add', 'ada'], next)).stdout).toBe('ada active\n');
    expect((await ada.ask('GET session')).status).toBe(401);
  },
  600_000,
);

/** An event, as the service signs it at this moment. */
function eventOf(object_id: string) {
  const event = { event_type: 'update', data_type: 'sleep', object_id, event_time: '2025-05-31T23:59:30+00:00', user_id: 'nobody' };
  const body = JSON.stringify(event);
  const { timestamp, signature } = signed(body, String(Math.floor(Date.now() / 1000)));
  return { headers: { 'x-service-timestamp': timestamp, 'x-service-signature': signature }, body };
}

/** The status of the answer; undefined where none came. */
const send = (url: string | undefined, event: ReturnType<typeof eventOf>): Promise<number | undefined> =>
  fetch(`${url}/webhook`, { method: 'POST', ...event }).then(
    ({ status }) => status,
    () => undefined,
  );

test.skipIf(!hasLake)('every machine takes events, and each of them is worked off once, whoever is killed', async () => {
  const machine = await openMachines();
  const [first, second] = [machine('first'), machine('second')];
  const a = first.up();
  await a.said(WORKS);
  const b = second.up();
  await b.said('standby: ');
  const { RINGNECK_SECRET_KEY: _, ...withoutKey } = machine('third').env;
  expect(await startRingneck([inject('compiled'), String(LASTS_MS)], { env: withoutKey, main: script }).end()).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('set RINGNECK_SECRET_KEY to the text that is set there'),
  });
  const [atA, atB] = [urlOf(a, WORKS), urlOf(b, 'standby: ')];
  expect([await send(atA, eventOf('to the first')), await send(atB, eventOf('to the second'))]).toEqual([204, 204]);
  const waiting = async ({ cli }: Machine) => JSON.parse((await cli(['status', '--json'])).stdout).webhooks.waiting;
  await until('both are worked off', async () => (await waiting(first)) === 0);
  const both = eventOf('to both, and again');
  expect([await send(atA, both), await send(atB, both)]).toEqual([204, 204]);
  a.kill('SIGKILL');
  expect(await send(atB, eventOf('while nobody works'))).toBe(204);
  await b.said(WORKS);
  expect([await send(atB, both), await send(atB, eventOf('to who took over'))]).toEqual([204, 204]);
  await until('all are worked off', async () => (await waiting(second)) === 0);
  const sql = 'SELECT object_id, outcome, count(*) AS times FROM sync.events GROUP BY ALL ORDER BY ALL';
  const { stdout } = await second.cli(['sql', sql, '--format', 'csv']);
  const [, ...lines] = stdout.trim().split(/\r?\n/);
  expect(lines).toEqual([
    '"to both, and again",unknown_user,1',
    'to the first,unknown_user,1',
    'to the second,unknown_user,1',
    'to who took over,unknown_user,1',
    'while nobody works,unknown_user,1',
  ]);
  b.kill('SIGTERM');
  expect((await b.end()).code).toBe(0);
});

test.skipIf(!hasLake)('a machine with another key neither waits nor takes over, and says which key is wanted', async () => {
  const machine = await openMachines();
  const [first, second] = [machine('first'), machine('second')];
  second.env.RINGNECK_SECRET_KEY = 'another key, mistyped';
  const a = first.up();
  await a.said(WORKS);
  // Nothing is sealed yet.
  const b = second.up();
  await b.said('standby: ');
  expect((await first.cli(['account', 'add', 'ada'], sandbox.people[0]!.token)).stdout).toBe('ada active\n');
  a.kill('SIGKILL');
  const refusal = { code: 2, stderr: expect.stringContaining('set RINGNECK_SECRET_KEY to the text that is set on the other machines') };
  expect(await b.end()).toMatchObject(refusal);
  const again = first.up();
  await again.said(WORKS);
  expect(await second.up().end()).toMatchObject(refusal);
  expect(JSON.parse((await first.cli(['status', '--json'])).stdout)).toMatchObject({ accounts: [{ user_id: 'ada', state: 'active' }] });
  again.kill('SIGTERM');
  expect((await again.end()).code).toBe(0);
});

test.skipIf(!hasLake || !isWhole)('a machine that is cut off from Postgres ends, and another one works', async () => {
  const machine = await openMachines();
  const { way, folder: socket } = await openWayToPostgres();
  const [first, second] = [machine('first', socket), machine('second')];
  const a = first.up();
  await a.said(WORKS);
  const b = second.up();
  await b.said('standby: ');
  const atA = urlOf(a, WORKS);
  way.behaviour = 'cut';
  expect(await send(atA, eventOf('which cannot be kept'))).not.toBe(204);
  // A thread that waits for Postgres is not waited for.
  expect(await a.end()).toMatchObject({
    code: expect.toBeOneOf([75, 'SIGKILL']),
    stderr: expect.stringContaining('could not be asked for so long'),
  });
  await b.said(WORKS);
  b.kill('SIGTERM');
  expect((await b.end()).code).toBe(0);
});

// By turns: two upgrades in which one machine ends after the other, then what nobody has planned.
const ENDS = ['SIGTERM', 'SIGTERM', 'SIGKILL', 'SIGSTOP', 'SIGTERM', 'SIGKILL', 'SIGSTOP', 'SIGSTOP'] as const;

test.skipIf(!hasLake || !isWhole)(
  'events that come all the time at every machine are each stored once, however machines end',
  async () => {
    const machine = await openMachines();
    const machines = [machine('first'), machine('second'), machine('third')];
    const running = machines.map(({ up }) => up());
    const acknowledged: string[] = [];
    let isOver = false;
    let sent = 0;
    const sending = (async () => {
      while (!isOver) {
        const up = running[sent % running.length]!;
        const [id, at] = [`event ${String(++sent).padStart(5, '0')}`, urlOf(up, WORKS) ?? urlOf(up, 'standby: ')];
        const answer = await Promise.race([send(at, eventOf(id)), sleep(2_000)]);
        if (answer === 204) acknowledged.push(id);
        await sleep(20);
      }
    })();
    for (const signal of ENDS) {
      const working = () => running.findIndex(({ stderr }) => stderr.includes(WORKS));
      await until(
        'one works, and the others wait',
        () => {
          const waiting = running.filter(({ stderr }) => stderr.includes('standby: ') && !stderr.includes(WORKS));
          return working() >= 0 && waiting.length === running.length - 1;
        },
        60_000,
      );
      const ended = working();
      const up = running[ended]!;
      up.kill(signal);
      await until('another one works', () => running.some((one, i) => i !== ended && one.stderr.includes(WORKS)), 60_000);
      if (signal === 'SIGSTOP') up.kill('SIGCONT');
      const { code } = await up.end();
      expect(code).toBe({ SIGTERM: 0, SIGKILL: 'SIGKILL', SIGSTOP: 75 }[signal]);
      running[ended] = machines[ended]!.up();
    }
    isOver = true;
    await sending;
    const last = machines[running.findIndex(({ stderr }) => stderr.includes(WORKS))]!;
    await until('all are worked off', async () => JSON.parse((await last.cli(['status', '--json'])).stdout).webhooks.waiting === 0, 60_000);
    const { stdout } = await last.cli(['sql', 'SELECT object_id FROM sync.events ORDER BY 1', '--format', 'csv']);
    const [, ...stored] = stdout.trim().split(/\r?\n/);
    expect(acknowledged.length).toBeGreaterThan(100);
    // What came in and was not acknowledged for want of time may be there too, once.
    expect(stored.filter(id => acknowledged.includes(id))).toEqual(acknowledged);
    expect(new Set(stored).size).toBe(stored.length);
  },
  600_000,
);

test.skipIf(!hasLake || !hasRedis || !isWhole)(
  'a machine that is cut off from Redis alone ends, and one that reaches it works',
  async () => {
    const machine = await openMachines();
    const [first, second] = [machine('first'), machine('second')];
    const { RINGNECK_QUEUE_URL: queue = '' }: Record<string, string> = first.env;
    const { port, hostname: host, pathname } = new URL(queue);
    const way = await openWay({ port: Number(port), host }, { port: 0, host: '127.0.0.1' });
    Object.assign(first.env, { RINGNECK_QUEUE_URL: `redis://127.0.0.1:${way.port}${pathname}` });
    const a = first.up();
    await a.said(WORKS);
    const b = second.up();
    await b.said('standby: ');
    way.behaviour = 'cut';
    expect(await send(urlOf(a, WORKS), eventOf('which waits for a queue'))).toBe(204);
    expect(await a.end()).toMatchObject({ code: 75, stderr: expect.stringContaining('Redis does not answer this machine, and answers') });
    await b.said(WORKS);
    const waiting = async () => JSON.parse((await second.cli(['status', '--json'])).stdout).webhooks.waiting;
    await until('the event is worked off', async () => (await waiting()) === 0);
    b.kill('SIGTERM');
    expect((await b.end()).code).toBe(0);
  },
);
