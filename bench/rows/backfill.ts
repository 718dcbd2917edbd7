import { join } from 'node:path';
import { runTask } from '../child.ts';
import { hashTables, makeFolder, type PassCost, runBackfill, warehouseIn, whileServing } from '../pipeline.ts';
import { ensureRecording } from '../recording.ts';
import { hasRedis, startRedis } from '../redis.ts';
import { type Bench, ensureEqual, type Row, ratioOf, showCost, showRatio } from '../row.ts';
import type { Cost } from '../task.ts';

const COLLECTIONS = ['daily_activity'];
const TABLES = ['daily_activity', 'daily_activity_met'];
const LIMIT = { cpu: 2, wall: 2.5 };

/** The whole of `ringneck backfill` over loopback HTTP, against fetching into files and read_json. */
export async function measureBackfill(bench: Bench): Promise<Row[]> {
  const recording = ensureRecording(bench.years, COLLECTIONS);
  const rows: Row[] = [];
  for (const queue of hasRedis ? (['embedded', 'Redis'] as const) : (['embedded'] as const)) {
    const ours: PassCost[] = [];
    const limit: Cost[] = [];
    for (let round = 0; round < bench.rounds; round++) {
      const scratch = bench.newFolder();
      const redis = queue === 'Redis' ? await startRedis(join(scratch, 'redis')) : undefined;
      try {
        await whileServing({ recording, collections: COLLECTIONS }, async url => {
          const folder = await makeFolder({ data: join(scratch, 'data'), url, queueUrl: redis?.url }, recording.users);
          ours.push(await runBackfill(folder, recording, COLLECTIONS));
          const path = join(scratch, 'limit.duckdb');
          const { users, from, to } = recording;
          limit.push(await runTask('fetch-and-load', { url, users, from, to, path, answers: join(scratch, 'answers') }));
          ensureEqual('backfill', await hashTables(warehouseIn(folder), TABLES), await hashTables(path, TABLES));
        });
      } finally {
        await redis?.stop();
      }
      bench.say(`backfill, ${queue}, ${round + 1}: ours ${showCost(ours.at(-1)!)}; limit ${showCost(limit.at(-1)!)}`);
    }
    rows.push({
      what: `whole backfill of the same over loopback HTTP, queue (${queue}) and ledger included`,
      against: 'fetching the pages with undici into files, then `read_json`',
      limit: `CPU ${LIMIT.cpu}×, wall ${LIMIT.wall}×`,
      measured: `CPU ${showRatio(ours, limit, 'cpu')}, wall ${showRatio(ours, limit, 'wall')}`,
      holds: ratioOf(ours, limit, 'cpu') <= LIMIT.cpu && ratioOf(ours, limit, 'wall') <= LIMIT.wall,
    });
  }
  return rows;
}
