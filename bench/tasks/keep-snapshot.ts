import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { resources } from '../../schema/index.ts';
import { keepSnapshots } from '../../src/app/snapshot/schedule.ts';
import { Snapshots } from '../../src/app/snapshot/snapshots.ts';
import { createLog } from '../../src/base/log.ts';
import { Warehouse } from '../../src/warehouse/warehouse.ts';
import { resourceNamed } from '../recording.ts';
import { performTask } from '../task.ts';

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

const DAYS = 300;

/** What snapshots cost and how soon they have what changed. */
performTask(async ({ path, people, seconds, perSecond }: KeepJob): Promise<Kept> => {
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
    const day = new Date(Date.UTC(2024, 0, 1 + (n % DAYS))).toISOString().slice(0, 10);
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
});
