import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { COLLECTIONS } from '../support/declared.ts';
import { type FaultService, startFaultService } from '../support/fault-service.ts';
import { openHarness } from '../support/harness.ts';
import { startRingneck } from '../support/ringneck.ts';
import { runHere } from '../support/run-here.ts';
import { type Sandbox, startSandbox } from '../support/sandbox.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
const SLEEP = '/v2/usercollection/sleep';
const GOING_ON = 'going on with the backfill of 2025-01-01 to 2025-01-10 that was interrupted\n';
/** Another run, which has little to do. */
const LITTLE = ['backfill', '--from', '2025-01-20', '--to', '2025-01-21', '--resource', 'daily_stress'];
let sandbox: Sandbox;
let service: FaultService;
beforeAll(async () => {
  sandbox = await startSandbox({ count: 1, from: '2025-01-01', to: '2025-01-31' });
  service = await startFaultService({}, { upstream: sandbox.url });
});
afterAll(async () => {
  await service.close();
  await sandbox.close();
});

let folders = 0;
let killed: string | undefined;
/** A copy of a data folder in which a backfill was killed while sleep was held up, as it still is. */
async function killedBackfill(): Promise<{ service: FaultService; env: Record<string, string> }> {
  service.on(SLEEP, { status: 429, headers: { 'retry-after': '1' } });
  killed ??= await killBackfill();
  const data = join(folder, `data${++folders}`);
  // A socket cannot be copied.
  cpSync(killed, data, { recursive: true, filter: path => !/\.sock$|\.control-/.test(path) });
  return { service, env: { RINGNECK_DATA: data, RINGNECK_SERVICE_URL: service.url } };
}

async function killBackfill(): Promise<string> {
  const data = join(folder, 'killed');
  const harness = await openHarness(data, service.url);
  await harness.add([{ name: 'ada', token: sandbox.people[0]!.token }]);
  await harness.close();
  const env = { RINGNECK_DATA: data, RINGNECK_SERVICE_URL: service.url };
  const backfill = startRingneck(['backfill', '--from', '2025-01-01', '--to', '2025-01-10'], { env });
  await backfill.said('windows');
  backfill.kill('SIGKILL');
  await backfill.end();
  return data;
}

const query = async (env: Record<string, string>, sql: string) => (await runHere(['sql', sql, '--format', 'csv'], { env })).stdout;
const RUNS = 'SELECT kind, state FROM sync.runs ORDER BY started_at';

test('a lone command goes on with the backfill that was interrupted until it is done, and tells how it ended', async () => {
  const { service, env } = await killedBackfill();
  const lone = startRingneck([...LITTLE, '--json'], { env });
  await lone.said(GOING_ON);
  service.on(SLEEP, () => undefined);
  const ended = await lone.end();
  expect(ended.code).toBe(0);
  const report = JSON.parse(ended.stdout);
  expect(report).toMatchObject({ from: '2025-01-20', state: 'complete', windows: { planned: 1, done: 1 } });
  expect(report.gone_on).toMatchObject([
    {
      kind: 'backfill',
      from: '2025-01-01',
      to: '2025-01-10',
      state: 'complete',
      windows: { planned: COLLECTIONS.length, done: COLLECTIONS.length },
      failures: [],
    },
  ]);
  expect(ended.stderr.slice(ended.stderr.indexOf(GOING_ON) + GOING_ON.length)).toMatch(/^\d+\/\d+ windows, /);
  expect(await query(env, RUNS)).toBe('kind,state\nbackfill,complete\nbackfill,complete\n');

  const next = await runHere(LITTLE, { env });
  expect(next.stderr).not.toContain('going on');
});

test('what fails in a run that was interrupted is told, and the exit code is 1', async () => {
  const { service, env } = await killedBackfill();
  const lone = startRingneck(LITTLE, { env });
  await lone.said(GOING_ON);
  service.on(SLEEP, { status: 422 });
  const ended = await lone.end();
  expect(ended.code).toBe(1);
  expect(ended.stdout).toMatch(
    /^2025-01-20 to 2025-01-21: complete\n[\s\S]*\nthe backfill of 2025-01-01 to 2025-01-10 that was interrupted: ended with failures\n\d+ of \d+ windows/,
  );
  expect(ended.stderr).toMatch(/\nada +sleep +2025-01-01 +2025-01-10 +/);
});

test('Ctrl-C leaves the run that was interrupted to the next start, and the command’s own is told as it ended', async () => {
  const { service, env } = await killedBackfill();
  const lone = startRingneck(LITTLE, { env });
  await lone.said(GOING_ON);
  lone.kill('SIGINT');
  const ended = await lone.end();
  expect(ended.code).toBe(130);
  expect(ended.stdout).toMatch(
    /^2025-01-20 to 2025-01-21: complete\n[\s\S]*\nthe backfill of 2025-01-01 to 2025-01-10 that was interrupted: not at its end; the next start goes on with it\n/,
  );
  expect(await query(env, RUNS)).toBe('kind,state\nbackfill,running\nbackfill,complete\n');

  service.on(SLEEP, () => undefined);
  const nightly = await runHere(['nightly', '--days', '1'], { env });
  expect(nightly.stdout).toContain('the backfill of 2025-01-01 to 2025-01-10 that was interrupted: complete\n');
  expect(nightly.code).toBe(0);
});

test('Ctrl-C of a repair that waits for it leaves it to the next start too', async () => {
  const { service, env } = await killedBackfill();
  const asked = ['coverage', '--repair', '--from', '2025-01-01', '--to', '2025-01-10'];
  const repair = startRingneck(asked, { env });
  await repair.said(`/${COLLECTIONS.length} windows`);
  repair.kill('SIGINT');
  const ended = await repair.end();
  expect(ended.code).toBe(130);
  expect(ended.stderr).not.toContain('stopped');
  expect(await query(env, RUNS)).toBe('kind,state\nbackfill,running\n');

  service.on(SLEEP, () => undefined);
  const again = await runHere(asked, { env });
  expect(again.code).toBe(0);
  expect(again.stderr).toContain(`/${COLLECTIONS.length} windows`);
  expect(await query(env, RUNS)).toBe('kind,state\nbackfill,complete\n');
});

test('while nobody goes on with it, status calls it interrupted and its days unread, and doctor warns', async () => {
  const { env } = await killedBackfill();
  const status = JSON.parse((await runHere(['status', '--json'], { env })).stdout);
  const sleep = status.accounts[0].collections.find(({ name }: { name: string }) => name === 'sleep');
  expect(sleep).toMatchObject({
    state: 'interrupted',
    reason:
      'the backfill of 2025-01-01 to 2025-01-10 was interrupted: the same command, or any start of ringneck up or ringneck nightly, goes on with it',
  });
  expect(sleep.unread_days).toBeGreaterThan(9);
  const doctor = await runHere(['doctor'], { env });
  expect(doctor.stdout).toMatch(/warn +days +the backfill of 2025-01-01 to 2025-01-10 was interrupted, and nobody goes on with it/);
});
