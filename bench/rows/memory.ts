import { join } from 'node:path';
import { makeFolder, type PassCost, runBackfill, whileServing } from '../pipeline.ts';
import { ALL_SEVEN, COLLECTIONS, ensureRecording } from '../recording.ts';
import { QUEUES, type QueueKind, withQueue } from '../redis.ts';
import { type Bench, inMegabytes, median, type Row } from '../row.ts';

const LIMIT = { embedded: 450e6, Redis: 350e6, growth: 1.2 };

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
      limit: `${inMegabytes(LIMIT[queue])}; ${LIMIT.growth}×`,
      measured: `${inMegabytes(few)} and ${inMegabytes(many.peak)} (highest ${inMegabytes(highest)}); ${(many.peak / few).toFixed(2)}×`,
      holds: highest <= LIMIT[queue] && many.peak / few <= LIMIT.growth,
    });
  }
  return rows;
}
