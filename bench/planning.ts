import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { resources } from '../schema/index.ts';
import { addDays } from '../schema/instant.ts';
import { App } from '../src/app/app.ts';
import type { RunReport } from '../src/app/follow-run.ts';
import { accountEntry } from '../src/ledger/accounts.ts';
import type { RunRequest } from '../src/ledger/runs.ts';
import { type Folder, makeFolder, openSettings, QUEUES, runCommand, warehouseIn, whileServing, withQueue } from './pipeline.ts';
import { ensureRecording, HEART_RATE } from './recording.ts';
import { type Bench, inMegabytes, median, type Row, showCost } from './row.ts';
import { fillWarehouse } from './snapshot.ts';
import { type Cost, defineTask, runTask, withCost } from './task.ts';

const PLANNING_LIMIT = { peak: 400e6, writeMs: 250 };
const TO = '2024-12-31';

/** The plan of a backfill of many years of many people: its memory, and what events notice of it. */
export async function measurePlanning(bench: Bench): Promise<Row[]> {
  const rounds: Planned[] = [];
  for (let round = 0; round < bench.sizeRounds; round++) {
    const data = join(bench.newFolder(), 'data');
    rounds.push(await runTask(planRun, { data, accounts: bench.planAccounts, years: 12, to: TO }));
    const { windows, wall, peak, writes } = rounds.at(-1)!;
    bench.say(
      `planning ${round + 1}: ${windows} windows in ${wall.toFixed(1)} s; ${inMegabytes(peak)}; ${writes.length} live writes, the longest ${Math.max(...writes).toFixed(0)} ms`,
    );
  }
  const peak = Math.max(...rounds.map(planned => planned.peak));
  const longest = Math.max(...rounds.flatMap(({ writes }) => writes));
  const usual = median(rounds.flatMap(({ writes }) => writes));
  return [
    {
      what: `planning 12 years of ${bench.planAccounts} people, ${rounds[0]!.windows.toLocaleString('en')} windows, queue embedded`,
      against: 'peak memory (RSS) of the process; the longest wait of a live write meanwhile',
      limit: `${inMegabytes(PLANNING_LIMIT.peak)}; ${PLANNING_LIMIT.writeMs} ms`,
      measured: `${inMegabytes(peak)}; ${longest.toFixed(0)} ms (median ${usual.toFixed(0)} ms), in ${median(rounds.map(({ wall }) => wall)).toFixed(1)} s`,
      holds: peak <= PLANNING_LIMIT.peak && longest <= PLANNING_LIMIT.writeMs,
    },
  ];
}

export interface PlanJob {
  data: string;
  accounts: number;
  /** The years of each of them up to here. */
  years: number;
  to: string;
}

export interface Planned {
  windows: number;
  /** Seconds until the run was planned and its first windows were in the queue. */
  wall: number;
  /** Of the process, bytes. */
  peak: number;
  /** How long each live write took meanwhile, milliseconds. */
  writes: number[];
}

const WRITE_EVERY_MS = 20;
const LIVE = { userId: 'user-1', resource: resources.find(({ name }) => name === 'daily_sleep')!, lane: 'live' as const };

/** Plans a backfill in a folder of its own, while documents of events are stored. The service says nothing: nothing is fetched. */
export const planRun = defineTask(import.meta.url, 'planRun', async ({ data, accounts, years, to }: PlanJob): Promise<Planned> => {
  const service = await listen();
  const { port } = service.address() as AddressInfo;
  const { settings, log } = openSettings({ data, url: `http://127.0.0.1:${port}` });
  const users = Array.from({ length: accounts }, (_, n) => `user-${n + 1}`);
  const app = await App.open({ settings, log });
  try {
    const since = Date.now() * 1000;
    await app.warehouse.record(users.map(userId => accountEntry({ userId, serviceUserId: null, state: 'active', reason: null, since })));
    const { runs, collections } = await app.pipeline();
    const from = addDays(to, 1 - Math.round(years * 365.25));
    const request: RunRequest = { kind: 'backfill', users, collections: collections.map(({ name }) => name), from, to, refresh: false };
    const writes: number[] = [];
    const planned = new AbortController();
    const writing = writeUntil(planned.signal, app, writes);
    const { cost, result: run } = await withCost(() => runs.start(request));
    planned.abort();
    await writing;
    run.suspend(new Error('only planned'));
    return { windows: run.progress.windows.planned, wall: cost.wall, peak: cost.peak, writes };
  } finally {
    await app.close();
    service.close();
    service.closeAllConnections();
  }
});

async function writeUntil(planned: AbortSignal, { warehouse }: App, writes: number[]): Promise<void> {
  for (let n = 0; !planned.aborted; n++) {
    const requestedAt = warehouse.clock.lease();
    // From when it would have been sent: a process that is busy with something else lets it wait too.
    const due = performance.now();
    const document = { id: `event-${n}`, day: '2025-01-01', timestamp: '2025-01-01T00:00:00.000+00:00', score: 50, contributors: {} };
    await new Promise(resolve => setImmediate(resolve));
    await warehouse.storeDocuments({ ...LIVE, requestedAt, documents: [document] }, { lane: LIVE.lane });
    warehouse.clock.release(requestedAt);
    writes.push(performance.now() - due);
    const wake = performance.now() + WRITE_EVERY_MS;
    await sleep(WRITE_EVERY_MS);
    writes[writes.length - 1]! += Math.max(0, performance.now() - wake);
  }
}

async function listen(): Promise<Server> {
  const service = createServer(() => {}).listen(0, '127.0.0.1');
  await once(service, 'listening');
  return service;
}

const EVERYTHING = [...resources.map(({ name }) => name), HEART_RATE];
const FROM = '2024-01-01';
const DAYS = 365;
/** Who is asked: the others left, and their rows stayed. What is asked is then the same at every size. */
const ACCOUNTS = 5;
const COMMANDS = {
  'settled backfill of a year': ['backfill', '--from', FROM, '--to', addDays(FROM, DAYS - 1)],
  nightly: ['nightly'],
};
const SETTLED_LIMIT = { wall: 2, cpu: 2, growth: 1.25 };

/** A command that finds nothing new, where a snapshot is there: what it costs must not grow with the warehouse. */
export async function measureSettled(bench: Bench): Promise<Row[]> {
  // Its days are others than those that are asked for: all answers are empty.
  const recording = ensureRecording(1, EVERYTHING);
  const costs = new Map<string, { size: string; rounds: Cost[] }[]>();
  for (const people of bench.settledPeople) {
    const scratch = bench.newFolder();
    const data = join(scratch, 'data');
    await whileServing({ recording, collections: EVERYTHING, accounts: ACCOUNTS }, async url => {
      const users = Array.from({ length: ACCOUNTS }, (_, n) => `user-${n}`);
      const { data: filled } = await makeFolder({ data, url }, users);
      const path = warehouseIn({ data: filled, url });
      const { samples } = await runTask(fillWarehouse, { path, people, days: DAYS, settled: EVERYTHING });
      const size = `${(samples / 1e6).toFixed(0)} M`;
      for (const queue of QUEUES) {
        await withQueue(queue, join(dirname(data), `redis-${queue}`), async queueUrl => {
          const folder: Folder = { data, url, queueUrl };
          // What a first time costs is no habit: the queue's database, what the service has of no day.
          for (const command of Object.values(COMMANDS)) await runCommand(folder, ...command);
          await runCommand(folder, 'snapshot');
          for (const [what, command] of Object.entries(COMMANDS)) {
            const rounds: Cost[] = [];
            for (let round = 0; round < bench.rounds; round++) {
              const { cost, report } = await runCommand<RunReport>(folder, ...command);
              if (report.samples || report.removed || report.failures.length)
                throw new Error(`${what} was to find nothing new: ${JSON.stringify(report)}`);
              rounds.push(cost);
              bench.say(`${what}, ${queue}, ${size} rows, ${round + 1}: ${showCost(cost)}; ${report.requests} requests`);
            }
            const key = `${what}, queue ${queue}`;
            costs.set(key, [...(costs.get(key) ?? []), { size, rounds }]);
          }
        });
      }
    });
  }
  return [...costs].map(([what, sizes]): Row => {
    const medians = sizes.map(({ rounds }) => ({
      wall: median(rounds.map(({ wall }) => wall)),
      cpu: median(rounds.map(({ cpu }) => cpu)),
    }));
    const growth = medians.at(-1)!.cpu / medians[0]!.cpu;
    return {
      what: `${what}, finds nothing new where a snapshot is there: the whole process`,
      against: `${ACCOUNTS} accounts beside ${sizes.map(({ size }) => size).join(', ')} rows`,
      limit: `${SETTLED_LIMIT.wall} s, CPU ${SETTLED_LIMIT.cpu} s; CPU ${SETTLED_LIMIT.growth}× from the smallest to the largest`,
      measured: `${medians.map(({ wall, cpu }) => `${wall.toFixed(2)} s, CPU ${cpu.toFixed(2)} s`).join('; ')}; ${growth.toFixed(2)}×`,
      holds: growth <= SETTLED_LIMIT.growth && medians.every(({ wall, cpu }) => wall <= SETTLED_LIMIT.wall && cpu <= SETTLED_LIMIT.cpu),
    };
  });
}
