import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { resources } from '../schema/index.ts';
import { MICROS_PER_DAY } from '../schema/instant.ts';
import { heartRateCollection } from '../src/sync/collections.ts';
import { Warehouse } from '../src/warehouse/warehouse.ts';
import { answerFile, readJson } from './limit.ts';
import { writeLimitSql } from './limit-sql.ts';
import { hashTables, makeFolder, runBackfill, warehouseIn, whileServing } from './pipeline.ts';
import { answersOf, ensureRecording, HEART_RATE, partOf, type Recording, readRecorded, resourceNamed } from './recording.ts';
import { type Bench, ensureEqual, median, type Row, ratioOf, showCost, showRatio } from './row.ts';
import { HEART_RATE_PAGE_SIZE, PAGE_SIZE } from './serve.ts';
import { type Cost, defineTask, runTask, withCost } from './task.ts';

const COLLECTION = 'daily_activity';
const WRITE_PATH_LIMIT = { cpu: 1.25, wall: 1.8 };

/** From JSON in memory to committed rows, against read_json over the same bytes in files. */
export async function measureWritePath(bench: Bench): Promise<Row[]> {
  const recording = ensureRecording(bench.years, [COLLECTION]);
  const ours: Cost[] = [];
  const limit: Cost[] = [];
  for (let round = 0; round < bench.rounds; round++) {
    const folder = bench.newFolder();
    const answers = join(folder, 'answers');
    mkdirSync(join(answers, COLLECTION), { recursive: true });
    for (const user of recording.users) {
      answersOf(readRecorded(recording, user, COLLECTION), PAGE_SIZE).forEach((body, page) => {
        writeFileSync(join(answers, COLLECTION, answerFile(user, page)), body);
      });
    }
    const paths = { ours: join(folder, 'ours', 'warehouse.duckdb'), limit: join(folder, 'limit.duckdb') };
    ours.push(await runTask(storeAnswers, { recording, collection: COLLECTION, path: paths.ours, pageSize: PAGE_SIZE }));
    limit.push(await runTask(readJson, { path: paths.limit, sql: writeLimitSql([COLLECTION], answers) }));
    ensureEqual('write path', await hashTables(paths.ours, [COLLECTION]), await hashTables(paths.limit, [COLLECTION]));
    bench.say(`write path ${round + 1}: ours ${showCost(ours.at(-1)!)}; limit ${showCost(limit.at(-1)!)}`);
  }
  return [
    {
      what: `write path: daily_activity of ${bench.years} user-years, JSON pages in memory to committed rows`,
      against: 'DuckDB’s `read_json` on the same bytes into the same tables',
      limit: `CPU ${WRITE_PATH_LIMIT.cpu}×, wall ${WRITE_PATH_LIMIT.wall}×`,
      measured: `CPU ${showRatio(ours, limit, 'cpu')}, wall ${showRatio(ours, limit, 'wall')}`,
      holds: ratioOf(ours, limit, 'cpu') <= WRITE_PATH_LIMIT.cpu && ratioOf(ours, limit, 'wall') <= WRITE_PATH_LIMIT.wall,
    },
  ];
}

const MET = 'daily_activity';
const HEART_RATE_LIMIT = 4;

/** What one more row of heart rate costs, against one more MET sample with its share of the document: the write path alone. */
export async function measureHeartRate(bench: Bench): Promise<Row[]> {
  const recordings = { [HEART_RATE]: ensureRecording(bench.years, [HEART_RATE]), [MET]: ensureRecording(bench.years, [MET]) };
  const micros: Record<string, number[]> = { [HEART_RATE]: [], [MET]: [] };
  for (let round = 0; round < bench.rounds; round++) {
    for (const [collection, recording] of Object.entries(recordings)) {
      const pageSize = collection === HEART_RATE ? HEART_RATE_PAGE_SIZE : PAGE_SIZE;
      const store = (years: number) => {
        const job = { recording: { ...recording, users: recording.users.slice(0, years) }, collection, pageSize };
        return runTask(storeAnswers, { ...job, path: join(bench.newFolder(), 'warehouse.duckdb') });
      };
      const few = await store(Math.ceil(bench.years / 4));
      const many = await store(bench.years);
      micros[collection]!.push(((many.cpu - few.cpu) / (many.samples - few.samples)) * 1e6);
    }
    bench.say(
      `heart rate ${round + 1}: ${micros[HEART_RATE]!.at(-1)!.toFixed(2)} µs a row; MET ${micros[MET]!.at(-1)!.toFixed(2)} µs a sample`,
    );
  }
  const [ours, met] = [median(micros[HEART_RATE]!), median(micros[MET]!)];
  return [
    {
      what: `one more row of heart rate, JSON pages in memory to COMMIT: from ${Math.ceil(bench.years / 4)} to ${bench.years} user-years`,
      against: 'one more MET sample with its share of daily_activity, the same way',
      limit: `CPU ${HEART_RATE_LIMIT}×`,
      measured: `CPU ${(ours / met).toFixed(1)}× (${ours.toFixed(2)} / ${met.toFixed(2)} µs)`,
      holds: ours / met <= HEART_RATE_LIMIT,
    },
  ];
}

const DISK_COLLECTIONS = ['daily_activity'];
const DISK_LIMIT = 1.75;

/** The closed file by its rows of samples: stored one user after another, and as the pipeline does it, all users side by side. */
export async function measureDisk(bench: Bench): Promise<Row[]> {
  const recording = ensureRecording(bench.years, DISK_COLLECTIONS);
  const bytesOfRow = async (path: string) => {
    const { bytes, rows } = await runTask(measureFile, { path, table: 'daily_activity_met' });
    return bytes / rows;
  };
  const ordered: number[] = [];
  const together: number[] = [];
  for (let round = 0; round < bench.sizeRounds; round++) {
    const scratch = bench.newFolder();
    const path = join(scratch, 'ordered', 'warehouse.duckdb');
    await runTask(storeAnswers, { recording, collection: DISK_COLLECTIONS[0], path, pageSize: PAGE_SIZE });
    ordered.push(await bytesOfRow(path));
    await whileServing({ recording, collections: DISK_COLLECTIONS }, async url => {
      const folder = await makeFolder({ data: join(scratch, 'data'), url }, recording.users);
      await runBackfill(folder, recording, DISK_COLLECTIONS);
      together.push(await bytesOfRow(warehouseIn(folder)));
    });
    bench.say(
      `disk ${round + 1}: ${ordered.at(-1)!.toFixed(2)} bytes a row in the order of users, ${together.at(-1)!.toFixed(2)} side by side`,
    );
  }
  return [
    {
      what: 'bytes on disk for each row of samples, daily_activity with its documents, stored in the order of users',
      against: '–',
      limit: String(DISK_LIMIT),
      measured: `${median(ordered).toFixed(2)} (a backfill of all users side by side, ledger included: ${median(together).toFixed(2)})`,
      holds: median(ordered) <= DISK_LIMIT,
    },
  ];
}

export interface StoreJob {
  recording: Recording;
  collection: string;
  path: string;
  pageSize: number;
}

/** What is stored at once: a page of documents, or all pages of a window of heart rate. Microseconds. */
interface Part {
  userId: string;
  bodies: Buffer[];
  from: number;
  to: number;
}

/** Parts taken in before the first of them must be committed. */
const PARTS_AHEAD = 20;

/** The write path: JSON in memory to committed rows, accounts one after another. */
export const storeAnswers = defineTask(import.meta.url, 'storeAnswers', async ({ recording, collection, path, pageSize }: StoreJob) => {
  const [first, end] = [Date.parse(recording.from) * 1000, Date.parse(recording.to) * 1000 + MICROS_PER_DAY];
  const parts = recording.users.flatMap((userId): Part[] => {
    const recorded = readRecorded(recording, userId, collection);
    if (collection !== HEART_RATE) return answersOf(recorded, pageSize).map(body => ({ userId, bodies: [body], from: first, to: end }));
    const windows: Part[] = [];
    for (let from = first; from < end; from += heartRateCollection.windowDays! * MICROS_PER_DAY) {
      const to = Math.min(from + heartRateCollection.windowDays! * MICROS_PER_DAY, end);
      windows.push({ userId, bodies: answersOf(partOf(recorded, from / 1000, to / 1000), pageSize), from, to });
    }
    return windows;
  });
  const warehouse = await Warehouse.open({ path, resources });
  const store = ({ userId, bodies, from, to }: Part) => {
    const requestedAt = warehouse.clock.lease();
    const things = bodies.flatMap(body => (JSON.parse(body.toString()) as { data: unknown[] }).data);
    const stored =
      collection === HEART_RATE
        ? warehouse.storeHeartRate({ userId, from, to, requestedAt, rows: things })
        : warehouse.storeDocuments({ userId, resource: resourceNamed(collection), requestedAt, documents: things });
    return stored.finally(() => warehouse.clock.release(requestedAt));
  };
  const { cost, result: samples } = await withCost(async () => {
    const storing: Promise<{ samples: number }>[] = [];
    let stored = 0;
    for (const part of parts) {
      storing.push(store(part));
      if (storing.length >= PARTS_AHEAD) stored += (await storing.shift()!).samples;
    }
    for (const each of storing) stored += (await each).samples;
    return stored;
  });
  await warehouse.close();
  return { ...cost, samples };
});

/** How large a closed file is, and how many rows of samples are in it. */
export const measureFile = defineTask(import.meta.url, 'measureFile', async ({ path, table }: { path: string; table: string }) => {
  const bytes = statSync(path).size;
  const instance = await DuckDBInstance.create(path, { access_mode: 'READ_ONLY' });
  const connection = await instance.connect();
  const rows = Number((await connection.runAndReadAll(`SELECT count(*) FROM "${table}"`)).getRows()[0]![0]);
  connection.closeSync();
  instance.closeSync();
  return { bytes, rows };
});
