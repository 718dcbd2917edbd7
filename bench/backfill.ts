import { join } from 'node:path';
import { addDays } from '../schema/instant.ts';
import { fetchChains } from './limit.ts';
import {
  fetchAndLoad,
  freePort,
  hashIdentities,
  hashTables,
  makeFolder,
  type PassCost,
  QUEUES,
  type QueueKind,
  runBackfill,
  warehouseIn,
  whileServing,
  withQueue,
} from './pipeline.ts';
import { ALL_SEVEN, COLLECTIONS, ensureRecording, listRequests } from './recording.ts';
import { type Bench, ensureEqual, inMegabytes, median, type Row, ratioOf, showCost, showRatio } from './row.ts';
import { type Cost, runTask } from './task.ts';

const BACKFILL_LIMIT = { Redis: { cpu: 1.4, wall: 1.5 }, embedded: { cpu: 1.8, wall: 2 } };

/** The whole of `ringneck backfill` over loopback HTTP, against fetching into files and read_json. */
export async function measureBackfill(bench: Bench): Promise<Row[]> {
  const recording = ensureRecording(bench.allYears, COLLECTIONS);
  const rows: Row[] = [];
  for (const queue of QUEUES) {
    const ours: PassCost[] = [];
    const limit: Cost[] = [];
    for (let round = 0; round < bench.rounds; round++) {
      const scratch = bench.newFolder();
      await withQueue(queue, join(scratch, 'redis'), queueUrl =>
        whileServing({ recording, collections: COLLECTIONS }, async url => {
          const folder = await makeFolder({ data: join(scratch, 'data'), url, queueUrl }, recording.users);
          ours.push(await runBackfill(folder, recording, COLLECTIONS));
          const path = join(scratch, 'limit.duckdb');
          limit.push(await fetchAndLoad(url, path, recording, COLLECTIONS));
          ensureEqual('backfill', await hashTables(warehouseIn(folder), COLLECTIONS), await hashTables(path, COLLECTIONS));
        }),
      );
      bench.say(`backfill, ${queue}, ${round + 1}: ours ${showCost(ours.at(-1)!)}; limit ${showCost(limit.at(-1)!)}`);
    }
    const { cpu, wall } = BACKFILL_LIMIT[queue];
    rows.push({
      what: `\`ringneck backfill\` of ${bench.allYears} user-years of ${ALL_SEVEN} (${(ours[0]!.samples / 1e6).toFixed(1)} M samples), queue ${queue}: the whole process`,
      against: 'fetching the pages with undici into files, then `read_json` into the same tables, in one process',
      limit: `CPU ${cpu}×, wall ${wall}×`,
      measured: `CPU ${showRatio(ours, limit, 'cpu')}, wall ${showRatio(ours, limit, 'wall')}`,
      holds: ratioOf(ours, limit, 'cpu') <= cpu && ratioOf(ours, limit, 'wall') <= wall,
    });
  }
  return rows;
}

const SECOND_PASS_LIMIT = { Redis: 0.45, embedded: 0.5 };

/** Reading again what has not changed, against reading it for the first time. */
export async function measureSecondPass(bench: Bench): Promise<Row[]> {
  const recording = ensureRecording(bench.allYears, COLLECTIONS);
  const rows: Row[] = [];
  for (const queue of QUEUES) {
    const first: PassCost[] = [];
    const second: PassCost[] = [];
    for (let round = 0; round < bench.rounds; round++) {
      const scratch = bench.newFolder();
      await withQueue(queue, join(scratch, 'redis'), queueUrl =>
        whileServing({ recording, collections: COLLECTIONS }, async url => {
          const folder = await makeFolder({ data: join(scratch, 'data'), url, queueUrl }, recording.users);
          first.push(await runBackfill(folder, recording, COLLECTIONS));
          const before = await hashTables(warehouseIn(folder), COLLECTIONS);
          second.push(await runBackfill(folder, recording, COLLECTIONS, { refresh: true }));
          // Windows overlap: of two answers with one document the older may come later, and is then neither stored nor unchanged.
          ensureEqual('second pass', [await hashTables(warehouseIn(folder), COLLECTIONS), second.at(-1)!.samples], [before, 0]);
        }),
      );
      bench.say(`second pass, ${queue}, ${round + 1}: first ${showCost(first.at(-1)!)}; second ${showCost(second.at(-1)!)}`);
    }
    rows.push({
      what: `second, unchanged pass of the same with \`--refresh\`, queue ${queue}: the whole process`,
      against: 'the first pass',
      limit: `CPU ${SECOND_PASS_LIMIT[queue]}×`,
      measured: `CPU ${showRatio(second, first, 'cpu')}`,
      holds: ratioOf(second, first, 'cpu') <= SECOND_PASS_LIMIT[queue],
    });
  }
  return rows;
}

const ONE_DAY_LIMIT = 1.5;

/** What a cron pays each day: one more day of everybody, into a file that has all before it. A round is a day. */
export async function measureOneDay(bench: Bench): Promise<Row[]> {
  const recording = ensureRecording(bench.allYears, COLLECTIONS);
  const rows: Row[] = [];
  for (const queue of QUEUES) {
    const ours: PassCost[] = [];
    const limit: Cost[] = [];
    const scratch = bench.newFolder();
    // The service is the same one each day: what is known of it is known by its address.
    const port = await freePort();
    await withQueue(queue, join(scratch, 'redis'), async queueUrl => {
      const folder = { data: join(scratch, 'data'), url: `http://127.0.0.1:${port}`, queueUrl };
      const path = join(scratch, 'limit.duckdb');
      /** Both sides, at the end of the last of these days: the service has nothing later. */
      const collect = (from: string, to: string) =>
        whileServing({ recording: { ...recording, to }, collections: COLLECTIONS, port }, async url => {
          if (from === recording.from) await makeFolder(folder, recording.users);
          const pass = await runBackfill(folder, { from, to }, COLLECTIONS);
          return { ours: pass, limit: await fetchAndLoad(url, path, { ...recording, from, to }, COLLECTIONS) };
        });
      const first = addDays(recording.to, 1 - bench.rounds);
      await collect(recording.from, addDays(first, -1));
      for (let day = first; day <= recording.to; day = addDays(day, 1)) {
        const costs = await collect(day, day);
        ours.push(costs.ours);
        limit.push(costs.limit);
        bench.say(`one day, ${queue}, ${day}: ours ${showCost(costs.ours)}; limit ${showCost(costs.limit)}`);
      }
      ensureEqual('one day', await hashTables(warehouseIn(folder), COLLECTIONS), await hashTables(path, COLLECTIONS));
    });
    rows.push({
      what: `one more day of the same ${bench.allYears} users, their year is there already, queue ${queue}: the whole process`,
      against: 'fetching this day’s pages into files, then `read_json` into the tables that have the year, in one process',
      limit: `CPU ${ONE_DAY_LIMIT}×`,
      measured: `CPU ${showRatio(ours, limit, 'cpu')}`,
      holds: ratioOf(ours, limit, 'cpu') <= ONE_DAY_LIMIT,
    });
  }
  return rows;
}

const DELAY_MS = 100;
const WAITING_LIMIT = 0.45;

interface Read {
  things: number;
  hash: string;
}

/** A network where each answer takes 100 ms, against one chain of pages for each collection of each account. */
export async function measureWaiting(bench: Bench): Promise<Row[]> {
  const recording = ensureRecording(bench.allYears, COLLECTIONS);
  const chains = listRequests(recording, COLLECTIONS).flatMap(asked =>
    COLLECTIONS.map(name => asked.filter(({ collection }) => collection === name)),
  );
  const rows: Row[] = [];
  for (const queue of QUEUES) {
    const ours: PassCost[] = [];
    const limit: (Cost & Read & { requests: number })[] = [];
    for (let round = 0; round < bench.rounds; round++) {
      const scratch = bench.newFolder();
      await withQueue(queue, join(scratch, 'redis'), queueUrl =>
        whileServing({ recording, collections: COLLECTIONS, delayMs: DELAY_MS }, async url => {
          const folder = await makeFolder({ data: join(scratch, 'data'), url, queueUrl }, recording.users);
          ours.push(await runBackfill(folder, recording, COLLECTIONS));
          limit.push(await runTask(fetchChains, { url, chains }));
          const { things, hash } = limit.at(-1)!;
          const stored = await runTask(hashIdentities, { path: warehouseIn(folder), collections: COLLECTIONS });
          ensureEqual('waiting', stored, { things, hash });
        }),
      );
      const requests = `${ours.at(-1)!.requests} and ${limit.at(-1)!.requests} requests`;
      bench.say(`waiting, ${queue}, ${round + 1}: ours ${showCost(ours.at(-1)!)}; limit ${showCost(limit.at(-1)!)}; ${requests}`);
    }
    rows.push({
      what: `${bench.allYears} user-years of ${ALL_SEVEN}, ${DELAY_MS} ms for each answer, queue ${queue}`,
      against: 'one chain of pages for each user and collection, all side by side, parsed and not stored',
      limit: `wall ${WAITING_LIMIT}×`,
      measured: `wall ${showRatio(ours, limit, 'wall')}`,
      holds: ratioOf(ours, limit, 'wall') <= WAITING_LIMIT,
    });
  }
  return rows;
}

const MEMORY_LIMIT = { embedded: 450e6, Redis: 350e6, growth: 1.2 };

/** Peak resident memory of the command that backfills, of a size and once of one that is many times larger. */
export async function measureMemory(bench: Bench): Promise<Row[]> {
  const recording = ensureRecording(bench.allYears, COLLECTIONS);
  const pass = (queue: QueueKind, accounts: number): Promise<PassCost> => {
    const scratch = bench.newFolder();
    return withQueue(queue, join(scratch, 'redis'), queueUrl =>
      whileServing({ recording, collections: COLLECTIONS, accounts }, async url => {
        const users = Array.from({ length: accounts }, (_, n) => `user-${n + 1}`);
        const folder = await makeFolder({ data: join(scratch, 'data'), url, queueUrl }, users);
        const cost = await runBackfill(folder, recording, COLLECTIONS);
        bench.say(`memory, ${queue}, ${accounts} user-years: ${inMegabytes(cost.peak)}`);
        return cost;
      }),
    );
  };
  const rows: Row[] = [];
  for (const queue of QUEUES) {
    const small: PassCost[] = [];
    for (let round = 0; round < bench.sizeRounds; round++) small.push(await pass(queue, bench.allYears));
    const many = await pass(queue, bench.manyAllYears);
    const few = median(small.map(({ peak }) => peak));
    const highest = Math.max(many.peak, ...small.map(({ peak }) => peak));
    const [fewSamples, manySamples] = [small[0]!, many].map(({ samples }) => `${(samples / 1e6).toFixed(1)} M`);
    rows.push({
      what: `peak memory (RSS) of a backfill of ${ALL_SEVEN}, queue ${queue}`,
      against: `${fewSamples} and ${manySamples} samples, each other`,
      limit: `${inMegabytes(MEMORY_LIMIT[queue])}; ${MEMORY_LIMIT.growth}×`,
      measured: `${inMegabytes(few)} and ${inMegabytes(many.peak)} (highest ${inMegabytes(highest)}); ${(many.peak / few).toFixed(2)}×`,
      holds: highest <= MEMORY_LIMIT[queue] && many.peak / few <= MEMORY_LIMIT.growth,
    });
  }
  return rows;
}
