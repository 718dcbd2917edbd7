import { existsSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { hasRedis, startRedis } from '../queue/redis-server.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { type Running, ringneck, type Sandbox, startRingneck, startSandbox } from './ringneck.ts';

const folder = tempFolder();
let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startSandbox(join(folder, 'service'));
});

let folders = 0;
function surroundings(env: Record<string, string> = {}) {
  const data = join(folder, `d${++folders}`);
  return { data, env: { RINGNECK_DATA: data, RINGNECK_SERVICE_URL: sandbox.url, RINGNECK_PORT: '0', ...env } };
}

/** What `up` logged, one object a line. */
const logged = (up: Running) =>
  up.stderr
    .split('\n')
    .filter(line => line.startsWith('{'))
    .map(line => JSON.parse(line) as { msg: string; url?: string });

test('everything works through the door of a running up, and it ends cleanly on SIGTERM', async () => {
  const { data, env } = surroundings();
  const up = await startRingneck(['up', '--mirror', '0'], { env });
  await up.said('"msg":"up"');
  const { url } = logged(up).find(({ msg }) => msg === 'up')!;
  const mirror = logged(up).find(({ msg }) => msg === 'the mirror is served')!.url;
  expect(statSync(join(data, 'control.sock')).mode & 0o777).toBe(0o600);

  expect(await (await fetch(`${url}/health`)).json()).toEqual({ status: 'ok' });
  expect(await (await fetch(`${url}/ready`)).json()).toEqual({ status: 'ready' });

  const cli = (args: string[], input?: string) => ringneck(args, { env, ...(input === undefined ? {} : { input }) });
  const person = sandbox.people[0]!;
  expect(await cli(['account', 'add', 'ada'], person.token)).toEqual({ code: 0, stdout: 'ada active\n', stderr: '' });
  expect((await cli(['account', 'pause', 'zoe'])).code).toBe(2);
  const filled = await cli(['backfill', '--from', '2025-01-01', '--to', '2025-01-05', '--json']);
  expect(filled.code).toBe(0);
  expect(JSON.parse(filled.stdout)).toMatchObject({ state: 'complete', windows: { planned: 12, done: 12 }, failures: [] });
  expect(filled.stderr).toContain('windows, ');

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
}, 180_000);

test('Ctrl-C of a backfill through the door stops its run and leaves up running; with --detach the run goes on', async () => {
  const slow = await startSandbox(join(folder, 'slow'), '--rate-limit', '8/2');
  const { env } = surroundings({ RINGNECK_SERVICE_URL: slow.url });
  const up = await startRingneck(['up'], { env });
  await up.said('"msg":"up"');
  await ringneck(['account', 'add', 'ada'], { env, input: slow.people[0]!.token });
  const args = ['backfill', '--from', '2025-01-01', '--to', '2025-01-31', '--json'];
  const first = await startRingneck(args, { env });
  await first.said('windows');
  first.kill('SIGINT');
  const stopped = await first.end();
  expect(stopped.code).toBe(130);
  expect(JSON.parse(stopped.stdout)).toMatchObject({ state: 'stopped' });

  const detached = await startRingneck([...args, '--detach'], { env });
  await detached.said('windows');
  detached.kill('SIGINT');
  expect((await detached.end()).code).toBe(130);
  // The command ended before its run did.
  const running = await ringneck(['status', '--json'], { env });
  expect(JSON.parse(running.stdout).accounts[0].collections.map(({ state }: { state: string }) => state)).toContain('pending');
  const last = await ringneck(args, { env });
  expect(JSON.parse(last.stdout)).toMatchObject({ state: 'complete', failures: [] });
  // It went on with the run that was stopped.
  const state = `SELECT state FROM sync.runs WHERE run_id = '${JSON.parse(stopped.stdout).run}'`;
  expect((await ringneck(['sql', state, '--format', 'csv'], { env })).stdout).toBe('state\ncomplete\n');
  up.kill('SIGINT');
  expect((await up.end()).code).toBe(0);
}, 180_000);

test('a port that is in use is one line, and the folder is free again', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await new Promise(resolve => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  const { env } = surroundings({ RINGNECK_PORT: String(port) });
  const { code, stdout, stderr } = await ringneck(['up'], { env });
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toBe(`ringneck: cannot listen at 127.0.0.1:${port} (the port is in use); RINGNECK_PORT chooses another place\n`);
  expect((await ringneck(['account', 'list'], { env })).code).toBe(0);
});

test('after a kill the socket that was left is no hindrance', async () => {
  const { data, env } = surroundings();
  const up = await startRingneck(['up'], { env });
  await up.said('"msg":"up"');
  up.kill('SIGKILL');
  await up.end();
  expect(existsSync(join(data, 'control.sock'))).toBe(true);
  expect((await ringneck(['account', 'list'], { env })).code).toBe(0);
  rmSync(data, { recursive: true });
});

test.skipIf(!hasRedis)('with Redis away it ends all the same when it is told to', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.remove());
  const { env } = surroundings({ RINGNECK_QUEUE_URL: redis.url });
  const up = await startRingneck(['up'], { env });
  await up.said('"msg":"up"');
  await redis.kill();
  await up.said('Redis is away');
  up.kill('SIGTERM');
  expect((await up.end()).code).toBe(0);
});
