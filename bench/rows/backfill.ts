import { join } from 'node:path';
import { fetchAndLoad, hashTables, makeFolder, type PassCost, runBackfill, warehouseIn, whileServing } from '../pipeline.ts';
import { ALL_SEVEN, COLLECTIONS, ensureRecording } from '../recording.ts';
import { QUEUES, withQueue } from '../redis.ts';
import { type Bench, ensureEqual, type Row, ratioOf, showCost, showRatio } from '../row.ts';
import type { Cost } from '../task.ts';

const LIMIT = { Redis: { cpu: 1.4, wall: 1.5 }, embedded: { cpu: 1.8, wall: 2 } };

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
    const { cpu, wall } = LIMIT[queue];
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
