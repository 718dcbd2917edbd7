import { join } from 'node:path';
import { runTask } from '../child.ts';
import { makeFolder, type PassCost, runBackfill, warehouseIn, whileServing } from '../pipeline.ts';
import { ALL_SEVEN, COLLECTIONS, ensureRecording } from '../recording.ts';
import { QUEUES, withQueue } from '../redis.ts';
import { listRequests } from '../requests.ts';
import { type Bench, ensureEqual, type Row, ratioOf, showCost, showRatio } from '../row.ts';
import type { Cost } from '../task.ts';

const DELAY_MS = 100;
const LIMIT = 0.45;

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
          limit.push(await runTask('fetch-chains', { url, chains }));
          const { things, hash } = limit.at(-1)!;
          const stored = await runTask<Read>('hash-identities', { path: warehouseIn(folder), collections: COLLECTIONS });
          ensureEqual('waiting', stored, { things, hash });
        }),
      );
      const requests = `${ours.at(-1)!.requests} and ${limit.at(-1)!.requests} requests`;
      bench.say(`waiting, ${queue}, ${round + 1}: ours ${showCost(ours.at(-1)!)}; limit ${showCost(limit.at(-1)!)}; ${requests}`);
    }
    rows.push({
      what: `${bench.allYears} user-years of ${ALL_SEVEN}, ${DELAY_MS} ms for each answer, queue ${queue}`,
      against: 'one chain of pages for each user and collection, all side by side, parsed and not stored',
      limit: `wall ${LIMIT}×`,
      measured: `wall ${showRatio(ours, limit, 'wall')}`,
      holds: ratioOf(ours, limit, 'wall') <= LIMIT,
    });
  }
  return rows;
}
