import { once } from 'node:events';
import { existsSync, rmSync, statSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { runUp } from '../../src/app/up.ts';
import { readSettings, type Settings } from '../../src/base/config.ts';
import { type Log, silentLog } from '../../src/base/log.ts';
import { freePort, hasRedis, type RedisServer, shareRedis, startRedis } from '../queue/redis-server.ts';
import { signed } from '../receiver/signed.ts';
import { COLLECTIONS } from '../support/declared.ts';
import { startFaultService } from '../support/fault-service.ts';
import { type Running, startRingneck } from '../support/ringneck.ts';
import { runHere } from '../support/run-here.ts';
import { type Sandbox, startSandbox } from '../support/sandbox.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';
import { placeWarehouse, rowsOf, withDuckDB } from '../support/warehouse.ts';

const folder = tempFolder();
const newQueue = shareRedis();
let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startSandbox({ count: 2, from: '2025-01-01', to: '2025-01-10' });
});
afterAll(() => sandbox.close());

let folders = 0;
function surroundings(env: Record<string, string> = {}) {
  const data = join(folder, `d${++folders}`);
  placeWarehouse(join(data, 'warehouse.duckdb'));
  return { data, env: { RINGNECK_DATA: data, RINGNECK_SERVICE_URL: sandbox.url, RINGNECK_PORT: '0', ...env } };
}

/** What `up` logged, one object a line. */
const logged = (up: Running) =>
  up.stderr
    .split('\n')
    .filter(line => line.startsWith('{'))
    .map(line => JSON.parse(line) as { msg: string; url?: string });

const rowsOfSnapshot = (path: string, sql: string) =>
  withDuckDB(':memory:', async connection => {
    await connection.run(`ATTACH '${path}' AS snapshot (READ_ONLY)`);
    return rowsOf(connection, sql);
  });

test('up whose terminal is closed ends cleanly, however often that is said', async () => {
  const { data, env } = surroundings();
  const up = startRingneck(['up'], { env });
  await up.said('"msg":"up"');
  up.kill('SIGHUP');
  await up.said('"msg":"stopping"');
  up.kill('SIGHUP');
  expect(await up.end()).toMatchObject({ code: 0, stdout: '' });
  expect(existsSync(join(data, 'control.sock'))).toBe(false);
});

test('everything works through the control socket of a running up, and it ends cleanly on SIGTERM', async () => {
  const enrolment = { RINGNECK_PUBLIC_URL: 'https://example.org', RINGNECK_STUDY_NAME: 'The Study', RINGNECK_STUDY_CONTACT: 'next door' };
  const { data, env } = surroundings({ ...enrolment, RINGNECK_CLIENT_ID: 'id', RINGNECK_CLIENT_SECRET: 'secret' });
  const up = startRingneck(['up', '--mirror', '0'], { env });
  await up.said('"msg":"up"');
  const { url } = logged(up).find(({ msg }) => msg === 'up')!;
  const mirror = logged(up).find(({ msg }) => msg === 'the mirror is served')!.url;
  expect(statSync(join(data, 'control.sock')).mode & 0o777).toBe(0o600);

  expect(await (await fetch(`${url}/health`)).json()).toEqual({ status: 'ok' });
  expect(await (await fetch(`${url}/ready`)).json()).toEqual({ status: 'ready' });

  const cli = (args: string[], input = '') => runHere(args, { env, input });
  const person = sandbox.people[0]!;
  expect(await cli(['account', 'add', 'ada'], person.token)).toEqual({ code: 0, stdout: 'ada active\n', stderr: '' });
  expect((await cli(['account', 'pause', 'zoe'])).code).toBe(2);
  const { stdout: link } = await cli(['account', 'invite', 'p01']);
  const page = await fetch(link.trim().replace('https://example.org', url ?? ''));
  expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('The Study asks you')]);
  const filled = await cli(['backfill', '--from', '2025-01-01', '--to', '2025-01-05', '--json']);
  expect(filled.code).toBe(0);
  expect(JSON.parse(filled.stdout)).toMatchObject({
    state: 'complete',
    windows: { planned: COLLECTIONS.length, done: COLLECTIONS.length },
    failures: [],
  });
  expect(filled.stderr).toContain('windows, ');

  const snapshot = join(data, 'snapshot.duckdb');
  const published = `SELECT count(*) AS n FROM snapshot.sync.runs WHERE state = 'complete'`;
  await until(
    'the snapshot has followed, asked for by nobody',
    async () => existsSync(snapshot) && ((await rowsOfSnapshot(snapshot, published))[0] as { n: number }).n >= 1,
    60_000,
  );
  // The reader never opens the file that is written; the snapshot is made for it.
  expect(await cli(['sql', 'SELECT count(*) > 0 AS some FROM sleep', '--format', 'csv'])).toEqual({
    code: 0,
    stdout: 'some\ntrue\n',
    stderr: '',
  });
  const status = JSON.parse((await cli(['status', '--json'])).stdout);
  expect([status.accounts.length, status.queue.waiting, typeof status.snapshot.at]).toEqual([1, 0, 'string']);
  expect(JSON.parse((await cli(['nightly', '--days', '1', '--json'])).stdout)).toMatchObject({ state: 'complete', failures: [] });

  const { token } = JSON.parse((await cli(['account', 'mirror-token', 'ada', '--json'])).stdout);
  const mirrored = await fetch(`${mirror}/v2/usercollection/daily_sleep?start_date=2025-01-02&end_date=2025-01-04`, {
    headers: { authorization: `Bearer ${token}` },
  });
  expect(((await mirrored.json()) as { data: unknown[] }).data.length).toBeGreaterThan(0);

  const second = await cli(['up']);
  expect(second).toMatchObject({ code: 75, stdout: '', stderr: expect.stringContaining(`(PID ${up.process.pid})`) });

  up.kill('SIGTERM');
  const ended = await up.end();
  expect([ended.code, ended.stdout]).toEqual([0, '']);
  expect(ended.stderr).toContain('"msg":"stopping"');
  expect(existsSync(join(data, 'control.sock'))).toBe(false);
  expect((await cli(['sql', 'SELECT 1 AS a', '--format', 'csv'])).stdout).toBe('a\n1\n');
});

test('Ctrl-C of a backfill through the control socket stops its run and leaves up running; with --detach the run goes on', async () => {
  let held = Promise.resolve();
  let answer: () => void = () => undefined;
  const hold = () => {
    held = new Promise(resolve => {
      answer = resolve;
    });
  };
  const service = await startFaultService({}, { upstream: sandbox.url });
  onTestFinished(() => service.close());
  service.on('/v2/usercollection/sleep', async () => {
    await held;
    return undefined;
  });
  const { data, env } = surroundings({ RINGNECK_SERVICE_URL: service.url, ...newQueue() });
  const up = startRingneck(['up'], { env });
  await up.said('"msg":"up"');
  await runHere(['account', 'add', 'ada'], { env, input: sandbox.people[0]!.token });
  const args = ['backfill', '--from', '2025-01-01', '--to', '2025-01-10', '--json'];
  hold();
  const first = startRingneck(args, { env });
  await first.said('windows');
  first.kill('SIGINT');
  const stopped = await first.end();
  expect(stopped.code).toBe(130);
  expect(JSON.parse(stopped.stdout)).toMatchObject({ state: 'stopped' });

  const detached = startRingneck([...args, '--detach'], { env });
  await detached.said('windows');
  detached.kill('SIGINT');
  expect((await detached.end()).code).toBe(130);
  // The command ended before its run did.
  const running = await runHere(['status', '--json'], { env });
  expect(JSON.parse(running.stdout).accounts[0].collections.map(({ state }: { state: string }) => state)).toContain('pending');
  answer();
  const last = await runHere(args, { env });
  expect(JSON.parse(last.stdout)).toMatchObject({ state: 'complete', failures: [] });
  up.kill('SIGINT');
  expect((await up.end()).code).toBe(0);
  // It went on with the run that was stopped.
  const state = `SELECT state FROM sync.runs WHERE run_id = '${JSON.parse(stopped.stdout).run}'`;
  expect(await withDuckDB(join(data, 'warehouse.duckdb'), connection => rowsOf(connection, state))).toEqual([{ state: 'complete' }]);
});

test('up waits for a command that has the folder and is about to end', async () => {
  let answer: () => void = () => undefined;
  const held = new Promise<void>(resolve => {
    answer = resolve;
  });
  const service = await startFaultService({}, { upstream: sandbox.url });
  onTestFinished(() => service.close());
  const { data, env } = surroundings({ RINGNECK_SERVICE_URL: service.url });
  await runHere(['account', 'add', 'ada'], { env, input: sandbox.people[0]!.token });
  service.on('/v2/usercollection/sleep', async () => {
    await held;
    return undefined;
  });
  const backfill = startRingneck(['backfill', '--from', '2025-01-01', '--to', '2025-01-02', '--resource', 'sleep'], { env });
  await until('the command has the folder', () => existsSync(join(data, 'control.sock')));
  const up = startRingneck(['up'], { env });
  await up.said('it is waited for, for a moment');
  answer();
  expect((await backfill.end()).code).toBe(0);
  await up.said('"msg":"up"');
  up.kill('SIGTERM');
  expect((await up.end()).code).toBe(0);
});

test('a port that is in use is one line, and the folder is free again', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await new Promise(resolve => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  const { env } = surroundings({ RINGNECK_PORT: String(port) });
  const { code, stdout, stderr } = await runHere(['up'], { env });
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toBe(`ringneck: cannot listen at 127.0.0.1:${port} (the port is in use); RINGNECK_PORT chooses another place\n`);
  expect((await runHere(['account', 'list'], { env })).code).toBe(0);
});

test('after a kill the socket that was left is no hindrance', async () => {
  const { data, env } = surroundings(newQueue());
  const up = startRingneck(['up'], { env });
  await up.said('"msg":"up"');
  up.kill('SIGKILL');
  await up.end();
  expect(existsSync(join(data, 'control.sock'))).toBe(true);
  expect((await runHere(['account', 'list'], { env })).code).toBe(0);
  rmSync(data, { recursive: true });
});

test('it takes events before its queue has opened', async () => {
  // A Redis that takes the connection and says nothing: whoever opens the queue waits for seconds.
  const silent = createServer(() => undefined).listen(0, '127.0.0.1');
  onTestFinished(() => void silent.close());
  await once(silent, 'listening');
  const { port: redisPort } = silent.address() as AddressInfo;
  const port = await freePort();
  const url = `http://127.0.0.1:${port}/webhook`;
  const { data, env } = surroundings({
    RINGNECK_QUEUE_URL: `redis://127.0.0.1:${redisPort}`,
    RINGNECK_PORT: String(port),
    RINGNECK_CALLBACK_URL: url,
    RINGNECK_CLIENT_ID: 'client-7',
    RINGNECK_CLIENT_SECRET: 'a-client-secret',
    RINGNECK_VERIFICATION_TOKEN: 'a-word-of-ours',
  });
  const up = startRingneck(['up'], { env });
  const body = JSON.stringify({
    event_type: 'update',
    data_type: 'sleep',
    object_id: 'sleep-1',
    event_time: '2025-05-31T23:59:30+00:00',
    user_id: 'nobody',
  });
  const { timestamp, signature } = signed(body, String(Math.floor(Date.now() / 1000)));
  const headers = { 'x-service-timestamp': timestamp, 'x-service-signature': signature };
  const send = () =>
    fetch(url, { method: 'POST', headers, body }).then(
      ({ status }) => status,
      () => undefined,
    );
  await until('the event is taken', async () => (await send()) === 204);
  expect(logged(up).map(({ msg }) => msg)).not.toContain('up');
  await up.said('"msg":"up"');
  up.kill('SIGTERM');
  expect((await up.end()).code).toBe(0);

  // What was taken is worked off by the next that has a queue.
  const { RINGNECK_QUEUE_URL: _, ...others } = env as Record<string, string>;
  const withQueue = { ...others, ...newQueue() };
  const next = startRingneck(['up'], { env: withQueue });
  await next.said('"msg":"up"');
  const status = async () => JSON.parse((await runHere(['status', '--json'], { env: withQueue })).stdout).webhooks;
  await until('it is settled', async () => (await status()).waiting === 0);
  next.kill('SIGTERM');
  await next.end();
  expect(
    await withDuckDB(join(data, 'warehouse.duckdb'), connection => rowsOf(connection, 'SELECT object_id, outcome FROM sync.events')),
  ).toEqual([{ object_id: 'sleep-1', outcome: 'unknown_user' }]);
});

test.skipIf(!hasRedis)('with Redis away it ends all the same when it is told to', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.remove());
  const { env } = surroundings({ RINGNECK_QUEUE_URL: redis.url });
  const up = startRingneck(['up'], { env });
  await up.said('"msg":"up"');
  await redis.kill();
  await up.said('Redis is away');
  up.kill('SIGTERM');
  expect((await up.end()).code).toBe(0);
});

describe.skipIf(!hasRedis)('started while its Redis', () => {
  async function start(redis: RedisServer) {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}/webhook`;
    const webhooks = {
      RINGNECK_CALLBACK_URL: url,
      RINGNECK_CLIENT_ID: 'client-7',
      RINGNECK_CLIENT_SECRET: 'a-client-secret',
      RINGNECK_VERIFICATION_TOKEN: 'a-word-of-ours',
    };
    const { env } = surroundings({ RINGNECK_QUEUE_URL: redis.url, RINGNECK_PORT: String(port), ...webhooks });
    const up = startRingneck(['up'], { env });
    const send = () => {
      const event = { event_type: 'update', data_type: 'sleep', object_id: 'sleep-1', event_time: '2025-05-31T23:59:30+00:00' };
      const body = JSON.stringify({ ...event, user_id: 'nobody' });
      const { timestamp, signature } = signed(body, String(Math.floor(Date.now() / 1000)));
      const headers = { 'x-service-timestamp': timestamp, 'x-service-signature': signature };
      return fetch(url, { method: 'POST', headers, body }).then(
        ({ status }) => status,
        () => undefined,
      );
    };
    const status = async () => JSON.parse((await runHere(['status', '--json'], { env })).stdout);
    return { env, up, send, status };
  }

  const AWAY = /Redis at 127\.0\.0\.1:\d+ cannot be used; events are accepted and kept, the work begins when it answers/g;

  test('is away it accepts events, says so once, and begins the work when it answers', async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.remove());
    await redis.kill();
    const { env, up, send, status } = await start(redis);
    await up.said('"msg":"up"');
    expect(await send()).toBe(204);
    const before = await status();
    expect(before.queue).toMatchObject({ waiting: 0, active: 0, problem: expect.stringContaining('cannot be reached (') });
    expect((await runHere(['status'], { env })).stdout).toContain('unreachable: Redis at 127.0.0.1');
    expect(before.webhooks.waiting).toBe(1);
    await runHere(['account', 'add', 'ada'], { env, input: sandbox.people[0]!.token });
    const backfill = ['backfill', '--from', '2025-01-01', '--to', '2025-01-05', '--json'];
    expect((await runHere(backfill, { env })).code).toBe(75);
    await redis.start();
    await up.said('the work begins');
    await until('the event is settled', async () => (await status()).webhooks.waiting === 0, 20_000);
    expect((await runHere(backfill, { env })).code).toBe(0);
    expect((await status()).queue.problem).toBeNull();
    expect(up.stderr.match(AWAY)).toHaveLength(1);
    up.kill('SIGTERM');
    expect((await up.end()).code).toBe(0);
  });

  test('is not the one that writes it begins the work when it is', async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.remove());
    const client = new Redis(redis.url);
    onTestFinished(() => client.disconnect());
    await client.call('REPLICAOF', '127.0.0.1', '1');
    const { up, send, status } = await start(redis);
    await up.said('"msg":"up"');
    expect(await send()).toBe(204);
    expect((await status()).queue.problem).toContain('READONLY');
    await client.call('REPLICAOF', 'NO', 'ONE');
    await until('the event is settled', async () => (await status()).webhooks.waiting === 0, 20_000);
    up.kill('SIGTERM');
    expect((await up.end()).code).toBe(0);
  });

  test('is away it ends cleanly when it is told to, and a one-shot command ends at once', async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.remove());
    await redis.kill();
    const { env, up } = await start(redis);
    await up.said('"msg":"up"');
    up.kill('SIGINT');
    expect((await up.end()).code).toBe(0);
    await runHere(['account', 'add', 'ada'], { env, input: sandbox.people[0]!.token });
    const began = Date.now();
    expect((await runHere(['nightly'], { env })).code).toBe(75);
    expect(Date.now() - began).toBeLessThan(10_000);
  });

  test('asks for another password it ends at once, for that does not pass', async () => {
    const redis = await startRedis('--requirepass', 'right');
    onTestFinished(() => redis.remove());
    for (const url of [redis.url, redis.url.replace('redis://', 'redis://:wrong@')]) {
      const { env } = surroundings({ RINGNECK_QUEUE_URL: url });
      const { code, stderr } = await runHere(['up'], { env });
      expect([code, stderr]).toEqual([2, expect.stringContaining('refuses the user or password in RINGNECK_QUEUE_URL')]);
    }
  });
});

test('up --events says what is missing where no events can come', async () => {
  const { env } = surroundings(newQueue());
  const up = startRingneck(['up', '--events'], { env });
  await up.said('"msg":"up"');
  expect(logged(up).map(({ msg }) => msg)).toContain(
    '--events has nothing to show: webhooks are not configured: set RINGNECK_CALLBACK_URL, RINGNECK_CLIENT_ID, RINGNECK_CLIENT_SECRET, RINGNECK_VERIFICATION_TOKEN',
  );
  up.kill('SIGTERM');
  expect((await up.end()).code).toBe(0);
});

test('up begins nothing in a folder that is none of its own, and says where it begins anew', async () => {
  const place = join(folder, 'elsewhere');
  const settings = readSettings({ RINGNECK_DATA: join(place, 'data'), RINGNECK_SERVICE_URL: sandbox.url, RINGNECK_PORT: '0' });
  const warned: unknown[][] = [];
  const log: Log = Object.assign(Object.create(silentLog), { warn: (...given: unknown[]) => void warned.push(given) });
  // Nobody's Redis: it goes on without.
  const queueUrl = `redis://127.0.0.1:${await freePort()}`;
  const up = (changes: Partial<Settings> = {}) => runUp({ settings: { ...settings, queueUrl, ...changes }, log }, AbortSignal.abort());
  await expect(up({ namesData: false })).rejects.toThrow(
    `there is no data folder here: ${settings.data} does not exist, and RINGNECK_DATA names none. Go to the folder in which you began, or begin here: ringneck init`,
  );
  expect([existsSync(place), warned]).toEqual([false, []]);
  await up();
  expect(warned.shift()).toEqual([
    {
      data: settings.data,
      fix: 'to begin here, ringneck account add NAME; where yours is elsewhere, go to that folder, or set RINGNECK_DATA to it',
    },
    'there was no warehouse in the data folder: an empty one is made, and nobody is read yet',
  ]);
  await up();
  expect(JSON.stringify(warned)).not.toContain('no warehouse');
});
