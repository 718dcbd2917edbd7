import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { hasPostgres, startPostgres, type TestPostgres } from '../test/support/postgres.ts';
import { allAccepted, type EventHarness, showSending, withEventHarness } from './event-harness.ts';
import { measureLag } from './events.ts';
import {
  environmentOf,
  type Folder,
  hashTables,
  MAIN,
  makeFolder,
  type PassCost,
  runBackfill,
  warehouseIn,
  whileServing,
  withQueue,
} from './pipeline.ts';
import { ALL_SEVEN, COLLECTIONS, ensureRecording } from './recording.ts';
import { type Bench, ensureEqual, inMegabytes, median, quantile, type Row, ratioOf, showCost, showRatio } from './row.ts';

const LIMITS = { cpu: 1.6, bytes: 0.6, visibleMs: 80, perSecond: 400 };
const LOAD = { events: 6_000, perSecond: 1_000 };
const PATIENCE_MS = 120_000;

/** A warehouse in a lake against one in its file, by turns: Postgres and a folder on this machine. */
export async function measureLake(bench: Bench): Promise<Row[]> {
  const extensions = process.env.DUCKDB_TEST_EXTENSIONS;
  if (!hasPostgres || extensions === undefined) {
    bench.say('lake: there is no Postgres, or no folder DUCKDB_TEST_EXTENSIONS, so nothing is measured');
    return [];
  }
  const postgres = startPostgres();
  const lakes = new Lakes(postgres, extensions);
  return [...(await measureBackfills(bench, lakes)), ...(await measureEvents(bench, lakes))];
}

/** Makes lakes, each with a catalogue of its own. */
class Lakes {
  readonly #postgres: TestPostgres;
  readonly #extensions: string;
  #count = 0;

  constructor(postgres: TestPostgres, extensions: string) {
    this.#postgres = postgres;
    this.#extensions = extensions;
  }

  /** @param parent where its data lies: a folder that is empty */
  async make(parent: string, url: string, queueUrl: string | undefined): Promise<Folder & { lake: NonNullable<Folder['lake']> }> {
    const catalogue = `lake${++this.#count}`;
    const data = join(parent, 'parquet');
    mkdirSync(data, { recursive: true });
    const warehouse = `ducklake:postgres://ring@/${catalogue}?host=${this.#postgres.folder}&data=${data}`;
    const lake = { warehouse, extensions: this.#extensions, data, catalogue };
    const folder = { data: join(parent, 'data'), url, queueUrl, lake };
    await run(folder, 'lake', 'init', '--as', 'postgres');
    return folder;
  }

  /** Parquet, and Postgres, of which an empty database is 8 MB. */
  sizeOf({ data, catalogue }: NonNullable<Folder['lake']>): { parquet: number; postgres: number } {
    const files = readdirSync(data, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile());
    const parquet = files.reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
    return { parquet, postgres: Number(this.#postgres.psql('postgres', `SELECT pg_database_size('${catalogue}')`)) };
  }
}

async function measureBackfills(bench: Bench, lakes: Lakes): Promise<Row[]> {
  const recording = ensureRecording(bench.allYears, COLLECTIONS);
  const file: PassCost[] = [];
  const lake: PassCost[] = [];
  const bytes: number[] = [];
  let sizes = '';
  for (let round = 0; round < bench.rounds; round++) {
    const scratch = bench.newFolder();
    await withQueue('Redis', join(scratch, 'redis'), queueUrl =>
      whileServing({ recording, collections: COLLECTIONS }, async url => {
        const inFile = await makeFolder({ data: join(scratch, 'data'), url, queueUrl }, recording.users);
        file.push(await runBackfill(inFile, recording, COLLECTIONS));
        await emptyRedis(queueUrl);
        const inLake = await lakes.make(join(scratch, 'lake'), url, queueUrl);
        await makeFolder(inLake, recording.users);
        lake.push(await runBackfill(inLake, recording, COLLECTIONS));
        const size = lakes.sizeOf(inLake.lake);
        bytes.push(size.parquet / lake.at(-1)!.samples);
        sizes = `${inMegabytes(size.parquet)} of Parquet, ${inMegabytes(size.postgres)} of Postgres`;
        const copy = join(scratch, 'copy.duckdb');
        await run(inLake, 'lake', 'export', copy);
        ensureEqual('lake', await hashTables(copy, COLLECTIONS), await hashTables(warehouseIn(inFile), COLLECTIONS));
      }),
    );
    bench.say(`lake, ${round + 1}: lake ${showCost(lake.at(-1)!)}; file ${showCost(file.at(-1)!)}; ${sizes}`);
  }
  return [
    {
      what: `lake: \`ringneck backfill\` of ${bench.allYears} user-years of ${ALL_SEVEN}, queue Redis: the whole process`,
      against: 'the same into the file',
      limit: `CPU ${LIMITS.cpu}×`,
      measured: `CPU ${showRatio(lake, file, 'cpu')}, wall ${showRatio(lake, file, 'wall')}`,
      holds: ratioOf(lake, file, 'cpu') <= LIMITS.cpu,
    },
    {
      what: 'lake: bytes of Parquet for each sample after it, documents included, before any upkeep',
      against: '–',
      limit: String(LIMITS.bytes),
      measured: `${median(bytes).toFixed(2)} (${sizes}, of which 8 MB an empty database)`,
      holds: median(bytes) <= LIMITS.bytes,
    },
  ];
}

async function measureEvents(bench: Bench, lakes: Lakes): Promise<Row[]> {
  const lag: number[] = [];
  const rates: number[] = [];
  const answers: number[] = [];
  for (let round = 0; round < bench.eventRounds; round++) {
    await withEventHarness(
      bench,
      'Redis',
      async harness => {
        lag.push((await measureLag(harness, bench.eventSeconds, text => bench.say(`lake, live, ${round + 1}: ${text}`))).p50);
        const { rate, p50 } = await measureLoad(harness, text => bench.say(`lake, load, ${round + 1}: ${text}`));
        rates.push(rate);
        answers.push(p50);
      },
      (parent, url, queueUrl) => lakes.make(parent, url, queueUrl),
    );
  }
  return [
    {
      what: 'lake: event accepted → row readable, 50 events/s, queue Redis',
      against: '–',
      limit: `p50 ${LIMITS.visibleMs} ms`,
      measured: `p50 ${median(lag).toFixed(0)} ms`,
      holds: median(lag) <= LIMITS.visibleMs,
    },
    {
      what: `lake: documents stored a second while ${LOAD.perSecond} events/s come, queue Redis`,
      against: 'sender, service, Redis, Postgres and pipeline on the same cores',
      limit: `at least ${LIMITS.perSecond}`,
      measured: `${median(rates).toFixed(0)}; an event’s answer p50 ${median(answers).toFixed(0)} ms`,
      holds: median(rates) >= LIMITS.perSecond,
    },
  ];
}

/** Documents a second, from the first event sent until the last is settled. */
async function measureLoad(harness: EventHarness, say: (text: string) => void): Promise<{ rate: number; p50: number }> {
  const { up } = harness;
  const before = up.settled.length;
  const start = performance.now();
  const cpu = up.cpu();
  const sending = await harness.send(LOAD.events, LOAD.perSecond);
  await up.untilSettled(before + LOAD.events, PATIENCE_MS);
  const seconds = (performance.now() - start) / 1000;
  const settled = up.settled.slice(before);
  if (!allAccepted(sending)) throw new Error(`events were refused: ${JSON.stringify(sending.answers)}`);
  const waits = settled.map(({ ms }) => ms);
  say(
    `${settled.length} settled in ${seconds.toFixed(1)} s, CPU ${(up.cpu() - cpu).toFixed(1)} s, waits p50 ${quantile(waits, 0.5).toFixed(0)} ms; ${showSending(sending)}`,
  );
  return { rate: settled.length / seconds, p50: sending.p50 };
}

/** The jobs of one folder are no business of another. */
async function emptyRedis(url: string | undefined): Promise<void> {
  if (url === undefined) return;
  const { Redis } = await import('ioredis');
  const redis = new Redis(url);
  await redis.flushall();
  redis.disconnect();
}

async function run(folder: Folder, ...args: string[]): Promise<void> {
  const command = spawn(process.execPath, [MAIN, ...args], { env: environmentOf(folder), stdio: ['ignore', 'ignore', 'inherit'] });
  const [code] = await once(command, 'exit');
  if (code !== 0) throw new Error(`ringneck ${args.join(' ')} ended with exit code ${code}`);
}
