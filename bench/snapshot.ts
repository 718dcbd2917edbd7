import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { DuckDBInstance } from '@duckdb/node-api';
import { resources } from '../schema/index.ts';
import { keepSnapshots } from '../src/app/snapshot/schedule.ts';
import { Snapshots } from '../src/app/snapshot/snapshots.ts';
import { createLog } from '../src/base/log.ts';
import { textList } from '../src/warehouse/sql.ts';
import { Warehouse } from '../src/warehouse/warehouse.ts';
import { resourceNamed } from './recording.ts';
import { type Bench, median, quantile, type Row } from './row.ts';
import { defineTask, runTask, withCost } from './task.ts';

const DAYS = 365;
const PER_SECOND = 20;
const SNAPSHOT_LIMIT = { lagMs: 10_000, ratio: 2 };

/** How soon readers have what changed, and what that costs the writer. */
export async function measureSnapshot(bench: Bench): Promise<Row[]> {
  const people = bench.manyYears * 1.5;
  const rounds: Kept[] = [];
  let samples = 0;
  for (let round = 0; round < bench.eventRounds; round++) {
    const path = join(bench.newFolder(), 'warehouse.duckdb');
    ({ samples } = await runTask(fillWarehouse, { path, people, days: DAYS }));
    const kept = await runTask(keepSnapshot, { path, people, seconds: bench.eventSeconds, perSecond: PER_SECOND });
    rounds.push(kept);
    bench.say(
      `snapshot ${round + 1}, ${(samples / 1e6).toFixed(0)} M samples: sorted in ${inSeconds(kept.full)}; one document ${inSeconds(kept.first)} after a start, ` +
        `then ${inSeconds(kept.one)}; commits p95 ${quantile(kept.without, 0.95).toFixed(0)} ms without, ${quantile(kept.with, 0.95).toFixed(0)} ms with; ` +
        `there after p50 ${inSeconds(quantile(kept.lag, 0.5))}, at most ${inSeconds(Math.max(...kept.lag))}`,
    );
  }
  const longest = median(rounds.map(({ lag }) => Math.max(...lag)));
  const [without, beside] = [
    median(rounds.map(kept => quantile(kept.without, 0.95))),
    median(rounds.map(kept => quantile(kept.with, 0.95))),
  ];
  const size = `${(samples / 1e6).toFixed(0)} M samples`;
  return [
    {
      what: `document committed → in the published snapshot, ${size}, ${PER_SECOND} activity documents/s for ${bench.eventSeconds} s`,
      against: `a sorted one: ${inSeconds(median(rounds.map(({ full }) => full)))}`,
      limit: `longest ${SNAPSHOT_LIMIT.lagMs / 1000} s`,
      measured: `longest ${inSeconds(longest)}; one alone ${inSeconds(median(rounds.map(({ one }) => one)))}, the first after a start ${inSeconds(median(rounds.map(({ first }) => first)))}`,
      holds: longest <= SNAPSHOT_LIMIT.lagMs,
    },
    {
      what: `document given to the writer → committed, the same, while the snapshot keeps up`,
      against: 'the same without snapshots',
      limit: `p95 ${SNAPSHOT_LIMIT.ratio}×`,
      measured: `p95 ${(beside / without).toFixed(2)}× (${beside.toFixed(0)} / ${without.toFixed(0)} ms)`,
      holds: beside <= SNAPSHOT_LIMIT.ratio * without,
    },
  ];
}

const inSeconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;

export interface FillWarehouseJob {
  path: string;
  people: number;
  days: number;
  /** The collections of which the ledger says that all of it was read long after its last day. */
  settled?: string[];
}

const FROM = '2024-01-01';

/** Activity with its MET minutes and heart rate of many people, as a backfill of all side by side leaves them: month by month. By SQL, which takes a minute for what takes the pipeline ten. */
export const fillWarehouse = defineTask(
  import.meta.url,
  'fillWarehouse',
  async ({ path, people, days, settled = [] }: FillWarehouseJob): Promise<{ samples: number }> => {
    await (await Warehouse.open({ path, resources })).close();
    const instance = await DuckDBInstance.create(path, { threads: '2' });
    const connection = await instance.connect();
    for (const sql of [
      `CREATE TEMP TABLE documents AS SELECT 'user-' || u AS user_id, DATE '${FROM}' + d::INTEGER AS day, row_number() OVER (ORDER BY d // 30, u, d) AS sk
     FROM range(${people}) people(u), range(${days}) days(d)`,
      `INSERT INTO daily_activity (user_id, id, day, sk, fetched_at, content_hash, score, steps, met_start, met_offset, met_interval, met_count)
     SELECT user_id, 'activity-' || user_id || '-' || day, day, sk, TIMESTAMP '2026-01-01' + to_microseconds(sk), md5(sk::VARCHAR)[:22], sk % 100,
       sk % 20000, day + INTERVAL 4 HOUR, 0, 60, 1440 FROM documents ORDER BY sk`,
      `INSERT INTO daily_activity_met (sk, user_id, day, ts, utc_offset, value)
     SELECT sk, user_id, day, day + INTERVAL 4 HOUR + to_minutes(n), 0, 0.9 + (hash(sk, n) % 40)::INTEGER / 10 FROM documents, range(1440) minutes(n) ORDER BY sk, n`,
      `INSERT INTO heart_rate (user_id, ts, utc_offset, bpm, source, fetched_at)
     SELECT user_id, day + to_seconds(n * 220), 0, 50 + hash(sk, n) % 60, 'awake', TIMESTAMP '2026-01-01' + to_microseconds(sk)
     FROM documents, range(390) minutes(n) ORDER BY sk, n`,
      `INSERT INTO sync.windows (run_id, user_id, collection, start_at, end_at, requested_at, read_at, committed_at, requests, documents, removed, outcome, rejected)
     SELECT 'filled', 'user-' || u, unnest([${textList(settled)}]::VARCHAR[]), DATE '${FROM}', DATE '${FROM}' + ${days}, TIMESTAMP '2026-01-01', TIMESTAMP '2026-01-01',
       TIMESTAMP '2026-01-01', 1, ${days}, 0, 'complete', 0 FROM range(${people}) people(u)`,
      'CHECKPOINT',
    ]) {
      await connection.run(sql);
    }
    const [[samples]] = (
      await connection.runAndReadAll('SELECT (SELECT count(*) FROM daily_activity_met) + (SELECT count(*) FROM heart_rate)')
    ).getRows() as [[bigint]];
    connection.closeSync();
    instance.closeSync();
    return { samples: Number(samples) };
  },
);

export interface KeepJob {
  path: string;
  people: number;
  /** How long documents change, with and without snapshots. */
  seconds: number;
  perSecond: number;
}

export interface Kept {
  /** Milliseconds: all sorted. */
  full: number;
  /** From the change of one document to the snapshot that has it, nothing else going on: the first time in a process, and afterwards. */
  first: number;
  one: number;
  /** From handing a document over to its commit, of all documents: without and with snapshots. */
  without: number[];
  with: number[];
  /** From each commit to the snapshot that has it. */
  lag: number[];
}

const CHANGED_DAYS = 300;

/** What snapshots cost and how soon they have what changed. */
export const keepSnapshot = defineTask(
  import.meta.url,
  'keepSnapshot',
  async ({ path, people, seconds, perSecond }: KeepJob): Promise<Kept> => {
    const settings = { snapshot: join(dirname(path), 'snapshot.duckdb'), snapshotMode: 0o600 };
    const log = createLog({ level: 'warn', pretty: false });
    let changes = 0;

    async function open() {
      const warehouse = await Warehouse.open({ path, resources });
      const snapshots = new Snapshots({ settings, warehouse, log });
      return { warehouse, snapshots };
    }
    async function change(warehouse: Warehouse): Promise<number> {
      const n = changes++;
      const day = new Date(Date.UTC(2024, 0, 1 + (n % CHANGED_DAYS))).toISOString().slice(0, 10);
      const userId = `user-${(n * 7) % people}`;
      const items = Array.from({ length: 1440 }, (_, i) => ((i + n) % 40) / 10);
      const document = { id: `activity-${userId}-${day}`, day, steps: n, met: { interval: 60, timestamp: `${day}T04:00:00+00:00`, items } };
      const requestedAt = warehouse.clock.next();
      const start = performance.now();
      await warehouse.storeDocuments(
        { userId, resource: resourceNamed('daily_activity'), requestedAt, documents: [document] },
        { lane: 'live' },
      );
      return performance.now() - start;
    }
    async function timed(work: () => Promise<unknown>): Promise<number> {
      const start = performance.now();
      await work();
      return performance.now() - start;
    }
    /** A steady stream of changes; each is told when it is committed. */
    async function stream(warehouse: Warehouse, onCommit = () => {}): Promise<number[]> {
      const storing: Promise<number>[] = [];
      const start = performance.now();
      for (let n = 0; n < seconds * perSecond; n++) {
        await setTimeout(Math.max(0, start + (n * 1000) / perSecond - performance.now()));
        storing.push(change(warehouse).finally(onCommit));
      }
      return Promise.all(storing);
    }

    let { warehouse, snapshots } = await open();
    const full = await timed(() => snapshots.publish());
    await warehouse.close();
    ({ warehouse, snapshots } = await open());
    const publishOne = async () => {
      await change(warehouse);
      return timed(() => snapshots.refresh());
    };
    const first = await publishOne();
    const one = await publishOne();

    const without = await stream(warehouse);
    let waiting: number[] = [];
    const lag: number[] = [];
    const schedule = keepSnapshots({
      snapshots: {
        get isFresh() {
          return snapshots.isFresh;
        },
        publish: () => snapshots.publish(),
        async refresh() {
          // What is committed before it begins is in it.
          const committed = waiting;
          waiting = [];
          await snapshots.refresh();
          for (const at of committed) lag.push(performance.now() - at);
        },
      },
      isReadingMuch: () => false,
      log,
      sleep: (ms, signal) => setTimeout(ms, undefined, { signal }).catch(() => undefined),
    });
    const beside = await stream(warehouse, () => waiting.push(performance.now()));
    while (waiting.length || !snapshots.isFresh) await setTimeout(50);
    await schedule.close();
    await warehouse.close();
    return { full, first, one, without, with: beside, lag };
  },
);

const LIMIT_SECONDS = 0.5;
const MONTH = `user_id = 'user-007' AND day BETWEEN '2025-03-01' AND '2025-03-31'`;

/** What somebody asks of one person and a month, with the number of rows of the answer. */
const QUESTIONS: Record<string, [sql: string, rows: number]> = {
  met_minutes: [`SELECT day, class, sum(met_minutes) FROM met_minutes WHERE ${MONTH} GROUP BY day, class`, 31 * 6],
  daily: [`SELECT day, average_hrv, steps, night_missing FROM daily WHERE ${MONTH}`, 31],
  baselines: [`SELECT day, value, z_28 FROM baselines WHERE ${MONTH} AND metric = 'average_hrv'`, 31],
};

/** Questions through the views, each from opening the file to its answer, over samples as a snapshot sorts them and as days come in. */
export async function measureQuestions(bench: Bench): Promise<Row[]> {
  const rows: Row[] = [];
  for (const order of ['user', 'day'] as const) {
    const path = join(bench.newFolder(), 'data', 'warehouse.duckdb');
    mkdirSync(join(path, '..'));
    const { samples } = await runTask(fillSamples, { path, years: bench.questionYears, order });
    for (const [view, [question, expected]] of Object.entries(QUESTIONS)) {
      const seconds: number[] = [];
      for (let round = 0; round < bench.rounds; round++) {
        const { cost, result } = await runTask(askOnce, { path, question });
        if (result !== expected) throw new Error(`${view}: ${result} rows instead of ${expected}`);
        seconds.push(cost.wall);
      }
      bench.say(`questions, by ${order}, ${view}: ${seconds.map(each => each.toFixed(3)).join(', ')} s`);
      rows.push({
        what: `a question of one person and a month through ${view}, from opening the file to the answer`,
        against: `${(samples / 1e6).toFixed(0)} M samples, ${order === 'user' ? 'sorted as in a snapshot' : 'as days came in'}`,
        limit: `${LIMIT_SECONDS} s`,
        measured: `${median(seconds).toFixed(2)} s (longest ${Math.max(...seconds).toFixed(2)} s)`,
        holds: median(seconds) <= LIMIT_SECONDS,
      });
    }
  }
  return rows;
}

export interface FillSamplesJob {
  path: string;
  years: number;
  /** How the samples lie: as a snapshot sorts them, or as days come in. */
  order: 'user' | 'day';
}

const DAYS_OF_YEAR = 365;

/** Makes a warehouse of so many user-years, a night and the MET samples of each day: by SQL, since only asking is measured. */
export const fillSamples = defineTask(import.meta.url, 'fillSamples', async ({ path, years, order }: FillSamplesJob) => {
  await (await Warehouse.open({ path, resources })).close();
  const instance = await DuckDBInstance.create(path, { threads: '2', memory_limit: '1GB' });
  const connection = await instance.connect();
  const days = `range(${years}) AS people(person), range(${DAYS_OF_YEAR}) AS days(n)`;
  const head = `printf('user-%03d', person) AS user_id, printf('d-%d-%d', person, n) AS id, DATE '2025-01-01' + n::INTEGER AS day, person * ${DAYS_OF_YEAR} + n AS sk`;
  await connection.run(`INSERT INTO daily_activity BY NAME
    SELECT ${head}, 5000 + (n * 37 + person) % 9000 AS steps, repeat('012345', 48) AS class_5_min, 60 AS met_interval, 1440 AS met_count,
      TIMESTAMP '2025-01-01 04:00:00' + to_days(n::INTEGER) AS timestamp, 0 AS timestamp_offset, timestamp AS met_start, 0 AS met_offset
    FROM ${days}`);
  await connection.run(`INSERT INTO sleep BY NAME
    SELECT ${head}, 'long_sleep' AS type, 40 + (n * 13 + person) % 30 AS average_hrv, 25000 AS total_sleep_duration, 28800 AS time_in_bed,
      TIMESTAMP '2024-12-31 22:00:00' + to_days(n::INTEGER) AS bedtime_start, 0 AS bedtime_start_offset,
      TIMESTAMP '2025-01-01 06:00:00' + to_days(n::INTEGER) AS bedtime_end, 0 AS bedtime_end_offset FROM ${days}`);
  // In steps, each in the order in which its rows shall lie: nothing is sorted, and memory stays small.
  const steps = order === 'user' ? years : DAYS_OF_YEAR;
  for (let step = 0; step < steps; step++) {
    const [person, day] = order === 'user' ? [String(step), 'i // 1440'] : ['i // 1440', String(step)];
    await connection.run(`INSERT INTO daily_activity_met BY NAME
      SELECT ${person} * ${DAYS_OF_YEAR} + ${day} AS sk, printf('user-%03d', ${person}) AS user_id, DATE '2025-01-01' + (${day})::INTEGER AS day,
        TIMESTAMP '2025-01-01 04:00:00' + to_minutes(1440 * (${day}) + i % 1440) AS ts, 0 AS utc_offset, 0.9 + (i * 7919) % 60 / 10 AS value
      FROM range(1440 * ${order === 'user' ? DAYS_OF_YEAR : years}) AS samples(i)`);
  }
  await connection.run('CHECKPOINT');
  connection.closeSync();
  instance.closeSync();
  return { samples: years * DAYS_OF_YEAR * 1440 };
});

/** One question by somebody who opens the file for it, and what it cost. */
export const askOnce = defineTask(import.meta.url, 'askOnce', async ({ path, question }: { path: string; question: string }) =>
  withCost(async () => {
    const instance = await DuckDBInstance.create(path, { access_mode: 'READ_ONLY', threads: '2' });
    const connection = await instance.connect();
    const rows = (await connection.runAndReadAll(question)).currentRowCount;
    connection.closeSync();
    instance.closeSync();
    return rows;
  }),
);
