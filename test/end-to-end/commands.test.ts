import type { ChildProcess } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { call } from '../../src/app/call.ts';
import type { AppCommands } from '../../src/app/commands.ts';
import { readSettings } from '../../src/base/config.ts';
import type { RingneckError } from '../../src/base/errors.ts';
import { silentLog } from '../../src/base/log.ts';
import type { Session } from '../../src/cli/session.ts';
import { shareRedis } from '../queue/redis-server.ts';
import { childScript, startChild } from '../support/child.ts';
import { type FaultService, startFaultService } from '../support/fault-service.ts';
import { type Ended, ringneck, startRingneck } from '../support/ringneck.ts';
import { runHere } from '../support/run-here.ts';
import { type Sandbox, startSandbox } from '../support/sandbox.ts';
import { inspectFile } from '../support/table-hash.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { placeWarehouse, withDuckDB } from '../support/warehouse.ts';
import { ask, COLLECTIONS, findDifference, readEverything } from '../support/wire-reader.ts';

const folder = tempFolder();
const newQueue = shareRedis();
const days = { from: '2025-03-04', to: '2025-03-07' };
const range = ['--from', days.from, '--to', days.to];

let sandbox: Sandbox;
/** Who comes to a folder that is held waits ten seconds: meanwhile the rest is done. */
let refusal: ReturnType<typeof refusedByHolder>;
const held: ChildProcess[] = [];

beforeAll(async () => {
  sandbox = await startSandbox({ count: 2, ...days, settings: { pageSize: 3 } });
  refusal = refusedByHolder();
  // Looked at when it is asked for.
  refusal.catch(() => {});
});

afterAll(async () => {
  for (const child of held) child.kill('SIGKILL');
  await sandbox.close();
});

const settingsFor = (data: string, url = sandbox.url) => ({
  RINGNECK_DATA: data,
  RINGNECK_SERVICE_URL: url,
  RINGNECK_PORT: '0',
  // Far from now, so that no night begins meanwhile.
  RINGNECK_NIGHTLY: '0 0 29 2 *',
});

async function startUp(settings: Record<string, string>, ...parameters: string[]) {
  const up = startRingneck(['up', ...parameters], { env: { ...newQueue(), ...settings } });
  const urlOf = async (message: string) => {
    const line = new RegExp(`^\\{.*"msg":"${message}".*\\}$`, 'm');
    await up.said(line);
    return (JSON.parse(line.exec(up.stderr)![0]) as { url: string }).url;
  };
  return { up, url: await urlOf('up'), mirror: parameters.length ? await urlOf('the mirror is served') : '' };
}

/** A service that holds back every answer until it is let go. */
async function heldService(): Promise<{ service: FaultService; release(): void }> {
  const service = await startFaultService({}, { upstream: sandbox.url });
  onTestFinished(() => service.close());
  let release = () => {};
  const released = new Promise<void>(resolve => {
    release = resolve;
  });
  service.on('/v2/usercollection/*', async (_, nth) => {
    if (nth > 8) await released;
    return undefined;
  });
  return { service, release };
}

/** A command of this process: like one of the command line, it goes through the control socket where there is one. */
const sessionOf = (settings: Record<string, string>): Session => ({ settings: readSettings(settings), log: silentLog });

const addAda = (settings: Record<string, string>) =>
  call(sessionOf(settings), 'addAccount', { name: 'ada', token: sandbox.people[0]!.token });

/** What differs between any two runs. */
const timeless = (text: string, data: string) =>
  text
    .replaceAll(data, '<data>')
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z/g, '<time>')
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, '<id>')
    .replace(/"lag":\d+/g, '"lag":0')
    // What `up` has stored lies in its log before it is in the file.
    .replace(/"bytes":\d+/g, '"bytes":0')
    // At its start `up` reads the heart rate of the last days of whoever is there by then.
    .replace(/("name":"heart_rate","state":)("up_to_date","reason":null|"(not_asked|holes)","reason":"[^"]*")/g, '$1<read>')
    .replace(/"unread_days":\d+/g, '"unread_days":0')
    .replace(/rnm_[\w-]+/g, '<token>');

/** What a command says to a folder that is held by a process without a control socket. */
async function refusedByHolder(): Promise<{ ended: Ended; pid: number }> {
  const settings = settingsFor(join(folder, 'held'));
  placeWarehouse(join(folder, 'held', 'warehouse.duckdb'));
  const holder = startChild(childScript, 'own', join(folder, 'held', 'warehouse.duckdb'));
  held.push(holder.process);
  expect(await holder.line()).toBe('ready');
  return { ended: await ringneck(['status'], { env: settings }), pid: holder.pid };
}

test('every command gives the same through the control socket of a running `up` as without one, and a folder that has no control socket is refused', async () => {
  const [ada, ben] = sandbox.people;
  const backfill = { ...days, refresh: false, plan: false };
  const commands: [keyof AppCommands, object][] = [
    ['addAccount', { name: 'ada', token: ada!.token }],
    ['addAccount', { name: 'ben', token: ben!.token }],
    ['addAccount', { name: 'eve', token: 'no-such-token' }],
    ['addAccount', { name: 'no name', token: 'x' }],
    ['listAccounts', {}],
    ['backfill', { ...backfill, plan: true }],
    ['backfill', backfill],
    ['pauseAccount', { name: 'ben' }],
    ['backfill', { ...backfill, users: ['ben'] }],
    ['backfill', { ...backfill, users: ['nobody'] }],
    ['resumeAccounts', { names: ['ben'] }],
    ['mapAccount', { name: 'ben', serviceUser: 's-2' }],
    ['removeAccount', { name: 'eve' }],
    ['mirrorToken', { name: 'ada' }],
    ['snapshot', {}],
    ['status', {}],
  ];
  const ways = ['alone', 'control'] as const;
  const outputs: Record<string, { name: string; result?: string; message?: string; exitCode?: Ended['code'] }[]> = {};
  for (const way of ways) {
    const data = join(folder, way);
    const settings = settingsFor(data);
    const running = way === 'control' ? await startUp(settings) : undefined;
    outputs[way] = [];
    for (const [name, input] of commands) {
      try {
        const result = await call(sessionOf(settings), name, input as never);
        outputs[way].push({ name, result: timeless(JSON.stringify(result), data) });
      } catch (error) {
        const { message, exitCode } = error as RingneckError;
        outputs[way].push({ name, message: timeless(message, data), exitCode });
      }
    }
    const question = 'SELECT user_id, count(*) AS n, sum(steps) AS steps FROM daily_activity GROUP BY ALL ORDER BY ALL';
    const { code, stdout } = await runHere(['sql', question, '--format', 'json'], { env: settings });
    outputs[way].push({ name: 'sql', result: stdout, exitCode: code });
    running?.up.kill('SIGTERM');
    if (running) expect(await running.up.end()).toMatchObject({ code: 0, stdout: '' });
  }
  const { ended, pid } = await refusal;
  expect(ended).toMatchObject({ code: 75, stdout: '', stderr: expect.stringContaining(`PID ${pid}`) });
  expect(outputs.control).toEqual(outputs.alone);
  expect(outputs.alone!.flatMap(({ name, exitCode }) => (exitCode === undefined ? [] : [[name, exitCode]]))).toEqual([
    ['addAccount', 2],
    ['backfill', 1],
    ['backfill', 2],
    ['sql', 0],
  ]);
  const parsed = (at: number) => JSON.parse(outputs.alone!.at(at)!.result!);
  expect(parsed(2)).toMatchObject({ state: 'parked', warning: expect.stringContaining('refuses') });
  expect(parsed(6)).toMatchObject({ state: 'complete', failures: [], not_asked: [{ user_id: 'eve', state: 'parked' }] });
  expect(parsed(-1)).toHaveLength(2);
  const [alone, control] = await Promise.all(ways.map(way => inspectFile(join(folder, way))));
  expect(control).toEqual(alone);
  expect(alone!.rows).toBeGreaterThan(0);
  for (const name of ['warehouse.duckdb', 'snapshot.duckdb', 'accounts.secret', 'secret.key', 'mirror-tokens.json']) {
    expect((statSync(join(folder, 'control', name)).mode & 0o777).toString(8), name).toBe('600');
  }
});

test('`up` owns the folder, shows that it lives and can write, serves the mirror to its own tokens, and ends well on SIGTERM', async () => {
  const settings = settingsFor(join(folder, 'up'));
  const { up, url, mirror } = await startUp(settings, '--mirror', '0');
  expect(await ask(url, '/health')).toEqual({ status: 200, body: { status: 'ok' } });
  expect(await ask(url, '/ready')).toEqual({ status: 200, body: { status: 'ready' } });

  const [ada] = sandbox.people;
  await addAda(settings);
  expect(await runHere(['backfill', ...range], { env: settings })).toMatchObject({ code: 0, stdout: expect.stringContaining('complete') });
  const { token } = await call(sessionOf(settings), 'mirrorToken', { name: 'ada' });
  const there = await readEverything(sandbox.url, ada!.token, days);
  const here = await readEverything(mirror, token, days);
  for (const [name, documents] of Object.entries(there)) expect(findDifference(documents, here[name]!), name).toBeUndefined();
  for (const stranger of [undefined, ada!.token, 'x']) expect((await ask(mirror, COLLECTIONS.sleep!, stranger)).status).toBe(401);

  up.kill('SIGTERM');
  expect(await up.end()).toMatchObject({ code: 0, stdout: '' });
  const [row] = await withDuckDB(join(folder, 'up/warehouse.duckdb'), async connection =>
    (await connection.runAndReadAll(`SELECT value FROM sync.meta WHERE key = 'ready_at'`)).getRows(),
  );
  expect(Date.now() - Date.parse(String(row![0]))).toBeLessThan(60_000);
});

test('SIGTERM of `up` in the middle of a run leaves it to the next start, which completes it; who waited is told to try later', async () => {
  const data = join(folder, 'resumed');
  const { service, release } = await heldService();
  const settings = { ...settingsFor(data, service.url), ...newQueue() };
  const first = await startUp(settings);
  await addAda(settings);
  const waiting = startRingneck(['backfill', ...range, '--json'], { env: settings });
  while (service.asked.length < 12) await sleep(5);
  const began = Date.now();
  first.up.kill('SIGTERM');
  expect(await first.up.end()).toMatchObject({ code: 0 });
  expect(Date.now() - began).toBeLessThan(8_000);
  expect(await waiting.end()).toMatchObject({ code: 75, stdout: '' });

  release();
  const next = await startUp(settings);
  const unread = async () => {
    const [account] = (await call(sessionOf(settings), 'status', {})).accounts;
    return account!.collections.filter(({ state }) => !['up_to_date', 'not_asked', 'holes'].includes(state));
  };
  while ((await unread()).length) await sleep(250);
  next.up.kill('SIGTERM');
  expect(await next.up.end()).toMatchObject({ code: 0 });
  const runs = await withDuckDB(join(data, 'warehouse.duckdb'), async connection =>
    (await connection.runAndReadAll(`SELECT state, ended_at IS NULL FROM sync.runs WHERE kind = 'backfill'`)).getRows(),
  );
  expect(runs).toEqual([['complete', false]]);
});

test('Ctrl-C ends a backfill with 130 and marks what is not read; the same command goes on and completes', async () => {
  const data = join(folder, 'interrupted');
  const { service, release } = await heldService();
  const settings = settingsFor(data, service.url);
  await addAda(settings);
  const command = ['backfill', ...range, '--json'];
  const backfill = startRingneck(command, { env: settings });
  while (service.asked.length < 12) await sleep(5);
  backfill.kill('SIGINT');
  const ended = await backfill.end();
  expect(ended, ended.stderr).toMatchObject({ code: 130 });
  const { run, windows } = JSON.parse(ended.stdout);
  expect(windows.done).toBeLessThan(windows.planned);
  const states = await withDuckDB(join(data, 'warehouse.duckdb'), async connection =>
    (await connection.runAndReadAll(`SELECT DISTINCT outcome FROM sync.windows WHERE outcome IS DISTINCT FROM 'complete'`)).getRows(),
  );
  expect(states).toEqual([['stopped']]);

  release();
  const again = await runHere(command, { env: settings });
  expect(again, again.stderr).toMatchObject({ code: 0 });
  expect(JSON.parse(again.stdout)).toMatchObject({ run, state: 'complete', failures: [] });
  const { hashes, broken } = await inspectFile(data);
  expect(broken).toEqual([]);
  const undisturbed = join(folder, 'uninterrupted');
  await addAda(settingsFor(undisturbed));
  await call(sessionOf(settingsFor(undisturbed)), 'backfill', { ...days, refresh: false, plan: false });
  expect((await inspectFile(undisturbed)).hashes).toEqual(hashes);
});

test('two commands that come at once are both served, or told to try later', async () => {
  const settings = settingsFor(join(folder, 'at-once'));
  const both = await Promise.all(
    sandbox.people.map(({ name, token }) => ringneck(['account', 'add', name, '--json'], { env: settings, input: token })),
  );
  // Whose owner ends in the very moment of the call is told to try later; nobody fails otherwise, and nothing is half done.
  for (const { code, stderr } of both) expect([0, 75], stderr).toContain(code);
  expect(await call(sessionOf(settings), 'listAccounts', {})).toHaveLength(both.filter(({ code }) => code === 0).length);
});
