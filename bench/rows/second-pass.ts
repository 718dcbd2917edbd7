import { join } from 'node:path';
import { hashTables, makeFolder, type PassCost, runBackfill, warehouseIn, whileServing } from '../pipeline.ts';
import { COLLECTIONS, ensureRecording } from '../recording.ts';
import { QUEUES, withQueue } from '../redis.ts';
import { type Bench, ensureEqual, type Row, ratioOf, showCost, showRatio } from '../row.ts';

const LIMIT = { Redis: 0.45, embedded: 0.5 };

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
      limit: `CPU ${LIMIT[queue]}×`,
      measured: `CPU ${showRatio(second, first, 'cpu')}`,
      holds: ratioOf(second, first, 'cpu') <= LIMIT[queue],
    });
  }
  return rows;
}
