import { mkdirSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, inject, onTestFinished, test } from 'vitest';
import type { AppCommands } from '../../src/app/commands.ts';
import { connectControl } from '../../src/app/control/connect-control.ts';
import { initLake } from '../../src/warehouse/lake.ts';
import { hasRedis, startRedis } from '../queue/redis-server.ts';
import { SECRET, signed } from '../receiver/signed.ts';
import { openHarness } from '../support/harness.ts';
import { hasBucket, lakePlace, lakeSettings, newCatalogue, startBucket, testPostgres } from '../support/lake.ts';
import { below, pick, type Random, randomFrom } from '../support/random-documents.ts';
import { type Running, startRingneck } from '../support/ringneck.ts';
import { runHere } from '../support/run-here.ts';
import { type Sandbox, startSandbox } from '../support/sandbox.ts';
import { findBroken, hashTables } from '../support/table-hash.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';
import { withDuckDB } from '../support/warehouse.ts';
import { openWay, openWayToPostgres, type Way } from '../support/way.ts';
import { chosen, rounds, seed } from './choice.ts';

const script = fileURLToPath(new URL('../app/standby-up.mjs', import.meta.url));
const clock = new URL('../support/shifted-clock.mjs', import.meta.url).href;
const folder = tempFolder();
const LASTS_MS = 8_000;
/** Longer than a lease lasts, and than any answer is waited for. */
const LONG_MS = 13_000;
const SHIFTS_MS = [0, 10_000, -10_000];
const FAULTS = 8;
const RANGE = { from: '2025-01-01', to: '2025-01-10' };
/** Who is erased in the end. */
const GONE = 'cleo-who-goes';
const NAMES = ['ada', 'ben', GONE];

const [WORKS, WAITS] = ['"msg":"up"', '"msg":"standby: '];

interface Machine {
  data: string;
  running: Running;
  /** To Postgres. */
  way: Way;
  start(): void;
  cli(args: string[], input?: string): ReturnType<typeof runHere>;
}

const urlOf = ({ stderr }: Running) => /"url":"([^"]+)"/.exec(stderr.split('\n').find(line => line.includes('"url":')) ?? '')?.[1];
const works = ({ running }: Machine) => running.process.exitCode === null && running.stderr.includes(WORKS);
const isThere = (machine: Machine) =>
  works(machine) || (machine.running.process.exitCode === null && machine.running.stderr.includes(WAITS));

async function openMachines(sandbox: Sandbox) {
  const [redis, bucket] = [await startRedis('--databases', '2'), await startBucket(mkdtempSync(join(folder, 'bucket-')))];
  onTestFinished(() => redis.remove());
  const toBucket = await openWay({ port: Number(new URL(bucket.endpoint!).port), host: '127.0.0.1' }, { port: 0, host: '127.0.0.1' });
  const { catalogue } = newCatalogue();
  const place = lakePlace(catalogue, 's3://ring/lake', bucket);
  await initLake(place, 'postgres');
  const machines: Machine[] = [];
  for (const [i, shift] of SHIFTS_MS.entries()) {
    const data = mkdtempSync(join(folder, `machine-${i}-`));
    const { way, folder: socket } = await openWayToPostgres();
    const lake = lakeSettings(catalogue, 's3://ring/lake');
    const env = {
      ...{ RINGNECK_DATA: data, RINGNECK_SERVICE_URL: sandbox.url, RINGNECK_PORT: '0', RINGNECK_QUEUE_URL: redis.url },
      ...{ ...lake, RINGNECK_WAREHOUSE: lake.RINGNECK_WAREHOUSE.replace(testPostgres().folder, socket) },
      ...{
        RINGNECK_LAKE_KEY: bucket.key!,
        RINGNECK_LAKE_SECRET: bucket.secret!,
        RINGNECK_LAKE_ENDPOINT: `http://127.0.0.1:${toBucket.port}`,
      },
      ...{ RINGNECK_SECRET_KEY: 'the key of all machines', RINGNECK_CALLBACK_URL: 'http://127.0.0.1:9/webhook' },
      ...{ RINGNECK_VERIFICATION_TOKEN: 'a-word-of-ours', RINGNECK_CLIENT_ID: 'client-7', RINGNECK_CLIENT_SECRET: SECRET },
    };
    const start = () =>
      startRingneck([inject('compiled'), String(LASTS_MS)], {
        env: { ...env, SHIFT_MS: String(shift), NODE_OPTIONS: `--import ${clock}` },
        main: script,
      });
    const machine: Machine = {
      ...{ data, way, running: start() },
      start: () => {
        machine.running = start();
      },
      cli: (args, input = '') => runHere(args, { env, input }),
    };
    machines.push(machine);
  }
  return { machines, redis, toBucket, catalogue };
}

/** The documents that the service has, by type. */
async function listDocuments({ url, people }: Sandbox): Promise<{ data_type: string; object_id: string; user_id: string }[]> {
  const found = [];
  for (const { userId, token } of people) {
    for (const data_type of ['daily_sleep', 'daily_activity', 'sleep']) {
      const address = `${url}/v2/usercollection/${data_type}?start_date=${RANGE.from}&end_date=${RANGE.to}`;
      const answer = await fetch(address, { headers: { authorization: `Bearer ${token}` } });
      const { data } = (await answer.json()) as { data: { id: string }[] };
      found.push(...data.map(({ id }) => ({ data_type, object_id: id, user_id: userId })));
    }
  }
  return found;
}

/** Sends events to every machine, one after the other, until it is ended; gives the moments by which those are known that were acknowledged. */
function sendEvents(random: Random, machines: Machine[], documents: Awaited<ReturnType<typeof listDocuments>>) {
  const acknowledged: { event_time: string; user_id: string }[] = [];
  let isOver = false;
  const sending = (async () => {
    for (let sent = 0; !isOver; sent++) {
      const { running } = machines[sent % machines.length]!;
      const event_time = new Date(Date.UTC(2025, 5, 1) + sent * 1000).toISOString().replace('.000Z', '+00:00');
      const document = pick(random, documents);
      const body = JSON.stringify({ event_type: 'update', event_time, ...document });
      const { timestamp, signature } = signed(body, String(Math.floor(Date.now() / 1000)));
      const headers = { 'x-service-timestamp': timestamp, 'x-service-signature': signature };
      const answer = fetch(`${urlOf(running)}/webhook`, { method: 'POST', headers, body, signal: AbortSignal.timeout(2_000) });
      const status = await answer.then(
        ({ status }) => status,
        () => 0,
      );
      if (status === 204) acknowledged.push({ event_time, user_id: document.user_id });
      await sleep(30);
    }
  })();
  return async () => {
    isOver = true;
    await sending;
    return acknowledged;
  };
}

/** The files of a folder that hold one of the words. */
const findTold = (data: string, words: string[]): string[] =>
  readdirSync(data, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
    .filter(file => words.some(word => readFileSync(file).includes(word)));

test.skipIf(!hasBucket || !hasRedis)(`machines of a lake go through all that can happen to them, ${chosen}`, async () => {
  for (let round = 0; round < Math.max(1, Math.ceil(rounds / 20)); round++) await runRound(seed + round);
});

async function runRound(roundSeed: number): Promise<void> {
  const random = randomFrom(roundSeed);
  const sandbox = await startSandbox({ count: NAMES.length, ...RANGE });
  const { machines, redis, toBucket, catalogue } = await openMachines(sandbox);
  const { stop, start, psql } = testPostgres();
  const happened: string[] = [];
  const all = () => `seed ${roundSeed}: ${happened.join(', ')}`;
  const findWorking = async () => {
    await until(`one works (${all()})`, () => machines.some(works), 90_000);
    return machines.find(works)!;
  };
  const restartEnded = () => {
    for (const machine of machines) if (machine.running.process.exitCode !== null || machine.running.process.signalCode) machine.start();
  };
  const supervising = setInterval(restartEnded, 200);
  onTestFinished(() => clearInterval(supervising));
  const first = await findWorking();
  for (const [i, { token }] of sandbox.people.entries()) {
    const added = await first.cli(['account', 'add', NAMES[i]!], token);
    expect(added.code, added.stderr).toBe(0);
  }
  await until('the others wait', () => machines.every(isThere), 90_000);
  const endSending = sendEvents(random, machines, await listDocuments(sandbox));

  const during = async (way: Way, behaviour: Way['behaviour'], ms: number) => {
    way.behaviour = behaviour;
    await sleep(ms);
    way.behaviour = 'open';
  };
  const faults: Record<string, (machine: Machine) => Promise<void>> = {
    kill: async ({ running }) => running.kill('SIGKILL'),
    end: async ({ running }) => running.kill('SIGTERM'),
    freeze: async ({ running }) => {
      running.kill('SIGSTOP');
      await sleep(LONG_MS);
      running.kill('SIGCONT');
    },
    blink: async ({ running }) => {
      running.kill('SIGSTOP');
      await sleep(below(random, LASTS_MS));
      running.kill('SIGCONT');
    },
    'cut off from Postgres': ({ way }) => during(way, 'cut', LONG_MS),
    'slow Postgres': ({ way }) => during(way, 'slow', LONG_MS),
    'Postgres restarts': async () => {
      stop();
      start();
    },
    'Redis is killed': async () => {
      await redis.kill();
      await sleep(below(random, 3_000));
      await redis.start();
    },
    'Redis is emptied': () => redis.empty(),
    'S3 refuses': () => during(toBucket, 'refused', 5_000),
    'S3 is slow': () => during(toBucket, 'slow', 5_000),
    'S3 is cut off': () => during(toBucket, 'cut', LONG_MS),
    backfill: async ({ data }) => {
      const control = await connectControl<AppCommands>(data).catch(() => undefined);
      void control?.call('backfill', { ...RANGE, refresh: true, plan: false }, { onEvent: () => undefined }).catch(() => undefined);
    },
  };
  for (let n = 0; n < FAULTS; n++) {
    const worker = machines.find(works);
    const machine = random() < 0.6 && worker ? worker : pick(random, machines);
    const name = pick(random, Object.keys(faults));
    happened.push(`${name} ${machines.indexOf(machine)}`);
    await faults[name]!(machine);
    await sleep(below(random, 4_000));
  }
  const acknowledged = await endSending();
  await until(`one works, and the others wait (${all()})`, () => machines.some(works) && machines.every(isThere), 120_000);
  const open = () => Number(psql(catalogue, 'SELECT count(*) FROM ringneck.inbox WHERE done IS NULL').trim());
  await until(`all events have their outcome (${all()})`, () => open() === 0, 300_000);
  const eraser = await findWorking();
  await until('the person is known', async () => (await eraser.cli(['account', 'list'])).stdout.includes(GONE));
  // Each has copies of its own.
  for (const { cli } of machines) expect((await cli(['sql', 'SELECT DISTINCT user_id FROM sync.accounts'])).stdout).toContain(GONE);
  const control = await connectControl<AppCommands>(eraser.data);
  control?.call('eraseAccount', { name: GONE }).catch(() => undefined);
  await sleep(below(random, 8_000));
  const ending = pick(random, ['SIGKILL', 'SIGSTOP'] as const);
  happened.push(`${ending} ${machines.indexOf(eraser)} as it erases`);
  const { running: ended } = eraser;
  ended.kill(ending);
  await until(`another one works (${all()})`, () => machines.some(machine => machine.running !== ended && works(machine)), 120_000);
  ended.kill('SIGCONT');
  const isListed = async () => {
    const { code, stdout } = await (await findWorking()).cli(['account', 'list']);
    return code !== 0 || stdout.includes(GONE);
  };
  // Killed before it had begun.
  if (await isListed()) await (await findWorking()).cli(['account', 'remove', GONE, '--erase', '--yes']);
  await until(`the person is erased (${all()})`, async () => !(await isListed()), 120_000);
  await until(`one works, and the others wait (${all()})`, () => machines.some(works) && machines.every(isThere), 120_000);
  const gone = sandbox.people[NAMES.indexOf(GONE)]!;
  const told = () => machines.flatMap(({ data }) => findTold(data, [GONE, gone.userId]));
  await until(`nothing of the person is left (${all()})`, () => told().length === 0, 30_000).catch(() => undefined);
  expect(told(), all()).toEqual([]);
  const last = await findWorking();
  const run = await last.cli(['backfill', '--from', RANGE.from, '--to', RANGE.to, '--json']);
  expect(JSON.parse(run.stdout), all()).toMatchObject({ state: 'complete', failures: [] });
  const out = join(folder, `out-${roundSeed}`);
  mkdirSync(out);
  const file = join(out, 'lake.duckdb');
  const exported = await last.cli(['lake', 'export', file]);
  expect(exported.code, exported.stderr).toBe(0);
  const plain = await openHarness(join(out, 'plain'), sandbox.url);
  await plain.add(sandbox.people.flatMap(({ token }, i) => (NAMES[i] === GONE ? [] : [{ name: NAMES[i]!, token }])));
  await plain.backfill(RANGE);
  await withDuckDB(file, async connection => {
    const read = async (sql: string) => (await connection.runAndReadAll(sql)).getRows() as unknown[][];
    expect(await hashTables(read), all()).toEqual(await plain.hash());
    expect(await findBroken(read), all()).toEqual([]);
    const events = await read(`SELECT strftime(event_time, '%Y-%m-%dT%H:%M:%S+00:00'), outcome FROM sync.events ORDER BY 1`);
    const times = events.map(([time]) => String(time));
    const missing = acknowledged.filter(({ event_time, user_id }) => user_id !== gone.userId && !times.includes(event_time));
    expect(missing, all()).toEqual([]);
    expect(times.length - new Set(times).size, `twice (${all()})`).toBe(0);
    const outcomes = new Set(events.map(([, outcome]) => outcome));
    expect(
      [...outcomes].filter(outcome => outcome !== 'stored' && outcome !== 'unchanged'),
      all(),
    ).toEqual([]);
    process.stderr.write(`${all()}: ${acknowledged.length} events acknowledged, ${times.length} stored\n`);
  });
  for (const { running } of machines) {
    clearInterval(supervising);
    running.kill('SIGTERM');
  }
  await Promise.all(machines.map(({ running }) => running.end()));
  await sandbox.close();
}
