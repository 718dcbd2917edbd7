import { join } from 'node:path';
import { addDays } from '../../schema/instant.ts';
import { fetchAndLoad, hashTables, makeFolder, type PassCost, runBackfill, warehouseIn, whileServing } from '../pipeline.ts';
import { COLLECTIONS, ensureRecording } from '../recording.ts';
import { freePort, QUEUES, withQueue } from '../redis.ts';
import { type Bench, ensureEqual, type Row, ratioOf, showCost, showRatio } from '../row.ts';
import type { Cost } from '../task.ts';

const LIMIT = 1.5;

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
      limit: `CPU ${LIMIT}×`,
      measured: `CPU ${showRatio(ours, limit, 'cpu')}`,
      holds: ratioOf(ours, limit, 'cpu') <= LIMIT,
    });
  }
  return rows;
}
